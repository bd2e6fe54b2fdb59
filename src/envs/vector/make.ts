import { availableParallelism } from 'node:os';
import type { AnyMakeOptions } from '../definition.ts';
import { resolveEnv } from '../load.ts';
import { makeEnv, type RegisteredEnv } from '../registry.ts';
import { inProcessVectorEnv } from './in-process.ts';
import type { VectorEnv } from './vector.ts';
import { canRunInWorkers, workerVectorEnv } from './workers.ts';

/** How many environments, and where they run. */
export interface VectorOptions {
  readonly envCount: number;
  /**
   * Worker threads to spread the environments over; 0, the default, runs them in this thread. `auto` is as many as the
   * machine runs at once for environments that call themselves slow, and 0 for others. The results are the same.
   */
  readonly workers?: number | 'auto';
  /** The environments' own. */
  readonly options?: AnyMakeOptions;
}

/** N environments of an id or of a user's file: `await makeVectorEnv('cartpole', { envCount: 8 })`. */
export async function makeVectorEnv(
  reference: string,
  { envCount, workers = 0, options = {} }: VectorOptions,
): Promise<VectorEnv> {
  const env = await resolveEnv(reference);
  const threads = workers === 'auto' ? workersFor(env, envCount) : workers;
  if (threads !== 0) return workerVectorEnv(env.id, { envCount, workers: threads, options });
  return inProcessVectorEnv(() => makeEnv(env.id, options), envCount);
}

/** How many worker threads suit so many of these environments. */
function workersFor(env: RegisteredEnv, envCount: number): number {
  if (env.definition.slow !== true || envCount < 2 || !canRunInWorkers(env)) return 0;
  return Math.min(envCount, availableParallelism());
}
