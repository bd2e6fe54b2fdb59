/** The limits of the rules about how far an update moves the policy, each from both sides. */
import type { CanonicalRun } from '../../../../src/doctor/canonical.ts';
import type { LimitTable } from '../../../../src/doctor/rules/limits.ts';
import { agent, bend, level, partly, returns } from '../support/agents.ts';
import type { AtLimits } from '../support/at-limits.ts';
import { rows, run } from '../support/build.ts';

/** A policy that hardly moves. */
const slowPolicy = ({
  n = 40,
  rate = 1e-6,
  kl = 1e-4,
  more = 0,
  ended = 0.69,
  early = 0,
  top = 1,
}: LimitTable): CanonicalRun =>
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
  );

export const steps: readonly AtLimits[] = [
  {
    code: 'clip-range-inert',
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
    make: slowPolicy,
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
    },
  },
  {
    code: 'policy-frozen',
    table: 'stalled',
    make: slowPolicy,
    cases: {
      rows: [{ n: 8 }, { n: 7 }],
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
    code: 'kl-spikes',
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
      // Of few spikes the share is one of a few numbers.
      harmful: [{ count: 3, going: 6, grow: 1 }, { count: 4, going: 6, grow: 1 }, 'info', 0.3],
      growing: [{ count: 4 }, { count: 3 }],
      growth: [{ grow: 2.01 }, { grow: 1.99 }],
      fall: [
        { count: 3, going: 6, grow: 1, drop: 38 },
        { count: 3, going: 6, grow: 1, drop: 54 },
      ],
    },
  },
  {
    code: 'kl-high',
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
      slipped: [{ share: 0.5, going: 3, slip: 19.6 }, { share: 0.5, going: 3, slip: 18.8 }, 'warning'],
    },
  },
  {
    code: 'kl-high',
    table: 'streak',
    // So many rows in a row are high; or every other one of a language model's.
    make: ({ high = 5, token = -1 }) =>
      token < 0
        ? agent({
            'kl/step': rows(100, i => (i >= 50 && i < 50 + high ? 0.04 : 0.005)),
            'episode/return': returns(100, 1),
          })
        : run(
            { 'kl/step': partly(200, 0.5, token, 0.001), 'reward/mean': returns(200, 0) },
            { kind: 'language-model', actions: 'tokens' },
          ),
    cases: {
      rows: [{ high: 5 }, { high: 4 }],
      token: [{ token: 0.201 }, { token: 0.199 }, 'critical'],
    },
  },
];
