/** What people change while a run is trained: asked for through its inbox, or made again where an earlier process made it. */

import { TrainError } from '../base/errors.ts';
import { type Adjustment, openInbox, writeAdjustments } from '../runs/inbox.ts';
import type { Learner, Settings } from './algorithm.ts';
import type { TrainEvent } from './events.ts';

export interface HandChanges {
  /** Whether someone asked the run to stop. */
  readonly stopped: boolean;
  /** Before each iteration: does what is due in it, and what was asked since the last. */
  apply(): void;
  /** Has changes made before the iterations that they are for, and keeps them like those that were asked for. */
  add(changes: readonly Adjustment[]): void;
  /** Answers whoever still waits; `ended` says how the run ended. */
  close(ended: string): void;
}

/** `changes` are those that earlier processes made. */
export function handChanges(
  learner: Pick<Learner, 'config' | 'counters' | 'adjust'>,
  runDir: string,
  changes: readonly Adjustment[],
  onEvent: (event: TrainEvent, iteration: number) => void,
): HandChanges {
  const inbox = openInbox(runDir);
  let made = changes;
  /** Those who asked the run to stop. */
  const waiting: string[] = [];

  const make = ({ key, value }: Adjustment): unknown => {
    const from = (learner.config as Settings)[key];
    learner.adjust({ [key]: value });
    return from;
  };
  const tell = ({ iteration, key, value, by }: Adjustment, from: unknown): void =>
    onEvent({ type: 'act', what: `${key} ${from} to ${value}`, by, key, value }, iteration);

  return {
    get stopped() {
      return waiting.length > 0;
    },
    apply() {
      const iteration = learner.counters.iteration + 1;
      for (const change of made) if (change.iteration === iteration) tell(change, make(change));
      for (const { id, request } of inbox.take()) {
        if (request.type === 'stop') {
          waiting.push(id);
          continue;
        }
        const { key, value, by } = request;
        const change = { iteration, key, value, by };
        try {
          const from = make(change);
          // On the disk before it has any effect: from here on it is as good as in the config.
          made = [...made, change];
          writeAdjustments(runDir, made);
          tell(change, from);
          const message = `${key} is ${value} from iteration ${iteration} on, was ${from}`;
          inbox.answer(id, { done: true, message });
        } catch (error) {
          inbox.answer(id, { done: false, message: (error as Error).message });
          if (!(error instanceof TrainError)) throw error;
        }
      }
    },
    add(changes) {
      made = [...made, ...changes];
      writeAdjustments(runDir, made);
    },
    close(ended) {
      for (const id of waiting) inbox.answer(id, { done: true, message: `${ended}, with a checkpoint` });
      for (const { id } of inbox.take()) inbox.answer(id, { done: false, message: ended });
    },
  };
}
