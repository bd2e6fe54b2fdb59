/** The replays of a run, for the page: a list, and the bytes of one. */
import { statSync } from 'node:fs';
import { runPaths } from '../runs/layout.ts';
import {
  bestReplay,
  isReplayName,
  listReplays,
  type ReplayCache,
  readReplayBytes,
  replayPath,
  replayVersion,
} from '../runs/replays.ts';
import type { ReplaySummary } from './api.ts';
import { Problem } from './problem.ts';
import type { KeelRun } from './runs/keel-run.ts';
import { isInside, type Root } from './runs/places.ts';

export interface Replays {
  /** Oldest policy first. */
  list(run: KeelRun): ReplaySummary[];
  /** The file, checked, and what it is called in caches. */
  file(run: KeelRun, name: string): { readonly bytes: Buffer; readonly version: string };
}

/** Headers that are remembered, over all runs. */
const mostRemembered = 5000;

export function createReplays(roots: readonly Root[]): Replays {
  const cache: ReplayCache = new Map();
  return {
    list(run) {
      // A link may lead out of what this server was given.
      if (!isInside(runPaths(run.path).replays, roots)) return [];
      if (cache.size > mostRemembered) cache.clear();
      const all = listReplays(run.path, cache).filter(({ name }) =>
        isInside(replayPath(run.path, name), roots),
      );
      const best = bestReplay(all);
      return all.map(replay => ({
        name: replay.name,
        step: replay.step,
        iteration: replay.iteration,
        recordedAt: replay.recordedAt,
        seconds: (replay.frames - 1) * replay.frameSeconds,
        episodeReturn: replay.episodeReturn,
        end: replay.end,
        isBest: replay === best,
        bytes: replay.bytes,
        version: replay.version,
      }));
    },
    file(run, name) {
      const missing = new Problem(
        404,
        'no-such-replay',
        'there is no such replay: older ones are deleted in time',
      );
      if (!isReplayName(name)) throw missing;
      const path = replayPath(run.path, name);
      if (!isInside(path, roots)) throw missing;
      const { size, mtimeMs } = statSync(path);
      const bytes = readReplayBytes(path);
      return {
        bytes: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length),
        version: replayVersion(size, mtimeMs),
      };
    },
  };
}
