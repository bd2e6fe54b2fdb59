/** Runs on disk for the server to find: written by the real writer, or as other trainers write them. */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { RunWriter } from '../../../src/runs/index.ts';

/** A directory that is gone after the file's tests. */
export function scratch(): string {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), 'keel-server-')));
  afterAll(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

export interface MadeRun {
  readonly dir: string;
  readonly writer: RunWriter;
  /** Writes the next row. */
  row(more?: Readonly<Record<string, number>>): void;
}

const open = new Set<RunWriter>();
afterAll(() => {
  for (const writer of open) {
    try {
      writer.end('stopped', 'the test is over');
    } catch {
      // Its directory may be gone.
    }
  }
});

export function makeRun(
  root: string,
  id: string,
  rows = 0,
  config: Readonly<Record<string, unknown>> = {},
): MadeRun {
  const writer = RunWriter.create(
    {
      algorithm: 'ppo',
      environment: { id: 'CartPole-v1', version: '1', options: {}, reward: { scale: 1 } },
      config: { steps: 100_000, learningRate: 3e-4, targetKl: null, guard: 0.05, clipRange: 0.2, ...config },
      seed: 3,
      versions: { keel: '0.1.0' },
    },
    { root, id },
    { csv: false, tensorboard: false },
  );
  open.add(writer);
  let iteration = 0;
  const run: MadeRun = {
    dir: writer.dir,
    writer,
    row(more = {}) {
      iteration++;
      writer.row({
        'train/iteration': iteration,
        'train/step': iteration * 100,
        'kl/step': 0.005 + 0.001 * Math.sin(iteration),
        'episode/return': iteration,
        'loss/value': 1 / iteration,
        'value/explained_variance': 0.5,
        ...more,
      });
    },
  };
  for (let i = 0; i < rows; i++) run.row();
  return run;
}

/** A log of Stable-Baselines3. */
export function makeForeign(
  root: string,
  name: string,
  rows: number,
): { dir: string; text: (rows: number) => string } {
  const dir = join(root, name);
  mkdirSync(dir, { recursive: true });
  const text = (count: number): string =>
    [
      'rollout/ep_rew_mean,time/iterations,time/total_timesteps,train/approx_kl,train/clip_fraction,train/explained_variance,train/learning_rate,train/n_updates,train/value_loss',
      ...Array.from({ length: count }, (_, i) =>
        [
          20 + i,
          i + 1,
          (i + 1) * 2048,
          0.008 + 0.001 * Math.cos(i),
          0.1,
          0.6,
          0.0003,
          (i + 1) * 10,
          5 / (i + 1),
        ].join(','),
      ),
      '',
    ].join('\n');
  writeFileSync(join(dir, 'progress.csv'), text(rows));
  return { dir, text };
}
