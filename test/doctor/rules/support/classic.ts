/**
 * Runs of agents that stand at the limits of the rules: for each rule a maker with a number for each thing that it looks
 * at, all inside by default, and for each limit a number just inside and one just outside.
 */
import type { CanonicalRun } from '../../../../src/doctor/canonical.ts';
import type { RootCause, Severity } from '../../../../src/doctor/findings.ts';
import type { KnownConfig } from '../../../../src/doctor/known-settings.ts';
import {
  criticDiedLimits,
  criticFadingLimits,
  criticFlatLimits,
  criticNegativeLimits,
} from '../../../../src/doctor/rules/critic/critic.ts';
import { rewardScaleLimits } from '../../../../src/doctor/rules/critic/reward-scale.ts';
import { entropyCollapseLimits } from '../../../../src/doctor/rules/entropy/entropy-collapse.ts';
import { stdGrowingLimits } from '../../../../src/doctor/rules/entropy/std-growing.ts';
import { gradientExplodesLimits } from '../../../../src/doctor/rules/numerics/gradient-explodes.ts';
import { returnFlatLimits } from '../../../../src/doctor/rules/rewards/return-flat.ts';
import { restartCriteriaLimits } from '../../../../src/doctor/rules/settings/restart-criteria.ts';
import { unusualSettingsLimits } from '../../../../src/doctor/rules/settings/unusual-settings.ts';
import { clipFractionHighLimits } from '../../../../src/doctor/rules/steps/clip-fraction-high.ts';
import { clipRangeInertLimits } from '../../../../src/doctor/rules/steps/clip-range-inert.ts';
import { klHighLimits } from '../../../../src/doctor/rules/steps/kl-high.ts';
import { klSpikesLimits } from '../../../../src/doctor/rules/steps/kl-spikes.ts';
import { policyFrozenLimits } from '../../../../src/doctor/rules/steps/policy-frozen.ts';
import { stalledLimits } from '../../../../src/doctor/rules/steps/stalled.ts';
import { type More, rows, run } from './build.ts';

export type Numbers = Readonly<Record<string, number>>;

/** A rule, and how to stand at each of its limits. */
export interface AtLimits {
  readonly code: string;
  readonly limits: Numbers;
  readonly make: (at: Numbers) => CanonicalRun;
  /** What to set, just inside and just outside of the limit; and how loud it is inside alone, where it speaks on both sides. */
  readonly cases: Readonly<Record<string, readonly [inside: Numbers, outside: Numbers, loud?: Severity]>>;
  /** Of a limit that decides between two causes: which one is argued for inside alone. */
  readonly causes?: Readonly<Record<string, RootCause>>;
}

export const level = (n: number, value: number): number[] => rows(n, () => value);
/** The first tenth is low; so large a share of the others is high, one after another at the end, or spread over all. */
export const partly = (n: number, share: number, high: number, low: number): number[] =>
  rows(n, i => {
    const [at, of] = [i - Math.floor(n / 10), n - Math.floor(n / 10)];
    return at >= 0 && Math.floor((at + 1) * share + 1e-9) > Math.floor(at * share + 1e-9) && at < of
      ? high
      : low;
  });
/** Level for the first fifth, a line, level for the last fifth. */
export const bend = (n: number, from: number, to: number): number[] =>
  rows(n, (_, t) => from + (to - from) * Math.min(1, Math.max(0, (t - 0.2) / 0.6)));

/** Returns by what they do: 0 stands still, 1 rises, 2 fell back, 3 slips a little from its best, 4 never moves at all. */
export const returns = (n: number, going: number, slip = 0): number[] =>
  rows(n, (i, t) => {
    const noise = Math.sin(7.1 * i);
    if (going === 1) return 10 + 400 * t + noise;
    if (going === 2) return (t < 0.5 ? 400 * t : 20) + noise;
    if (going === 3) return (t < 0.3 ? 1400 * t : 420 - slip * Math.max(0, t - 0.7)) + noise;
    if (going === 4) return 20;
    return 20 + noise;
  });

export const agent = (
  values: Readonly<Record<string, readonly number[]>>,
  config: KnownConfig = {},
  more: More = {},
): CanonicalRun => run(values, { actions: 'discrete', maxEntropy: Math.LN2, config, ...more });

/** Ten rows that go up all the way but for so many pairs that are in the wrong order, far from both ends. */
function disordered(pairs: number): number[] {
  const middle = [2, 3, 4, 5, 6, 7];
  let left = pairs;
  for (let end = 5; end > 0; end--)
    for (let i = 0; i < end && left > 0; i++, left--) [middle[i], middle[i + 1]] = [middle[i + 1], middle[i]];
  return [0, 1, ...middle, 8, 9];
}

export const atLimits: readonly AtLimits[] = [
  {
    code: 'clip-range-inert',
    limits: clipRangeInertLimits,
    make: ({ clip = 1, kl = 0.02, often = 1, low = 0.001, fraction = 0.1, going = 0 }) =>
      agent(
        {
          'kl/step': partly(100, often, kl, low),
          'policy/clip_fraction': level(100, fraction),
          'episode/return': returns(100, going),
        },
        { clipRange: clip },
      ),
    cases: {
      clip: [{ clip: 0.5 }, { clip: 0.49 }],
      kl: [{ kl: 0.0151 }, { kl: 0.0149 }],
      often: [{ often: 0.26 }, { often: 0.24 }],
      unclipped: [
        { kl: 0.01, fraction: 0.019 },
        { kl: 0.01, fraction: 0.021 },
      ],
      unheldKl: [
        { kl: 0.0051, fraction: 0 },
        { kl: 0.0049, fraction: 0 },
      ],
      harmful: [
        { going: 2, low: 0.02, kl: 0.04, often: 0.21 },
        { going: 2, low: 0.02, kl: 0.04, often: 0.19 },
        'critical',
      ],
    },
  },
  {
    code: 'clip-fraction-high',
    limits: clipFractionHighLimits,
    make: ({ clipped = 0.45, often = 1, lr = 3e-4 }) =>
      agent(
        { 'policy/clip_fraction': partly(100, often, clipped, 0.1), 'episode/return': returns(100, 0) },
        { learningRate: lr },
      ),
    cases: {
      clipped: [{ clipped: 0.301 }, { clipped: 0.299 }],
      often: [
        { often: 0.52, lr: 3e-3 },
        { often: 0.48, lr: 3e-3 },
      ],
      mostly: [{ often: 0.71 }, { often: 0.69 }],
    },
  },
  {
    code: 'policy-frozen',
    limits: { ...policyFrozenLimits, ...stalledLimits, stalledRows: stalledLimits.rows },
    make: ({ n = 40, rate = 1e-6, kl = 1e-4, more = 0, ended = 0.69, early = 0, top = 1 }) =>
      agent(
        {
          'kl/step': rows(n, (_, t) => (t < early ? 0.01 : kl)).map((v, i) => (i < more * n ? 0.01 : v)),
          'policy/entropy': bend(n, 0.69, ended),
          'episode/return': returns(n, 0),
          ...(top === 1
            ? {}
            : { 'train/lr': rows(n, (_, t) => (t < 0.2 ? rate : t < 0.8 ? rate * top : rate / 100)) }),
        },
        { learningRate: rate },
      ),
    cases: {
      lowRate: [{ rate: 1.09e-5 }, { rate: 1.11e-5 }],
      still: [
        { rate: 3e-4, kl: 2.9e-5 },
        { rate: 3e-4, kl: 3.1e-5 },
      ],
      entropy: [
        { rate: 3e-4, kl: 2e-5, ended: 0.69 * 0.991 },
        { rate: 3e-4, kl: 2e-5, ended: 0.69 * 0.989 },
      ],
      deadRows: [{ n: 20, rate: 3e-4, kl: 1e-9 }, { n: 19, rate: 3e-4, kl: 1e-9 }, 'critical'],
      rows: [{ n: 8 }, { n: 7 }],
      stalledRows: [{ n: 8 }, { n: 7 }],
      kl: [{ kl: 2.99e-4 }, { kl: 3.01e-4 }],
      most: [{ more: 0.15 }, { more: 0.25 }],
      // Rows at a rate that is not annealed away count; those of a large KL are among them or not.
      annealed: [
        { early: 0.1, top: 0.31 },
        { early: 0.1, top: 0.29 },
      ],
    },
  },
  {
    code: 'critic-flat',
    limits: criticFlatLimits,
    // The 90th percentile of the explained variance is `top`, its median `late`.
    make: ({
      n = 40,
      late = 0.02,
      top = late,
      loss = 5,
      end = loss,
      kl = 0.006,
      coef = -1,
      total = -1,
      going = 0,
    }) =>
      agent(
        {
          'value/explained_variance': rows(n, i => (i % 4 === 0 ? top : late)),
          'loss/value': bend(n, loss, end),
          ...(total < 0 ? {} : { 'loss/total': bend(n, loss, end).map(v => v * total) }),
          'kl/step': level(n, kl),
          'episode/return': returns(n, going),
        },
        coef < 0 ? {} : { valueCoef: coef },
      ),
    cases: {
      rows: [{ n: 12 }, { n: 11 }],
      explained: [{ late: 0.099 }, { late: 0.101 }],
      unweighted: [
        { top: 0.29, coef: 0 },
        { top: 0.31, coef: 0 },
      ],
      coef: [
        { top: 0.2, coef: 0.9e-3 },
        { top: 0.2, coef: 1.1e-3 },
      ],
      share: [
        { top: 0.2, total: 0.0099 },
        { top: 0.2, total: 0.0101 },
      ],
      weighted: [{ coef: 0.1 }, { coef: 0.099 }],
      loss: [{ loss: 1.01e-3 }, { loss: 0.99e-3 }],
      kl: [{ kl: 2.01e-4 }, { kl: 1.99e-4 }],
      falls: [{ end: 2.51 }, { end: 2.49 }],
      sure: [{ n: 30 }, { n: 29 }, 'critical'],
    },
    causes: { weighted: 'no-reward-signal' },
  },
  {
    code: 'critic-died',
    limits: criticDiedLimits,
    make: ({ n = 60, before = 0.8, after = 0, died = n / 2, rise = 3 }) =>
      agent({
        'value/explained_variance': rows(n, i => (i < died ? before : after)),
        'loss/value': rows(n, i => (i < died ? 1 : rise)),
        'episode/return': returns(n, 0),
      }),
    cases: {
      rows: [{ n: 30 }, { n: 29, died: 14 }],
      before: [{ before: 0.41 }, { before: 0.39 }],
      after: [{ after: 0.099 }, { after: 0.101 }],
      worst: [{ after: -0.49 }, { after: -0.51 }],
      stays: [{ died: 45 }, { died: 46 }],
      rise: [{ rise: 1.21 }, { rise: 1.19 }],
    },
  },
  {
    code: 'critic-fading',
    limits: criticFadingLimits,
    // A bend; or a line that waves; or one that loses so much on its way, and the rest in its last fifth.
    make: ({ n = 60, best = 0.9, end = -0.5, rise = 2, wave = 0, slow = 0 }) =>
      agent({
        'value/explained_variance':
          wave > 0
            ? rows(n, (i, t) => best + (end - best) * t + wave * Math.sin(7.1 * i))
            : slow > 0
              ? rows(n, (_, t) => (t < 0.8 ? best - slow * t : end - 0.1 * t))
              : bend(n, best, end),
        'loss/value': bend(n, 5, 5 * rise),
        'episode/return': returns(n, 0),
      }),
    cases: {
      rows: [{ n: 20 }, { n: 19 }],
      best: [{ best: 0.501 }, { best: 0.499 }],
      end: [{ end: 0.199 }, { end: 0.201 }],
      fall: [
        { best: 0.7, end: 0.09 },
        { best: 0.7, end: 0.11 },
      ],
      tau: [
        { n: 200, end: -3, wave: 1.9 },
        { n: 200, end: -3, wave: 2 },
      ],
      slope: [{ slow: 0.74 }, { slow: 0.7 }],
      rise: [
        { end: 0, rise: 1.51 },
        { end: 0, rise: 1.49 },
      ],
      worse: [
        { end: -0.21, rise: 1 },
        { end: -0.19, rise: 1 },
      ],
    },
  },
  {
    code: 'critic-negative',
    limits: criticNegativeLimits,
    make: ({ n = 40, explained = -0.3, loss = 5 }) =>
      agent({
        'value/explained_variance': level(n, explained),
        'loss/value': level(n, loss),
        'episode/return': returns(n, 0),
      }),
    cases: {
      rows: [{ n: 15 }, { n: 14 }],
      explained: [{ explained: -0.21 }, { explained: -0.19 }],
      worse: [{ explained: -0.51 }, { explained: -0.49 }, 'critical'],
      loss: [{ loss: 0.0101 }, { loss: 0.0099 }],
    },
  },
  {
    code: 'reward-scale',
    limits: rewardScaleLimits,
    make: ({
      n = 40,
      ev = 0,
      top = ev,
      loss = 2e3,
      first = loss,
      kl = 0.006,
      lr = 3e-4,
      largest = 1000,
      share = -1,
      seen = 1,
      floor = -1,
      floorRows = n,
    }) =>
      agent(
        {
          ...(seen ? { 'value/explained_variance': rows(n, i => (i % 4 === 0 ? top : ev)) } : {}),
          'loss/value': bend(n, first, loss),
          ...(share < 0 ? {} : { 'loss/total': bend(n, first, loss).map(v => v * share) }),
          'kl/step': level(n, kl),
          'episode/return': rows(n, i => largest * (1 + 1e-3 * Math.sin(i))),
          ...(floor < 0 ? {} : { 'train/lr': rows(floorRows, (_, t) => (t < floor ? 1e-5 : 1e-3)) }),
        },
        { learningRate: lr },
        floor < 0
          ? {}
          : {
              klProxy: {
                theirs: 'lr',
                id: 'train/lr',
                floor: 1e-5,
                ceiling: 1e-2,
                meaning: 'KL stays too large',
              },
            },
      ),
    cases: {
      rows: [
        { n: 8, largest: 1 },
        { n: 7, largest: 1 },
      ],
      blind: [
        { ev: 0.049, largest: 1 },
        { ev: 0.051, largest: 1 },
      ],
      blindMost: [
        { top: 0.19, largest: 1 },
        { top: 0.21, largest: 1 },
      ],
      loss: [
        { loss: 1001, largest: 1 },
        { loss: 999, largest: 1 },
      ],
      swamping: [
        { loss: 1.01e4, kl: 1e-3 },
        { loss: 0.99e4, kl: 1e-3 },
      ],
      millions: [
        { loss: 1.01e6, ev: 0.2, largest: 1e4 },
        { loss: 0.99e6, ev: 0.2, largest: 1e4 },
      ],
      vast: [
        { loss: 1.01e7, ev: 0.9, largest: 1e4 },
        { loss: 0.99e7, ev: 0.9, largest: 1e4 },
      ],
      explained: [
        { loss: 2e6, ev: 0.29, largest: 1e4 },
        { loss: 2e6, ev: 0.31, largest: 1e4 },
      ],
      beyond: [{ largest: Math.sqrt(2e3) / 3.05 }, { largest: Math.sqrt(2e3) / 2.95 }],
      rate: [
        { kl: 1e-4, lr: 2.01e-5 },
        { kl: 1e-4, lr: 1.99e-5 },
      ],
      falls: [
        { first: 2e4, loss: 0.49 * 2e4, lr: 1e-5 },
        { first: 2e4, loss: 0.51 * 2e4, lr: 1e-5 },
      ],
      maybe: [
        { loss: 2e4, kl: 1e-3, share: 0.0101 },
        { loss: 2e4, kl: 1e-3, share: 0.0099 },
      ],
      surely: [
        { loss: 2e4, share: 0.101 },
        { loss: 2e4, share: 0.099 },
      ],
      kl: [
        { loss: 2e4, kl: 1.49e-3 },
        { loss: 2e4, kl: 1.51e-3 },
      ],
      pinnedRows: [
        { seen: 0, floor: 2, floorRows: 20 },
        { seen: 0, floor: 2, floorRows: 19 },
      ],
      pinnedLoss: [
        { seen: 0, floor: 2, loss: 501 },
        { seen: 0, floor: 2, loss: 499 },
      ],
      pinned: [
        { seen: 0, n: 100, floor: 0.71 },
        { seen: 0, n: 100, floor: 0.69 },
      ],
    },
  },
  {
    code: 'entropy-collapse',
    limits: entropyCollapseLimits,
    // Entropy as a share of its maximum (or in nats, without one) falls to `low` at a place, and comes back to `late`.
    make: ({
      n = 60,
      low = 0.01,
      at = 0.2,
      late = low,
      known = 1,
      std = -1,
      nats = 0,
      kl = 0.006,
      lr = 3e-4,
    }) => {
      const fallen = rows(n, (_, t) => (t < at ? 0.9 : t < 0.59 ? low : late));
      const continuous = std >= 0 || nats < 0;
      return run(
        {
          ...(std >= 0 ? { 'policy/std': rows(n, (_, t) => (t < at ? 0.6 : std)) } : {}),
          'policy/entropy': continuous ? level(n, nats) : fallen.map(v => (known ? v * Math.LN2 : v)),
          'kl/step': rows(n, i => (i === 2 ? kl : 0.006)),
          'episode/return': returns(n, 0),
        },
        {
          config: { learningRate: lr },
          actions: continuous ? 'continuous' : 'discrete',
          ...(known ? { maxEntropy: Math.LN2 } : {}),
        },
      );
    },
    cases: {
      rows: [{ n: 8 }, { n: 7 }],
      relative: [{ low: 0.049 }, { low: 0.051 }],
      creeps: [
        { at: 0.02, late: 0.19 },
        { at: 0.02, late: 0.21 },
      ],
      absolute: [
        { known: 0, low: 0.0099 },
        { known: 0, low: 0.0101 },
      ],
      std: [{ std: 0.0299 }, { std: 0.0301 }],
      gaussian: [{ nats: -1.51 }, { nats: -1.49 }],
      early: [{ at: 0.61 }, { at: 0.67 }, 'critical'],
      burst: [
        { kl: 0.101, lr: 3e-3 },
        { kl: 0.099, lr: 3e-3 },
      ],
    },
    causes: { burst: 'learning-rate-too-high' },
  },
  {
    code: 'gradient-explodes',
    limits: gradientExplodesLimits,
    make: ({ n = 60, late = 200, scatter = 0, low = 200 }) =>
      agent({
        'grad/norm': rows(n, (i, t) =>
          t < 0.5 ? 1 + scatter * (i % 2 ? 1 : -1) : t < 0.78 ? 1 : i % 5 < 2 ? Math.min(low, late) : late,
        ),
        'episode/return': returns(60, 2),
      }),
    cases: {
      rows: [{ n: 20 }, { n: 19 }],
      times: [{ late: 20.1 }, { late: 19.9 }],
      spreads: [
        { late: 30, scatter: 0.95 },
        { late: 30, scatter: 0.99 },
      ],
      most: [{ low: 5.1 }, { low: 4.9 }],
    },
  },
  {
    code: 'std-growing',
    limits: stdGrowingLimits,
    make: ({ n = 40, growth = 1.7, going = 0, coef = -1, implied = 0, unknown = 0, wrong = -1 }) => {
      const wave = (f: number): number[] => rows(n, i => 1 + 0.5 * Math.sin(f * i));
      const entropy = bend(n, 1.5, 1.5 + Math.log(growth));
      const [policy, value] = [wave(1.3), wave(2.9)];
      return agent(
        {
          ...(unknown
            ? {}
            : { 'policy/std': wrong < 0 ? bend(n, 1, growth) : disordered(wrong).map(v => 1 + v) }),
          'policy/entropy': entropy,
          'episode/return': returns(n, going),
          ...(implied
            ? {
                'loss/policy': policy,
                'loss/value': value,
                'loss/total': rows(n, i => policy[i] + 0.5 * value[i] - implied * entropy[i]),
              }
            : {}),
        },
        coef < 0 ? {} : { entropyCoef: coef },
        { actions: unknown ? 'unknown' : 'continuous' },
      );
    },
    cases: {
      rows: [{ n: 10 }, { n: 9 }],
      score: [
        { n: 10, wrong: 5 },
        { n: 10, wrong: 6 },
      ],
      growth: [{ growth: 1.51 }, { growth: 1.49 }],
      clear: [{ growth: 2.01 }, { growth: 1.99 }, 'critical'],
      vast: [
        { growth: 5.1, going: 1 },
        { growth: 4.9, going: 1 },
      ],
      coef: [{ coef: 0.05 }, { coef: 0.049 }, 'critical'],
      implied: [{ implied: 0.101 }, { implied: 0.099 }, 'critical'],
      absurd: [
        { unknown: 1, coef: 0.2 },
        { unknown: 1, coef: 0.19 },
      ],
    },
  },
  {
    code: 'unusual-settings',
    limits: unusualSettingsLimits,
    make: ({ lr = 3e-4, coef = 0, value = 0.5, target = 0.02, implied = 0, noise = 0 }) => {
      const n = 60;
      const wave = (f: number): number[] => rows(n, i => 1 + 0.5 * Math.sin(f * i));
      const [policy, loss, entropy] = [wave(1.3), wave(2.9), bend(n, 0.6, 0.3)];
      return agent(
        {
          'episode/return': returns(n, 1),
          ...(implied
            ? {
                'loss/policy': policy,
                'loss/value': loss,
                'policy/entropy': entropy,
                'loss/total': rows(
                  n,
                  i => policy[i] + 0.5 * loss[i] - implied * entropy[i] + noise * Math.sin(5.3 * i * i),
                ),
              }
            : {}),
        },
        {
          learningRate: lr,
          ...(implied ? {} : { entropyCoef: coef }),
          valueCoef: value,
          targetKl: target,
        },
      );
    },
    cases: {
      doublings: [{ lr: 1e-3 * 2 ** 0.91 }, { lr: 1e-3 * 2 ** 0.89 }],
      entropyCoef: [{ coef: 0.05 }, { coef: 0.049 }],
      valueCoef: [{ value: 0.9e-3 }, { value: 1.1e-3 }],
      targetKl: [{ target: 0.0029 }, { target: 0.0031 }],
      errors: [
        { implied: 0.1, noise: 0.001 },
        { implied: 0.1, noise: 0.5 },
      ],
    },
  },
  {
    code: 'return-flat',
    limits: returnFlatLimits,
    make: ({ n = 60 }) => agent({ 'episode/return': level(n, -20) }),
    cases: { rows: [{ n: 12 }, { n: 11 }] },
  },
  {
    code: 'kl-spikes',
    limits: klSpikesLimits,
    // Calm rows of KL `base`, two in three off by `scatter`, and spikes from row `at` on. The return may fall after the first
    // of them (5), or fall to `drop` and rise further than before (6).
    make: ({
      n = 58,
      at = 24,
      count = 4,
      size = 0.1,
      grow = 3,
      base = 0.005,
      scatter = 0,
      noisy = 0,
      going = 0,
      depth = 1,
      drop = 20,
    }) => {
      const places = Array.from({ length: count }, (_, i) =>
        Math.round(at + (i * (n - 4 - at)) / Math.max(1, count)),
      );
      const value = rows(n, i => base + scatter * ((i % 3) - 1));
      places.forEach((place, i) => {
        value[place] = i < count / 2 ? size : size * grow;
      });
      const fallen = rows(n, i => (i <= at ? 10 * i : going === 5 ? 10 * at - depth : drop + 12 * (i - at)));
      return run(
        {
          'kl/step': value,
          'episode/return': going > 4 ? fallen : returns(n, going),
        },
        {
          kl: { 'kl/step': { aggregation: noisy ? 'last-minibatch' : 'last-epoch' } },
          config: { learningRate: 3e-4 },
        },
      );
    },
    cases: {
      rows: [
        { n: 15, at: 6 },
        { n: 14, at: 6 },
      ],
      settled: [{ at: 20 }, { at: 19 }],
      deviations: [
        { base: 0.03, scatter: 0.011, size: 0.03 + 6.1 * 1.4826 * 0.011, grow: 2.1 },
        { base: 0.03, scatter: 0.011, size: 0.03 + 5.9 * 1.4826 * 0.011, grow: 2.1 },
      ],
      times: [
        { base: 0.03, size: 0.0905 },
        { base: 0.03, size: 0.0895 },
      ],
      noisyDeviations: [
        { noisy: 1, base: 0.015, scatter: 0.005, size: 0.015 + 10.1 * 1.4826 * 0.005 },
        { noisy: 1, base: 0.015, scatter: 0.005, size: 0.015 + 9.9 * 1.4826 * 0.005 },
      ],
      noisyTimes: [
        { noisy: 1, base: 0.03, size: 0.1505 },
        { noisy: 1, base: 0.03, size: 0.1495 },
      ],
      count: [
        { count: 3, going: 5, depth: 220, grow: 1 },
        { count: 2, going: 5, depth: 220, grow: 1 },
      ],
      harmful: [
        { count: 3, going: 6, grow: 1 },
        { count: 4, going: 6, grow: 1 },
      ],
      growing: [{ count: 4 }, { count: 3 }],
      growth: [{ grow: 2.01 }, { grow: 1.99 }],
      fall: [
        { count: 3, going: 6, grow: 1, drop: 38 },
        { count: 3, going: 6, grow: 1, drop: 54 },
      ],
    },
  },
  {
    code: 'restart-criteria',
    limits: restartCriteriaLimits,
    make: ({ n = 60, vast = 0, explained = -0.5, loss = 5, calm = 0.8, high = 0, going = 0 }) =>
      agent({
        'kl/step': rows(n, (_, t) =>
          going === 2 ? (t >= calm && t < calm + 0.02 ? 0.06 : 0.005) : high || 0.04,
        ),
        'value/explained_variance': level(n, explained),
        'loss/value': level(n, vast || loss),
        'episode/return': returns(n, going),
      }),
    cases: {
      rows: [{ n: 20 }, { n: 19 }],
      signs: [{}, { high: 0.005 }],
      explained: [{ explained: -0.11 }, { explained: -0.09 }],
      loss: [{ loss: 1.1e-3 }, { loss: 0.9e-3 }],
      before: [
        { n: 400, going: 2, calm: 0.36 },
        { n: 400, going: 2, calm: 0.26 },
      ],
    },
  },
  {
    code: 'kl-high',
    limits: klHighLimits,
    // Rows are spread, so that none are five in a row; of a scattered k1 that would be another matter.
    make: ({ kl = 0.06, share = 1, low = 0.001, going = 0, lr = 3e-4, slip = 0 }) =>
      agent(
        {
          'kl/step': partly(200, share, kl, low),
          ...(going < 0 ? {} : { 'episode/return': returns(200, going, slip) }),
        },
        { learningRate: lr },
      ),
    cases: {
      far: [
        { kl: 0.101, share: 0.26, low: 0.06, lr: 3e-3, going: 1 },
        { kl: 0.099, share: 0.26, low: 0.06, lr: 3e-3, going: 1 },
        'critical',
      ],
      vast: [
        { kl: 0.201, share: 0.55, going: 1 },
        { kl: 0.199, share: 0.55, going: 1 },
      ],
      fallen: [{ share: 0.21, going: 2 }, { share: 0.19, going: 2 }, 'critical'],
      stuck: [{ share: 0.31 }, { share: 0.29 }, 'critical'],
      farUnusual: [
        { kl: 0.11, share: 0.26, low: 0.06, lr: 3e-3, going: 1 },
        { kl: 0.11, share: 0.24, low: 0.06, lr: 3e-3, going: 1 },
        'critical',
      ],
      mostlyFar: [{ kl: 0.11, share: 0.61, going: -1 }, { kl: 0.11, share: 0.59, going: -1 }, 'critical'],
      unusual: [
        { kl: 0.04, share: 0.31, lr: 3e-3, going: 1 },
        { kl: 0.04, share: 0.29, lr: 3e-3, going: 1 },
      ],
      farSetting: [
        { kl: 0.025, share: 0.31, lr: 5e-3, going: 1 },
        { kl: 0.025, share: 0.29, lr: 5e-3, going: 1 },
      ],
      fell: [
        { share: 0.16, going: 2 },
        { share: 0.14, going: 2 },
      ],
      slips: [{ share: 0.41, going: 3, slip: 60 }, { share: 0.39, going: 3, slip: 60 }, 'warning'],
      mostlyVast: [
        { kl: 0.21, share: 0.51, going: 1 },
        { kl: 0.21, share: 0.49, going: 1 },
      ],
      borderline: [
        { kl: 0.025, share: 0.31 },
        { kl: 0.025, share: 0.29 },
      ],
      slipped: [{ share: 0.5, going: 3, slip: 60 }, { share: 0.5, going: 3, slip: 6 }, 'warning'],
    },
  },
];
