/** Advantages against the sums of their definition, each environment and each episode by itself. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createRollout, type Rollout } from '../../src/rollout/buffer.ts';
import { gae } from '../../src/rollout/gae.ts';
import { seed } from '../engine/support/check.ts';

fc.configureGlobal({ seed });

type Numbers = readonly number[];

interface Step {
  reward: number;
  value: number;
  /** What the final observation is worth; only that of a truncated step may be read. */
  finalValue: number;
  end: 'no' | 'terminated' | 'truncated';
}

/** (T, N) columns from the steps of each environment. */
function rolloutOf(environments: readonly (readonly Step[])[], lastValues: Numbers): Rollout {
  const [envs, steps] = [environments.length, environments[0].length];
  const rollout = createRollout(steps, envs, { observationSize: 1, actionSize: 1, paramSize: 1 });
  environments.forEach((own, n) => {
    own.forEach((step, t) => {
      const at = t * envs + n;
      rollout.rewards[at] = step.reward;
      rollout.values[at] = step.value;
      rollout.finalValues[at] = step.finalValue;
      rollout.terminated[at] = step.end === 'terminated' ? 1 : 0;
      rollout.truncated[at] = step.end === 'truncated' ? 1 : 0;
    });
  });
  rollout.lastValues.set(lastValues);
  return rollout;
}

/**
 * The definition: the sum of (gamma·lambda)^l times the l-th TD error from here to the end of the episode, computed for
 * every step anew. An episode is cut out of the environment's steps before anything is summed.
 */
function naive(own: readonly Step[], lastValue: number, gamma: number, lambda: number): number[] {
  const episodes: Step[][] = [[]];
  for (const step of own) {
    episodes.at(-1)!.push(step);
    if (step.end !== 'no') episodes.push([]);
  }
  return episodes.flatMap(episode => {
    const last = episode.at(-1);
    const afterwards = { no: lastValue, terminated: 0, truncated: last?.finalValue ?? 0 }[last?.end ?? 'no'];
    const errors = episode.map(({ reward, value }, i) => {
      const next = i + 1 < episode.length ? episode[i + 1].value : afterwards;
      return reward + gamma * next - value;
    });
    return episode.map((_, i) =>
      errors.slice(i).reduce((sum, error, l) => sum + (gamma * lambda) ** l * error, 0),
    );
  });
}

function advantagesOf(rollout: Rollout, gamma: number, lambda: number): Rollout {
  gae(rollout, { gamma, lambda }, rollout);
  return rollout;
}

const column = (values: Float32Array, envs: number, n: number): number[] =>
  Array.from(values).filter((_, at) => at % envs === n);

const number32 = fc.float({ min: -5, max: 5, noNaN: true });
const step: fc.Arbitrary<Step> = fc.record({
  reward: number32,
  value: number32,
  finalValue: number32,
  end: fc.constantFrom('no', 'no', 'no', 'terminated', 'truncated'),
});
const given = fc.integer({ min: 1, max: 12 }).chain(steps =>
  fc.integer({ min: 1, max: 4 }).chain(envs =>
    fc.record({
      environments: fc.array(fc.array(step, { minLength: steps, maxLength: steps }), {
        minLength: envs,
        maxLength: envs,
      }),
      lastValues: fc.array(number32, { minLength: envs, maxLength: envs }),
      gamma: fc.constantFrom(0, 0.5, 0.9, 0.99, 1),
      lambda: fc.constantFrom(0, 0.3, 0.95, 1),
    }),
  ),
);

describe('against the definition', () => {
  it('holds for episodes that end anywhere, in several environments', () => {
    fc.assert(
      fc.property(given, ({ environments, lastValues, gamma, lambda }) => {
        const { advantages, returns } = advantagesOf(rolloutOf(environments, lastValues), gamma, lambda);
        environments.forEach((own, n) => {
          const wanted = naive(own, lastValues[n], gamma, lambda);
          const found = column(advantages, environments.length, n);
          const targets = column(returns, environments.length, n);
          wanted.forEach((advantage, t) => {
            expect(Math.abs(found[t] - advantage)).toBeLessThan(1e-4);
            expect(Math.abs(targets[t] - advantage - own[t].value)).toBeLessThan(1e-4);
          });
        });
      }),
      { numRuns: 300 },
    );
  });

  // Fault 3 of the facts: several agents in one buffer, and GAE over it as one trajectory.
  it('never mixes environments: each has the bits it has alone', () => {
    fc.assert(
      fc.property(given, ({ environments, lastValues, gamma, lambda }) => {
        const together = advantagesOf(rolloutOf(environments, lastValues), gamma, lambda);
        environments.forEach((own, n) => {
          const alone = advantagesOf(rolloutOf([own], [lastValues[n]]), gamma, lambda);
          expect(column(together.advantages, environments.length, n)).toEqual(Array.from(alone.advantages));
          expect(column(together.returns, environments.length, n)).toEqual(Array.from(alone.returns));
        });
      }),
    );
  });

  it('lets nothing through an end: what follows it could be anything', () => {
    fc.assert(
      fc.property(given, fc.nat(), ({ environments, lastValues, gamma, lambda }, place) => {
        const own = environments[0].map(s => ({ ...s }));
        const cut = place % own.length;
        own[cut].end = place % 2 === 0 ? 'terminated' : 'truncated';
        const broken = own.map((s, t) =>
          t > cut ? { ...s, reward: Number.NaN, value: Number.NaN, end: 'no' as const } : s,
        );
        const healthy = advantagesOf(rolloutOf([own], [lastValues[0]]), gamma, lambda);
        const { advantages } = advantagesOf(rolloutOf([broken], [Number.NaN]), gamma, lambda);
        expect(Array.from(advantages.subarray(0, cut + 1))).toEqual(
          Array.from(healthy.advantages.subarray(0, cut + 1)),
        );
      }),
    );
  });

  it('reads final values at truncations alone', () => {
    fc.assert(
      fc.property(given, ({ environments, lastValues, gamma, lambda }) => {
        const wiped = environments.map(own =>
          own.map(s => (s.end === 'truncated' ? s : { ...s, finalValue: Number.NaN })),
        );
        const [a, b] = [environments, wiped].map(e => advantagesOf(rolloutOf(e, lastValues), gamma, lambda));
        expect(Array.from(b.advantages)).toEqual(Array.from(a.advantages));
      }),
    );
  });
});

describe('closed forms', () => {
  const steps = 40;
  const constant = (value: number, last: Partial<Step> = {}): Step[] =>
    Array.from({ length: steps }, (_, t) => ({
      reward: 1,
      value,
      finalValue: Number.NaN,
      end: 'no' as const,
      ...(t === steps - 1 ? last : {}),
    }));

  it.each([0, 0.5, 0.9, 0.99])('gamma %f: reward 1 until termination is the geometric sum', gamma => {
    const { returns } = advantagesOf(rolloutOf([constant(0, { end: 'terminated' })], [1e6]), gamma, 1);
    returns.forEach((found, t) => {
      expect(found).toBeCloseTo((1 - gamma ** (steps - t)) / (1 - gamma), 4);
    });
  });

  it.each([0, 0.5, 0.9, 0.99])('gamma %f: reward 1 for ever is 1/(1-gamma), through a truncation', gamma => {
    const forever = 1 / (1 - gamma);
    for (const lambda of [0, 0.5, 1]) {
      const cut = advantagesOf(
        rolloutOf([constant(forever, { end: 'truncated', finalValue: forever })], [-1e6]),
        gamma,
        lambda,
      );
      const open = advantagesOf(rolloutOf([constant(forever)], [forever]), gamma, lambda);
      for (const { advantages, returns } of [cut, open]) {
        for (const advantage of advantages) expect(advantage).toBeCloseTo(0, 4);
        for (const target of returns) expect(target).toBeCloseTo(forever, 4);
      }
    }
  });

  it('termination is worth nothing afterwards, truncation what its final observation is worth', () => {
    const end = (kind: Step['end']): number => {
      const own: Step[] = [{ reward: 2, value: 0.5, finalValue: 10, end: kind }];
      return advantagesOf(rolloutOf([own], [100]), 0.9, 0.95).advantages[0];
    };
    expect(end('terminated')).toBeCloseTo(2 - 0.5, 6);
    expect(end('truncated')).toBeCloseTo(2 + 0.9 * 10 - 0.5, 6);
    expect(end('no')).toBeCloseTo(2 + 0.9 * 100 - 0.5, 5);
  });

  it('lambda 0 is the one-step error, lambda 1 the whole return minus the value', () => {
    const rng = [0.3, -1.2, 2.5, 0.1, -0.7];
    const own: Step[] = rng.map((reward, t) => ({ reward, value: t - 2, finalValue: 0, end: 'no' }));
    const gamma = 0.9;
    const one = advantagesOf(rolloutOf([own], [7]), gamma, 0).advantages;
    own.forEach(({ reward, value }, t) => {
      expect(one[t]).toBeCloseTo(reward + gamma * (own[t + 1]?.value ?? 7) - value, 5);
    });
    const whole = advantagesOf(rolloutOf([own], [7]), gamma, 1).advantages;
    own.forEach(({ value }, t) => {
      const rest = own.slice(t).reduce((sum, s, i) => sum + gamma ** i * s.reward, 0);
      expect(whole[t]).toBeCloseTo(rest + gamma ** (own.length - t) * 7 - value, 5);
    });
  });

  // Fault 4 of the facts: the reward stored with the next action.
  it('gives a reward to the step that earned it', () => {
    const own: Step[] = [0, 1, 0, 0].map(reward => ({ reward, value: 0, finalValue: 0, end: 'no' }));
    expect(Array.from(advantagesOf(rolloutOf([own], [0]), 0, 0.95).advantages)).toEqual([0, 1, 0, 0]);
  });
});
