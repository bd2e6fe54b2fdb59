/** A run directory is data: whatever its files say, a terminal is not driven by it. */
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { unpackRuns } from '../runs/support/old-runs.ts';
import { keel, scratch } from './support/keel.ts';

const evil = '\u001b]0;owned\u0007\u001b[2J\u009b31m\r\b\u202e';
/** All but line ends and tabs. */
const controls = /[^\P{Cc}\n\t]|\u202e/u;
const root = scratch();
const pristine = join(root, 'pristine');
beforeAll(() => unpackRuns(pristine));

/** A copy of a run whose manifest was written by somebody else. */
function changed(name: string, change: (manifest: Record<string, Record<string, unknown>>) => void): string {
  const dir = join(root, 'runs', name);
  cpSync(join(pristine, 'ppo-discrete'), dir, { recursive: true });
  const path = join(dir, 'manifest.json');
  const manifest = JSON.parse(readFileSync(path, 'utf8'));
  change(manifest);
  writeFileSync(path, JSON.stringify(manifest));
  return dir;
}

test('no command writes controls that a manifest, a log or a config brought along', async () => {
  const runs = [
    changed('key', ({ config }) => {
      config[`${evil}key`] = evil;
    }),
    changed('value', ({ config }) => {
      config.learningRate = `${evil}fast`;
    }),
    changed('env', ({ environment, config }) => {
      environment.id = `${evil}Env-v0`;
      config.env = `${evil}Env-v0`;
    }),
    changed('versions', ({ versions }) => {
      versions.keel = `${evil}9`;
    }),
  ];
  const events = join(runs[3], 'events.jsonl');
  writeFileSync(
    events,
    `${readFileSync(events, 'utf8')}${JSON.stringify({ type: 'note', iteration: 1, step: 1, message: evil, text: evil })}\n`,
  );
  const config = join(root, 'config.yaml');
  writeFileSync(config, `"${'\\e[2J'}key": 1\n`);
  const commands = [
    ...runs.flatMap(run => [
      ['runs', 'show', run],
      ...['eval', 'resume', 'export', 'fork', 'doctor', 'record'].map(command => [command, run]),
    ]),
    ['runs', 'compare', ...runs],
    ['runs', 'list', '--run-dir', join(root, 'runs')],
    ['train', `${evil}env`],
    ['train', 'cartpole', '-c', config],
    ['train', 'cartpole', '--set', `${evil}=1`],
    ['runs', 'show', `${evil}run`],
  ];
  for (const args of commands) {
    const { stdout, stderr } = await keel(args, { cwd: root }); // where export leaves its file
    expect(`${stdout}${stderr}`.length, args.join(' ')).toBeGreaterThan(0);
    expect(`${stdout}${stderr}`, JSON.stringify(args)).not.toMatch(controls);
  }
});
