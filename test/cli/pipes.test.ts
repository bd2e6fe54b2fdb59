/** A named pipe or an endless device in the place of a run's file: no command waits for it. */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { RunWriter } from '../../src/runs/index.ts';
import { checkpointOf, rowOf, spec } from '../runs/support/spec.ts';
import { packageDir } from '../support/compiled.ts';
import { scratch } from './support/keel.ts';

const root = scratch();
const main = join(packageDir, 'dist/cli/main.js');
/** Only what hangs meets it. */
const timeout = 120_000;

test.skipIf(process.platform === 'win32')('each file of a run, and a log beside a sound one', async () => {
  const writer = RunWriter.create(spec, { root: join(root, 'sound'), id: 'run' });
  for (let i = 1; i <= 6; i++) writer.row(rowOf(i));
  await writer.checkpoint(checkpointOf(6, 60));
  writer.end('stopped', 'x');
  const odd = (name: string, make: (path: string) => void): string => {
    const dir = join(root, `runs-${name.replace('.', '-')}`, 'run');
    cpSync(writer.dir, dir, { recursive: true });
    rmSync(join(dir, name), { force: true });
    make(join(dir, name));
    return dir;
  };
  const pipe = (path: string): void => expect(spawnSync('mkfifo', [path]).status).toBe(0);
  const ended = (...args: string[]): void => {
    const { status, signal } = spawnSync(process.execPath, [main, ...args], {
      timeout,
      killSignal: 'SIGKILL',
    });
    expect({ args, signal, ended: status !== null }).toEqual({ args, signal: null, ended: true });
  };
  for (const name of ['metrics.jsonl', 'events.jsonl', 'manifest.json', 'metrics.csv'])
    ended('runs', 'verify', odd(name, pipe));
  const dir = join(root, 'runs-metrics-jsonl', 'run');
  ended('runs', 'show', dir);
  ended('runs', 'list', '--run-dir', join(dir, '..'));
  ended('resume', dir);
  ended(
    'runs',
    'verify',
    odd('metrics.csv', path => symlinkSync('/dev/zero', path)),
  );
  const logs = join(root, 'logs');
  for (const name of ['bad', 'good']) mkdirSync(join(logs, name), { recursive: true });
  pipe(join(logs, 'bad', 'metrics.jsonl'));
  const rows = Array.from({ length: 40 }, (_, i) => `${(i + 1) * 2048},${20 + i},0.005,0.8\n`);
  writeFileSync(
    join(logs, 'good', 'progress.csv'),
    `time/total_timesteps,rollout/ep_rew_mean,train/approx_kl,train/explained_variance\n${rows.join('')}`,
  );
  const { stdout, signal } = spawnSync(process.execPath, [main, 'doctor', logs, '--json'], {
    timeout,
    killSignal: 'SIGKILL',
    encoding: 'utf8',
  });
  expect(signal).toBeNull();
  expect(stdout).toContain('"healthy"');
});
