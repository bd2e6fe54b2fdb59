import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { normaliserBeside } from '../../src/algos/import/vecnormalize.ts';
import { openRun } from '../../src/runs/index.ts';
import { keel } from './support/keel.ts';

const root = mkdtempSync(join(tmpdir(), 'keel-import-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const model = (name: string): string => join(import.meta.dirname, '../algos/import/models', name);
const normaliser = model('ppo-pendulum-vecnormalize.pkl');

it('finds the normaliser beside the model, and says what was made', async () => {
  const dir = mkdtempSync(join(root, 'beside-'));
  copyFileSync(model('ppo-pendulum.zip'), join(dir, 'model.zip'));
  copyFileSync(normaliser, join(dir, 'vecnormalize.pkl'));
  expect(normaliserBeside(join(dir, 'model.zip'))).toBe(join(dir, 'vecnormalize.pkl'));
  const args = ['import', 'sb3', join(dir, 'model'), '--env', 'pendulum', '--run-dir', root];
  const { stdout: out } = await keel([...args, '--id', 'first']);
  expect(out).toMatch(/Stable-Baselines3 2.4.1 PPO, 768 steps/);
  expect(out).toMatch(/found\s+beside it/);
  expect(openRun(join(root, 'first')).manifest.config.normaliseObservations).toBe(true);
  const json = await keel([
    ...args,
    '--id',
    'second',
    '--no-normalise',
    '--set',
    'learningRate=0.0002',
    '--json',
  ]);
  expect(JSON.parse(json.stdout)).toMatchObject({ id: 'second', adam: true, normaliser: null, steps: 768 });
  expect(openRun(join(root, 'second')).manifest.config).toMatchObject({
    normaliseObservations: false,
    learningRate: 2e-4,
  });
  const shown = await keel(['runs', 'show', 'first', '--run-dir', root]);
  expect(shown.stdout).toMatch(/imported from\s+Stable-Baselines3 2.4.1 PPO, 768 steps/);
  const back = await keel([
    'export',
    'first',
    '--run-dir',
    root,
    '--format',
    'sb3-state-dict',
    '-o',
    join(dir, 'back.safetensors'),
  ]);
  expect(back.stdout).toMatch(/mlp_extractor.policy_net.2.weight \(8, 12\)/);
});

it('refuses what it does not know', async () => {
  const { code, stderr } = await keel(['import', 'sb4', model('sde.zip')]);
  expect([code, stderr]).toEqual([2, expect.stringMatching(/nothing that imports sb4: did you mean sb3\?/)]);
});
