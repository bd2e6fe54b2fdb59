/** What people change while a run is trained: asked for through its inbox, or made again where an earlier process made it. */

import { TrainError } from '../base/errors.ts';
import { type Adjustment, openInbox, writeAdjustments } from '../runs/inbox.ts';
import type { Progress } from './algorithm.ts';
import type { TrainEvent } from './events.ts';

export interface HandChanges {
  /** Whether someone asked the run to stop. */
  readonly stopped: boolean;
  /** Before each iteration: does what is due in it, and what was asked since the last. */
  apply(): void;
  /** Answers whoever still waits; `ended` says how the run ended. */
  close(ended: string): void;
}

/** The side of a trainer that people may change. */
interface Adjustable {
  readonly config: object;
  readonly counters: Progress;
  adjust(changes: Readonly<Record<string, number | null>>): void;
}

/** `earlier` are those of processes before; `rewrite` if they are fewer than on the disk. */
export function handChanges(
  trainer: Adjustable,
  runDir: string,
  { earlier, rewrite }: { readonly earlier: readonly Adjustment[]; readonly rewrite: boolean },
  onEvent: (event: TrainEvent, iteration: number) => void,
): HandChanges {
  const inbox = openInbox(runDir);
  let changes = earlier;
  if (rewrite) writeAdjustments(runDir, changes);
  const waiting: string[] = [];
  let stopped = false;

  const setting = (key: string): unknown => (trainer.config as Record<string, unknown>)[key];
  const make = (change: Adjustment): unknown => {
    const from = setting(change.key);
    trainer.adjust({ [change.key]: change.value });
    return from;
  };
  const tell = ({ iteration, key, value, by }: Adjustment, from: unknown): void =>
    onEvent({ type: 'act', what: `${key} ${from} to ${value}`, by }, iteration);

  return {
    get stopped() {
      return stopped;
    },
    apply() {
      const iteration = trainer.counters.iteration + 1;
      for (const change of changes) if (change.iteration === iteration) tell(change, make(change));
      for (const { id, request } of inbox.take()) {
        if (request.type === 'stop') {
          stopped = true;
          waiting.push(id);
          continue;
        }
        const { key, value, by } = request;
        const change = { iteration, key, value, by };
        try {
          const from = make(change);
          // On the disk before it has any effect: from here on it is as good as in the config.
          changes = [...changes, change];
          writeAdjustments(runDir, changes);
          tell(change, from);
          const message = `${key} is ${value} from iteration ${iteration} on, was ${from}`;
          inbox.answer(id, { done: true, message });
        } catch (error) {
          inbox.answer(id, { done: false, message: (error as Error).message });
          if (!(error instanceof TrainError)) throw error;
        }
      }
    },
    close(ended) {
      for (const id of waiting) inbox.answer(id, { done: true, message: `${ended}, with a checkpoint` });
      for (const { id } of inbox.take()) inbox.answer(id, { done: false, message: ended });
    },
  };
}
