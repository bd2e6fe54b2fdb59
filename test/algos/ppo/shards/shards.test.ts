/** A run in shards: its bits depend on how many there are, and on nothing that happens to them on their way. */
import { afterAll, describe, expect, it } from 'vitest';
import { snapshotFrom, stateOf, tensorFiles } from '../../../../src/algos/ppo/checkpoint.ts';
import type { PpoTrainer } from '../../../../src/algos/ppo/iteration.ts';
import type { PpoConfig } from '../../../../src/algos/ppo/settings.ts';
import { decodeShardResult, encodeShardJob } from '../../../../src/algos/ppo/shards/message.ts';
import { type ShardPlace, shardsHere } from '../../../../src/algos/ppo/shards/place.ts';
import type { ShardJob, ShardResult } from '../../../../src/algos/ppo/shards/shard.ts';
import { shardWorker } from '../../../../src/algos/ppo/shards/worker.ts';
import { TrainError } from '../../../../src/base/errors.ts';
import { encodeJson, parseJson } from '../../../../src/base/json.ts';
import { makeVectorEnv } from '../../../../src/envs/index.ts';
import { Rng } from '../../../../src/random/rng.ts';
import { courseOf, disposeSharded, everything, sharded } from '../support/sharded.ts';

afterAll(disposeSharded);

/** Workers in this thread, that take bytes and do the jobs of a rollout in an order of their own, some of them twice. */
function restless(workers: number, seed: number): ShardPlace & { readonly done: () => number } {
  const rng = new Rng(seed);
  const pool = Array.from({ length: workers }, () => shardWorker());
  let done = 0;
  return {
    slots: workers,
    done: () => done,
    async collect(jobs) {
      const results: ShardResult[] = [];
      const order = [...jobs.keys(), rng.integer(jobs.length)];
      rng.shuffle(order);
      for (const i of order) {
        const bytes = await pool[rng.integer(workers)].work(encodeShardJob(jobs[i]));
        results[i] = decodeShardResult(bytes);
        done++;
      }
      return results;
    },
    async close() {
      for (const worker of pool) await worker.close();
    },
  };
}

const tasks: [string, string, Partial<PpoConfig>][] = [
  ['CartPole', 'CartPole-v1', {}],
  ['Pendulum, normalising, with noise that remembers', 'Pendulum-v1', everything],
  ['Courier, with reward terms', 'Courier-v0', { normaliseRewards: true }],
];

describe.each(tasks)('%s', (_, env, settings) => {
  it.each([2, 4])(
    '%i shards: the same bits through bytes, in any order, by any worker, and twice',
    async shards => {
      const here = await sharded(shards, { env, settings });
      await here.start();
      const whole = await courseOf(here, 4);
      for (const workers of [1, 3]) {
        const place = restless(workers, 7 + workers);
        const there = await sharded(shards, { env, settings, place });
        await there.start();
        expect(await courseOf(there, 4)).toEqual(whole);
        expect(place.done()).toBe(4 * (shards + 1));
        await place.close();
      }
    },
  );

  it('saved in between and restored elsewhere, it goes on to the same bits', async () => {
    const straight = await sharded(4, { env, settings });
    await straight.start();
    await courseOf(straight, 2);
    const saved = throughFiles(straight, await straight.snapshot());
    const rest = await courseOf(straight, 3);
    const resumed = await sharded(4, { env, settings, seed: 999 });
    await resumed.restore(saved);
    expect(await courseOf(resumed, 3)).toEqual(rest);
  });
});

/** As a checkpoint has it. */
function throughFiles(
  { model: { layout } }: PpoTrainer,
  snapshot: Awaited<ReturnType<PpoTrainer['snapshot']>>,
) {
  const { steps: step, iteration } = snapshot.counters;
  return snapshotFrom(layout, {
    index: {
      ...{ kind: 'keel-checkpoint', schema: 1, step, iteration, savedAt: '2026-01-01T00:00:00.000Z' },
      ...{ score: null, keep: false, environment: null, files: {} },
    },
    files: new Map(Object.entries(tensorFiles(layout, snapshot))),
    state: parseJson(new TextEncoder().encode(encodeJson(stateOf(snapshot), 'state')), 'state') as Record<
      string,
      unknown
    >,
  });
}

describe('the state of a run in shards', () => {
  it('before its first iteration can be saved, and restored', async () => {
    const one = await sharded(2, { settings: { normaliseRewards: true } });
    await one.start();
    const saved = throughFiles(one, await one.snapshot());
    const other = await sharded(2, { settings: { normaliseRewards: true }, seed: 5 });
    await other.restore(saved);
    expect(await courseOf(other, 2)).toEqual(await courseOf(one, 2));
  });

  it('is refused where there are other shards', async () => {
    const [whole, two] = [await sharded(1), await sharded(2)];
    await whole.start();
    await two.start();
    await expect(two.restore(await whole.snapshot())).rejects.toThrow(
      'the checkpoint is of a run with shards 1, this config has 2: use the config it was trained with',
    );
    await expect(whole.restore(await two.snapshot())).rejects.toThrow(TrainError);
  });

  it('has other environments and other noise in each shard', async () => {
    const trainer = await sharded(4);
    await trainer.start();
    const { shardRngs, envs } = await trainer.snapshot();
    expect(new Set(shardRngs!.map(rng => rng.words.join())).size).toBe(4);
    expect(new Set(envs.envs.map(state => JSON.stringify(state))).size).toBe(8);
  });
});

describe('results that are not those of the rollout', () => {
  async function withPlace(change: (jobs: readonly ShardJob[], results: ShardResult[]) => ShardResult[]) {
    const envs = await makeVectorEnv('CartPole-v1', { envCount: 4 });
    const here = shardsHere(envs);
    const trainer = await sharded(2, {
      place: { ...here, collect: async jobs => change(jobs, await here.collect(jobs)) },
    });
    await trainer.start();
    return trainer;
  }

  it('of an earlier policy are refused', async () => {
    let first: ShardResult[] | undefined;
    const trainer = await withPlace((_, results) => {
      first ??= results;
      return [results[0], first[1]];
    });
    await trainer.iterate();
    await expect(trainer.iterate()).rejects.toThrow(
      /shard 1 was collected by policy 0-[0-9a-f]+, this is 1-/,
    );
  });

  it('of another shard are refused, and too few', async () => {
    const swapped = await withPlace((_, [a, b]) => [b, a]);
    await expect(swapped.iterate()).rejects.toThrow(/a result of shard 1 where that of shard 0/);
    const short = await withPlace((_, [a]) => [a]);
    await expect(short.iterate()).rejects.toThrow('1 results for 2 shards');
  });

  it('of other sizes are refused', async () => {
    const trainer = await withPlace((_, [a, b]) => [
      a,
      { ...b, part: { ...b.part, rewards: b.part.rewards.subarray(1) } },
    ]);
    await expect(trainer.iterate()).rejects.toThrow('shard 1: rewards has 127 numbers, 128 are needed');
  });
});

it('learns CartPole in four shards', async () => {
  const trainer = await sharded(4, {
    settings: {
      ...{ stepsPerRollout: 128, minibatchSize: 128, epochs: 8, hidden: [32], learningRate: 2e-3 },
      ...{ normaliseObservations: true, steps: 40 * 1024 },
    },
  });
  await trainer.start();
  const { rows } = await courseOf(trainer, 40);
  // Of rows in which an episode ended: those of a policy that balances have none.
  const ended = rows.flatMap(row => row['episode/length'] ?? []);
  const last = ended.slice(-5);
  expect(ended[0]).toBeLessThan(50);
  expect(last.reduce((a, b) => a + b, 0) / last.length).toBeGreaterThan(200);
});
