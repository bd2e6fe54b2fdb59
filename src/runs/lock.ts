/**
 * One writer per run. A lock is a file `lock.<n>` that says which process holds it; the highest number counts.
 *
 * Whoever finds the highest one left by a dead process makes the next number, which only one can. Deleting the old
 * file and making it anew under the same name would not do: two who both saw it dead could each delete the other's.
 */
import { randomUUID } from 'node:crypto';
import { linkSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as z from 'zod/mini';
import { readNames } from '../base/directories.ts';
import { codeOf, fail, RunError } from '../base/errors.ts';
import { attempt, readBounded, sleepSync, temporaryBeside } from '../base/files.ts';
import { jsonOf } from '../base/json.ts';
import { identify, type ProcessIdentity, type System, stateOf, thisSystem } from './process-identity.ts';

/** A held lock. */
export interface Lock {
  /** Gives it up. May be called twice; also happens when the process exits. */
  release(): void;
}

/** Names of locks. */
export const lockPattern = /^lock\.([1-9]\d{0,8})$/;
const holderSchema = z.object({
  pid: z.int().check(z.positive()),
  start: z.nullable(z.string()),
  boot: z.nullable(z.string()),
  host: z.string(),
  since: z.string(),
  token: z.string(),
});
type Holder = z.infer<typeof holderSchema>;

/** Who is writing a run, if anyone. A process of another machine counts as alive: it cannot be asked. */
export function lockHolder(runDir: string, system: System = thisSystem): ProcessIdentity | undefined {
  const newest = newestLock(runDir);
  if (newest === undefined) return undefined;
  const holder = readHolder(newest.path);
  return holder !== undefined && isHeld(holder, system) ? holder : undefined;
}

/** Whether a file is a lock that a process of ours wrote, whatever became of that. */
export const isLock = (path: string): boolean => readHolder(path) !== undefined;

/** Takes a run's lock, or says who has it. A lock whose process is gone is taken over. */
export function acquireLock(runDir: string, system: System = thisSystem): Lock {
  const self = { ...identify(process.pid, system), since: new Date().toISOString(), token: randomUUID() };
  // Each round that fails means that another process got further; a thousand of them is not a race.
  for (let round = 0; round < 1000; round++) {
    const newest = newestLock(runDir);
    if (newest !== undefined) {
      const holder = readHolder(newest.path);
      if (holder === undefined && isBeingWritten(newest.path)) {
        sleepSync(20);
        continue;
      }
      if (holder !== undefined && isHeld(holder, system)) {
        refuse(runDir, newest.path, holder, system);
      }
    }
    const number = (newest?.number ?? 0) + 1;
    const path = join(runDir, `lock.${number}`);
    if (!createExclusively(path, JSON.stringify(self))) continue;
    // Numbers begin again after a release, so a slow process can make a low one beside a later, higher one.
    const all = locks(runDir);
    if (all.some(other => other.number > number)) {
      tryToRemove(path);
      continue;
    }
    for (const other of all) if (other.number < number) tryToRemove(other.path);
    return held(path, self.token);
  }
  return fail(`${runDir}: its lock keeps changing hands: stop the other processes that resume it`, 'locked');
}

/** Held locks of this process. One listener for all: a program may train many runs at once. */
const heldHere = new Set<() => void>();
/** Tokens of locks that were given up, but whose files the disk would not delete. */
const abandoned = new Set<string>();
const releaseAll = (): void => {
  for (const release of heldHere) release();
};

function held(path: string, token: string): Lock {
  const release = (): void => {
    heldHere.delete(release);
    if (heldHere.size === 0) process.off('exit', releaseAll);
    try {
      // Someone may have deleted it by hand, and another process taken its number.
      if (readHolder(path)?.token === token) rmSync(path, { force: true });
    } catch {
      // Left behind, it is found to be of a dead process; or, while this one lives, here.
      abandoned.add(token);
    }
  };
  if (heldHere.size === 0) process.on('exit', releaseAll);
  heldHere.add(release);
  return { release };
}

function isHeld(holder: Holder, system: System): boolean {
  return !abandoned.has(holder.token) && stateOf(holder, system) !== 'gone';
}

function refuse(runDir: string, path: string, holder: Holder, system: System): never {
  const who =
    holder.host === system.host
      ? holder.pid === process.pid
        ? 'this process'
        : `process ${holder.pid}`
      : `process ${holder.pid} on ${holder.host}`;
  const remedy =
    holder.host === system.host
      ? 'wait for it or stop it first'
      : `stop it there; if that machine is gone, delete ${path}`;
  throw new RunError(`${runDir} is being written by ${who} since ${holder.since}: ${remedy}`, {
    code: 'locked',
  });
}

/** What stays behind is harmless: a temporary file, or a lock with a lower number than that of its successor. */
function tryToRemove(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {}
}

/** The file appears with its content, so that nobody reads half of it. False if there is one already. */
function createExclusively(path: string, text: string): boolean {
  const temporary = temporaryBeside(path);
  return attempt('lock', path, () => {
    try {
      writeFileSync(temporary, text, { flag: 'wx' });
      try {
        linkSync(temporary, path);
      } catch (error) {
        if (codeOf(error) === 'EEXIST') return false;
        // No hard links here (FAT, some network drives).
        writeFileSync(path, text, { flag: 'wx' });
      }
      return true;
    } catch (error) {
      if (codeOf(error) === 'EEXIST') return false;
      throw error;
    } finally {
      tryToRemove(temporary);
    }
  });
}

function locks(runDir: string): { number: number; path: string }[] {
  return readNames(runDir).flatMap(name => {
    const match = lockPattern.exec(name);
    return match === null ? [] : [{ number: Number(match[1]), path: join(runDir, name) }];
  });
}

function newestLock(runDir: string): { number: number; path: string } | undefined {
  return locks(runDir).sort((a, b) => b.number - a.number)[0];
}

/** Undefined if it was just released. */
function readHolder(path: string): Holder | undefined {
  try {
    return z.parse(holderSchema, jsonOf(readBounded(path, 2 ** 16).toString('utf8')));
  } catch (error) {
    if (error instanceof RunError && codeOf(error) !== '' && codeOf(error) !== 'ENOENT') throw error;
    return undefined;
  }
}

/**
 * A file that cannot be understood is being written where there are no hard links, or was left so by a kill: only the
 * first is young.
 */
function isBeingWritten(path: string): boolean {
  try {
    return Math.abs(Date.now() - statSync(path).mtimeMs) < 3000;
  } catch {
    return false;
  }
}
