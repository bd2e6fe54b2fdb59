/** The weight on a KL: what it becomes, and when that is news. */
import { expect, it } from 'vitest';
import type { TrainEvent } from '../../../src/algos/events.ts';
import { controlledCoefficient } from '../../../src/algos/update/coefficient.ts';

function after(kind: 'fixed' | 'adaptive' | 'horizon', from: number, kl: number) {
  const events: TrainEvent[] = [];
  const update = { kl, samples: 1000, why: 'the update had a KL of' };
  const rule = { kind, target: 0.1, horizon: 10_000 };
  const to = controlledCoefficient('klCoef', from, rule, { max: 1 }, update, events);
  return { to, events };
}

it('follows its rule, and tells of it with the reason', () => {
  expect(after('fixed', 0.3, 5)).toEqual({ to: 0.3, events: [] });
  expect(after('adaptive', 0.3, 5)).toEqual({
    to: 0.6,
    events: [
      { type: 'rate-change', what: 'klCoef', from: 0.3, to: 0.6, why: 'the update had a KL of 5.00e+0' },
    ],
  });
});

it('says nothing of the small corrections that the horizon makes at every update, but that it came to its bound', () => {
  expect(after('horizon', 0.5, 5)).toEqual({ to: expect.closeTo(0.51, 12), events: [] });
  expect(after('horizon', 0.99, 5)).toMatchObject({ to: 1, events: [{ from: 0.99, to: 1 }] });
});
