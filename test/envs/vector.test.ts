import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it } from 'vitest';
import type { EnvDefinition, EnvError, VectorEnv } from '../../src/envs/index.ts';
import { envSeeds } from '../../src/envs/vector/vector.ts';
import { Rng } from '../../src/random/index.ts';
import { compiled } from '../support/compiled.ts';
import { bits, testVectorEnv } from './support/contract.ts';

// Compiled, because a thread from the sources takes half a second to start.
const {
  cartPole,
  cartPoleDefinition,
  findEnv,
  inProcessVectorEnv,
  listEnvs,
  loadEnvFile,
  makeEnv,
  makeVectorEnv,
  pendulum,
  registerEnv,
  workerVectorEnv,
} = await compiled<typeof import('../../src/envs/index.ts')>('envs/index');

const ids = listEnvs().map(env => env.id);
const fixture = (name: string): string => fileURLToPath(new URL(`fixtures/files/${name}`, import.meta.url));

testVectorEnv(
  'Courier-v0 in workers',
  envCount => makeVectorEnv('courier', { envCount, workers: 2, options: { maxEpisodeSteps: 20 } }),
  () => makeEnv('courier', { maxEpisodeSteps: 20 }),
  envSeeds,
);

testVectorEnv(
  'Courier-v0 in a worker and here',
  envCount =>
    workerVectorEnv('courier', { envCount, workers: 1, here: true, options: { maxEpisodeSteps: 20 } }),
  () => makeEnv('courier', { maxEpisodeSteps: 20 }),
  envSeeds,
);

/** All that a vector says after each of some random steps. */
async function record(envs: VectorEnv, steps: number): Promise<string[]> {
  const rng = new Rng(9);
  const actions = new Float32Array(envs.envCount * envs.actionSize);
  const lines: string[] = [bits(envs.observations)];
  for (let step = 0; step < steps; step++) {
    for (let i = 0; i < envs.envCount; i++) envs.actionSpace.sample(rng, actions, i * envs.actionSize);
    await envs.step(actions);
    const { observations, rewards, terminated, truncated, finalObservations, endedCount } = envs;
    const { episodeReturns, episodeLengths, episodeRewardTerms } = envs;
    lines.push(
      [
        observations,
        rewards,
        terminated,
        truncated,
        finalObservations,
        episodeReturns,
        episodeLengths,
        episodeRewardTerms,
        [endedCount],
      ]
        .map(bits)
        .join(' '),
    );
  }
  return lines;
}

describe('workers and in-process give the same bits', () => {
  // Starting a thread takes a while: one probe stands for all, and one robot, as they share their code.
  const robots = ids.filter(id => findEnv(id).definition.slow);
  const apart = ids.filter(id => !/^Probe(?!Both)/.test(id) && (!robots.includes(id) || id === 'Ant-v5'));
  it.each(apart)('%s', async id => {
    const options = { envCount: 5, options: { maxEpisodeSteps: 40 } };
    const [inProcess, workers] = await Promise.all([
      makeVectorEnv(id, options),
      workerVectorEnv(id, { ...options, workers: id === 'CartPole-v1' ? 2 : 1, here: robots.includes(id) }),
    ]);
    await Promise.all([inProcess.reset({ seed: 6 }), workers.reset({ seed: 6 })]);
    expect(await record(workers, 120)).toEqual(await record(inProcess, 120));

    // And go on from each other's states.
    const [fromWorkers, fromInProcess] = [await workers.state(), await inProcess.state()];
    expect(fromWorkers).toEqual(fromInProcess);
    await workers.restore(JSON.parse(JSON.stringify(fromInProcess)));
    expect(bits(workers.observations)).toBe(bits(inProcess.observations));
    const strip = (lines: string[]): string[] => lines.slice(60);
    expect(strip(await record(workers, 100))).toEqual(strip(await record(inProcess, 100)));
    await Promise.all([inProcess.close(), workers.close()]);
  });

  it('whatever the number of workers, and reset without a seed goes on', async () => {
    const runs: string[][] = [];
    for (const [workers, here] of [
      [0, false],
      [3, false],
      [1, true],
      [7, true],
    ] as const) {
      const options = { envCount: 3, workers };
      const envs = await (workers === 0
        ? makeVectorEnv('cartpole', options)
        : workerVectorEnv('cartpole', { ...options, here }));
      await envs.reset({ seed: 4 });
      const first = await record(envs, 30);
      await envs.reset();
      runs.push([...first, ...(await record(envs, 30))]);
      await envs.close();
    }
    for (const run of runs) expect(run).toEqual(runs[0]);
  });
});

it('where this thread steps a share, the event loop gets its turn', async () => {
  const envs = await workerVectorEnv('cartpole', { envCount: 2, workers: 1, here: true });
  await envs.reset();
  let turns = 0;
  const timer = setInterval(() => turns++, 1);
  const actions = new Float32Array(2);
  for (let i = 0; i < 1_000_000 && turns < 2; i++) {
    const pending = envs.step(actions);
    if (pending) await pending;
  }
  clearInterval(timer);
  await envs.close();
  expect(turns).toBeGreaterThanOrEqual(2);
});

describe('seeds', () => {
  it("an environment's does not depend on how many there are, and no two are alike", () => {
    const many = envSeeds(1, 64);
    expect(envSeeds(1, 8)).toEqual(many.slice(0, 8));
    expect(new Set(many).size).toBe(64);
    for (const seed of many) expect(Number.isSafeInteger(seed) && seed >= 0).toBe(true);
    expect(envSeeds(2, 8)).not.toEqual(many.slice(0, 8));
  });

  it('environments start apart, and again the same', async () => {
    const envs = inProcessVectorEnv(() => cartPole(), 8);
    await envs.reset({ seed: 1 });
    const rows = new Set(
      Array.from({ length: 8 }, (_, i) => bits(envs.observations.subarray(4 * i, 4 * i + 4))),
    );
    expect(rows.size).toBe(8);
    const first = bits(envs.observations);
    await envs.reset();
    expect(bits(envs.observations)).not.toBe(first);
    await envs.reset({ seed: 1 });
    expect(bits(envs.observations)).toBe(first);
  });
});

describe('how far training is', () => {
  beforeAll(() => loadEnvFile(fixture('told.ts')));

  it.each([0, 1])('reaches episodes that begin in a reset and in a step, %d workers', async workers => {
    const envs = await makeVectorEnv('told', { envCount: 2, workers });
    envs.setProgress(0.25);
    await envs.reset({ seed: 1 });
    expect([...envs.observations]).toEqual([0.25, 0.25]);
    envs.setProgress(0.5);
    await envs.step(new Float32Array(2));
    expect([...envs.observations]).toEqual([0.25, 0.25]);
    await envs.step(new Float32Array(2));
    expect([...envs.observations]).toEqual([0.5, 0.5]);
    await envs.close();
  });
});

describe('what fails is named by index, seed and step', () => {
  beforeAll(() => loadEnvFile(fixture('faulty.ts')));

  const failure = async (fault: string, workers: number): Promise<{ error: EnvError; envs: VectorEnv }> => {
    const envs = await makeVectorEnv('faulty', { envCount: 4, workers, options: { fault, atStep: 5 } });
    await envs.reset({ seed: 3 });
    const error = await (async () => {
      for (let i = 0; i < 8; i++) await envs.step(new Float32Array(4));
    })().catch(thrown => thrown as EnvError);
    if (error === undefined) throw new Error(`${fault} went unnoticed`);
    return { error, envs };
  };

  for (const workers of [0, 2]) {
    it.each(
      [
        ['nan', /observation\[0\] is NaN after step 5/, 'observation-not-finite'],
        ['throw', /threw in step 5 of the episode: the simulator lost its licence/, 'env-threw'],
        ['shape', /observe returned 3 numbers/, 'observation-size'],
        ['reward', /the reward is Infinity/, 'reward-not-finite'],
        ['throw-text', /just a string/, 'env-threw'],
      ].slice(0, workers === 0 ? undefined : 2) as [string, RegExp, string][],
    )(`%s, ${workers} workers`, async (fault, message, code) => {
      const { error, envs } = await failure(fault, workers);
      const seeds = envSeeds(3, 4);
      expect(error.message).toMatch(message);
      expect(error.message).toMatch(/^environment \d of 4 \(Faulty-v0, seed \d+, step 5\): /);
      expect(error.code).toBe(code);
      expect(error.place).toEqual({ index: error.place!.index, seed: seeds[error.place!.index], step: 5 });
      if (fault === 'throw') expect(stackOf(error)).toMatch(/faulty\.ts/);
      await expect(async () => envs.step(new Float32Array(4))).rejects.toThrow(
        /step after an error, which stopped the environments.*Faulty-v0/,
      );
      await envs.close();
    });
  }

  it('in the share of this thread, which ends the workers too', async () => {
    const options = { envCount: 4, workers: 1, here: true, options: { fault: 'throw', atStep: 3 } };
    const envs = await workerVectorEnv('faulty', options);
    await envs.reset({ seed: 3 });
    const walk = async (): Promise<void> => {
      for (let i = 0; i < 8; i++) await envs.step(new Float32Array(4));
    };
    await expect(walk).rejects.toThrow(
      /^environment 0 of 4 \(Faulty-v0, seed \d+, step 3\): .*lost its licence/,
    );
    await expect(async () => envs.step(new Float32Array(4))).rejects.toThrow(/step after an error/);
    await envs.close();
  });

  it('a worker that exits', async () => {
    const { error, envs } = await failure('exit', 2);
    expect(error.message).toMatch(
      /^environment \d of 4 \(Faulty-v0, seed \d+, step 5\) took its worker down: .*exit code 7/,
    );
    expect(error.code).toBe('worker-died');
    expect(error.place?.step).toBe(5);
    await expect(envs.reset()).rejects.toThrow(/after an error/);
    await envs.close();
  });

  it('a fault in reset, and one while workers start', async () => {
    const envs = await makeVectorEnv('faulty', {
      envCount: 2,
      workers: 2,
      options: { fault: 'throw-in-reset' },
    });
    await expect(envs.reset({ seed: 3 })).rejects.toThrow(
      /environment \d of 2 \(Faulty-v0, seed \d+, reset\): Faulty-v0 threw in reset/,
    );
    await envs.close();
    await expect(
      makeVectorEnv('faulty', { envCount: 2, workers: 2, options: { atSteps: 3 } }),
    ).rejects.toThrow(/did you mean atStep/);
  });

  it('a fault in close, after which all are closed', async () => {
    for (const workers of [0, 2]) {
      const faulty = await makeVectorEnv('faulty', { envCount: 2, workers, options: { fault: 'close' } });
      await faulty.reset({ seed: 3 });
      await expect(faulty.close()).rejects.toThrow(/environment 0 of 2 \(.*the window was already gone/);
      await faulty.close();
    }
  });

  it('a restored state that is damaged, by index', async () => {
    for (const workers of [0, 2]) {
      const envs = await makeVectorEnv('pendulum', { envCount: 3, workers });
      await envs.reset();
      const state = JSON.parse(JSON.stringify(await envs.state()));
      state.envs[1].observation.pop();
      await expect(envs.restore(state)).rejects.toThrow(
        /^environment 1 of 3 \(.*observation has 2 numbers, not 3/,
      );
      await envs.close();
    }
  });
});

describe('bad requests', () => {
  it.each([
    [{ envCount: 0 }, /envCount 0 is not a whole number in 1..65536: try 8/],
    [{ envCount: 2.5 }, /envCount 2.5/],
    [{ envCount: 4, workers: -1 }, /workers -1 is not a whole number/],
    [{ envCount: 4, workers: 0.5 }, /workers 0.5/],
  ])('%s', async (options, message) => {
    await expect(makeVectorEnv('cartpole', options)).rejects.toThrow(message);
  });

  it('environments of different spaces', () => {
    expect(() => inProcessVectorEnv(i => (i === 2 ? pendulum() : cartPole()), 3)).toThrow(
      /environment 2 has the observationSpace Box\(3 .*environment 0 has Box\(4/,
    );
  });

  it('workers for an environment that exists only in this thread', async () => {
    registerEnv({ ...cartPoleDefinition, id: 'OnlyHere-v0' } as unknown as EnvDefinition);
    await expect(workerVectorEnv('OnlyHere-v0', { envCount: 2 })).rejects.toThrow(
      /OnlyHere-v0 was registered in code, which worker threads do not run: export it from a file/,
    );
  });

  it('a call while another is under way', async () => {
    const envs = inProcessVectorEnv(() => cartPole(), 2);
    const reset = envs.reset();
    await expect(async () => envs.step(new Float32Array(2))).rejects.toThrow(
      /step while another call is under way: await each call before the next/,
    );
    await reset;
    await envs.step(new Float32Array(2));
  });

  it('closing while a step is under way', async () => {
    const envs = await workerVectorEnv('cartpole', { envCount: 2, workers: 1 });
    await envs.reset();
    const step = Promise.resolve(envs.step(new Float32Array(2))).catch((error: Error) => error);
    await envs.close();
    await step; // either it was done or it was refused; it does not hang
    await expect(async () => envs.step(new Float32Array(2))).rejects.toThrow(/after close/);
  });
});

function stackOf(error: Error): string {
  let cause: unknown = error;
  while (cause instanceof Error && cause.cause !== undefined) cause = cause.cause;
  return (cause as Error).stack ?? '';
}
