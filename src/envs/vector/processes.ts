import { type AnyMakeOptions, createEnv, type MadeEnv, startEnv } from '../definition.ts';
import { EnvError } from '../errors.ts';
import { endShare, inShare } from '../python/shares.ts';
import { prepareEnv } from '../registry.ts';
import { vectorMemory } from './arrays.ts';
import { Batch } from './batch.ts';
import { EnvSlice } from './slice.ts';
import { Turns } from './turns.ts';
import { checkEnvCount, checkSameSpaces, checkWorkers, shapeFor, type VectorEnv } from './vector.ts';

/** How many environments, in how many processes. */
export interface ProcessVectorOptions {
  readonly envCount: number;
  /** Processes, each with an equal share of the environments. */
  readonly workers: number;
  /** The environments' own. */
  readonly options?: AnyMakeOptions;
}

/** Waiting for quick steps keeps this thread: this often the event loop gets its turn in between. */
const TURN_MS = 20;

let made = 0;

/**
 * N environments that live in processes of their own, several of which are at work at once. This thread sends to all and then
 * waits for each: where steps are quick, in a read, because to be woken through the event loop takes longer than they do;
 * where they are not, it does other things meanwhile. The same results to the bit, whatever the number of processes.
 */
export async function processVectorEnv(
  id: string,
  { envCount, workers, options = {} }: ProcessVectorOptions,
): Promise<VectorEnv> {
  const { definition, file } = await prepareEnv(id);
  checkEnvCount(envCount);
  checkWorkers(workers);
  const processes = Math.min(workers, envCount);
  const vector = made++;
  const share = (of: number): string => `${vector}.${of}`;
  const firstOf = (p: number): number => Math.floor((p * envCount) / processes);
  const end = (): void => {
    for (let p = 0; p < processes; p++) endShare(share(p));
  };
  let shares: MadeEnv[][];
  try {
    for (let p = 0; p < processes; p++) inShare(share(p), () => startEnv(definition, options, p > 0));
    shares = Array.from({ length: processes }, (_, p) =>
      Array.from({ length: firstOf(p + 1) - firstOf(p) }, () =>
        inShare(share(p), () => createEnv(definition, options, file)),
      ),
    );
    checkSameSpaces(shares.flat());
  } catch (error) {
    end();
    throw error;
  }
  const envs = shares.flat();
  const shape = shapeFor(envs[0], envCount);
  const memory = vectorMemory(shape);
  const slices = shares.map((own, p) => new EnvSlice(own, firstOf(p), shape, memory));
  const turns = new Turns(TURN_MS);
  let isClosed = false;

  const answer = async (slice: EnvSlice): Promise<void> => {
    while (!slice.answers()) {
      await slice.later();
      if (isClosed) throw new EnvError('env-closed', 'the environments were closed during the call');
    }
  };
  const step = async (): Promise<void> => {
    await undefined; // what the caller does meanwhile
    for (const slice of slices) {
      if (!slice.answers()) await answer(slice);
      slice.takeStep();
    }
    for (const slice of slices) {
      if (!slice.hasEnded) continue;
      if (!slice.answers()) await answer(slice);
      slice.takeEpisodes();
    }
    if (turns.due()) await turns.give();
  };

  return new Batch(envs[0], shape, memory, {
    async reset(seeds) {
      for (const slice of slices) slice.sendReset(seeds);
      for (const slice of slices) {
        await answer(slice);
        slice.reset(seeds);
      }
    },
    step() {
      for (const slice of slices) slice.send();
      return step();
    },
    notices: () => slices.flatMap(slice => slice.takeNotices()),
    state: () => slices.flatMap(slice => slice.state()),
    restore(states) {
      for (const slice of slices) slice.restore(states);
      return undefined;
    },
    close() {
      isClosed = true;
      let failure: unknown;
      for (const slice of slices) {
        try {
          slice.close();
        } catch (error) {
          failure ??= error;
        }
      }
      end();
      if (failure !== undefined) throw failure;
      return undefined;
    },
  });
}
