/** Rewards of another size from one row on, and what looks like them. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { diagnose } from '../../../src/doctor/diagnose.ts';
import type { Diagnosis } from '../../../src/doctor/findings.ts';
import { diagnoseSeries } from '../../../src/doctor/index.ts';
import { Rng } from '../../../src/random/index.ts';
import { rows, run } from './support/build.ts';
import { learning, loud, N, wave } from './support/learning.ts';
import { noisy } from './support/noisy.ts';

describe('a return that falls under a calm KL', () => {
  const { about, agent } = learning(23);

  it('is one, if episodes stay as long and the value loss shrinks with the square', () => {
    const d = diagnose(
      agent({
        'episode/return': rows(N, i => about(i < 40 ? 200 : 20, 0.03)),
        'loss/value': rows(N, i => about(i < 40 ? 30 : 0.3, 0.2)),
      }),
    );
    expect(d.rootCause).toBe('reward-scale-changed');
  });

  it('is none where a policy learns fast and takes its critic along', () => {
    for (let seed = 0; seed < 20; seed++) {
      const noise = new Rng(seed);
      const level = (t: number): number => 5 + 200 / (1 + Math.exp(-50 * (t - 0.5)));
      const d = diagnose(
        agent({
          'episode/return': rows(N, (_, t) => Math.max(1, level(t) + 2 * noise.normal())),
          'loss/value': rows(N, (_, t) => 0.01 * level(t) ** 2 * Math.exp(0.2 * noise.normal())),
        }),
      );
      expect(d.verdict, `seed ${seed}`).toBe('healthy');
    }
  });
});

describe('a value loss that rises', () => {
  const found = (loss: (i: number) => number): Diagnosis =>
    diagnose(
      run({
        'episode/return': rows(60, i => -104 + wave(i, 4)),
        'kl/step': rows(60, i => 0.006 + wave(i, 0.001)),
        'loss/value': rows(60, i => loss(i) * (1 + wave(i, 0.1))),
      }),
    );

  it('for two rows is no change of scale', () => {
    expect(loud(found(i => (i === 35 || i === 37 || i === 38 ? 900 : 5)))).not.toContain(
      'reward-scale-changed',
    );
    expect(loud(found(i => (i >= 35 && i < 39 ? 900 : 5)))).not.toContain('reward-scale-changed');
  });

  it('for good is one', () => {
    expect(found(i => (i < 35 ? 5 : 900)).rootCause).toBe('reward-scale-changed');
  });
});

/** A real healthy run, with some of its rows. */
function healthyPendulum(keep: (row: number) => boolean): Record<string, number[]> {
  const path = new URL('../fixtures/sb3/pendulum-healthy/progress.csv', import.meta.url);
  const [header, ...rows] = readFileSync(path, 'utf8').trim().split('\n');
  const names = header.split(',');
  const cells = rows.filter((_, i) => keep(i)).map(row => row.split(','));
  const column = (name: string): number[] =>
    cells
      .map(row => row[names.indexOf(name)])
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
