/** Whole runs in shards, from the command line: killed, resumed with other collectors, tried in advance. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { readTrajectory } from '../../../../src/runs/log.ts';
import { keel, startKeel } from '../../../cli/support/keel.ts';
import { temporaryRoot } from '../../../runs/support/temporary.ts';
import { until } from '../../../support/until.ts';

const root = temporaryRoot('shards');
const STEPS = 256 * 100;
const set = (...pairs: readonly string[]): string[] => pairs.flatMap(pair => ['--set', pair]);
const sizes = ['envs=8', 'stepsPerRollout=32', 'minibatchSize=64', 'epochs=1', 'hidden=[8]', 'shards=4'];
const quiet = ['record=false', 'tensorboard=false', 'csv=false', 'checkpointEvery=10'];
const train = (name: string, ...more: readonly string[]): string[] => [
  ...['train', 'pendulum', '--no-preset', '--run-dir', join(root, name)],
  ...set('seed=5', `steps=${STEPS}`, 'normaliseObservations=true', ...quiet, ...sizes, ...more),
];
const runIn = (name: string): string | undefined => {
  const [id] = existsSync(join(root, name)) ? readdirSync(join(root, name)) : [];
  return id && join(root, name, id);
};
const checkpointsOf = (name: string): string[] => {
  const dir = join(runIn(name) ?? root, 'checkpoints');
  return existsSync(dir) ? readdirSync(dir).filter(entry => /^\d+$/.test(entry)) : [];
};
const outcome = (name: string): unknown => {
  const dir = runIn(name)!;
  const weights = readFileSync(join(dir, 'checkpoints', String(STEPS), 'policy.safetensors'));
  return { rows: readTrajectory(dir).rows, weights: weights.toString('base64') };
};

it('killed and resumed by others, a run comes to the same bits, and its collectors end with it', async () => {
  const whole = await keel(train('whole', 'collectors=0'));
  expect(whole.code, whole.stderr).toBe(0);

  const { child, done } = startKeel(train('killed', 'collectors=2'));
  await until(() => checkpointsOf('killed').length > 0, 'a checkpoint');
  const collectors = childrenOf(child.pid!);
  child.kill('SIGKILL');
  expect((await done).signal).toBe('SIGKILL');
  if (process.platform === 'linux') expect(collectors.length).toBe(2);
  await until(() => !collectors.some(isCollector), 'its collectors to end');
  expect(checkpointsOf('killed')).not.toContain(String(STEPS));

  const resumed = await keel(['resume', runIn('killed')!, ...set('collectors=1')]);
  expect(resumed.code, resumed.stderr).toBe(0);
  expect(outcome('killed')).toEqual(outcome('whole'));
});

it('preflight tries shards', async () => {
  const { code, stdout } = await keel([
    'preflight',
    'pendulum',
    '--no-preset',
    ...set(...sizes, 'collectors=2'),
  ]);
  expect(stdout).toMatch(/stopped after 1 update and resumed: the same rows and\s+parameters/);
  expect(code).toBe(0);
});

/** The processes that a process has started, as Linux tells them; nothing elsewhere. */
function childrenOf(pid: number): number[] {
  if (process.platform !== 'linux') return [];
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
  return text === '' ? [] : text.split(' ').map(Number).filter(isCollector);
}

/** Whether that process is one that collects shards: what has ended has no command line. */
function isCollector(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(join('shards', 'process.js'));
  } catch {
    return false;
  }
}
