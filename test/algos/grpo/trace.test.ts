/**
 * A trace of GRPO (STYLE 15): a refactor must not change it. A change that is meant to (another default, another order of
 * sums) changes it here as well, and says so in its commit. Processors differ in the last bits, so it is given to six digits;
 * the hash is that of one kind.
 */

import { expect, test } from 'vitest';
import { bitsArePinned } from '../../support/processors.ts';
import { sha256 } from '../ppo/support/trainer.ts';
import { trainerFor } from './support.ts';

test.each([
  [
    'the defaults at a higher rate',
    { learningRate: 1e-3 },
    {
      sum: 49.012085,
      length: 7.0099152,
      reward: 0.25,
      entropy: 1.781899,
      kl: 3.8955e-5,
      bits: 'b42786341a20c9a299340d594f8c7ea959fc055ea493a467c40c32cc61e858c0',
    },
  ],
  [
    'truncated sampling, several minibatches, an averaged reference, a guard that acts',
    {
      temperature: 0.8,
      topK: 4,
      topP: 0.95,
      epochs: 2,
      minibatchSize: 16,
      microbatchSize: 8,
      reference: 'averaged',
      klRefCoef: 0.01,
      klRefCoefRule: 'horizon',
      entropyCoef: 0.01,
      learningRate: 0.02,
      guard: 0.01,
    },
    {
      sum: 49.276859,
      length: 7.0595896,
      reward: 0.65625,
      entropy: 1.720374,
      kl: 9.73208e-3,
      bits: '32542638a494c1b8328e9d3a380650f7f17260a951e85b87c0686e4d1379f290',
    },
  ],
] as const)('%s: numbers after five updates', async (_, settings, traced) => {
  const trainer = trainerFor({ ...settings, seed: 1 });
  let row: Record<string, number> = {};
  for (let i = 0; i < 5; i++) ({ row } = await trainer.iterate());
  const { weights } = trainer.model;
  expect(weights.reduce((a, b) => a + b, 0)).toBeCloseTo(traced.sum, 4);
  expect(Math.hypot(...weights)).toBeCloseTo(traced.length, 5);
  expect(row['reward/mean']).toBeCloseTo(traced.reward, 6);
  expect(row['policy/entropy']).toBeCloseTo(traced.entropy, 5);
  expect(row['kl/step'] / traced.kl).toBeCloseTo(1, 3);
  if (bitsArePinned) expect(sha256(weights)).toBe(traced.bits);
  await trainer.dispose();
});
