/** Replays from a run's checkpoint, for the commands that need one. */
import type { WhichCheckpoint } from '../algos/algorithm.ts';
import type { Replay } from '../runs/replay-format.ts';
import type { Run } from '../runs/store.ts';
import { whyCheckpoint } from './checkpoints.ts';

export interface RecordFlags {
  readonly checkpoint?: WhichCheckpoint | undefined;
  readonly envFile?: string | undefined;
  readonly episodes?: number | undefined;
  readonly onReplay?: ((name: string, replay: Replay) => void) | undefined;
}

/** Plays episodes with a checkpoint's policy and keeps them; returns their names and which checkpoint it was. */
export async function recordCheckpoint(
  run: Run,
  { checkpoint, envFile, ...how }: RecordFlags,
): Promise<{ names: string[]; why: string }> {
  const { openPolicy } = await import('../algos/runs.ts');
  const policy = await openPolicy(run.dir, { checkpoint, envFile });
  try {
    return { names: await policy.record(how), why: whyCheckpoint(run, checkpoint) };
  } finally {
    await policy.close();
  }
}
