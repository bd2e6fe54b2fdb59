/** Directories that appear whole or not at all. */
import { existsSync, mkdirSync, readdirSync, rmSync, type Stats, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { codeOf, RunError } from './errors.ts';
import {
  attempt,
  fileError,
  makerIsGone,
  renamePatiently,
  replaceFile,
  syncDirectory,
  temporaryBeside,
  temporaryPrefix,
} from './files.ts';

/**
 * Makes a directory and those above it that are missing. One by one, because Node's own `recursive` tries for ever where
 * a parent exists but takes no directories, such as /proc or a link to nowhere.
 */
export function makeDirectories(path: string): void {
  const absolute = resolve(path);
  const missing: string[] = [];
  let at = absolute;
  attempt('create', absolute, () => {
    let found = statOf(at);
    while (found === undefined && dirname(at) !== at) {
      missing.unshift(at);
      at = dirname(at);
      found = statOf(at);
    }
    if (found !== undefined && !found.isDirectory()) throw systemError('ENOTDIR', at);
  });
  for (const next of missing) {
    try {
      mkdirSync(next);
    } catch (error) {
      const code = codeOf(error);
      // Another process may have made it meanwhile.
      if (code === 'EEXIST' && statOf(next)?.isDirectory()) continue;
      if (code !== 'ENOENT') throw fileError(error, 'create', absolute);
      throw new RunError(
        `cannot create ${absolute}: ${dirname(next)} takes no new directories: choose another run directory (ENOENT)`,
        { code, cause: error },
      );
    }
  }
}

/** Makes a directory in one that must be there: where a run was deleted, no half of one is made anew. */
export function makeDirectoryIn(parent: string, name: string): void {
  const path = join(parent, name);
  attempt('create', path, () => {
    try {
      mkdirSync(path);
    } catch (error) {
      if (codeOf(error) !== 'EEXIST') throw error;
    }
  });
}

/** What is at a path; undefined if there is nothing, or a file where a directory should be. */
function statOf(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(codeOf(error))) return undefined;
    throw error;
  }
}

const systemError = (code: string, path: string): NodeJS.ErrnoException =>
  Object.assign(new Error(`${code}: ${path}`), { code });

/** Where a directory waits while another takes its name; {@link cleanLeftovers} brings it back if none did. */
const asidePrefix = `${temporaryPrefix}aside-`;

/**
 * Makes a directory that appears whole: `fill` writes into a temporary one beside it, with every file synced, which is
 * then renamed. One of that name is replaced: for an instant there is none, and a kill in it brings the old one back.
 */
export async function writeDirectoryAtomic(
  path: string,
  fill: (temporary: string) => Promise<void>,
): Promise<void> {
  const temporary = temporaryBeside(path);
  try {
    attempt('create', path, () => mkdirSync(temporary));
    await fill(temporary);
    attempt('write', path, () => {
      syncDirectory(temporary);
      if (existsSync(path)) replaceDirectory(temporary, path);
      else replaceFile(temporary, path);
    });
  } catch (error) {
    // Only tidying: on a read-only disk it fails too, and must not hide why.
    try {
      rmSync(temporary, { recursive: true, force: true });
    } catch {}
    throw fileError(error, 'write', path);
  }
}

function replaceDirectory(temporary: string, path: string): void {
  const aside = asideOf(path);
  rmSync(aside, { recursive: true, force: true });
  renamePatiently(path, aside);
  try {
    replaceFile(temporary, path);
  } catch (error) {
    renamePatiently(aside, path);
    throw error;
  }
  rmSync(aside, { recursive: true, force: true });
}

/** Deletes a directory so that no half of it is ever found under its name. */
export function removeDirectory(path: string): void {
  attempt('delete', path, () => {
    const temporary = temporaryBeside(path);
    renamePatiently(path, temporary);
    rmSync(temporary, { recursive: true, force: true, maxRetries: 3 });
  });
}

/**
 * Deletes what a kill left half made in a directory, and brings back what was only set aside. Call it with the run's
 * lock held: another process may be making such files right now.
 */
export function cleanLeftovers(directory: string): void {
  attempt('tidy', directory, () => {
    const names = readNames(directory);
    for (const name of names) {
      if (!name.startsWith(temporaryPrefix)) continue;
      const path = join(directory, name);
      const original = name.startsWith(asidePrefix) ? name.slice(asidePrefix.length) : undefined;
      if (original !== undefined && !names.includes(original)) {
        renamePatiently(path, join(directory, original));
      } else {
        rmSync(path, { recursive: true, force: true, maxRetries: 3 });
      }
    }
  });
}

/** Longer than anything is half made. */
const longAgoMs = 24 * 3600 * 1000;

/**
 * Deletes what processes that are gone left half made in a directory; what another machine made, or does not say who made
 * it, once it is a day old. Needs no lock, and never fails: it is only tidying.
 */
export function cleanDeadLeftovers(directory: string): void {
  try {
    for (const name of readNames(directory)) {
      if (!name.startsWith(temporaryPrefix) || name.startsWith(asidePrefix)) continue;
      const path = join(directory, name);
      if (makerIsGone(name) ?? Date.now() - statSync(path).mtimeMs > longAgoMs)
        rmSync(path, { recursive: true, force: true, maxRetries: 3 });
    }
  } catch {}
}

/** The names in a directory; none if it does not exist. */
export function readNames(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return [];
    throw fileError(error, 'read', directory);
  }
}

function asideOf(path: string): string {
  return join(dirname(path), `${asidePrefix}${basename(path)}`);
}
