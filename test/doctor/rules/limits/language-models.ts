/**
 * Runs of language models that stand at the limits of the rules: for each rule a maker with a number for each thing that it
 * looks at, all inside by default, and for each limit a number just inside and one just outside.
 */
import type { CanonicalRun } from '../../../../src/doctor/canonical.ts';
import type { KnownConfig } from '../../../../src/doctor/known-settings.ts';
import type { AtLimits } from '../support/at-limits.ts';
import { type More, rows, run } from '../support/build.ts';

/** Level for the first fifth, a line, level for the last fifth. */
const bend = (n: number, from: number, to: number): number[] =>
  rows(n, (_, t) => from + (to - from) * Math.min(1, Math.max(0, (t - 0.2) / 0.6)));
/** Another level in the last fifth alone. */
const tail = (n: number, from: number, to: number): number[] =>
  rows(n, i => (i < Math.floor(n * 0.8) ? from : to));
const level = (n: number, value: number): number[] => rows(n, () => value);

export const model = (
  values: Readonly<Record<string, readonly number[]>>,
  config: KnownConfig = {},
  more: More = {},
): CanonicalRun =>
  run(values, {
    kind: 'language-model',
    actions: 'tokens',
    trainer: 'verl',
    unit: 'updates',
    config,
    ...more,
  });

export const languageModels: readonly AtLimits[] = [
  {
    code: 'reward-hacking',
    make: ({ rows: n = 40, scoreRows = n, before = 0.5, after = 0.2, tailed = 0, paid = 1, part = 0 }) =>
      model({
        'reward/mean': bend(n, 0, 1),
        [part > 0 ? 'reward/part/exact' : 'env/exact']:
          tailed > 0 ? tail(scoreRows, before, after) : bend(scoreRows, before, after),
        'reward/part/style': bend(n, 0, paid),
      }),
    cases: {
      rows: [{ rows: 16 }, { rows: 15 }],
      scoreRows: [
        { scoreRows: 6, before: 0.9, after: 0.1 },
        { scoreRows: 5, before: 0.9, after: 0.1 },
      ],
      lost: [
        { after: 0.5 * 0.69, paid: 0 },
        { after: 0.5 * 0.71, paid: 0 },
      ],
      grown: [
        { tailed: 1, after: 0.5 * 1.24 },
        { tailed: 1, after: 0.5 * 1.26 },
      ],
      fromOthers: [
        { part: 1, tailed: 1, after: 0.5, paid: 0.71 },
        { part: 1, tailed: 1, after: 0.5, paid: 0.69 },
      ],
    },
  },
  {
    code: 'length-explosion',
    make: ({ rows: n = 40, to = 60, first = 0.05, last = 0.8 }) =>
      model({ 'completion/length': bend(n, 20, to), 'completion/truncated': tail(n, first, last) }),
    cases: {
      rows: [{ rows: 16 }, { rows: 15 }],
      growth: [{ to: 40.1 }, { to: 39.9 }],
      cut: [{ last: 0.31 }, { last: 0.29 }],
      before: [{ first: 0.09 }, { first: 0.11 }],
      most: [{ last: 0.51 }, { last: 0.49 }, 'critical'],
    },
  },
  {
    code: 'truncation-zeroes-reward',
    make: ({ rows: n = 20, cut = 0.5, last = 0, length = 80 }) =>
      model(
        {
          'completion/truncated': tail(n, cut, last),
          'completion/length': level(n, length),
          'reward/mean': level(n, 0.2),
        },
        { maxCompletionLength: 100 },
      ),
    cases: {
      rows: [{ rows: 8 }, { rows: 7 }],
      cut: [{ cut: 0.26 }, { cut: 0.24 }],
      lasting: [
        { cut: 0.11, last: 0.11 },
        { cut: 0.11, last: 0.09 },
      ],
      near: [{ length: 61 }, { length: 59 }],
    },
  },
  {
    code: 'ratio-biased',
    make: ({ rows: n = 20, clipped = 0.4, k1 = 0, moved = 0.001, clip = 0.2 }) =>
      model(
        {
          'policy/clip_fraction': level(n, clipped),
          'kl/step': level(n, k1),
          'kl/ref': rows(n, i => moved * Math.min(1, i)),
        },
        { clipRange: clip },
        { kl: { 'kl/step': { estimator: 'k1' } } },
      ),
    cases: {
      rows: [{ rows: 5 }, { rows: 4 }],
      clipped: [{ clipped: 0.11 }, { clipped: 0.09 }],
      kl: [
        { clipped: 0, k1: -0.051 },
        { clipped: 0, k1: -0.049 },
      ],
      moved: [{ moved: 0.019 }, { moved: 0.021 }],
      clip: [{ clip: 0.05 }, { clip: 0.049 }],
    },
  },
  {
    code: 'clip-range-tiny',
    make: ({ rows: n = 20, clip = 1e-4, clipped = 0.5 }) =>
      model({ 'policy/clip_fraction': level(n, clipped) }, { clipRange: clip }),
    cases: {
      rows: [{ rows: 8 }, { rows: 7 }],
      clip: [{ clip: 0.019 }, { clip: 0.021 }],
      clipped: [{ clipped: 0.21 }, { clipped: 0.19 }],
    },
  },
  {
    code: 'clip-range-open',
    make: ({ rows: n = 20, clip = 0.2, high = 10, clipped = 0.001 }) =>
      model(
        { 'policy/clip_fraction': level(n, clipped), 'reward/mean': bend(n, 0.8, 0.1) },
        { clipRange: clip, clipRangeHigh: high },
      ),
    cases: {
      rows: [{ rows: 8 }, { rows: 7 }],
      clip: [
        { clip: 0.91, high: 0.91 },
        { clip: 0.89, high: 0.89 },
      ],
      clipHigh: [{ high: 2.1 }, { high: 1.9 }],
      clipped: [{ clipped: 0.009 }, { clipped: 0.011 }],
    },
  },
  {
    code: 'many-epochs',
    make: ({ rows: n = 20, epochs = 20, clipped = 0.4 }) =>
      model({ 'policy/clip_fraction': level(n, clipped) }, { epochs }),
    cases: {
      rows: [{ rows: 8 }, { rows: 7 }],
      epochs: [{ epochs: 8 }, { epochs: 7 }],
      clipped: [{ clipped: 0.081 }, { clipped: 0.079 }],
    },
  },
  {
    code: 'stands-still',
    // A KL of 8e-5 a token over 62.5 tokens brings at most a tenth of the reward's deviation.
    make: ({ rows: n = 40, moved = 1e-5, flat = 0.1, risen = 0, spread = 1 }) =>
      model({
        'kl/ref': bend(n, 0, risen > 0 ? 8e-5 : moved),
        ...(risen > 0 ? { 'reward/std': level(n, spread), 'completion/length': level(n, 62.5) } : {}),
        'reward/mean': bend(n, 0.2, 0.2 + risen).map((value, i) => value + 0.02 * Math.sin(2.4 * i)),
        'grad/norm': level(n, 0.5),
        'reward/zero_std_groups': level(n, flat),
      }),
    cases: {
      rows: [{ rows: 30 }, { rows: 29 }],
      moved: [{ moved: 0.9e-4 }, { moved: 1.1e-4 }],
      flat: [{ flat: 0.79 }, { flat: 0.81 }],
      luck: [{ risen: 0.21 }, { risen: 0.19 }],
    },
  },
  {
    code: 'kl-sign',
    make: ({ rows: n = 40, first = 0.01, last = 2, coef = 10 }) =>
      model({ 'kl/ref': bend(n, first, last), 'reward/mean': bend(n, 1, 0) }, { refCoef: coef }),
    cases: {
      rows: [{ rows: 12 }, { rows: 11 }],
      kl: [{ last: 0.31 }, { last: 0.29 }],
      growth: [{ first: 0.39 }, { first: 0.41 }],
      cost: [{ coef: 0.51 }, { coef: 0.49 }],
    },
  },
  {
    code: 'group-of-one',
    make: ({ rows: n = 20, same = 20, off = 0 }) => {
      const reward = rows(n, i => 0.3 + 0.01 * i);
      return model({
        'reward/mean': reward,
        'adv/mean': reward.map((v, i) => (i < same ? v * (1 + off) : 0)),
      });
    },
    cases: {
      rows: [{ rows: 5 }, { rows: 4 }],
      same: [{ same: 18 }, { same: 17 }],
      within: [{ off: 0.009 }, { off: 0.011 }],
    },
  },
  {
    code: 'mask-counts-padding',
    make: ({ rows: n = 20, cut = 0 }) =>
      model({
        'completion/length_min': level(n, 64),
        'completion/length_max': level(n, 64),
        'completion/truncated': level(n, cut),
      }),
    cases: { rows: [{ rows: 8 }, { rows: 7 }], cut: [{ cut: 0.49 }, { cut: 0.51 }] },
  },
  {
    code: 'entropy-weight',
    make: ({ rows: n = 40, coef = 0.5, to = 1 }) =>
      model({ 'policy/entropy': bend(n, 1, to), 'reward/mean': level(n, 0.2) }, { entropyCoef: coef }),
    cases: {
      rows: [{ rows: 16 }, { rows: 15 }],
      large: [{ coef: 0.051 }, { coef: 0.049 }],
      kept: [{ to: 0.91 }, { to: 0.89 }],
      growth: [
        { coef: 0, to: 1.51 },
        { coef: 0, to: 1.49 },
      ],
    },
  },
  {
    code: 'reference-outweighs',
    make: ({ rows: n = 40, weight = 5, kl = 0.01, last = kl, rises = 0 }) =>
      model(
        { 'kl/ref': tail(n, kl, last), 'reward/mean': rows(n, (_, t) => 0.2 + rises * t) },
        { refCoef: weight },
      ),
    cases: {
      rows: [{ rows: 16 }, { rows: 15 }],
      weight: [{ weight: 0.51 }, { weight: 0.49 }],
      kl: [{ kl: 0.049 }, { kl: 0.051 }],
      growth: [
        { rises: 0.1, last: 0.0149 },
        { rises: 0.1, last: 0.0151 },
      ],
    },
  },
  {
    code: 'reward-without-meaning',
    make: ({ rows: n = 60, moved = 0.2, step = 0.005, entropy = 1 }) =>
      model({
        'reward/mean': rows(n, i => 0.2 + 0.02 * Math.sin(2.4 * i)),
        'kl/ref': bend(n, 0, moved),
        'kl/step': level(n, step),
        'policy/entropy': bend(n, 1, entropy),
      }),
    cases: {
      rows: [{ rows: 30 }, { rows: 29 }],
      moved: [{ moved: 0.051 }, { moved: 0.049 }],
      step: [{ step: 0.019 }, { step: 0.021 }],
      entropy: [{ entropy: 0.51 }, { entropy: 0.49 }],
    },
  },
  {
    code: 'cold-sampling',
    make: ({ rows: n = 20, temperature = 0.1, entropy = 0.05 }) =>
      model({ 'policy/entropy': level(n, entropy) }, { temperature }),
    cases: {
      rows: [{ rows: 8 }, { rows: 7 }],
      temperature: [{ temperature: 0.3 }, { temperature: 0.31 }],
      entropy: [{ entropy: 0.19 }, { entropy: 0.21 }],
    },
  },
  {
    code: 'usual-in-grpo',
    make: ({ rows: n = 20, loss = 0.01, below = 0 }) =>
      model({
        'grad/norm': level(n, 0.3),
        'loss/total': rows(n, i => (i < below ? -loss : loss)),
      }),
    cases: {
      rows: [{ rows: 5 }, { rows: 4 }],
      loss: [{ loss: 0.019 }, { loss: 0.021 }],
      negative: [
        { rows: 50, loss: 1, below: 11 },
        { rows: 50, loss: 1, below: 9 },
      ],
    },
  },
  {
    code: 'sampler-gap',
    table: 'sampler-gap/stale',
    cause: 'stale-rollouts',
    make: ({ rows: n = 40, share = 0.1 }) =>
      model({ 'kl/sampler': rows(n, i => (i < 3 ? 0.5 * share : 0.5)) }),
    cases: {
      rows: [{ rows: 12 }, { rows: 11 }],
      share: [{ share: 0.29 }, { share: 0.31 }],
    },
  },
  {
    code: 'kl-in-reward',
    make: ({ n = 30, lost = 0.4 }) =>
      model(
        {
          'reward/penalised': bend(n, -1, 0.5),
          'reward/mean': bend(n, 1, 1 - lost),
          'kl/ref': bend(n, 2, 0.1),
        },
        { refCoef: 0.5 },
      ),
    cases: {
      rows: [{ n: 16 }, { n: 15 }],
      lost: [{ lost: 0.101 }, { lost: 0.099 }],
    },
  },
  {
    code: 'reward-collapse',
    // Up to 1 in the first third, down to what is left from a place on; rows go up and down by a wave.
    make: ({ n = 40, left = 0.1, wave = 0, low = 0.5, up = 0 }) =>
      model({
        'reward/mean': rows(n, (i, t) => {
          const way = t < 0.3 ? t / 0.3 : t < low ? 1 : left;
          return way + (i % 2 === 0 ? wave : -wave) + (i === n - 2 || i === n - 4 ? up : 0);
        }),
      }),
    cases: {
      rows: [{ n: 20 }, { n: 19 }],
      noise: [{ wave: 0.047 }, { wave: 0.048 }],
      lost: [{ left: 0.41 }, { left: 0.43 }],
      end: [
        { n: 200, low: 0.845 },
        { n: 200, low: 0.87 },
      ],
      below: [
        { n: 200, up: 0.3 },
        { n: 200, up: 0.6 },
      ],
    },
  },
];
