/** Runs of an environment that a program registered, on the command line, which has never heard of it. */
import { readFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { train } from '../../src/algos/runs.ts';
import walk from '../envs/fixtures/files/walk.ts';
import { type KeelOptions, type Outcome, scratch, startKeel } from './support/keel.ts';

const file = fileURLToPath(new URL('../envs/fixtures/files/walk.ts', import.meta.url));
const short = { steps: 64, stepsPerRollout: 16, envs: 2, minibatchSize: 16, epochs: 1, hidden: [4] };

/** In a process of its own: all copies of Keel in one share what is registered. */
const keel = (args: readonly string[], options?: KeelOptions): Promise<Outcome> =>
  startKeel(args, options).done;

const envOf = (dir: string): unknown =>
  JSON.parse(readFileSync(join(dir, 'manifest.json'), 'utf8')).config.env;

test('are resumed and forked with --defined-in, which resuming remembers', async () => {
  const root = scratch();
  const { dir } = await train({ env: walk, root, config: short });
  expect(envOf(dir)).toBe(walk.id);
  const unknown = await keel(['eval', dir, '-n', '1']);
  expect(unknown.code).toBe(2);
  expect(unknown.stderr).toBe(
    `keel: ${walk.id} is not known here, a program has registered it: name the file that defines it (--defined-in ./my-env.ts)\n`,
  );
  // As someone types it, from where the file is.
  const cwd = dirname(file);
  const named = ['--defined-in', `./${basename(file)}`];
  const run = relative(cwd, dir);
  for (const args of [
    ['fork', run, '--steps', '128', '--id', 'forked', '--run-dir', root, ...named],
    ['resume', run, '--steps', '96', ...named],
    // Once more, with what the manifest says now.
    ['resume', run, '--steps', '128', ...named],
  ])
    expect(await keel(args, { cwd })).toMatchObject({ code: 0, stderr: '' });
  for (const own of [dir, join(root, 'forked')]) expect(envOf(own)).toBe(`${file}#${walk.id}`);
  expect(await keel(['eval', dir, '-n', '1'])).toMatchObject({ code: 0, stderr: '' });
});

test('say where they come from, if the program does', async () => {
  const root = scratch();
  const { dir } = await train({ env: walk, envFile: relative(process.cwd(), file), root, config: short });
  expect(envOf(dir)).toBe(`${file}#${walk.id}`);
  expect(await keel(['eval', dir, '-n', '1'])).toMatchObject({ code: 0, stderr: '' });
});
