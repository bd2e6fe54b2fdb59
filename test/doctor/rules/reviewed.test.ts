/** What a reviewer's runs showed: each was judged wrongly once. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { diagnoseSeries } from '../../../src/doctor/index.ts';
import { Rng } from '../../../src/random/index.ts';

/** A real healthy run, with some of its rows. */
function healthyPendulum(keep: (row: number) => boolean): Record<string, number[]> {
  const path = new URL('../fixtures/sb3/pendulum-healthy/progress.csv', import.meta.url);
  const [header, ...rows] = readFileSync(path, 'utf8').trim().split('\n');
  const names = header!.split(',');
  const cells = rows.filter((_, i) => keep(i)).map(row => row.split(','));
  const column = (name: string): number[] =>
    cells
      .map(row => row[names.indexOf(name)]!)
      .filter(cell => cell !== '')
      .map(Number);
  return {
    'episode/return': column('rollout/ep_rew_mean'),
    'episode/length': column('rollout/ep_len_mean'),
    'kl/step': column('train/approx_kl'),
    'loss/value': column('train/value_loss'),
    'value/explained_variance': column('train/explained_variance'),
  };
}

const noisy = (rng: Rng, length: number, at: (i: number) => number, spread: number): number[] =>
  Array.from({ length }, (_, i) => at(i) * (1 + spread * (rng.uniform() - 0.5)));

describe('a return that improves fast while episodes stay as long', () => {
  it.each([0, 1])('is learning, in every second row too (from row %d)', first => {
    expect(diagnoseSeries(healthyPendulum(row => row % 2 === first)).verdict).toBe('healthy');
  });

  it('is learning when the reward of a step changes its sign', () => {
    const rng = new Rng(3);
    const rise = (i: number): number => (i < 30 ? -160 : 3900);
    const run = diagnoseSeries({
      'episode/return': noisy(rng, 60, rise, 0.05),
      'episode/length': Array.from({ length: 60 }, () => 1000),
      'kl/step': noisy(rng, 60, () => 0.008, 0.5),
      'loss/value': noisy(rng, 60, i => 20 / (i + 1), 0.3),
      'value/explained_variance': noisy(rng, 60, () => 0.8, 0.1),
    });
    expect(run.rootCause).not.toBe('reward-scale-changed');
  });
});

describe('rewards ten times as large from one row on', () => {
  const rng = new Rng(5);
  const constant = noisy(rng, 60, () => 0.006, 0.5);
  it('are seen in a value loss that rises to far more than it ever was, out of a calm run', () => {
    const run = diagnoseSeries({
      'episode/return': noisy(rng, 60, () => -500, 0.2),
      'kl/step': constant,
      'loss/value': noisy(rng, 60, i => (i < 40 ? 5 : 900), 0.4),
    });
    expect(run).toMatchObject({ verdict: 'sick', rootCause: 'reward-scale-changed' });
  });

  it('are not when the returns grow by as much', () => {
    const run = diagnoseSeries({
      'episode/return': noisy(rng, 60, i => (i < 40 ? 20 : 300), 0.1),
      'kl/step': constant,
      'loss/value': noisy(rng, 60, i => (i < 40 ? 5 : 900), 0.4),
    });
    expect(run.rootCause).not.toBe('reward-scale-changed');
  });
});

it('rewards that became ten times smaller leave a dip of the explained variance', () => {
  const rng = new Rng(7);
  const series = {
    'episode/return': noisy(rng, 40, () => -300, 0.1),
    'kl/step': noisy(rng, 40, () => 0.006, 0.5),
    'loss/value': noisy(rng, 40, i => (i < 20 ? 6 : i === 20 ? 85 : i < 23 ? 3 : 0.04), 0.3),
    'value/explained_variance': noisy(rng, 40, i => (i === 20 ? -2.5 : i === 21 ? -0.6 : 0.96), 0.02),
  };
  expect(diagnoseSeries(series)).toMatchObject({ verdict: 'watch', rootCause: 'reward-scale-changed' });
  const calm = { ...series, 'value/explained_variance': noisy(rng, 40, () => 0.96, 0.02) };
  expect(diagnoseSeries(calm).rootCause).not.toBe('reward-scale-changed');
});

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
