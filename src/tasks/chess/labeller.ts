/** Where the labels of positions come from: our own search, or an engine with the search behind it. */
import { messageOf } from '../../envs/errors.ts';
import { fail } from '../errors.ts';
import type { TaskContext } from '../text-task.ts';
import { LABELLED_MOVES, LabelCache, searchLabels } from './labels.ts';
import type { Candidate } from './text.ts';
import { UciEngine } from './uci.ts';

export interface Labeller {
  /** Labels that need no waiting; undefined where the engine must be asked. */
  now(fen: string): readonly Candidate[] | undefined;
  /** Labels, or undefined for a position that the engine failed on: it is to be skipped. */
  labels(fen: string): Promise<readonly Candidate[] | undefined>;
  /** For the manifest: what labels, how deep. */
  source(): string;
  /** Positions that were skipped. */
  skipped(): number;
  close(): Promise<void>;
}

export interface LabellerOptions {
  readonly engine: string;
  readonly engineDepth: number;
  readonly engineTimeoutMs: number;
  readonly searchDepth: number;
}

/** Failures in a row after which our own search takes over: an engine that was started again that often will not work. */
const MAX_FAILURES = 3;

/**
 * With an engine, it must start, or the task does not: who named it wants its labels. Later failures cost one position
 * each, which is skipped and counted; after three in a row our own search labels what is left, and the source says so.
 */
export async function makeLabeller(options: LabellerOptions, context: TaskContext): Promise<Labeller> {
  const cache = new LabelCache();
  const ownSource = `own search, depth ${options.searchDepth}`;
  const search = (fen: string): readonly Candidate[] => {
    let labels = cache.get(fen);
    if (labels === undefined) {
      labels = searchLabels(fen, options.searchDepth);
      cache.set(fen, labels);
    }
    return labels;
  };
  if (options.engine === '') {
    return {
      now: search,
      labels: async fen => search(fen),
      source: () => ownSource,
      skipped: () => 0,
      close: async () => {},
    };
  }

  const engine = new UciEngine({
    command: options.engine,
    depth: options.engineDepth,
    moves: LABELLED_MOVES,
    timeoutMs: options.engineTimeoutMs,
  });
  await engine.start().catch(error => {
    fail('engine-failed', `${messageOf(error)} (leave the option engine out to label by our own search)`);
  });
  const engineSource = `${engine.name}, depth ${options.engineDepth}`;
  let failures = 0;
  let skipped = 0;
  let gaveUp = false;
  return {
    now: fen => cache.get(fen) ?? (gaveUp ? search(fen) : undefined),
    async labels(fen) {
      if (gaveUp) return search(fen);
      try {
        const labels = await engine.analyse(fen);
        failures = 0;
        cache.set(fen, labels);
        return labels;
      } catch (error) {
        failures++;
        skipped++;
        context.notice(`position skipped, ${messageOf(error)}`);
        if (failures >= MAX_FAILURES) {
          gaveUp = true;
          context.notice(
            `${engine.name} failed ${failures} times in a row: from here on labels are from our ${ownSource}`,
          );
          await engine.close();
        }
        return undefined;
      }
    },
    source: () => (gaveUp ? `${engineSource}, then ${ownSource}` : engineSource),
    skipped: () => skipped,
    close: () => engine.close(),
  };
}
