import { availableParallelism } from 'node:os';
import type { AnyMakeOptions } from '../definition.ts';
import { resolveEnv } from '../load.ts';
import { makeEnv, type RegisteredEnv } from '../registry.ts';
import { inProcessVectorEnv } from './in-process.ts';
import { processVectorEnv } from './processes.ts';
import { MOST_WORKERS, type VectorEnv } from './vector.ts';
import { canRunInWorkers, workerVectorEnv } from './workers.ts';

/** How many environments, and where they run. */
export interface VectorOptions {
  readonly envCount: number;
  /**
   * Worker threads to spread the environments over; 0, the default, runs them in this thread. `auto` uses all cores for
   * environments that call themselves slow, and is 0 for others: Keel's own run in this thread too and in a worker for each
   * other core, those of a user's file only in workers, one a core. Those in Python have as many processes instead of
   * threads, which this thread leads. The results are the same.
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
  if (env.definition.start !== undefined && workers !== 0) {
    const processes = workers === 'auto' ? coresFor(envCount) : workers;
    return processVectorEnv(env.id, { envCount, workers: processes, options });
  }
  if (workers === 'auto') {
    const threads = threadsFor(env, envCount);
    // A user's environment may exit, or hang: that must not take this thread along.
    const here = env.file === null;
    if (threads > (here ? 1 : 0))
      return workerVectorEnv(env.id, { envCount, workers: here ? threads - 1 : threads, here, options });
  } else if (workers !== 0) {
    return workerVectorEnv(env.id, { envCount, workers, options });
  }
  return inProcessVectorEnv(() => makeEnv(env.id, options), envCount);
}

/** How many threads suit so many of these environments, 0 for none but this one. */
function threadsFor(env: RegisteredEnv, envCount: number): number {
  if (env.definition.slow !== true || envCount < 2 || !canRunInWorkers(env)) return 0;
  return coresFor(envCount);
}

const coresFor = (envCount: number): number => Math.min(envCount, availableParallelism(), MOST_WORKERS);
