/** A command that makes a run, started as a process of its own that outlives this one. */
import { spawn } from 'node:child_process';
import { closeSync, existsSync, openSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { readNames } from '../base/directories.ts';
import { temporaryBeside } from '../base/files.ts';
import { runPaths } from '../runs/layout.ts';
import { lockHolder } from '../runs/lock.ts';
import { childEnv, complaint, keelCommand } from './children.ts';
import { Problem } from './problem.ts';

const startMs = 60_000;

/** Starts a command that makes a run, and waits until its log begins; `find` tells where that run is. */
export async function startRun(
  command: readonly string[],
  { root, find }: { readonly root: string; readonly find: (pid: number) => string | undefined },
): Promise<string> {
  const log = temporaryBeside(join(root, 'begun.log'));
  const out = openSync(log, 'wx');
  const [program, ...first] = keelCommand();
  let exit: { code: number | null } | undefined;
  const child = spawn(program, [...first, ...command, '--no-dash'], {
    detached: true,
    stdio: ['ignore', out, out],
    env: childEnv(),
  });
  child.on('error', () => {
    exit = { code: null };
  });
  child.on('exit', code => {
    exit = { code };
  });
  child.unref();
  closeSync(out);
  const until = performance.now() + startMs;
  let dir: string | undefined;
  while (performance.now() < until) {
    dir ??= find(child.pid ?? -1);
    if (exit !== undefined || (dir !== undefined && existsSync(runPaths(dir).metrics))) break;
    await sleep(50);
  }
  dir ??= find(child.pid ?? -1);
  if (dir === undefined || !existsSync(runPaths(dir).manifest)) {
    const said = readFileSync(log, 'utf8');
    rmSync(log, { force: true });
    if (exit === undefined) child.kill('SIGTERM');
    throw new Problem(
      422,
      'not-started',
      `the new run did not start: ${exit === undefined ? `nothing happened within ${startMs / 1000} seconds` : complaint(said)}`,
    );
  }
  renameSync(log, runPaths(dir).output);
  return dir;
}

/** The run that a process trains, of those in a directory of runs. */
export function runOfProcess(root: string, pid: number): string | undefined {
  return readNames(root)
    .map(name => join(root, name))
    .find(dir => existsSync(runPaths(dir).manifest) && lockHolder(dir)?.pid === pid);
}
