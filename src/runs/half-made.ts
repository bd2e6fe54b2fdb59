/** Directories of runs whose process died between making them and writing what they are. */
import { lstatSync } from 'node:fs';
import { basename, join } from 'node:path';
import { readNames } from '../base/directories.ts';
import { temporaryPrefix } from '../base/files.ts';
import { typed } from '../base/typed.ts';
import { isMadeId, isRunId } from './layout.ts';
import { isLock, lockHolder, lockPattern } from './lock.ts';
import { referenceTo } from './reference.ts';

/**
 * Whether a directory is one: it has a run's name and nothing but our locks and temporary files, and a lock or the name
 * says that it is ours. So a stranger's directory never is, not even an empty one. `locked` by the one who asks, it may be.
 */
export function isHalfMade(dir: string, locked = false): boolean {
  const id = basename(dir);
  if (!isRunId(id) || !lstatSync(dir, { throwIfNoEntry: false })?.isDirectory()) return false;
  const names = readNames(dir);
  const isOurs = (name: string): boolean =>
    (lockPattern.test(name) || name.startsWith(temporaryPrefix)) &&
    lstatSync(join(dir, name), { throwIfNoEntry: false })?.isFile() === true;
  if (!names.every(isOurs)) return false;
  const says = isMadeId(id) || names.some(name => lockPattern.test(name) && isLock(join(dir, name)));
  return says && (locked || lockHolder(dir) === undefined);
}

/** What is said of one. */
export const halfMadeProblem = (dir: string): string =>
  `it is half made: its process ended before anything was trained; ${typed('runs', 'delete', referenceTo(dir))} removes it`;
