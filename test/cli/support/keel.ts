/**
 * The real command line, compiled as it is published: `keel` runs it here, `startKeel` in a process of its own, for what
 * only a process has: signals, a death, its output as it comes, and what its exit code is to others.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { afterAll } from 'vitest';
import { compiled, packageDir, root } from '../../support/compiled.ts';

export { packageDir, root };
export const fixture = (name: string): string =>
  fileURLToPath(new URL(`../fixtures/${name}`, import.meta.url));

export const mainFile: string = join(packageDir, 'dist/cli/main.js');

export interface Outcome {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface KeelOptions {
  readonly cwd?: string;
  readonly env?: Record<string, string>;
}

/** A directory for the path on which `keel` is the compiled one, as where it was installed globally. */
const bin = (): string => {
  const dir = join(packageDir, 'on-path');
  const link = join(dir, 'keel');
  mkdirSync(dir, { recursive: true });
  try {
    symlinkSync(join(packageDir, 'bin/keel.js'), link);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  return dir;
};

/** Without what the test runner or its user set, but for where the user's own files are in tests. */
export const cleanEnv = (): NodeJS.ProcessEnv => ({
  ...Object.fromEntries(
    Object.entries(process.env).filter(
      ([key]) => !/^(NO_COLOR|FORCE_COLOR|KEEL_(?!CONFIG_DIR$)|VITEST|NODE_OPTIONS)/.test(key),
    ),
  ),
  PATH: [bin(), process.env.PATH].join(delimiter),
});

/** Starts a process; `done` settles when it has ended. */
export function startKeel(args: readonly string[], { cwd = root, env = {} }: KeelOptions = {}) {
  const child: ChildProcess = spawn(process.execPath, [mainFile, ...args], {
    cwd,
    env: { ...cleanEnv(), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  // What a test that timed out leaves behind must not go on.
  afterAll(() => void child.kill('SIGKILL'));
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name]!.setEncoding('utf8').on('data', (text: string) => {
      output[name] += text;
    });
  }
  const done = new Promise<Outcome>((resolve, reject) => {
    child.on('error', reject).on('close', (code, signal) => resolve({ code, signal, ...output }));
  });
  return { child, done, output };
}

/** A stream that is no terminal and keeps what is written. */
class Kept extends Writable {
  text = '';

  override _write(chunk: Buffer, _: BufferEncoding, done: () => void): void {
    this.text += chunk.toString('utf8');
    done();
  }
}

/** Runs `act` as if the process were another: its arguments, its directory, its environment, its output and its exit code. */
async function asProcess(
  argv: readonly string[],
  act: () => Promise<void>,
  { cwd = root, env = {} }: KeelOptions,
): Promise<Outcome> {
  const [stdout, stderr] = [new Kept(), new Kept()];
  const before = {
    argv: process.argv,
    env: process.env,
    exitCode: process.exitCode,
    stdout: Object.getOwnPropertyDescriptor(process, 'stdout')!,
    stderr: Object.getOwnPropertyDescriptor(process, 'stderr')!,
    cwd: process.cwd(),
  };
  process.chdir(cwd);
  process.argv = [...argv];
  process.env = { ...cleanEnv(), ...env };
  process.exitCode = undefined;
  Object.defineProperty(process, 'stdout', { ...before.stdout, get: () => stdout });
  Object.defineProperty(process, 'stderr', { ...before.stderr, get: () => stderr });
  try {
    await act();
    return {
      code: Number(process.exitCode ?? 0),
      signal: null,
      stdout: stdout.text,
      stderr: stderr.text,
    };
  } finally {
    Object.defineProperty(process, 'stdout', before.stdout);
    Object.defineProperty(process, 'stderr', before.stderr);
    process.exitCode = before.exitCode;
    process.argv = before.argv;
    process.env = before.env;
    process.chdir(before.cwd);
  }
}

/** One at a time: there is but one process. */
let turn: Promise<unknown> = Promise.resolve();

/** Runs a command line to its end, in this process: a process each would spend most of its time on loading the same code. */
export function keel(args: readonly string[], options: KeelOptions = {}): Promise<Outcome> {
  const mine = turn.then(async () => {
    const { main } = await compiled<typeof import('../../../src/cli/main.ts')>('cli/main');
    const argv = [process.execPath, mainFile, ...args];
    return asProcess(argv, () => main(argv), options);
  });
  turn = mine.catch(() => {});
  return mine;
}

/** A directory that is gone after the file's tests. */
export function scratch(): string {
  const dir = mkdtempSync(join(tmpdir(), 'keel-cli-'));
  afterAll(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

/** Flags of a run that takes a moment: two iterations of 64 steps. */
export const tiny = (runDir: string, ...more: string[]): string[] => [
  '--no-preset',
  '--run-dir',
  runDir,
  ...[
    'envs=2',
    'stepsPerRollout=32',
    'minibatchSize=32',
    'epochs=1',
    'hidden=[8]',
    'steps=128',
    'checkpointEvery=1',
  ].flatMap(pair => ['--set', pair]),
  ...more,
];
