/** The checkpoints of a run, and which of them are from before anything went wrong. */

import { firstHarm } from '../doctor/first-harm.ts';
import { listCheckpoints } from '../runs/checkpoint.ts';
import type { CheckpointSummary } from './api.ts';
import type { KeelRun } from './runs/keel-run.ts';

export function checkpointsOf(run: KeelRun): CheckpointSummary[] {
  const harm = firstHarm(run.diagnosis.diagnosis);
  return listCheckpoints(run.path)
    .filter(({ problem }) => problem === undefined)
    .map(({ step, index, isBest, isLast }) => ({
      step,
      iteration: index?.iteration ?? 0,
      savedAt: index === undefined ? null : Date.parse(index.savedAt),
      score: index?.score ?? null,
      isBest,
      isLast,
      healthy: step < harm,
      bytes: Object.values(index?.files ?? {}).reduce((sum, { bytes }) => sum + bytes, 0),
    }));
}

/** The newest checkpoint from before the first critical finding. */
export function lastHealthy(checkpoints: readonly CheckpointSummary[]): CheckpointSummary | undefined {
  return checkpoints.filter(({ healthy }) => healthy).at(-1);
}
