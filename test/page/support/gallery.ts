/** The runs that most tests and the screenshots use. */
import { fakeGroups } from './fake-completions.ts';
import { type FakeRun, fakeRun, noise } from './fake-runs.ts';

export function gallery(): FakeRun[] {
  const hour = 3_600_000;
  const now = Date.now();
  return [
    fakeRun({
      id: 'live',
      name: 'cartpole-2026-01-05',
      state: 'running',
      rows: 150,
      plannedRows: 400,
      updatedAt: now,
      tags: ['baseline'],
    }),
    fakeRun({
      id: 'sick',
      name: 'hopper-lr-1e-3',
      state: 'running',
      health: 'sick',
      environment: 'Hopper',
      rows: 200,
      plannedRows: 240,
      seed: 2,
      updatedAt: now,
      tags: ['sweep-3'],
      note: 'rate of the old config',
      config: {
        'env.name': 'Hopper',
        seed: 2,
        learningRate: 1e-3,
        epochs: 10,
        guard: null,
        targetKl: 0.015,
        minibatchSize: 64,
      },
    }),
    fakeRun({
      id: 'watch',
      name: 'pendulum-seed-3',
      health: 'watch',
      environment: 'Pendulum-v1',
      seed: 3,
      updatedAt: now - 2 * hour,
      tags: ['sweep-3'],
    }),
    fakeRun({
      id: 'a1',
      name: 'cartpole-lr-3e-4-seed-1',
      seed: 1,
      updatedAt: now - 5 * hour,
      tags: ['sweep-3'],
    }),
    fakeRun({
      id: 'a2',
      name: 'cartpole-lr-3e-4-seed-2',
      seed: 2,
      updatedAt: now - 6 * hour,
      groups: fakeGroups(5),
    }),
    fakeRun({
      id: 'b1',
      name: 'cartpole-lr-1e-3-seed-1',
      seed: 4,
      health: 'watch',
      updatedAt: now - 7 * hour,
      config: { 'env.name': 'CartPole-v1', seed: 1, learningRate: 1e-3, epochs: 10, targetKl: 0.015 },
    }),
    fakeRun({
      id: 'b2',
      name: 'cartpole-lr-1e-3-seed-2',
      seed: 5,
      health: 'sick',
      updatedAt: now - 8 * hour,
      config: { 'env.name': 'CartPole-v1', seed: 2, learningRate: 1e-3, epochs: 10, targetKl: 0.015 },
    }),
    fakeRun({
      id: 'sb3',
      name: 'PPO_7',
      trainer: 'stable-baselines3',
      state: 'quiet',
      environment: 'Walker2d-v4',
      updatedAt: now - 26 * hour,
      logNotes: ['Line 812 could not be read and was left out.'],
    }),
    fakeRun({
      id: 'new',
      name: 'acrobot-just-started',
      state: 'running',
      environment: 'Acrobot-v1',
      rows: 0,
      plannedRows: 400,
      updatedAt: now,
    }),
    fakeRun({
      id: 'bad',
      name: 'mystery-log',
      trainer: 'unknown',
      state: 'unreadable',
      environment: null,
      rows: 0,
      problem: 'No file here is a log that the doctor knows; it looked at 3 files.',
      updatedAt: now - 50 * hour,
    }),
    fakeRun({
      id: 'failed',
      name: 'lunar-nan',
      state: 'failed',
      environment: 'LunarLander',
      rows: 70,
      plannedRows: 300,
      updatedAt: now - 30 * hour,
    }),
    fakeRun({
      id: 'fixed',
      name: 'cartpole-lr-1e-3-seed-2-fixed',
      seed: 5,
      parent: 'b2',
      updatedAt: now - 7.5 * hour,
      config: { 'env.name': 'CartPole-v1', seed: 2, learningRate: 1e-4, epochs: 10, targetKl: 0.015 },
    }),
    fakeRun({ id: 'old', name: 'archived-run', archived: true, updatedAt: now - 900 * hour }),
  ];
}

/** One run with 50 series of a million points each. */
export function largeRun(): FakeRun {
  const extra = Array.from({ length: 26 }, (_, k) => `env/signal_${String(k).padStart(2, '0')}`);
  return fakeRun({ id: 'large', name: 'a-million-rows', rows: 1_000_000, extra });
}

/** Two settings with five and three seeds, one of which ended early and one of which spiked; and another trainer's log. */
export function seedGallery(): FakeRun[] {
  const hour = 3_600_000;
  const now = Date.now();
  const seeds = (key: string, count: number, learningRate: number, more: (seed: number) => object) =>
    Array.from({ length: count }, (_, seed) =>
      fakeRun({
        id: `${key}${seed}`,
        name: `hopper-lr-${learningRate}-seed-${seed}`,
        environment: 'Hopper',
        seed,
        group: key,
        plannedRows: 240,
        updatedAt: now - (1 + seed) * hour,
        config: { 'env.name': 'Hopper', seed, learningRate, epochs: 10, guard: 0.05, targetKl: 0.015 },
        ...more(seed),
      }),
    );
  return [
    ...seeds('slow', 5, 0.0003, seed =>
      seed === 4
        ? { rows: 150, state: 'failed' }
        : seed === 2
          ? { kl: (i: number) => (i === 120 ? 0.9 : 0.006 + 0.004 * noise(i, 7)), health: 'watch' }
          : {},
    ),
    ...seeds('fast', 3, 0.001, () => ({ health: 'sick' })),
    fakeRun({
      id: 'sb3',
      name: 'PPO_7',
      trainer: 'stable-baselines3',
      state: 'quiet',
      environment: 'Hopper',
      updatedAt: now - 26 * hour,
      config: {},
    }),
    fakeRun({
      id: 'child',
      name: 'hopper-lr-0.001-seed-0-fixed',
      environment: 'Hopper',
      state: 'running',
      rows: 120,
      plannedRows: 240,
      parent: 'fast0',
      updatedAt: now,
    }),
    fakeRun({
      id: 'lost',
      name: 'hopper-20260105-080000',
      environment: null,
      state: 'unreadable',
      rows: 0,
      problem:
        'its manifest.json is missing, which says what the run is: put a copy of it back, or delete the directory',
    }),
    fakeRun({ id: 'empty', name: 'stopped-at-once', state: 'stopped', rows: 0, plannedRows: 240 }),
  ];
}

/** A million rows with one KL of 1 among small ones and zeros, of which many share a pixel. */
export function spikeRun(): FakeRun {
  const rows = 1_000_000;
  return fakeRun({
    id: 'spike',
    name: 'one-spike',
    rows,
    extra: ['env/signal'],
    trainer: 'stable-baselines3',
    kl: i => (i === Math.floor(rows * 0.618) ? 1 : i % 3 === 0 ? 0 : 0.008 * (0.8 + 0.4 * noise(i, 4))),
    config: { learningRate: 3e-4, targetKl: null, seed: 1 },
  });
}
