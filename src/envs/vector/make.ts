import type { AnyMakeOptions } from '../definition.ts';
import { resolveEnv } from '../load.ts';
import { makeEnv } from '../registry.ts';
import { inProcessVectorEnv } from './in-process.ts';
import type { VectorEnv } from './vector.ts';
import { workerVectorEnv } from './workers.ts';

export interface VectorOptions {
  readonly envCount: number;
  /** Worker threads to spread the environments over; 0, the default, runs them in this thread. */
  readonly workers?: number;
  /** The environments' own. */
  readonly options?: AnyMakeOptions;
}

/** N environments of an id or of a user's file: `await makeVectorEnv('cartpole', { envCount: 8 })`. */
export async function makeVectorEnv(
  reference: string,
  { envCount, workers = 0, options = {} }: VectorOptions,
): Promise<VectorEnv> {
  const { id } = await resolveEnv(reference);
  if (workers !== 0) return workerVectorEnv(id, { envCount, workers, options });
  return inProcessVectorEnv(() => makeEnv(id, options), envCount);
}
