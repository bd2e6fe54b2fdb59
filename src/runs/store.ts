/** Runs as things: making, finding, opening and deleting them. */
import { existsSync, lstatSync, mkdirSync, realpathSync, rmSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { cleanDeadLeftovers, makeDirectories, readNames, removeDirectory } from '../base/directories.ts';
import { codeOf, fail, RunError, show } from '../base/errors.ts';
import { attempt, syncDirectory } from '../base/files.ts';
import { nearest } from '../base/nearest.ts';
import { typed } from '../base/typed.ts';
import { halfMadeProblem, isHalfMade } from './half-made.ts';
import { defaultRoot, isRunId, newRunId, requireRunId, runPaths } from './layout.ts';
import { acquireLock, type Lock, lockHolder } from './lock.ts';
import { looksLikeRun } from './looks-like-run.ts';
import { newManifest, type RunSpec, readManifest, writeManifest } from './manifest.ts';
import { referenceTo } from './reference.ts';
import type { Manifest, RunStatus } from './schema.ts';
import { forgetTrust } from './trust.ts';

/** A run as it was found on disk. */
export interface Run {
  readonly id: string;
  /** Absolute. */
  readonly dir: string;
  readonly manifest: Manifest;
  readonly status: RunStatus;
}

/** What is in some roots: runs, newest first, and directories that should be runs but cannot be read. */
export interface RunList {
  readonly runs: readonly Run[];
  readonly broken: readonly { readonly dir: string; readonly problem: string }[];
}

/** Where a new run goes. */
export interface Place {
  /** Default `runs`. */
  readonly root?: string | undefined;
  /** Default: made of environment, time and seed. */
  readonly id?: string | undefined;
}

/** Makes the directory of a new run, which no other run has had, with its manifest. Nobody has its lock yet. */
export function createRun(spec: RunSpec, place: Place = {}, now = new Date()): Run {
  const { run, lock } = createLockedRun(spec, place, now);
  lock.release();
  return { ...run, status: statusOf(run.dir, run.manifest) };
}

/** The same, with the lock taken before the manifest makes it a run: nobody sees it without a writer. */
export function createLockedRun(spec: RunSpec, place: Place, now: Date): { run: Run; lock: Lock } {
  const root = resolve(place.root ?? defaultRoot);
  if (place.id !== undefined) requireRunId(place.id);
  newManifest('new', spec, now); // refuses a wrong spec before anything is made
  makeDirectories(root);
  cleanRoot(root);
  return place.id === undefined ? fillNewDirectory(spec, root, now) : fill(join(root, place.id), spec, now);
}

/** Two runs of one second get the same id once in a million times; making the directory tells. */
function fillNewDirectory(spec: RunSpec, root: string, now: Date): { run: Run; lock: Lock } {
  for (let tries = 1; ; tries++) {
    try {
      return fill(join(root, newRunId(spec.environment.id, spec.seed, now)), spec, now);
    } catch (error) {
      // `locked`: another process is making it right now.
      if (!['exists', 'locked'].includes(codeOf(error)) || tries === 100) throw error;
    }
  }
}

function fill(dir: string, spec: RunSpec, now: Date): { run: Run; lock: Lock } {
  const id = basename(dir);
  const manifest = newManifest(id, spec, now);
  let made = true;
  try {
    attempt('create', dir, () => mkdirSync(dir));
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
    refuseTaken(dir);
    made = false;
  }
  let lock: Lock | undefined;
  try {
    lock = acquireLock(dir);
    // Another process may have made it whole meanwhile.
    if (!made) refuseTaken(dir, true);
    writeManifest(dir, manifest);
    syncDirectory(dirname(dir));
    return { run: { id, dir, manifest, status: 'running' }, lock };
  } catch (error) {
    lock?.release();
    if (made) rmSync(dir, { recursive: true, force: true });
    throw error;
  }
}

/** Refuses a directory in which there is something; one that a process died in while it was making a run is free. */
function refuseTaken(dir: string, isLocked = false): void {
  if (readNames(dir).length === 0 || isHalfMade(dir, isLocked)) return;
  const remedy = looksLikeRun(dir) ? `, or resume it with \`${typed('resume', referenceTo(dir))}\`` : '';
  fail(`${dir} exists already: choose another name${remedy}`, 'exists');
}

/** Deletes what processes that are gone left half made in a root and in its runs. */
export function cleanRoot(root: string): void {
  cleanDeadLeftovers(root);
  for (const name of readNames(root)) {
    const dir = join(root, name);
    if (!isRunId(name) || !existsSync(join(dir, 'manifest.json'))) continue;
    const { checkpoints, replays } = runPaths(dir);
    for (const place of [dir, checkpoints, replays]) cleanDeadLeftovers(place);
  }
}

/** The run in a directory. */
export function openRun(dir: string): Run {
  const absolute = resolve(dir);
  const manifest = readManifest(absolute);
  return { id: basename(absolute), dir: absolute, manifest, status: statusOf(absolute, manifest) };
}

/** What a run is doing: one that says it is running, but whose process is gone, was killed. */
export function statusOf(dir: string, manifest: Manifest): RunStatus {
  if (manifest.status !== 'running') return manifest.status;
  return lockHolder(dir) === undefined ? 'killed' : 'running';
}

/** All runs in some roots. Roots that do not exist hold none. */
export function listRuns(roots: readonly string[] = [defaultRoot]): RunList {
  const runs: Run[] = [];
  const broken: { dir: string; problem: string }[] = [];
  for (const root of new Set(roots.map(r => resolve(r)))) {
    for (const name of readNames(root)) {
      const dir = join(root, name);
      if (!isRunId(name)) continue;
      if (!existsSync(join(dir, 'manifest.json'))) {
        if (isHalfMade(dir)) broken.push({ dir, problem: halfMadeProblem(dir) });
        continue;
      }
      try {
        runs.push(openRun(dir));
      } catch (error) {
        if (!(error instanceof RunError)) throw error;
        broken.push({ dir, problem: error.message });
      }
    }
  }
  const byStart = (a: Run, b: Run): number =>
    b.manifest.startedAt.localeCompare(a.manifest.startedAt) || a.id.localeCompare(b.id);
  return { runs: runs.sort(byStart), broken };
}

/**
 * The run that someone means: a path to its directory, its id, the beginning or the last four characters of its id, or
 * `last` for the one that was started last.
 */
export function resolveRun(reference: string, roots: readonly string[] = [defaultRoot]): Run {
  if (/[\\/]/.test(reference) || looksLikeRun(reference)) return openRun(reference);
  const { runs, broken } = listRuns(roots);
  const where = roots.join(', ');
  if (reference === 'last') return lastOf(runs, broken, where);
  for (const root of roots) {
    // Also one that cannot be read: the error says why.
    if (isRunId(reference) && existsSync(join(root, reference, 'manifest.json')))
      return openRun(join(root, reference));
  }
  const places = [...runs.map(({ dir }) => dir), ...broken.map(({ dir }) => dir)];
  const matches = places.filter(dir => matchesId(reference, basename(dir)));
  if (matches.length === 1) return openRun(matches[0]);
  if (matches.length > 1) {
    const some = matches.slice(0, 5).map(dir => basename(dir));
    const more = matches.length > some.length ? ` and ${matches.length - some.length} more` : '';
    fail(`${show(reference)} could be ${some.join(', ')}${more}: write more of it`, 'ambiguous');
  }
  for (const root of roots) {
    // Its manifest is gone, which the error says.
    if (isRunId(reference) && existsSync(join(root, reference))) return openRun(join(root, reference));
  }
  const near = nearest(
    reference,
    runs.map(({ id }) => id),
  );
  const hint = near === undefined ? `\`${typed('runs')}\` lists what there is` : `did you mean ${near}?`;
  return fail(`there is no run ${show(reference)} in ${where}: ${hint}`, 'no-such-run');
}

/** What someone means to delete: a run, or what is listed as one and cannot be read. */
export function resolveToDelete(
  reference: string,
  roots: readonly string[] = [defaultRoot],
): { readonly id: string; readonly dir: string; readonly run: Run | undefined } {
  try {
    const run = resolveRun(reference, roots);
    return { id: run.id, dir: run.dir, run };
  } catch (error) {
    if (!(error instanceof RunError)) throw error;
    const isPath = /[\\/]/.test(reference);
    const dirs = isPath ? [resolve(reference)] : listRuns(roots).broken.map(({ dir }) => dir);
    const named = dirs.filter(
      dir => isPath || basename(dir) === reference || matchesId(reference, basename(dir)),
    );
    if (named.length !== 1 || !(isHalfMade(named[0]) || looksLikeRun(named[0]))) throw error;
    return { id: basename(named[0]), dir: named[0], run: undefined };
  }
}

/** Whether a reference is the beginning or the last four characters of an id. */
const matchesId = (reference: string, id: string): boolean =>
  reference !== '' && (id.startsWith(reference) || (reference.length === 4 && id.endsWith(`-${reference}`)));

/** The run that was started last. If that cannot be read, another is not what was meant. */
function lastOf(runs: RunList['runs'], broken: RunList['broken'], where: string): Run {
  const newest = runs[0];
  const since = newest === undefined ? '' : stampOf(newest.id) || stampFrom(newest.manifest.startedAt);
  const newer = broken.filter(({ dir }) => newest === undefined || stampOf(basename(dir)) > since);
  const [first] = newer.sort((a, b) => stampOf(basename(b.dir)).localeCompare(stampOf(basename(a.dir))));
  if (first !== undefined) {
    const others = newest === undefined ? '' : `; the newest that can be is ${newest.id}`;
    fail(`the last run cannot be read: ${first.problem}${others}`, 'invalid');
  }
  return (
    newest ??
    fail(`there are no runs in ${where}: start one with \`${typed('train', 'cartpole')}\``, 'no-such-run')
  );
}

/** When a run began, as its id says it; see `newRunId`. */
const stampOf = (id: string): string => /-(\d{8}-\d{6})-/.exec(id)?.[1] ?? '';
const stampFrom = (iso: string): string => iso.replace(/[-:]/g, '').replace('T', '-').slice(0, 15);

/**
 * Deletes a run for good. Refuses what is not a run directly in its root, links to elsewhere, and runs that are being
 * written.
 */
export function deleteRun(dir: string, root: string): void {
  const absolute = resolve(dir);
  const stat = attempt('delete', absolute, () => lstatSync(absolute));
  if (stat.isSymbolicLink())
    fail(`${dir} is a link: delete what it leads to, or the link yourself`, 'unsafe');
  const [realDir, realRoot] = [absolute, resolve(root)].map(path =>
    attempt('delete', path, () => realpathSync(path)),
  ) as [string, string];
  if (dirname(realDir) !== realRoot || !statSync(realDir).isDirectory()) {
    fail(`${dir} is not a directory in ${root}: only runs directly in their root are deleted`, 'unsafe');
  }
  if (!looksLikeRun(realDir) && !isHalfMade(realDir)) {
    fail(`${dir} is not a run: it has no readable manifest.json of Keel; delete it yourself`, 'not-a-run');
  }
  cleanRoot(realRoot);
  const lock = acquireLock(realDir);
  try {
    forgetTrust(realDir);
    removeDirectory(realDir);
  } finally {
    lock.release();
  }
}
