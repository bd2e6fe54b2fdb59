/**
 * Shards in processes: the bits are those of one thread, whatever the number of processes and however many of them die.
 * The trainer is that of the sources, the processes run the compiled package: theirs start ten times as fast.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { shardTask } from '../../../../src/algos/ppo/shards/place.ts';
import { makeVectorEnv } from '../../../../src/envs/index.ts';
import { Rng } from '../../../../src/random/rng.ts';
import { compiled, compiledUrl } from '../../../support/compiled.ts';
import { courseOf, disposeSharded, everything, type ShardedOptions, sharded } from '../support/sharded.ts';

const { shardProcesses } = await compiled<typeof import('../../../../src/algos/ppo/shards/processes.ts')>(
  'algos/ppo/shards/processes',
);

const dir = mkdtempSync(join(tmpdir(), 'keel-shards-'));
afterAll(async () => {
  await disposeSharded();
  rmSync(dir, { recursive: true, force: true });
});

const pendulum: ShardedOptions = { env: 'Pendulum-v1', settings: everything };

/** What so many iterations come to in this thread. */
async function inThread(shards: number, options: ShardedOptions, iterations: number) {
  const trainer = await sharded(shards, options);
  await trainer.start();
  return courseOf(trainer, iterations);
}

it('2 and 4 shards have the same bits with 1, 2 and 4 processes', async () => {
  const wanted = [await inThread(2, pendulum, 2), await inThread(4, pendulum, 2)];
  for (const count of [1, 2, 4]) {
    const place = shardProcesses({ count });
    for (const [i, shards] of [2, 4].entries()) {
      const trainer = await sharded(shards, { ...pendulum, place });
      await trainer.start();
      expect(await courseOf(trainer, 2), `${shards} shards, ${count} processes`).toEqual(wanted[i]);
    }
    expect(place.pids.length).toBe(count);
    await place.close();
    expect(place.pids.length).toBe(0);
  }
});

/** `npm run bench -- sweep` has 20 of them. */
const KILLS = 6;

it(`the same bits with ${KILLS} processes killed while they collect`, async () => {
  // Rollouts that take longer than updates, so that most kills hit one at work.
  const long = {
    ...pendulum,
    settings: { ...everything, stepsPerRollout: 1024, minibatchSize: 4096, epochs: 1 },
  };
  const place = shardProcesses({ count: 2, mostDeaths: KILLS });
  const trainer = await sharded(4, { ...long, place });
  await trainer.start();
  const rng = new Rng(20);
  let [lost, iterations] = [0, 0];
  const killed = new Set<number>();
  while (lost < KILLS) {
    // Some in each iteration, at moments of their own, among those that are at a shard.
    let left = Math.min(3, KILLS - lost);
    let timer: NodeJS.Timeout | undefined;
    const soon = (): void => {
      timer = setTimeout(() => {
        const busy = place.busyPids.filter(pid => !killed.has(pid));
        if (busy.length > 0 && left-- > 0) {
          const pid = busy[rng.integer(busy.length)];
          killed.add(pid);
          process.kill(pid, 'SIGKILL');
        }
        soon();
      }, rng.integer(15));
    };
    soon();
    const { events } = await trainer.iterate();
    clearTimeout(timer);
    iterations++;
    lost += events.filter(({ type }) => type === 'note').length;
  }
  expect(killed.size).toBeGreaterThanOrEqual(lost);
  expect(lost).toBeGreaterThanOrEqual(KILLS);
  const after = await trainer.snapshot();
  await place.close();
  const wanted = await sharded(4, long);
  await wanted.start();
  await courseOf(wanted, iterations);
  expect(after).toEqual(await wanted.snapshot());
});

/** A user's file with an environment that does this at its 40th step in a process that is not this one. */
function envFile(name: string, then: string): string {
  const file = join(dir, `${name}.mjs`);
  writeFileSync(
    file,
    `import { box, defineEnv, discrete, simulation } from '${compiledUrl('envs/index')}';
let steps = 0;
export default defineEnv({
  id: '${name}-v0', description: 'Does what it should not.', maxEpisodeSteps: 100,
  make: () => simulation({
    observationSpace: box({ shape: [1] }), actionSpace: discrete(2),
    start: () => ({ t: 0 }), observe: state => [Math.sin(state.t)],
    step(state, action, result) {
      state.t++;
      result.reward = action[0];
      if (process.pid !== ${process.pid} && ++steps === 40) { ${then} }
    },
  }),
});
`,
  );
  return file;
}

describe('an environment', () => {
  async function first(file: string) {
    const place = shardProcesses({ count: 1, mostDeaths: 1 });
    try {
      const trainer = await sharded(2, { env: file, place });
      await trainer.start();
      return await trainer.iterate();
    } finally {
      await place.close();
    }
  }

  it('that ends its process is given up after some, and said', async () => {
    await expect(first(envFile('Exits', 'process.exit(3);'))).rejects.toThrow(
      /shard \d took down 2 processes one after the other, the last by exit code 3: does its environment exit/,
    );
  });

  it('that throws fails the run with its own words', async () => {
    await expect(first(envFile('Throws', "throw new Error('no more coal');"))).rejects.toThrow(
      /environment \d of 4 \(Throws-v0, seed \d+, step \d+\): .*no more coal/,
    );
  });
});

it('processes take the next rollout after one that failed', async () => {
  const place = shardProcesses({ count: 2 });
  const broken = await sharded(2, { env: envFile('Again', "throw new Error('once');"), place });
  await broken.start();
  await expect(broken.iterate()).rejects.toThrow(/once/);
  const trainer = await sharded(2, { ...pendulum, place });
  await trainer.start();
  expect(await courseOf(trainer, 2)).toEqual(await inThread(2, pendulum, 2));
  await place.close();
  await expect(trainer.iterate()).rejects.toThrow(/are closed/);
});

it('names environments that other processes can make, and no others', async () => {
  const envs = await makeVectorEnv(envFile('Named', ''), { envCount: 1 });
  const config = (await sharded(2)).config;
  expect(shardTask(config, envs).env).toBe(`${join(dir, 'Named.mjs')}#Named-v0`);
  expect(shardTask(config, { envCount: 1, spec: undefined }).env).toBeNull();
  expect(shardTask(config, { envCount: 1, spec: { ...envs.spec!, id: 'Unknown-v0' } }).env).toBeNull();
  await envs.close();
});
