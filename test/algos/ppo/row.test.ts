/** What a trainer reports: every key is in the registry, every event fits the schema, and the numbers are right. */
import { afterAll, describe, expect, it } from 'vitest';
import type { IterationResult } from '../../../src/algos/algorithm.ts';
import { referenceCoefAt } from '../../../src/algos/ppo/control.ts';
import type { PpoConfig } from '../../../src/algos/ppo/settings.ts';
import { ppoSettings } from '../../../src/algos/ppo/settings.ts';
import { cartPole, courier, type Env, pendulum, probeConstant } from '../../../src/envs/index.ts';
import { requireMetric } from '../../../src/metrics/registry.ts';
import { decodeRow, encodeRow } from '../../../src/metrics/row.ts';
import { eventTypes, parseEvent } from '../../../src/runs/schema.ts';
import { disposeTrainers, faultyEnv, trained } from './support/trainer.ts';

afterAll(disposeTrainers);

const { POSITIVE_INFINITY: inf } = Number;

/** Settings that between them report all there is, and make every event of a trainer. */
const runs: [string, Partial<PpoConfig>, (index: number) => Env][] = [
  ['defaults', {}, () => cartPole()],
  [
    'everything on',
    {
      criticLearningRate: 1e-3,
      reference: 'refreshed',
      referenceEvery: 2,
      klCoef: 0.1,
      klCoefRule: 'adaptive',
      adaptiveRate: true,
      normaliseObservations: true,
      normaliseRewards: true,
    },
    () => courier(),
  ],
  ['guard and early stop', { learningRate: 0.5, targetKl: 0.5, guardRetries: 0 }, () => pendulum()],
  ['faults', {}, faultyEnv({ reward: steps => (steps > 32 && steps < 60 ? inf : steps % 3) })],
  ['a skipped minibatch', {}, faultyEnv({ reward: (s, i) => (s % 32 === 9 && i === 2 ? inf : s % 3) })],
];

let all: [string, IterationResult][] | undefined;
/** Every run's iterations, made once. */
async function everything(): Promise<[string, IterationResult][]> {
  if (all) return all;
  all = [];
  for (const [name, settings, env] of runs) {
    const { results } = await trained(settings, { env, iterations: 4, seed: 4 });
    for (const result of results) all.push([name, result]);
  }
  return all;
}

describe('rows', () => {
  it('every key is in the registry', async () => {
    for (const [, { row }] of await everything()) for (const key of Object.keys(row)) requireMetric(key);
  });

  it('are written and read back as they were', async () => {
    for (const [, { row }] of await everything()) expect(decodeRow(encodeRow(row))).toEqual(row);
  });

  it('are finite where nothing failed', async () => {
    for (const [name, { row }] of await everything()) {
      if (name === 'faults' || name === 'a skipped minibatch') continue;
      for (const [key, value] of Object.entries(row))
        expect(value, `${name} ${key}`).toSatisfy(Number.isFinite);
    }
  });

  it('count iterations and steps', async () => {
    const { rows } = await trained({}, { iterations: 3 });
    expect(rows.map(r => r['train/iteration'])).toEqual([1, 2, 3]);
    expect(rows.map(r => r['train/step'])).toEqual([128, 256, 384]);
  });

  it('gradient steps are counted where they were taken: not if stopped, left out or restored', async () => {
    for (const [settings, env] of [
      [{ targetKl: 1e-3, learningRate: 1e-2 }, () => cartPole()],
      [{}, faultyEnv({ reward: (s, i) => (s % 32 === 9 && i === 2 ? inf : s % 3) })],
    ] as [Partial<PpoConfig>, (index: number) => Env][]) {
      const { trainer, rows } = await trained(settings, { env, iterations: 3 });
      const taken = rows.reduce((sum, row) => sum + row['train/minibatches_run'], 0);
      expect(taken).toBeLessThan(36);
      expect(trainer.counters.gradientSteps).toBe(taken);
    }
    const { trainer } = await trained({}, { env: faultyEnv({ reward: () => inf }) });
    expect(trainer.counters.gradientSteps).toBe(0);
  });

  it('have what does not apply not at all', async () => {
    const [{ row }] = (await trained({ stepsPerRollout: 4, minibatchSize: 4 }, { env: () => pendulum() }))
      .results;
    // No episode ended, no reference, no penalty, no rate of the critic's own, no largest entropy.
    for (const key of [
      'episode/return',
      'episode/length',
      'kl/ref',
      'kl/ref_coef',
      'kl/coef',
      'train/lr_critic',
      'policy/entropy_relative',
    ])
      expect(row).not.toHaveProperty(key);
    expect(row['episode/count']).toBe(0);
    expect(row).toHaveProperty('policy/std');
    expect((await trained()).rows[0]).not.toHaveProperty('policy/std');
  });

  it('the best return is that of the run, also where a later iteration is worse', async () => {
    const { rows } = await trained({}, { iterations: 4 });
    let best = -inf;
    for (const row of rows) {
      expect(row['episode/return_best']).toBeGreaterThanOrEqual(row['episode/return']);
      expect(row['episode/return_best']).toBeGreaterThanOrEqual(best);
      best = row['episode/return_best'];
    }
  });

  it('relative entropy is 1 at the start, and never above', async () => {
    const { rows } = await trained({ learningRate: 1e-6 });
    expect(rows[0]['policy/entropy_relative']).toBeGreaterThan(0.99);
    expect(rows[0]['policy/entropy_relative']).toBeLessThanOrEqual(1 + 1e-6);
  });

  it('times add up', async () => {
    const { rows } = await trained();
    const {
      'time/collect_s': c,
      'time/update_s': u,
      'time/guard_s': g,
      'time/steps_per_second': s,
    } = rows[0];
    expect(128 / (c + u + g) / s).toBeCloseTo(1, 6);
  });

  // A fault that was here: Math.max(...returns) of more than some 120,000 episodes: RangeError, Maximum call stack
  // size exceeded.
  it('have room for as many episodes as a rollout can have', async () => {
    const { rows } = await trained(
      { stepsPerRollout: 2048, minibatchSize: 131_072, epochs: 1, hidden: [2] },
      { env: () => probeConstant(), envs: 64 },
    );
    expect(rows[0]['episode/count']).toBe(131_072);
  });

  // A fault that was here: the registry says that k1 and k3 average over the minibatches of the update ("below it
  // here, because it averages over the update"); the row has them over the whole rollout after it, which is the
  // better choice.
  it('k1 and k3 are what the registry says', () => {
    for (const id of ['kl/step_k1', 'kl/step_k3']) expect(requireMetric(id).kl?.aggregation).toBe('rollout');
  });
});

describe('events', () => {
  it('have the types and fields of the schema', async () => {
    const seen = new Set<string>();
    for (const [name, { events, row }] of await everything()) {
      for (const event of events) {
        expect(eventTypes, name).toContain(event.type);
        const base = { iteration: row['train/iteration'], step: row['train/step'], message: 'a sentence' };
        const parsed = parseEvent(JSON.parse(JSON.stringify({ ...base, ...event })), name);
        expect(parsed.type).toBe(event.type);
        seen.add(event.type);
      }
    }
    expect([...seen].sort()).toEqual([
      'early-stop',
      'guard',
      'rate-change',
      'reference',
      'restored',
      'skipped',
    ]);
  });

  it('are as often as the rows say', async () => {
    for (const [, { events, row }] of await everything()) {
      const count = (type: string): number => events.filter(e => e.type === type).length;
      expect(count('guard')).toBe(row['guard/backtracks'] > 0 || row['guard/retries'] > 0 ? 1 : 0);
      expect(count('early-stop')).toBe(row['train/early_stop']);
      expect(count('skipped') + count('restored')).toBe(row['train/skipped'] > 0 ? 1 : 0);
    }
  });
});

// Fault 9 of the facts: the linear schedule returned 0, not its final value, after the decay.
describe('referenceCoefAt', () => {
  it('goes linearly from initial to final, and stays there', () => {
    const config = ppoSettings.schema.parse({
      klRefCoefInitial: 1,
      klRefCoefFinal: 0.2,
      klRefDecaySteps: 100,
    });
    expect([0, 50, 100, 101, 1e9].map(n => referenceCoefAt(config, n))).toEqual(
      [1, 0.6, 0.2, 0.2, 0.2].map(x => expect.closeTo(x, 12)),
    );
    expect(referenceCoefAt({ ...config, klRefDecaySteps: 0 }, 0)).toBeCloseTo(0.2, 12);
  });
});
