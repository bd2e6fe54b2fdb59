/** A policy that nothing moves. */
import { expect, it } from 'vitest';
import { diagnoseSeries } from '../../../src/doctor/index.ts';
import { Rng } from '../../../src/random/index.ts';
import { noisy } from './support/noisy.ts';

it('a policy that nothing moves is frozen, not held by an entropy bonus', () => {
  const rng = new Rng(9);
  const run = diagnoseSeries({
    'episode/return': noisy(rng, 60, () => 22, 0.2),
    'kl/step': noisy(rng, 60, () => 1e-8, 0.5),
    'policy/clip_fraction': Array.from({ length: 60 }, () => 0),
    'policy/entropy': noisy(rng, 60, () => Math.LN2, 1e-6),
    'value/explained_variance': noisy(rng, 60, () => 0.5, 0.1),
    'loss/value': noisy(rng, 60, () => 5, 0.2),
  });
  expect(run.rootCause).not.toBe('entropy-bonus-too-large');
  expect(run).toMatchObject({ verdict: 'sick', rootCause: 'learning-rate-too-low' });
});
