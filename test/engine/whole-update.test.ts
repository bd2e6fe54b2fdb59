/**
 * The program that `npm run bench -- engine` times, against the textbook: plain float64 loops, every derivative by hand.
 * What the engine simplifies, hoists, fuses and stops must come out as what is written here, or its figures are of
 * something else. (The trainer's own update: test/algos.)
 */
import { beforeAll, describe, expect, it } from 'vitest';
import { columnsOf, layoutOf, type PpoSizes, ppoUpdate, stepsOf } from '../../bench/ppo-update.ts';
import { compile, evaluate, type Program, type TypedArray } from '../../src/engine/index.ts';
import { secondMomentScale } from '../../src/nn/adam.ts';
import { Rng } from '../../src/random/index.ts';
import { largestError, mlpLayers, mlpSize, ReferenceAdam } from '../nn/support/reference.ts';

/** A twentieth of the work of what is timed: all that is checked here depends on none of it. */
const sizes: PpoSizes = { samples: 512, batch: 64, epochs: 10, observation: 12, action: 8, hidden: 24 };
const { samples, batch, epochs, observation, action, hidden } = sizes;
const [layout, columns, steps] = [layoutOf(sizes), columnsOf(sizes), stepsOf(sizes)];
const width = columns.reduce((a, b) => a + b, 0);
/** Where each part of a rollout's row starts. */
const [obsAt, actAt, oldMeanAt, oldLogProbAt, advAt, retAt] = columns.map((_, i) =>
  columns.slice(0, i).reduce((a, b) => a + b, 0),
);
const actorSizes = [observation, hidden, hidden, action];
const criticSizes = [observation, hidden, hidden, 1];
const logStdAt = mlpSize(actorSizes);
const criticAt = logStdAt + action;
const parameterCount = criticAt + mlpSize(criticSizes);

// ---- feeds ---------------------------------------------------------------------------------------------------------

interface Feeds extends Record<string, TypedArray> {
  rollout: Float32Array;
  oldLogStd: Float32Array;
  order: BigInt64Array;
  weights: Float32Array;
  m: Float32Array;
  v: Float32Array;
  stepsDone: Float32Array;
  learningRate: Float32Array;
  klLimit: Float32Array;
}

interface FeedOptions {
  seed: number;
  learningRate: number;
  /** How far returns lie from the critic's values: decides whether the gradient is clipped. */
  returnNoise?: number;
  /** How far the parameters have already moved from those that sampled the rollout. */
  drift?: number;
  stepsDone?: number;
  /** Moves every log-ratio by this in the direction of its advantage: far enough, and all of them are cut off. */
  settled?: number;
}

/** A rollout as a policy would sample it: actions around its means, their log-probabilities, some advantage. */
function feedsOf(options: FeedOptions): Feeds {
  const { seed, learningRate, returnNoise = 1, drift = 0, stepsDone = 0, settled = 0 } = options;
  const rng = new Rng(seed);
  const old = layout.initialise(rng);
  const views = layout.views(old);
  // A policy that has learnt something: means that depend on the observation, a spread for each action.
  for (let i = 0; i < views['actor.2.weight'].length; i++) views['actor.2.weight'][i] *= 50;
  for (let i = 0; i < action; i++) views['actor.logStd'][i] = -0.4 + 0.15 * i;
  for (const name of Object.keys(views).filter(n => n.endsWith('bias')))
    for (let i = 0; i < views[name].length; i++) views[name][i] = 0.1 * rng.normal();
  const oldLogStd = views['actor.logStd'].slice();
  const rollout = new Float32Array(samples * width);
  for (let n = 0; n < samples; n++) {
    const row = rollout.subarray(n * width, (n + 1) * width);
    rng.fillNormal(row.subarray(obsAt, obsAt + observation));
    const obs = row.subarray(obsAt, obsAt + observation);
    const mean = mlpLayers(old, 0, actorSizes, Math.tanh, obs).at(-1)!;
    const [value] = mlpLayers(old, criticAt, criticSizes, Math.tanh, obs).at(-1)!;
    let logProb = 0;
    for (let i = 0; i < action; i++) {
      row[oldMeanAt + i] = mean[i];
      row[actAt + i] = mean[i] + Math.exp(oldLogStd[i]) * rng.normal();
      const z = (row[actAt + i] - row[oldMeanAt + i]) / Math.exp(oldLogStd[i]);
      // Without the constant -½log 2π, which the update leaves out on both sides.
      logProb += -0.5 * z * z - oldLogStd[i];
    }
    // Neither centred nor scaled: the update does that for each minibatch.
    row[advAt] = 3 + 2 * rng.normal() + row[actAt];
    row[oldLogProbAt] = logProb - settled * Math.sign(row[advAt] - 3);
    row[retAt] = value + returnNoise * rng.normal();
  }
  const order = new BigInt64Array(steps * batch);
  for (let epoch = 0; epoch < epochs; epoch++) {
    rng.permutation(samples).forEach((row, i) => {
      order[epoch * samples + i] = BigInt(row);
    });
  }
  const past = (f: () => number): Float32Array =>
    Float32Array.from({ length: layout.size }, () => (stepsDone > 0 ? f() : 0));
  return {
    rollout,
    order,
    oldLogStd,
    weights: old.map(p => p + drift * rng.normal()),
    m: past(() => 1e-3 * rng.normal()),
    v: past(() => (1e-5 * (0.1 + rng.uniform())) / secondMomentScale()),
    stepsDone: Float32Array.of(stepsDone),
    learningRate: Float32Array.of(learningRate),
    klLimit: Float32Array.of(1e9),
  };
}

// ---- the textbook --------------------------------------------------------------------------------------------------

interface Minibatch {
  policyLoss: number;
  valueLoss: number;
  /** Exact KL(old || new), mean over the minibatch. */
  kl: number;
  /** Of the gradient, before clipping. */
  norm: number;
  gradient: Float64Array;
  /** Samples whose ratio is cut off, by the sign of their advantage. */
  cut: { positive: number; negative: number };
}

/** Adds the derivative by a network's parameters, given that by its outputs. */
function backward(
  weights: Float64Array,
  offset: number,
  netSizes: readonly number[],
  layers: readonly number[][],
  byOutputs: readonly number[],
  gradient: Float64Array,
): void {
  const starts = netSizes.slice(1).map((_, i) => offset + mlpSize(netSizes.slice(0, i + 1)));
  let by = [...byOutputs];
  for (let i = netSizes.length - 2; i >= 0; i--) {
    const [inputs, outputs, at] = [netSizes[i], netSizes[i + 1], starts[i]];
    const below: number[] = Array(inputs).fill(0);
    for (let o = 0; o < outputs; o++) gradient[at + inputs * outputs + o] += by[o];
    for (let k = 0; k < inputs; k++) {
      for (let o = 0; o < outputs; o++) {
        gradient[at + k * outputs + o] += layers[i][k] * by[o];
        below[k] += weights[at + k * outputs + o] * by[o];
      }
      below[k] *= 1 - layers[i][k] ** 2; // of tanh; unused for the observation itself
    }
    by = below;
  }
}

function lookAt(feeds: Feeds, weights: Float64Array, index: number): Minibatch {
  const rows = Array.from({ length: batch }, (_, i) => {
    const row = Number(feeds.order[index * batch + i]);
    return feeds.rollout.subarray(row * width, (row + 1) * width);
  });
  const advMean = rows.reduce((sum, row) => sum + row[advAt], 0) / batch;
  const advStd = Math.sqrt(rows.reduce((sum, row) => sum + (row[advAt] - advMean) ** 2, 0) / batch);
  const logStd = weights.subarray(logStdAt, logStdAt + action);
  const gradient = new Float64Array(parameterCount);
  const cut = { positive: 0, negative: 0 };
  let [policyLoss, valueLoss, kl] = [0, 0, 0];
  for (const row of rows) {
    const adv = (row[advAt] - advMean) / (advStd + 1e-8);
    const obs = row.subarray(obsAt, obsAt + observation);
    const actor = mlpLayers(weights, 0, actorSizes, Math.tanh, obs);
    const critic = mlpLayers(weights, criticAt, criticSizes, Math.tanh, obs);
    const mean = actor.at(-1)!;

    let logProb = 0;
    for (let i = 0; i < action; i++) {
      const std = Math.exp(logStd[i]);
      logProb += -0.5 * ((row[actAt + i] - mean[i]) / std) ** 2 - logStd[i];
      const [oldStd, shift] = [Math.exp(feeds.oldLogStd[i]), row[oldMeanAt + i] - mean[i]];
      kl += (Math.log(std / oldStd) + (oldStd ** 2 + shift ** 2) / (2 * std ** 2) - 0.5) / batch;
    }
    const ratio = Math.exp(logProb - row[oldLogProbAt]);
    const clipped = Math.min(Math.max(ratio, 0.8), 1.2);
    policyLoss -= Math.min(ratio * adv, clipped * adv) / batch;
    const isCut = clipped * adv < ratio * adv;
    if (isCut) cut[adv > 0 ? 'positive' : 'negative']++;
    const byLogProb = isCut ? 0 : (-ratio * adv) / batch;
    const byMean: number[] = [];
    for (let i = 0; i < action; i++) {
      const std = Math.exp(logStd[i]);
      const z = (row[actAt + i] - mean[i]) / std;
      byMean.push((byLogProb * z) / std);
      gradient[logStdAt + i] += byLogProb * (z * z - 1);
    }
    backward(weights, 0, actorSizes, actor, byMean, gradient);

    const error = critic.at(-1)![0] - row[retAt];
    valueLoss += error ** 2 / batch;
    backward(weights, criticAt, criticSizes, critic, [(0.5 * 2 * error) / batch], gradient);
  }
  // The bonus .01·Σ log std: an entropy up to its constant.
  for (let i = 0; i < action; i++) gradient[logStdAt + i] -= 0.01;
  const norm = Math.sqrt(gradient.reduce((sum, g) => sum + g * g, 0));
  return { policyLoss, valueLoss, kl, norm, gradient, cut };
}

interface Course {
  minibatches: Minibatch[];
  /** The optimiser after each minibatch that was taken; the first is the start. */
  states: { weights: Float64Array; m: Float64Array; v: Float64Array }[];
}

/** Up to `most` minibatches, ended by the first whose KL is above the limit, which is not taken. */
function textbook(feeds: Feeds, most: number, klLimit = Number.POSITIVE_INFINITY): Course {
  const optimiser = new ReferenceAdam(
    feeds.weights,
    { epsilon: 1e-5 },
    { m: feeds.m, v: feeds.v.map(v => v * secondMomentScale()), t: feeds.stepsDone[0] },
  );
  const snapshot = () => ({
    weights: optimiser.weights.slice(),
    m: optimiser.m.slice(),
    v: optimiser.v.slice(),
  });
  const course: Course = { minibatches: [], states: [snapshot()] };
  for (let index = 0; index < most; index++) {
    const seen = lookAt(feeds, optimiser.weights, index);
    course.minibatches.push(seen);
    if (seen.kl > klLimit) break;
    const scale = Math.min(1, 0.5 / seen.norm);
    optimiser.step(
      seen.gradient.map(g => g * scale),
      feeds.learningRate[0],
    );
    course.states.push(snapshot());
  }
  return course;
}

/** A limit that minibatch `at` is the first to pass, with room on both sides; undefined where there is none. */
function limitBefore({ minibatches }: Course, at: number): number | undefined {
  const before = Math.max(...minibatches.slice(0, at).map(seen => seen.kl));
  const { kl } = minibatches[at];
  return kl > before * 1.02 + 1e-5 ? (before + kl) / 2 : undefined;
}

// ---- the program ---------------------------------------------------------------------------------------------------

interface Update {
  newWeights: Float32Array;
  newM: Float32Array;
  newV: Float32Array;
  policyLoss: Float32Array;
  valueLoss: Float32Array;
  kl: Float32Array;
  norm: Float32Array;
  iterations: number;
}

let program: Program;
beforeAll(async () => {
  program = await compile(ppoUpdate(sizes));
  return () => program.dispose();
});

function run(feeds: Feeds, klLimit = 1e9): Update {
  const out = program.run({ ...feeds, klLimit: Float32Array.of(klLimit) });
  return { ...(out as unknown as Update), iterations: Number(out.iterations[0]) };
}

function expectMetrics(out: Update, { minibatches }: Course, count = minibatches.length): void {
  minibatches.slice(0, count).forEach((seen, i) => {
    for (const name of ['policyLoss', 'valueLoss', 'norm', 'kl'] as const) {
      const [found, wanted] = [out[name][i], seen[name]];
      const error = Math.abs(found - wanted);
      expect(error, `${name} of minibatch ${i}: ${found} instead of ${wanted}`).toBeLessThan(
        1e-4 * Math.max(0.1, Math.abs(wanted)),
      );
    }
  });
}

/** The state after the last minibatch taken; parameters also by how far they have moved, which is what was learnt. */
function expectState(out: Update, feeds: Feeds, { states }: Course): void {
  const { weights, m, v } = states.at(-1)!;
  expect(largestError(out.newWeights, weights, 0.01)).toBeLessThan(1e-4);
  const largest = (values: ArrayLike<number>): number =>
    Array.from(values).reduce((a, x) => Math.max(a, Math.abs(x)), 0);
  const moved = (now: ArrayLike<number>): number[] => Array.from(now, (p, i) => p - feeds.weights[i]);
  const path = moved(weights);
  expect(largestError(moved(out.newWeights), path, largest(path))).toBeLessThan(1e-3);
  expect(largestError(out.newM, m, largest(m))).toBeLessThan(1e-4);
  const newV = Array.from(out.newV, x => x * secondMomentScale());
  expect(largestError(newV, v, largest(v))).toBeLessThan(1e-4);
}

it('lays its parameters out as the textbook does', () => {
  expect(layout.size).toBe(parameterCount);
  const offsets = Object.fromEntries(layout.specs.map(({ name, offset }) => [name, offset]));
  expect([offsets['actor.0.weight'], offsets['actor.logStd'], offsets['critic.0.weight']]).toEqual([
    0,
    logStdAt,
    criticAt,
  ]);
});

it('has a textbook whose derivatives are those of finite differences', () => {
  const feeds = feedsOf({ seed: 3, learningRate: 1e-3, drift: 0.02 });
  const weights = Float64Array.from(feeds.weights);
  const loss = (at: Float64Array): number => {
    const { policyLoss, valueLoss } = lookAt(feeds, at, 2);
    const logStd = at.subarray(logStdAt, logStdAt + action).reduce((a, b) => a + b, 0);
    return policyLoss + 0.5 * valueLoss - 0.01 * logStd;
  };
  const { gradient } = lookAt(feeds, weights, 2);
  const rng = new Rng(4);
  for (const place of [
    logStdAt,
    logStdAt + 7,
    ...Array.from({ length: 20 }, () => rng.integer(layout.size)),
  ]) {
    const h = 1e-6;
    const slope =
      (loss(weights.with(place, weights[place] + h)) - loss(weights.with(place, weights[place] - h))) /
      (2 * h);
    expect(Math.abs(gradient[place] - slope), `at ${place}`).toBeLessThan(1e-8);
  }
});

describe('without a limit that matters', () => {
  it.each([
    { name: 'a gradient that is always clipped', options: { seed: 1, learningRate: 3e-4, returnNoise: 4 } },
    { name: 'one that is not', options: { seed: 2, learningRate: 1e-3, returnNoise: 0.1, settled: 0.5 } },
    {
      name: 'a policy that has drifted and an optimiser with a past',
      options: { seed: 5, learningRate: 1e-3, drift: 0.03, stepsDone: 700 },
    },
  ])('the first minibatches are those of the textbook: $name', ({ options }) => {
    const feeds = feedsOf(options);
    const course = textbook(feeds, 40);
    const out = run(feeds);
    expect(out.iterations).toBe(steps);
    expectMetrics(out, course, 40);
    for (const name of ['newWeights', 'newM', 'newV', 'policyLoss', 'valueLoss', 'kl', 'norm'] as const)
      expect(out[name].every(Number.isFinite), name).toBe(true);
    // Exact KL is never negative, but for the rounding of the sum it is a difference of.
    expect(Math.min(...out.kl)).toBeGreaterThan(-5e-6);
  });

  it('the cases are worth their time: clipped and not, ratios cut on both sides', () => {
    const clipped = textbook(feedsOf({ seed: 1, learningRate: 3e-4, returnNoise: 4 }), 10).minibatches;
    expect(clipped.every(seen => seen.norm > 0.5)).toBe(true);
    const free = textbook(
      feedsOf({ seed: 2, learningRate: 1e-3, returnNoise: 0.1, settled: 0.5 }),
      10,
    ).minibatches;
    expect(free.every(seen => seen.norm < 0.5)).toBe(true);
    const moved = textbook(
      feedsOf({ seed: 5, learningRate: 1e-3, drift: 0.03, stepsDone: 700 }),
      10,
    ).minibatches;
    expect(moved.every(seen => seen.cut.positive > 0 && seen.cut.negative > 0)).toBe(true);
  });

  it('starts with ratios of 1: no loss, no KL, and the gradient of the plain policy gradient', () => {
    const out = run(feedsOf({ seed: 1, learningRate: 3e-4 }));
    expect(Math.abs(out.policyLoss[0])).toBeLessThan(1e-5);
    expect(Math.abs(out.kl[0])).toBeLessThan(5e-6);
  });

  it('is the same at each run, to the bit, and leaves its feeds alone', () => {
    const feeds = feedsOf({ seed: 1, learningRate: 3e-4 });
    const copies = Object.fromEntries(Object.entries(feeds).map(([name, array]) => [name, array.slice()]));
    const [first, second] = [run(feeds), run(feeds)];
    const same = (a: TypedArray, b: TypedArray): boolean =>
      a.length === b.length && a.every((v: number | bigint, i: number) => v === b[i]);
    expect(same(second.newWeights, first.newWeights)).toBe(true);
    expect(same(second.kl, first.kl)).toBe(true);
    for (const [name, copy] of Object.entries(copies)) expect(same(feeds[name], copy), name).toBe(true);
  });
});

describe('with a limit', () => {
  const options = { seed: 7, learningRate: 2e-3 };
  const feeds = feedsOf(options);
  const free = textbook(feeds, 60);
  const stops = free.minibatches.map((_, i) => i).filter(i => i > 0 && limitBefore(free, i) !== undefined);

  it('there are stops to test', () => {
    expect(stops.length).toBeGreaterThan(5);
  });

  it('ends before the first step beyond it, with the last good parameters', () => {
    for (const at of [...stops.slice(0, 3), ...stops.slice(-2)]) {
      const limit = limitBefore(free, at)!;
      const course = textbook(feeds, 60, limit);
      expect(course.minibatches.length).toBe(at + 1);
      const out = run(feeds, limit);
      // The minibatch that was looked at and not taken counts, and has its row.
      expect(out.iterations, `limit ${limit}`).toBe(at + 1);
      expectMetrics(out, course);
      expectState(out, feeds, course);
    }
  });

  it('has rows of 0 after the stop, for every metric but KL', () => {
    const at = stops[2];
    const out = run(feeds, limitBefore(free, at)!);
    for (const name of ['policyLoss', 'valueLoss', 'norm'] as const) {
      expect(out[name].length).toBe(steps);
      expect(out[name].subarray(at + 1).every(v => v === 0)).toBe(true);
      expect(out[name][at]).not.toBe(0);
    }
  });

  it('has rows of 0 after the stop for KL', () => {
    const at = stops[2];
    const out = run(feeds, limitBefore(free, at)!);
    expect(Array.from(out.kl.subarray(at + 1)).every(v => v === 0)).toBe(true);
  });

  it('takes nothing if the first minibatch is beyond it: parameters and moments stay, to the bit', () => {
    const late = feedsOf({ ...options, drift: 0.05, stepsDone: 20 });
    const out = run(late, 1e-3);
    expect(out.iterations).toBe(1);
    expect(out.newWeights.every((p, i) => Object.is(p, late.weights[i]))).toBe(true);
    expect(out.newM.every((m, i) => Object.is(m, late.m[i]))).toBe(true);
    expect(out.newV.every((v, i) => Object.is(v, late.v[i]))).toBe(true);
    expect(Math.abs(out.kl[0] - lookAt(late, Float64Array.from(late.weights), 0).kl)).toBeLessThan(1e-4);
  });

  it('can be taken up where it stopped: with the steps done and the rest of the order, it goes on the same way', () => {
    const [first, last] = [stops[1], stops[4]];
    const straight = run(feeds, limitBefore(free, last)!);
    const stopped = run(feeds, limitBefore(free, first)!);
    const order = new BigInt64Array(feeds.order.length);
    order.set(feeds.order.subarray(first * batch));
    const resumed = run(
      {
        ...feeds,
        order,
        weights: stopped.newWeights,
        m: stopped.newM,
        v: stopped.newV,
        stepsDone: Float32Array.of(first),
      },
      limitBefore(free, last)!,
    );
    expect(resumed.iterations).toBe(last - first + 1);
    expect(Array.from(resumed.kl.subarray(0, last - first + 1))).toEqual(
      Array.from(straight.kl.subarray(first, last + 1)),
    );
    expect(resumed.newWeights.every((p, i) => p === straight.newWeights[i])).toBe(true);
  });

  it('is the textbook to float64 precision in the reference interpreter', () => {
    const at = stops.find(i => i >= 2)!;
    const limit = limitBefore(free, at)!;
    const course = textbook(feeds, 60, limit);
    const out = evaluate(ppoUpdate(sizes), { ...feeds, klLimit: [limit] });
    expect(out.iterations.data[0]).toBe(at + 1);
    const { weights, m, v } = course.states.at(-1)!;
    expect(largestError(out.newWeights.data, weights, 1)).toBeLessThan(1e-11);
    const scale = 1e-3;
    expect(largestError(out.newM.data, m, scale)).toBeLessThan(1e-9);
    expect(
      largestError(
        out.newV.data.map(x => x * secondMomentScale()),
        v,
        scale ** 2,
      ),
    ).toBeLessThan(1e-8);
    course.minibatches.forEach((seen, i) => {
      for (const name of ['policyLoss', 'valueLoss', 'norm', 'kl'] as const)
        expect(Math.abs(out[name].data[i] - seen[name]), `${name} ${i}`).toBeLessThan(1e-10);
    });
  });

  it('keeps the parameters when the minibatch beyond it has overflowed', () => {
    const burst = feedsOf(options);
    const row = Number(burst.order[0]);
    burst.rollout[row * width + oldLogProbAt] -= 150;
    burst.rollout[row * width + advAt] = -20;
    const out = run(burst, -1);
    expect(out.iterations).toBe(1);
    expect(out.newWeights.every((p, i) => p === burst.weights[i])).toBe(true);
  });
});
