/** Replays from a run's checkpoint, for the commands that need one. */
import type { Replay, Run } from '../runs/index.ts';
import { chooseCheckpoint, openCheckpoint, type WhichCheckpoint } from './trained.ts';

export interface RecordFlags {
  readonly checkpoint?: WhichCheckpoint | undefined;
  readonly episodes?: number | undefined;
  readonly onReplay?: ((name: string, replay: Replay) => void) | undefined;
}

/** Plays episodes with a checkpoint's policy and keeps them; returns their names and which checkpoint it was. */
export async function recordCheckpoint(
  run: Run,
  { checkpoint, episodes = 1, onReplay }: RecordFlags,
): Promise<{ names: string[]; why: string }> {
  const { step, why } = chooseCheckpoint(run, checkpoint);
  const { recordEpisodes } = await import('../algos/record.ts');
  const trained = await openCheckpoint(run, step);
  try {
    const { trainer, environment, envOptions } = trained;
    const names = await recordEpisodes(run.dir, {
      envId: environment.id,
      envOptions,
      model: trainer.model,
      params: trainer.params,
      normaliser: trainer.observationNormaliser,
      step: trainer.counters.envSteps,
      iteration: trainer.counters.iteration,
      episodes,
      seed: run.manifest.seed,
      ...(onReplay && { onReplay }),
    });
    return { names, why };
  } finally {
    await trained.close();
  }
}
