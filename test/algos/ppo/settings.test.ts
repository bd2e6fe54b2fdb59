/**
 * Every key of PPO's config has an effect, and the one that it promises. One case for each key; a key without one fails
 * the last test.
 */
import { afterAll, describe, expect, it } from 'vitest';
import { type PpoConfig, ppoSettings } from '../../../src/algos/ppo/settings.ts';
import { openShardPlace } from '../../../src/algos/ppo/shards/open-place.ts';
import { TrainError } from '../../../src/base/errors.ts';
import { box, cluster, type Env, makeVectorEnv, pendulum, simulation } from '../../../src/envs/index.ts';
import { resolveSettings } from '../../../src/settings/resolve.ts';
import * as shared from '../../../src/settings/shared.ts';
import {
  disposeTrainers,
  faultyEnv,
  iterations,
  sha256,
  type TrainerOptions,
  trained,
  trainerOf,
} from './support/trainer.ts';
import {
  disposePrograms,
  distance,
  part,
  type Settings,
  sameBits,
  shapes,
  type Task,
  type TaskOptions,
  taskOf,
  type Updated,
  update,
} from './support/update.ts';

afterAll(async () => {
  await disposePrograms();
  await disposeTrainers();
});

type Case = () => Promise<void>;

/** An update of a Gaussian policy (unless told) on 32 samples, with what it started from. */
async function once(
  settings: Settings = {},
  options: TaskOptions & { shape?: keyof typeof shapes; stepsDone?: number; reference?: Float32Array } = {},
): Promise<Updated & { task: Task }> {
  const { shape = 'gaussian', stepsDone = 0, reference, ...rest } = options;
  const task = taskOf(shapes[shape], settings, rest);
  const needed = task.config.reference === 'none' ? undefined : (reference ?? task.old);
  return { task, ...(await update(task, { stepsDone }, needed)) };
}

/** How far the update moved a part of the parameters. */
const moved = ({ task, state }: { task: Task } & Updated, name: string): number =>
  distance(part(task, state.weights, name), part(task, task.state.weights, name));
const untouched = ({ task, state }: { task: Task } & Updated, name: string): boolean =>
  sameBits(part(task, state.weights, name), part(task, task.state.weights, name));

/** A column of the first rows of a run. */
async function column(
  key: string,
  settings: Settings,
  count: number,
  options: TrainerOptions = {},
): Promise<number[]> {
  const { rows } = await trained(settings, { iterations: count, ...options });
  return rows.map(row => row[key]);
}

const differences = (values: readonly number[]): number[] => values.slice(1).map((v, i) => v - values[i]);
const toPendulum: TrainerOptions = { env: () => pendulum() };

/** Reward 1 at every step, in episodes that the rollout does not see the end of. */
const endless = (): Env =>
  simulation({
    observationSpace: box({ shape: [1] }),
    actionSpace: box({ shape: [1], low: -1, high: 1 }),
    start: () => ({ t: 0 }),
    observe: state => [Math.sin(state.t)],
    step(state, _, result) {
      state.t++;
      result.reward = 1;
    },
  });

/** The same task in another scale of observations and rewards. */
const inScale =
  (observation: number, reward: number) =>
  (index: number): Env =>
    simulation({
      observationSpace: box({ shape: [2] }),
      actionSpace: box({ shape: [1], low: -1, high: 1 }),
      start: rng => ({ x: rng.normal(), t: 0 }),
      observe: state => [observation * state.x, observation * Math.cos(state.t + index)],
      step(state, action, result) {
        state.t++;
        state.x = 0.9 * state.x + 0.3 * action[0];
        result.reward = reward * (1 - state.x ** 2);
        result.terminated = state.t >= 10;
      },
    });

// ---- what several cases share --------------------------------------------------------------------------------------

/** A schedule's key in rows of ten iterations, which are the whole run. */
const scheduled = (key: string, settings: Settings): Promise<number[]> => column(key, settings, 10);

async function expectSchedule(
  key: string,
  of: (schedule: PpoConfig['learningRateSchedule']) => Settings,
  start: number,
  end: number,
): Promise<void> {
  expect(new Set(await scheduled(key, of('constant')))).toEqual(new Set([start]));
  const linear = await scheduled(key, of('linear'));
  const step = (start - end) / 10;
  for (const d of differences(linear)) expect(d).toBeCloseTo(-step, 8);
  expect(Math.abs(linear[0] - start)).toBeLessThanOrEqual(step * 1.001);
  expect(Math.abs(linear[9] - end)).toBeLessThanOrEqual(step * 1.001);
  const cosine = await scheduled(key, of('cosine'));
  const falls = differences(cosine).map(d => -d);
  expect(Math.min(...falls)).toBeGreaterThan(0);
  expect(falls[0]).toBeLessThan(falls[4] / 2);
  expect(falls[8]).toBeLessThan(falls[4] / 2);
  expect(cosine[0]).toBeGreaterThan(linear[0]);
  expect(cosine[9]).toBeLessThan(linear[9]);
}

/** What is left of a reference, and what it should be, after each of some iterations. */
async function references(settings: Settings, count: number) {
  const trainer = await trainerOf({ learningRate: 1e-2, guard: null, ...settings });
  const course = [{ weights: trainer.weights.slice(), reference: (await trainer.snapshot()).reference! }];
  for (let i = 0; i < count; i++) {
    await trainer.iterate();
    course.push({ weights: trainer.weights.slice(), reference: (await trainer.snapshot()).reference! });
  }
  return course;
}

/** A reference somewhere else than the policy, so that there is a pull. */
const elsewhere = (): Float32Array => taskOf(shapes.gaussian).old.map((p, i) => p + 0.3 * Math.sin(i));

/** How far the policy is from that reference, on average while it is pulled by nothing else. */
async function pulled(settings: Settings, stepsDone = 0): Promise<number> {
  const { learnt } = await once(
    { reference: 'frozen', valueCoef: 0, learningRate: 1e-2, epochs: 6, ...settings },
    { advantageScale: 0, reference: elsewhere(), stepsDone },
  );
  return learnt.klRef;
}

/** A bound on single states holds in every row, costs no rate, and is told where it acted. */
async function boundsStates(
  key: 'guardP99' | 'guardMax',
  metric: 'kl/step_p99' | 'kl/step_max',
  field: 'p99' | 'max',
): Promise<void> {
  const of = (settings: Settings) =>
    trained({ learningRate: 0.02, guard: null, ...settings }, { iterations: 3, ...toPendulum });
  const free = await of({});
  const bound = free.rows[0][metric] / 4;
  const { rows, results, trainer } = await of({ [key]: bound });
  for (const row of rows) expect(row[metric]).toBeLessThanOrEqual(bound);
  expect(rows[0][metric]).toBeGreaterThan(bound / 3);
  expect(rows[0]['guard/scale']).toBeLessThan(1);
  expect(rows[0]['guard/retries']).toBe(0);
  expect(rows[0]['kl/step']).toBeLessThan(free.rows[0]['kl/step']);
  expect(rows[0]['kl/step_raw']).toBe(free.rows[0]['kl/step_raw']);
  expect(trainer.counters.guardedFactor).toBe(1);
  expect(results[0].events).toMatchObject([
    { type: 'guard', [field]: { before: free.rows[0][metric], after: rows[0][metric], bound } },
  ]);
}

const inf = Number.POSITIVE_INFINITY;
const broken: TrainerOptions = { env: faultyEnv({ reward: () => inf }) };

// ---- the cases -----------------------------------------------------------------------------------------------------

/** Keys of the run around the updates, which test/algos/runs.test.ts and others are about. */
const { logKeys, autopilotKeys } = shared;
const environmentKeys = shared.environmentKeys({ ownReturns: true });
const runKeys = [
  ...Object.keys({ ...environmentKeys, ...logKeys, ...autopilotKeys }),
  ...['steps', 'record'],
];
type RunKey = keyof (typeof environmentKeys & typeof logKeys & typeof autopilotKeys) | 'steps' | 'record';

const cases: Record<Exclude<keyof PpoConfig, RunKey>, Case> = {
  async stepsPerRollout() {
    for (const stepsPerRollout of [8, 32]) {
      const { trainer, rows } = await trained({ stepsPerRollout });
      expect(rows[0]['train/step']).toBe(4 * stepsPerRollout);
      expect(trainer.samplesPerIteration).toBe(4 * stepsPerRollout);
    }
  },

  async epochs() {
    for (const epochs of [1, 3]) {
      const { rows } = await trained({ epochs });
      expect(rows[0]['train/minibatches_run']).toBe(4 * epochs);
      expect(rows[0]['train/epochs_run']).toBe(epochs);
    }
    expect((await once({ epochs: 4 })).measured.klRaw).toBeGreaterThan(
      (await once({ epochs: 1 })).measured.klRaw,
    );
  },

  async minibatchSize() {
    for (const minibatchSize of [16, 64])
      expect((await trained({ minibatchSize })).rows[0]['train/minibatches_run']).toBe(
        (3 * 128) / minibatchSize,
      );
    await expect(trainerOf({ minibatchSize: 48 })).rejects.toThrow(TrainError);
    await expect(trainerOf({ minibatchSize: 48 })).rejects.toThrow(
      'minibatchSize 48 does not divide 128 (envs 4 x stepsPerRollout 32): try 32 or 64',
    );
    await expect(trainerOf({ minibatchSize: 4096 })).rejects.toThrow('try 128');
  },

  async gamma() {
    const of = (gamma: number) => column('return/mean', { gamma, gaeLambda: 1 }, 1, { env: endless });
    const [[none], [some], [much]] = [await of(0), await of(0.9), await of(0.99)];
    expect(none).toBeCloseTo(1, 4);
    expect(some).toBeGreaterThan(none + 3);
    expect(much).toBeGreaterThan(some + 3);
  },

  async gaeLambda() {
    const of = (gaeLambda: number) => column('return/mean', { gaeLambda }, 1, { env: endless });
    const [[one], [some], [whole]] = [await of(0), await of(0.9), await of(1)];
    // The fresh value function is near 0: one step sees one reward, more steps see more of them.
    expect(some).toBeGreaterThan(one + 1);
    expect(whole).toBeGreaterThan(some + 1);
  },

  async learningRate() {
    const [slow, fast] = [await once({ learningRate: 1e-4 }), await once({ learningRate: 1e-3 })];
    expect(moved(fast, 'actor')).toBeGreaterThan(5 * moved(slow, 'actor'));
    expect(moved(fast, 'critic')).toBeGreaterThan(5 * moved(slow, 'critic'));
    expect(fast.measured.klRaw).toBeGreaterThan(10 * slow.measured.klRaw);
    expect(await column('train/lr', { learningRate: 7e-4 }, 1)).toEqual([7e-4]);
  },

  async criticLearningRate() {
    const of = (criticLearningRate: number | null) => once({ criticLearningRate });
    const [slow, fast, none] = [await of(1e-5), await of(1e-2), await of(null)];
    const actor = ({ task, state }: typeof slow): number[] => part(task, state.weights, 'actor');
    expect(sameBits(actor(slow), actor(fast))).toBe(true);
    expect(distance(actor(slow), actor(none))).toBeLessThan(1e-6);
    expect(moved(fast, 'critic')).toBeGreaterThan(100 * moved(slow, 'critic'));
    const same = await of(none.task.config.learningRate);
    expect(distance(same.state.weights, none.state.weights)).toBeLessThan(1e-6);
    const { rows } = await trained({ criticLearningRate: 5e-3 });
    expect(rows[0]['train/lr_critic']).toBe(5e-3);
    expect((await trained()).rows[0]).not.toHaveProperty('train/lr_critic');
  },

  learningRateSchedule: () =>
    expectSchedule(
      'train/lr',
      learningRateSchedule => ({ learningRateSchedule, learningRate: 1e-3, criticLearningRate: 2e-3 }),
      1e-3,
      0,
    ),

  async learningRateEnd() {
    await expectSchedule(
      'train/lr',
      learningRateSchedule => ({ learningRateSchedule, learningRate: 1e-3, learningRateEnd: 0.5 }),
      1e-3,
      5e-4,
    );
    const critic = await scheduled('train/lr_critic', {
      learningRateSchedule: 'linear',
      learningRateEnd: 0.5,
      criticLearningRate: 2e-3,
    });
    expect(critic[9]).toBeLessThan(1.2e-3);
    expect(critic[9]).toBeGreaterThanOrEqual(1e-3);
  },

  async warmupShare() {
    const rates = await scheduled('train/lr', { warmupShare: 0.5, learningRate: 1e-3 });
    for (const d of differences(rates.slice(0, 5))) expect(d).toBeCloseTo(2e-4, 8);
    expect(rates[0]).toBeGreaterThan(0);
    expect(rates[0]).toBeLessThanOrEqual(2e-4);
    for (const rate of rates.slice(5)) expect(rate).toBe(1e-3);
    const both = await scheduled('train/lr', {
      warmupShare: 0.5,
      learningRate: 1e-3,
      learningRateSchedule: 'linear',
    });
    expect(both.slice(0, 5)).toEqual(rates.slice(0, 5));
    expect(both[9]).toBeLessThan(2.1e-4);
    expect(Math.max(...both)).toBeCloseTo(both[5], 9);
  },

  async adamEpsilon() {
    const [usual, large] = [await once({ adamEpsilon: 1e-5 }), await once({ adamEpsilon: 1 })];
    expect(moved(large, 'actor')).toBeLessThan(0.3 * moved(usual, 'actor'));
  },

  async gradientClip() {
    const of = (gradientClip: number | null) =>
      once({ gradientClip, epochs: 1, minibatchSize: 32, adamEpsilon: 1e-2 });
    const [tight, loose, none] = [await of(1e-3), await of(1e6), await of(null)];
    expect(moved(tight, 'actor')).toBeLessThan(0.05 * moved(none, 'actor'));
    expect(distance(loose.state.weights, none.state.weights)).toBeLessThan(1e-7);
    // Reported as it was before.
    expect(tight.learnt.gradNorm).toBeCloseTo(none.learnt.gradNorm, 5);
    // m is a tenth of the gradient that was used.
    const norm = (m: Float32Array): number => Math.sqrt(m.reduce((sum, x) => sum + x * x, 0));
    for (const which of ['actor', 'critic'] as const)
      expect(norm(Float32Array.from(part(tight.task, tight.state.m, which)))).toBeCloseTo(1e-4, 8);
  },

  async clipRange() {
    const of = (clipRange: number) => once({ clipRange, guard: null, learningRate: 3e-3, epochs: 8 });
    const [narrow, wide] = [await of(0.02), await of(0.5)];
    expect(narrow.learnt.clipFraction).toBeGreaterThan(wide.learnt.clipFraction + 0.1);
    expect(narrow.measured.kl).toBeLessThan(wide.measured.kl);
    expect(await column('train/clip_range', { clipRange: 0.13 }, 1)).toEqual([0.13]);
  },

  clipRangeSchedule: () =>
    expectSchedule(
      'train/clip_range',
      clipRangeSchedule => ({ clipRangeSchedule, clipRange: 0.4 }),
      0.4,
      0.04,
    ),

  clipRangeEnd: () =>
    expectSchedule(
      'train/clip_range',
      clipRangeSchedule => ({ clipRangeSchedule, clipRange: 0.4, clipRangeEnd: 0.5 }),
      0.4,
      0.2,
    ),

  async valueCoef() {
    const [none, half, two] = [
      await once({ valueCoef: 0 }),
      await once({ valueCoef: 0.5 }),
      await once({ valueCoef: 2 }),
    ];
    expect(untouched(none, 'critic')).toBe(true);
    expect(untouched(half, 'critic')).toBe(false);
    for (const { learnt, task } of [none, half, two])
      expect(learnt.loss).toBeCloseTo(learnt.policyLoss + task.config.valueCoef * learnt.valueLoss, 4);
    expect(two.learnt.gradNorm).toBeGreaterThan(half.learnt.gradNorm);
  },

  async valueClip() {
    // Returns far above every value: each step pulls values up, until the clip says that it is enough.
    const of = async (valueClip: number | null): Promise<number> => {
      const task = taskOf(shapes.gaussian, { valueClip, epochs: 30, learningRate: 1e-2, gradientClip: null });
      task.batch.returns.set(task.batch.oldValues.map(v => v + 5));
      const { learnt } = await update(task);
      return learnt.valueLoss;
    };
    const [tight, wide, none] = [await of(0.1), await of(2), await of(null)];
    expect(tight).toBeGreaterThan(wide + 3);
    expect(wide).toBeGreaterThan(none);
    // Held: from 5 off, values come hardly nearer than 4.9.
    expect(tight).toBeGreaterThan(4.5 ** 2);
  },

  async valueHuber() {
    const of = async (valueHuber: boolean, valueClip: number | null = null) => {
      const task = taskOf(shapes.gaussian, { valueHuber, valueClip, epochs: 1, minibatchSize: 32 });
      task.batch.returns[3] = task.batch.oldValues[3] + 100;
      return { task, ...(await update(task)) };
    };
    const [squared, mixed] = [await of(false), await of(true)];
    const errors = Array.from(squared.task.batch.returns, (r, i) => squared.task.batch.oldValues[i] - r);
    const mean = (f: (e: number) => number): number =>
      errors.reduce((sum, e) => sum + f(e), 0) / errors.length;
    const smooth = mean(e => (Math.abs(e) < 1 ? 0.5 * e * e : Math.abs(e) - 0.5));
    const square = mean(e => e * e);
    expect(squared.learnt.valueLoss / square).toBeCloseTo(1, 4);
    expect(mixed.learnt.valueLoss / ((square + smooth) / 2)).toBeCloseTo(1, 4);
    expect(mixed.learnt.gradNorm).toBeLessThan(0.6 * squared.learnt.gradNorm);
    // Before the first step nothing has moved, so that the clip changes nothing yet.
    expect((await of(true, 0.1)).learnt.valueLoss).toBeCloseTo(mixed.learnt.valueLoss, 4);
  },

  async normaliseAdvantages() {
    const of = (normaliseAdvantages: boolean, advantageScale: number) =>
      once(
        { normaliseAdvantages, valueCoef: 0, gradientClip: null, epochs: 1, minibatchSize: 32 },
        { advantageScale },
      );
    const norm = async (on: boolean, scale: number): Promise<number> => (await of(on, scale)).learnt.gradNorm;
    expect((await norm(true, 100)) / (await norm(true, 1))).toBeCloseTo(1, 3);
    expect((await norm(false, 100)) / (await norm(false, 1))).toBeCloseTo(100, 1);
    // The spread of the task's advantages is 1.7 or so: times 1e-3 it is below .01, and they are only centred.
    const [small, smaller] = [await norm(true, 1e-3), await norm(true, 1e-4)];
    expect(small / smaller).toBeCloseTo(10, 2);
    expect(small).toBeLessThan(0.01 * (await norm(true, 1)));
    // Centred they are: a constant added to all of them changes nothing.
    const shifted = taskOf(
      shapes.gaussian,
      { normaliseAdvantages: true, valueCoef: 0, gradientClip: null, epochs: 1, minibatchSize: 32 },
      { advantageScale: 1e-3 },
    );
    shifted.batch.advantages.set(shifted.batch.advantages.map(a => a + 1));
    expect((await update(shifted)).learnt.gradNorm / small).toBeCloseTo(1, 2);
  },

  async entropyCoef() {
    for (const shape of ['gaussian', 'categorical', 'composite'] as const) {
      const of = (entropyCoef: number) => once({ entropyCoef, learningRate: 3e-3 }, { shape });
      const [none, some] = [await of(0), await of(0.5)];
      expect(some.measured.entropy).toBeGreaterThan(none.measured.entropy + 1e-3);
      expect(some.learnt.loss).toBeLessThan(none.learnt.loss);
    }
  },

  async entropyWarmupCoef() {
    const of = (entropyWarmupCoef: number) =>
      once({ entropyWarmupCoef, entropyWarmupSteps: 100, learningRate: 3e-3 }, { shape: 'categorical' });
    const [none, some] = [await of(0), await of(1)];
    expect(some.measured.entropy).toBeGreaterThan(none.measured.entropy + 1e-3);
  },

  async entropyWarmupSteps() {
    const of = (entropyWarmupCoef: number, entropyWarmupSteps: number, stepsDone: number) =>
      once({ entropyWarmupCoef, entropyWarmupSteps, learningRate: 3e-3 }, { stepsDone });
    // While it lasts, longer is stronger; it falls linearly.
    const [short, long] = [await of(1, 8, 0), await of(1, 1000, 0)];
    expect(long.measured.entropy).toBeGreaterThan(short.measured.entropy + 1e-4);
    const bonus = async (stepsDone: number): Promise<number> => {
      const settings: Settings = {
        entropyWarmupCoef: 1,
        entropyWarmupSteps: 100,
        epochs: 1,
        minibatchSize: 32,
      };
      const { learnt } = await once(settings, { stepsDone });
      return (learnt.policyLoss + 0.5 * learnt.valueLoss - learnt.loss) / learnt.entropy;
    };
    expect(await bonus(0)).toBeCloseTo(1, 4);
    expect(await bonus(25)).toBeCloseTo(0.75, 4);
    expect(await bonus(100)).toBeCloseTo(0, 4);
    expect(await bonus(5000)).toBeCloseTo(0, 4);
    // After its steps it does nothing at all.
    expect(sameBits((await of(1, 8, 8)).state.weights, (await of(50, 8, 8)).state.weights)).toBe(true);
  },

  async entropyMin() {
    // Fault 5 of the facts: nothing but the penalty is left, and it must move the log-std.
    const quiet: Settings = { valueCoef: 0, learningRate: 1e-2, normaliseAdvantages: false };
    const of = (entropyMin: number | null) =>
      once({ ...quiet, entropyMin }, { advantageScale: 0, logStd: -1 });
    const [below, above, none] = [await of(10), await of(-10), await of(null)];
    const logStds = ({ task, state }: typeof below): number[] => part(task, state.weights, 'actor.logStd');
    for (const logStd of logStds(below)) expect(logStd).toBeGreaterThan(-1 + 1e-2);
    expect(below.measured.entropy).toBeGreaterThan(none.measured.entropy + 0.05);
    expect(untouched(above, 'actor')).toBe(true);
    expect(untouched(none, 'actor')).toBe(true);
    // In the categorical policy it moves the network.
    const discrete = await once({ ...quiet, entropyMin: 5 }, { advantageScale: 0, shape: 'categorical' });
    expect(untouched(discrete, 'actor')).toBe(false);
  },

  async entropyMinCoef() {
    const gap = async (entropyMinCoef: number): Promise<number> => {
      const { learnt } = await once({ entropyMin: 10, entropyMinCoef, epochs: 1, minibatchSize: 32 });
      return (learnt.loss - learnt.policyLoss - 0.5 * learnt.valueLoss) / (10 - learnt.entropy);
    };
    expect(await gap(0.25)).toBeCloseTo(0.25, 4);
    expect(await gap(3)).toBeCloseTo(3, 3);
  },

  async targetKl() {
    const of = (targetKl: number | null) => once({ targetKl, learningRate: 1e-2, epochs: 6, guard: null });
    const [tight, loose, none] = [await of(1e-3), await of(3e-2), await of(null)];
    expect(none.learnt).toMatchObject({ stopped: 'no', minibatches: 24 });
    expect(tight.learnt.stopped).toBe('kl');
    expect(tight.learnt.minibatches).toBeLessThan(loose.learnt.minibatches);
    expect(tight.measured.kl).toBeLessThan(none.measured.kl);
    const { rows, results } = await trained({ targetKl: 1e-4, learningRate: 1e-2 });
    expect(rows[0]['train/early_stop']).toBe(1);
    expect(results[0].events.map(e => e.type)).toContain('early-stop');
  },

  async targetKlFactor() {
    const of = (targetKlFactor: number) =>
      once({ targetKl: 1e-3, targetKlFactor, learningRate: 1e-2, epochs: 6 });
    const [one, ten] = [await of(1), await of(10)];
    expect(one.learnt.minibatches).toBeLessThan(ten.learnt.minibatches);
    const { results } = await trained({ targetKl: 1e-4, targetKlFactor: 3, learningRate: 1e-2 });
    expect(results[0].events.find(e => e.type === 'early-stop')?.limit).toBeCloseTo(3e-4, 12);
  },

  async targetKlPer() {
    const of = (targetKlPer: PpoConfig['targetKlPer']) =>
      once({ targetKl: 1e-3, targetKlPer, learningRate: 1e-2, epochs: 6 });
    const [minibatch, epoch] = [await of('minibatch'), await of('epoch')];
    expect(minibatch.learnt.stopped).toBe('kl');
    expect(epoch.learnt.stopped).toBe('kl');
    expect(epoch.learnt.minibatches % 4).toBe(0);
    expect(minibatch.learnt.minibatches).toBeLessThan(epoch.learnt.minibatches);
  },

  async klCoef() {
    for (const shape of ['gaussian', 'categorical', 'composite'] as const) {
      const of = (klCoef: number) => once({ klCoef, learningRate: 3e-3, epochs: 6, guard: null }, { shape });
      const [none, some] = [await of(0), await of(20)];
      expect(some.measured.kl).toBeLessThan(0.7 * none.measured.kl);
    }
    expect((await trained({ klCoef: 0.7 })).rows[0]['kl/coef']).toBe(0.7);
    expect((await trained()).rows[0]).not.toHaveProperty('kl/coef');
  },

  async klCoefRule() {
    const of = (klCoefRule: PpoConfig['klCoefRule'], klCoefTarget: number) =>
      column('kl/coef', { klCoef: 1, klCoefRule, klCoefTarget, klCoefHorizon: 1280 }, 3);
    expect(await of('fixed', 1e-9)).toEqual([1, 1, 1]);
    expect(await of('adaptive', 1e-9)).toEqual([1, 2, 4]);
    expect(await of('adaptive', 10)).toEqual([1, 0.5, 0.25]);
    // 128 samples of a horizon of 1280, at most a fifth of that.
    (await of('horizon', 1e-9)).forEach((c, i) => {
      expect(c).toBeCloseTo(1.02 ** i, 6);
    });
    (await of('horizon', 10)).forEach((c, i) => {
      expect(c).toBeCloseTo(0.98 ** i, 6);
    });
  },

  async klCoefTarget() {
    const settings: Settings = { klCoef: 1, klCoefRule: 'adaptive', learningRate: 1e-3 };
    const [kl] = await column('kl/step', settings, 1);
    const after = async (klCoefTarget: number): Promise<number> =>
      (await column('kl/coef', { ...settings, klCoefTarget }, 2))[1];
    expect(await after(kl / 2)).toBe(2);
    expect(await after(kl)).toBe(1);
    expect(await after(kl * 2)).toBe(0.5);
  },

  async klCoefHorizon() {
    const of = (klCoefHorizon: number) =>
      column('kl/coef', { klCoef: 1, klCoefRule: 'horizon', klCoefTarget: 1e-9, klCoefHorizon }, 2);
    expect((await of(1280))[1]).toBeCloseTo(1.02, 6);
    expect((await of(12_800))[1]).toBeCloseTo(1.002, 6);
  },

  async klCoefMax() {
    const of = (klCoefMax: number) =>
      column('kl/coef', { klCoef: 1, klCoefRule: 'adaptive', klCoefTarget: 1e-9, klCoefMax }, 5);
    expect(await of(3)).toEqual([1, 2, 3, 3, 3]);
    expect((await of(100))[4]).toBe(16);
  },

  async adaptiveRate() {
    const off = await column('train/lr', {}, 3);
    expect(new Set(off)).toEqual(new Set([3e-4]));
    const up = await column('train/lr', { adaptiveRate: true, adaptiveRateTarget: 10 }, 3);
    up.forEach((rate, i) => {
      expect(rate).toBeCloseTo(3e-4 * 1.5 ** i, 9);
    });
    const { results } = await trained({ adaptiveRate: true, adaptiveRateTarget: 10 });
    expect(results[0].events).toMatchObject([{ type: 'rate-change', what: 'learningRate' }]);
  },

  async adaptiveRateTarget() {
    const [kl] = await column('kl/step', { learningRate: 1e-3 }, 1);
    const after = async (adaptiveRateTarget: number): Promise<number> =>
      (await column('train/lr', { adaptiveRate: true, adaptiveRateTarget, learningRate: 1e-3 }, 2))[1];
    expect(await after(kl / 4)).toBeCloseTo(1e-3 / 1.5, 9);
    expect(await after(kl)).toBeCloseTo(1e-3, 9);
    expect(await after(kl * 4)).toBeCloseTo(1.5e-3, 9);
  },

  async guardRetries() {
    const wild = { learningRate: 0.3, guard: 0.01, gradientClip: null };
    for (const guardRetries of [0, 2]) {
      const { rows } = await trained({ ...wild, guardRetries });
      expect(rows[0]['guard/retries']).toBe(guardRetries);
      expect(rows[0]['kl/step']).toBeLessThanOrEqual(0.01);
    }
  },

  async adaptiveRateMin() {
    const of = (adaptiveRateMin: number) =>
      column(
        'train/lr',
        { adaptiveRate: true, adaptiveRateTarget: 1e-12, learningRate: 1e-3, adaptiveRateMin },
        5,
      );
    expect((await of(5e-4)).at(-1)).toBeCloseTo(5e-4, 9);
    expect((await of(1e-5)).at(-1)).toBeCloseTo(1e-3 / 1.5 ** 4, 9);
  },

  async adaptiveRateMax() {
    const of = (adaptiveRateMax: number) =>
      column(
        'train/lr',
        { adaptiveRate: true, adaptiveRateTarget: 10, learningRate: 1e-3, adaptiveRateMax },
        5,
      );
    expect((await of(2e-3)).at(-1)).toBeCloseTo(2e-3, 9);
    expect((await of(1e-2)).at(-1)).toBeCloseTo(1e-3 * 1.5 ** 4, 9);
  },

  async guard() {
    const of = (guard: number | null) =>
      trained({ guard, guardRetries: 0, learningRate: 0.5 }, { iterations: 2, ...toPendulum });
    const [off, usual, tight] = [await of(null), await of(0.05), await of(0.01)];
    expect(off.rows[0]['kl/step']).toBeGreaterThan(0.05);
    expect(off.rows[0]['guard/scale']).toBe(1);
    expect(off.results.flatMap(r => r.events).filter(e => e.type === 'guard')).toEqual([]);
    for (const [{ rows, results }, bound] of [
      [usual, 0.05],
      [tight, 0.01],
    ] as const) {
      for (const row of rows) expect(row['kl/step']).toBeLessThanOrEqual(bound);
      expect(rows[0]['guard/scale']).toBeLessThan(1);
      expect(rows[0]['kl/step_raw']).toBeGreaterThan(bound);
      expect(results[0].events).toMatchObject([{ type: 'guard', bound }]);
    }
  },

  async guardP99() {
    await boundsStates('guardP99', 'kl/step_p99', 'p99');
  },

  async guardMax() {
    await boundsStates('guardMax', 'kl/step_max', 'max');
    // A percentile is never above the largest: what could never act is refused.
    const both = (guardP99: number, guardMax: number) =>
      resolveSettings(ppoSettings, { preset: {}, given: { guardP99, guardMax } });
    expect(both(0.4, 0.5)).toMatchObject({ guardP99: 0.4, guardMax: 0.5 });
    expect(() => both(0.5, 0.5)).toThrow(/guardP99 0\.5 is not below guardMax 0\.5/);
  },

  async reference() {
    expect((await references({ reference: 'none' }, 1)).map(c => c.reference)).toEqual([
      undefined,
      undefined,
    ]);
    const frozen = await references({ reference: 'frozen' }, 3);
    for (const { reference } of frozen) expect(sameBits(reference, frozen[0].weights)).toBe(true);
    const refreshed = await references({ reference: 'refreshed', referenceEvery: 2 }, 4);
    [0, 0, 2, 2, 4].forEach((from, i) => {
      expect(sameBits(refreshed[i].reference, refreshed[from].weights), `after ${i}`).toBe(true);
    });
    const averaged = await references({ reference: 'averaged' }, 3);
    expect(sameBits(averaged[0].reference, averaged[0].weights)).toBe(true);
    expect(distance(averaged[3].reference, averaged[0].weights)).toBeGreaterThan(0);
    expect(distance(averaged[3].reference, averaged[3].weights)).toBeGreaterThan(0);
    const { rows } = await trained({ reference: 'frozen' });
    expect(rows[0]).toHaveProperty('kl/ref');
    expect(rows[0]).toHaveProperty('kl/ref_coef');
  },

  async referenceEvery() {
    const often = await references({ reference: 'refreshed', referenceEvery: 1 }, 2);
    const seldom = await references({ reference: 'refreshed', referenceEvery: 10 }, 2);
    expect(sameBits(often[2].reference, often[2].weights)).toBe(true);
    expect(sameBits(seldom[2].reference, seldom[0].weights)).toBe(true);
    const { results } = await trained({ reference: 'refreshed', referenceEvery: 2 }, { iterations: 4 });
    expect(results.map(({ events }) => events.some(e => e.type === 'reference'))).toEqual([
      false,
      true,
      false,
      true,
    ]);
  },

  async referenceDecay() {
    for (const referenceDecay of [0, 0.9, 1]) {
      const course = await references({ reference: 'averaged', referenceDecay }, 2);
      for (let i = 1; i <= 2; i++) {
        const wanted = course[i - 1].reference.map(
          (r, k) => referenceDecay * r + (1 - referenceDecay) * course[i].weights[k],
        );
        expect(distance(course[i].reference, wanted)).toBeLessThan(1e-6);
      }
    }
  },

  async klRefCoefInitial() {
    const flat = (klRefCoefInitial: number): Settings => ({
      klRefCoefInitial,
      klRefCoefFinal: 0,
      klRefDecaySteps: 1000,
    });
    expect(await pulled(flat(1))).toBeLessThan(0.8 * (await pulled(flat(0))));
    expect(
      (await trained({ reference: 'frozen', klRefCoefInitial: 0.8, klRefDecaySteps: 1e6 })).rows[0][
        'kl/ref_coef'
      ],
    ).toBeCloseTo(0.8, 4);
  },

  // Fault 9 of the facts: the schedule returned 0, not its final value, after the decay.
  async klRefCoefFinal() {
    const settings: Settings = { klRefCoefInitial: 4, klRefDecaySteps: 10 };
    const weights = await column('kl/ref_coef', { ...settings, reference: 'frozen', klRefCoefFinal: 0.3 }, 3);
    expect(weights.at(-1)).toBeCloseTo(0.3, 12);
    const of = (klRefCoefFinal: number, stepsDone: number) =>
      pulled({ ...settings, klRefCoefFinal }, stepsDone);
    for (const stepsDone of [10, 1000, 1e6]) {
      expect(await of(1, stepsDone)).toBeLessThan(0.97 * (await of(0, stepsDone)));
      // It stays what it is from there on, exactly.
      const flat = await pulled({ klRefCoefInitial: 1, klRefCoefFinal: 1 }, stepsDone);
      expect(await of(1, stepsDone)).toBeCloseTo(flat, 6);
    }
  },

  async klRefDecaySteps() {
    // The weight that the loss had, at so many minibatch steps.
    const weight = async (klRefDecaySteps: number, stepsDone: number): Promise<number> => {
      const { learnt } = await once(
        {
          reference: 'frozen',
          klRefCoefInitial: 2,
          klRefCoefFinal: 0.5,
          klRefDecaySteps,
          epochs: 1,
          minibatchSize: 32,
        },
        { reference: elsewhere(), stepsDone },
      );
      return (learnt.loss - learnt.policyLoss - 0.5 * learnt.valueLoss) / learnt.klRef;
    };
    expect(await weight(100, 0)).toBeCloseTo(2, 3);
    expect(await weight(100, 50)).toBeCloseTo(1.25, 3);
    expect(await weight(100, 100)).toBeCloseTo(0.5, 3);
    expect(await weight(100, 101)).toBeCloseTo(0.5, 3);
    expect(await weight(100, 1e6)).toBeCloseTo(0.5, 3);
    expect(await weight(0, 0)).toBeCloseTo(0.5, 3);
    // Minibatch steps, not updates: 12 of them an iteration here.
    const settings: Settings = {
      reference: 'frozen',
      klRefCoefInitial: 1,
      klRefCoefFinal: 0,
      klRefDecaySteps: 48,
    };
    const steps = differences(await column('kl/ref_coef', settings, 4));
    for (const d of steps) expect(d).toBeCloseTo(-0.25, 6);
  },

  async logStdInitial() {
    for (const logStdInitial of [-1, 0.5]) {
      const { rows } = await trained({ logStdInitial, learningRate: 1e-6 }, toPendulum);
      expect(rows[0]['policy/std']).toBeCloseTo(Math.exp(logStdInitial), 3);
    }
  },

  async logStdMin() {
    // Pulled down by all means (a negative bonus is not possible, an unlikely action with a bad advantage is).
    const of = (logStdMin: number) =>
      trained({ logStdMin, logStdInitial: -1, learningRate: 1e-6 }, toPendulum);
    expect((await of(-5)).rows[0]['policy/std']).toBeCloseTo(Math.exp(-1), 3);
    expect((await of(-0.5)).rows[0]['policy/std']).toBeCloseTo(Math.exp(-0.5), 3);
    expect((await of(-0.5)).rows[0]['policy/entropy']).toBeGreaterThan(
      (await of(-5)).rows[0]['policy/entropy'] + 0.4,
    );
  },

  async logStdMax() {
    const of = (logStdMax: number) =>
      trained(
        { logStdMax, entropyCoef: 5, learningRate: 0.05, guard: null, epochs: 10 },
        { iterations: 3, ...toPendulum },
      );
    expect((await of(0.2)).rows.at(-1)!['policy/std']).toBeCloseTo(Math.exp(0.2), 3);
    expect((await of(2)).rows.at(-1)!['policy/std']).toBeGreaterThan(Math.exp(0.5));
  },

  async logStdEnd() {
    const settings = {
      logStdInitial: -0.5,
      logStdEnd: -1.5,
      entropyCoef: 5,
      learningRate: 0.05,
      guard: null,
    };
    const { rows } = await trained({ ...settings, epochs: 10 }, { iterations: 10, ...toPendulum });
    for (const [i, row] of rows.entries()) {
      // The bonus pulls the std up to the bound, which is that of the middle of each update.
      expect(row['policy/std']).toBeCloseTo(Math.exp(-0.5 - (i + 0.5) / 10), 3);
      // Of one action whose log-std falls by d the KL is (e^2d - 1) / 2 - d, and it is in what is measured.
      const d = i === 0 ? 0.05 : 0.1;
      expect(row['kl/step']).toBeGreaterThan(0.99 * ((Math.exp(2 * d) - 1) / 2 - d));
    }
    // A fall that is too far for so few updates takes half of the guard's bound at most, and cuts no rate.
    const short = await trained(
      { logStdEnd: -4, guard: 0.02, learningRate: 1e-4 },
      { iterations: 4, totalSteps: 512, ...toPendulum },
    );
    short.rows.forEach((row, i) => {
      expect(row['policy/std']).toBeGreaterThan(Math.exp(-(i + 1) * 0.1) * 0.99);
      expect(row['kl/step_raw']).toBeLessThan(0.02);
      expect(row['train/lr']).toBe(short.rows[0]['train/lr']);
    });
    expect(short.rows[3]['policy/std']).toBeLessThan(0.8);
  },

  async noiseCorrelation() {
    /** Correlation of each action with the one before it. */
    const lag = async (noiseCorrelation: number): Promise<number> => {
      const actions: number[][] = [[], [], [], []];
      const env = (index: number): Env =>
        simulation({
          observationSpace: box({ shape: [1] }),
          actionSpace: box({ shape: [1] }),
          start: () => ({ t: 0 }),
          observe: () => [0],
          step(_, action, result) {
            actions[index].push(action[0]);
            result.reward = 0;
          },
        });
      await trained({ noiseCorrelation, stepsPerRollout: 256, epochs: 1, learningRate: 1e-6 }, { env });
      const products = actions.flatMap(own => own.slice(1).map((a, i) => a * own[i]));
      const squares = actions.flat().map(a => a * a);
      const mean = (values: number[]): number => values.reduce((a, b) => a + b, 0) / values.length;
      return mean(products) / mean(squares);
    };
    expect(Math.abs(await lag(0))).toBeLessThan(0.15);
    expect(Math.abs((await lag(0.8)) - 0.8)).toBeLessThan(0.15);
    await expect(trainerOf({ noiseCorrelation: 0.5 })).rejects.toThrow(/noiseCorrelation 0.5 has no effect/);
  },

  async hidden() {
    const size = async (hidden: number[]): Promise<number> => (await trainerOf({ hidden })).model.layout.size;
    // CartPole: 4 in, 2 and 1 out.
    expect(await size([8])).toBe(4 * 8 + 8 + 8 * 2 + 2 + (4 * 8 + 8 + 8 + 1));
    expect(await size([5, 3])).toBe(4 * 5 + 5 + 5 * 3 + 3 + 3 * 2 + 2 + (4 * 5 + 5 + 5 * 3 + 3 + 3 + 1));
  },

  async criticHidden() {
    const size = async (criticHidden: number[] | null): Promise<number> =>
      (await trainerOf({ hidden: [8], criticHidden })).model.layout.size;
    expect(await size([5])).toBe(4 * 8 + 8 + 8 * 2 + 2 + (4 * 5 + 5 + 5 + 1));
    expect(await size(null)).toBe(await size([8]));
    expect(() => resolveSettings(ppoSettings, { given: { network: 'set', criticHidden: [5] } })).toThrow(
      /criticHidden has no effect with network set/,
    );
  },

  async network() {
    const env = (): Env => cluster({ replicas: 'a100,a40', requests: 64 });
    for (const network of ['mlp', 'set'] as const) {
      const { trainer } = await trained({ network }, { env });
      const { specs } = trainer.model.layout;
      expect(specs.some(({ name }) => name === 'actor.0.context')).toBe(network === 'set');
    }
    await expect(trained({ network: 'set' })).rejects.toThrow(/network set needs observations Dict/);
  },

  async activation() {
    const values = new Set<number>();
    for (const activation of ['tanh', 'relu', 'gelu'] as const)
      values.add((await trained({ activation })).rows[0]['value/mean']);
    expect(values.size).toBe(3);
  },

  async normaliseObservations() {
    const of = async (normaliseObservations: boolean, scale: number) =>
      (await trained({ normaliseObservations }, { env: inScale(scale, 1), iterations: 2 })).rows.at(-1)!;
    const [one, thousand] = [await of(true, 1), await of(true, 1000)];
    for (const key of ['kl/step', 'loss/value', 'value/mean', 'grad/norm'])
      expect(thousand[key] / one[key], key).toBeCloseTo(1, 1);
    const [raw, rawThousand] = [await of(false, 1), await of(false, 1000)];
    expect(Math.abs(rawThousand['value/mean'] / raw['value/mean'] - 1)).toBeGreaterThan(0.2);
    const { trainer } = await trained({ normaliseObservations: true });
    const { observationNormaliser } = await trainer.snapshot();
    expect(observationNormaliser?.count).toBe(128);
    expect((await (await trainerOf()).snapshot()).observationNormaliser).toBeNull();
  },

  async normaliseRewards() {
    const of = async (normaliseRewards: boolean, scale: number) =>
      (await trained({ normaliseRewards }, { env: inScale(1, scale), iterations: 2 })).rows.at(-1)!;
    const [one, thousand] = [await of(true, 1), await of(true, 1000)];
    expect(thousand['adv/std'] / one['adv/std']).toBeCloseTo(1, 1);
    // What is reported is the environment's own.
    expect(thousand['reward/mean'] / one['reward/mean']).toBeGreaterThan(500);
    const [raw, rawThousand] = [await of(false, 1), await of(false, 1000)];
    expect(rawThousand['adv/std'] / raw['adv/std']).toBeGreaterThan(500);
    const { trainer } = await trained({ normaliseRewards: true });
    expect((await trainer.snapshot()).rewardNormaliser?.moments.count).toBe(128);
  },

  async shards() {
    const hash = async (shards: number) =>
      sha256((await trained({ shards }, { envs: 4 / shards })).trainer.weights);
    const [whole, two, four] = [await hash(1), await hash(2), await hash(4)];
    expect(new Set([whole, two, four]).size).toBe(3);
    expect(whole).toBe(sha256((await trained()).trainer.weights));
    const refusal = (settings: Settings) => () => resolveSettings(ppoSettings, { given: settings });
    expect(refusal({ envs: 8, shards: 3 })).toThrow('shards 3 does not divide envs 8: try 2 or 4');
    expect(refusal({ envs: 8, shards: 4, workers: 2 })).toThrow(/workers 2 has no effect with shards 4/);
  },

  // That the bits are the same is told in shards/processes.test.ts.
  async collectors() {
    const of = async (collectors: number): Promise<number | undefined> => {
      const config = resolveSettings(ppoSettings, { given: { shards: 4, collectors } });
      const envs = await makeVectorEnv('cartpole', { envCount: 2 });
      const place = openShardPlace(config, envs);
      await place?.close();
      await envs.close();
      return place?.slots;
    };
    expect(await of(0)).toBeUndefined();
    expect(await of(3)).toBe(3);
    const refusal = (settings: Settings) => () => resolveSettings(ppoSettings, { given: settings });
    expect(refusal({ shards: 4, collectors: 5 })).toThrow(
      'collectors 5 are more than the 4 shards that there are to collect: use 4 or fewer, or more shards',
    );
    expect(refusal({ collectors: 2 })).toThrow('collectors has no effect without shards of at least 2');
  },

  async skipLimit() {
    for (const skipLimit of [2, 7]) {
      const { rows } = await trained({ skipLimit }, broken);
      expect(rows[0]['train/skipped']).toBe(skipLimit);
    }
  },

  async recoveryFactor() {
    for (const recoveryFactor of [0.1, 0.5]) {
      const { rows, results } = await trained(
        { recoveryFactor, criticLearningRate: 1e-3 },
        { iterations: 2, ...broken },
      );
      expect(rows[1]['train/lr'] / rows[0]['train/lr']).toBeCloseTo(recoveryFactor, 9);
      expect(rows[1]['train/lr_critic'] / rows[0]['train/lr_critic']).toBeCloseTo(recoveryFactor, 9);
      const restored = results[0].events.find(e => e.type === 'restored');
      expect(Number(restored?.lrTo) / Number(restored?.lrFrom)).toBeCloseTo(recoveryFactor, 9);
    }
  },

  async recoveries() {
    for (const recoveries of [0, 2]) {
      const trainer = await trainerOf({ recoveries }, broken);
      await iterations(trainer, recoveries);
      await expect(trainer.iterate()).rejects.toThrow(TrainError);
    }
  },
};

describe('each key', () => {
  it.each(Object.entries(cases))('%s', (_, run) => run());
});

describe('the schema', () => {
  it('has a case here for every key', () => {
    expect(Object.keys(cases).sort()).toEqual(
      Object.keys(ppoSettings.keys)
        .filter(key => !runKeys.includes(key))
        .sort(),
    );
  });

  it('says of every key what it does, and has a default for it', () => {
    const defaults = ppoSettings.schema.parse({}) as Record<string, unknown>;
    for (const [key, { doc }] of Object.entries(ppoSettings.keys)) {
      expect(doc, key).toMatch(/^[A-Z].{10,}\.$/);
      expect(defaults[key], key).not.toBeUndefined();
    }
  });

  it('refuses unknown keys and wrong types', () => {
    expect(ppoSettings.schema.safeParse({ learningrate: 1 }).success).toBe(false);
    for (const bad of [
      { epochs: 0 },
      { epochs: 1.5 },
      { minibatchSize: -1 },
      { gamma: 1.1 },
      { gamma: '0.9' },
      { learningRate: 0 },
      { learningRate: Number.NaN },
      { learningRate: Number.POSITIVE_INFINITY },
      { guard: 0 },
      { guardP99: 1e-7 },
      { guardMax: -1 },
      { hidden: [] },
      { hidden: [0] },
      { activation: 'sigmoid' },
      { recoveryFactor: 2 },
      { klCoef: -1 },
      { targetKl: Number.NaN },
      { evaluateEvery: -1 },
      { evaluateEvery: 1.5 },
      { evaluateEpisodes: 0 },
      { evaluateEpisodes: '20' },
      { stopAt: Number.NaN },
      { stopAt: Number.POSITIVE_INFINITY },
      { stopAt: '475' },
    ])
      expect(ppoSettings.schema.safeParse(bad).success, JSON.stringify(bad)).toBe(false);
  });
});
