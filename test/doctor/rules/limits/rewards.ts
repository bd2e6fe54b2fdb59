/** The limits of the rules about rewards and returns, each from both sides. */
import type { CanonicalRun } from '../../../../src/doctor/canonical.ts';
import { signalsOf } from '../../../../src/doctor/rules/signals.ts';
import { agent, level, returns } from '../support/agents.ts';
import type { AtLimits } from '../support/at-limits.ts';
import { rows, run } from '../support/build.ts';

/** Returns of a task that pays nothing, or as `going` says: 5 rises by luck, 6 is mostly one value, 7 varies by so much. */
const earned = (n: number, going: number, height: number, size: number): number[] => {
  if (going === 5) return rows(n, (i, t) => 100 * t + Math.sin(7.1 * i));
  if (going === 6) return rows(n, i => (i % 7 === 3 ? height + size : height));
  if (going === 7) return rows(n, i => height + size * (i % 2));
  return level(n, height);
};

const unpaid = ({
  n = 60,
  model = 0,
  height = -20,
  going = 0,
  size = 1,
  steps = -1,
  advantages = -1,
  ev = 0,
  loss = -1,
  lossRows = n,
  first = loss,
  firstRows = 3,
  after = first,
  entropy = -1,
}: Readonly<Record<string, number>>): CanonicalRun => {
  const lossRow = (i: number): number => (i >= firstRows ? loss : i < 10 ? first : after);
  const values = {
    [model ? 'reward/mean' : 'episode/return']: earned(n, going, height, size),
    ...(steps < 0 ? {} : { 'reward/std': level(n, steps) }),
    ...(advantages < 0 ? {} : { 'adv/std': level(n, advantages) }),
    ...(loss < 0 ? {} : { 'loss/value': rows(lossRows, lossRow), 'value/explained_variance': level(n, ev) }),
    ...(entropy < 0 ? {} : { 'policy/entropy': level(n, entropy * Math.LN2) }),
  };
  return model ? run(values, { kind: 'language-model', actions: 'tokens' }) : agent(values);
};

export const rewards: readonly AtLimits[] = [
  {
    code: 'return-flat',
    make: ({ n = 60 }) => agent({ 'episode/return': level(n, -20) }),
    cases: { rows: [{ n: 12 }, { n: 11 }] },
  },
  {
    code: 'no-reward',
    make: unpaid,
    cases: {
      rows: [{ n: 8 }, { n: 7 }],
      modelRows: [
        { model: 1, n: 20 },
        { model: 1, n: 19 },
      ],
      stepsVary: [{ steps: 0.99e-9 }, { steps: 1.01e-9 }],
      advantages: [
        { going: 7, advantages: 0.99e-7 },
        { going: 7, advantages: 1.01e-7 },
      ],
      explains: [
        { going: 7, loss: 1e-9, ev: 0.499 },
        { going: 7, loss: 1e-9, ev: 0.501 },
      ],
      loss: [
        { going: 7, size: 100, loss: 0.99e-4 },
        { going: 7, size: 100, loss: 1.01e-4 },
      ],
      share: [
        { going: 7, size: 2, loss: 0.99e-5 * 1.4826 ** 2 },
        { going: 7, size: 2, loss: 1.01e-5 * 1.4826 ** 2 },
      ],
      ofRange: [
        { going: 6, size: 20, loss: 3.9e-5 },
        { going: 6, size: 20, loss: 4.1e-5 },
      ],
      least: [
        { going: 6, size: 0.1, loss: 0.99e-7 },
        { going: 6, size: 0.1, loss: 1.01e-7 },
      ],
      ofLevel: [
        { height: 200, entropy: 1, loss: 3.9e-5 },
        { height: 200, entropy: 1, loss: 4.1e-5 },
      ],
      luckRows: [
        { going: 5, loss: 1e-9, ev: -0.5, lossRows: 12 },
        { going: 5, loss: 1e-9, ev: -0.5, lossRows: 11 },
      ],
      worse: [
        { going: 5, loss: 1e-9, ev: -0.101 },
        { going: 5, loss: 1e-9, ev: -0.099 },
      ],
      much: [
        { going: 5, loss: 1e-9, ev: -0.5, first: 0.99 },
        { going: 5, loss: 1e-9, ev: -0.5, first: 1.01 },
      ],
      some: [
        { n: 200, going: 5, loss: 1e-9, ev: -0.5, first: 0.0099, firstRows: 110 },
        { n: 200, going: 5, loss: 1e-9, ev: -0.5, first: 0.0101, firstRows: 110 },
      ],
      stayed: [
        { n: 200, going: 5, loss: 1e-9, ev: -0.5, first: 0.1, firstRows: 110, after: 0.0499 },
        { n: 200, going: 5, loss: 1e-9, ev: -0.5, first: 0.1, firstRows: 110, after: 0.0501 },
      ],
      solved: [
        { n: 200, going: 5, loss: 1e-9, ev: -0.5, first: 0.1, firstRows: 95 },
        { n: 200, going: 5, loss: 1e-9, ev: -0.5, first: 0.1, firstRows: 100 },
      ],
      earlyRows: [{ n: 40, ev: 0.9, loss: 1 }, { n: 39, ev: 0.9, loss: 1 }, 'critical'],
    },
  },
  {
    code: 'beginning',
    make: ({ high = 0, share = 0.5, std = 0 }) =>
      agent({
        'episode/return': returns(20, 0),
        ...(std > 0
          ? { 'policy/std': level(20, std) }
          : { 'policy/entropy': rows(20, i => Math.LN2 * (high > 0 && i >= high - 1 ? 0.95 : share)) }),
      }),
    says: (made, { fresh = 0 }) => signalsOf(made).practised === (fresh === 0),
    cases: {
      first: [{ high: 6 }, { high: 5 }],
      learnt: [{ share: 0.899 }, { share: 0.901 }],
      fresh: [
        { fresh: 1, share: 0.971 },
        { fresh: 1, share: 0.969 },
      ],
      dead: [{ share: 0.0201 }, { share: 0.0199 }],
      narrowed: [{ std: 0.799 }, { std: 0.801 }],
      wide: [
        { fresh: 1, std: 0.951 },
        { fresh: 1, std: 0.949 },
      ],
    },
  },
];
