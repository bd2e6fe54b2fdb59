/** A run's policy at a checkpoint, to evaluate or export. */
import type { OptionValues } from '../envs/index.ts';
import { type Run, RunError } from '../runs/index.ts';

export async function openCheckpoint(run: Run, which: 'last' | 'best' | number) {
  const { openTrained } = await import('../algos/train.ts');
  try {
    const trained = await openTrained(run.dir, which);
    return { ...trained, envOptions: run.manifest.environment.options as OptionValues };
  } catch (error) {
    // The advice is written for `keel resume`.
    if (error instanceof RunError)
      throw new RunError(error.message.replace('--from ', '--checkpoint '), {
        code: error.code,
        cause: error,
      });
    throw error;
  }
}
