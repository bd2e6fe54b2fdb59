/** Looks for runs under the roots: Keel's own every second, other trainers' logs less often, because that is a search. */
import { existsSync, readdirSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import type { Candidate } from '../../doctor/readers/candidate.ts';
import { isRunId, runPaths } from '../../runs/layout.ts';
import { looksLikeRun, remainsOfRun } from '../../runs/looks-like-run.ts';
import type { Doctor } from '../doctor/client.ts';
import { ForeignRun } from './foreign-run.ts';
import { KeelRun } from './keel-run.ts';
import { idOf, type Root, staysInside } from './places.ts';
import type { WatchedRun } from './run.ts';

export interface FinderOptions {
  readonly roots: readonly Root[];
  readonly doctor: Doctor;
  /** Whether other trainers' logs are looked for. */
  readonly foreign: boolean;
  /** Numbers that one run may hold in memory. */
  readonly maxCells: number;
  /** Further directories that have runs directly in them: those of studies. */
  readonly places?: (() => readonly { readonly path: string; readonly root: Root }[]) | undefined;
  readonly known: (id: string) => WatchedRun | undefined;
  readonly add: (run: WatchedRun) => void;
  readonly signal: AbortSignal;
  readonly onProblem?: ((sentence: string) => void) | undefined;
}

export interface Finder {
  /** Looks, if it is time to. */
  scan(now: number): void;
  /** Looks for Keel's runs now. */
  scanKeel(): void;
  /** The search for other logs that is under way. */
  readonly searching: Promise<void> | undefined;
}

const keelEveryMs = 1000;
const searchRestMs = 4000;
/** A tree that takes long to search is searched less often, but a new log is never found later than about ten seconds. */
const searchFactor = 20;
const longestRestMs = 8000;

/** How long to wait after a search that took so long. */
export function restAfterSearch(tookMs: number): number {
  return Math.min(longestRestMs, Math.max(searchRestMs, searchFactor * tookMs));
}

export function createFinder(options: FinderOptions): Finder {
  const { roots, doctor, foreign, maxCells, known, add, signal } = options;
  let keelAt = Number.NEGATIVE_INFINITY;
  let searchAt = Number.NEGATIVE_INFINITY;
  let searching: Promise<void> | undefined;

  /** Runs of Keel that are a root, or directly in one or in a study. */
  function scanKeel(): void {
    keelAt = Date.now();
    for (const root of roots) {
      if (existsSync(runPaths(root.path).manifest) || remainsOfRun(root.path)) addKeel(root.path, root);
      else scanDirectory(root.path, root);
    }
    for (const { path, root } of options.places?.() ?? []) scanDirectory(path, root);
  }

  function scanDirectory(directory: string, root: Root): void {
    let names: string[];
    try {
      names = readdirSync(directory);
    } catch {
      return; // not there yet, or a file
    }
    for (const name of names) {
      const path = join(directory, name);
      if (!isRunId(name) || known(idOf(path)) !== undefined) continue;
      if (existsSync(runPaths(path).manifest) || remainsOfRun(path)) addKeel(path, root);
    }
  }

  function addKeel(path: string, root: Root): void {
    if (known(idOf(path)) !== undefined || !(looksLikeRun(path) || remainsOfRun(path))) return;
    const { manifest, metrics, events, checkpoints } = runPaths(path);
    if (!staysInside([path, manifest, metrics, events, checkpoints], roots)) return;
    add(new KeelRun(path, root, { maxCells }));
  }

  async function search(): Promise<void> {
    for (const root of roots) {
      if (statSync(root.path, { throwIfNoEntry: false }) === undefined) continue;
      const { candidates } = await doctor.find([root.path]);
      if (signal.aborted) return;
      for (const candidate of candidates) take(candidate, root);
    }
  }

  function take(candidate: Candidate, root: Root): void {
    const path = resolve(candidate.path);
    if (candidate.format === 'keel') {
      addKeel(path, root);
      return;
    }
    if (!staysInside([path, ...candidate.files], roots)) return;
    const run = known(idOf(path));
    if (run instanceof ForeignRun) run.candidate = candidate;
    else if (run === undefined && !isPartOfRun(path, root))
      add(new ForeignRun({ ...candidate, path }, root, doctor));
  }

  /** Whether a log is a file of a run of Keel that lost its manifest: then there is that run, and no other. */
  function isPartOfRun(path: string, root: Root): boolean {
    for (let at = path; at.length >= root.path.length; at = dirname(at)) {
      if (known(idOf(at)) instanceof KeelRun) return true;
      if (remainsOfRun(at)) {
        addKeel(at, root);
        return true;
      }
      if (at === dirname(at)) break;
    }
    return false;
  }

  return {
    scanKeel,
    get searching() {
      return searching;
    },
    scan(now) {
      if (now - keelAt >= keelEveryMs) scanKeel();
      if (!foreign || searching !== undefined || now < searchAt) return;
      const started = performance.now();
      searching = search()
        .catch(error => {
          if (!signal.aborted) options.onProblem?.(`looking for logs: ${(error as Error).message}`);
        })
        .finally(() => {
          searching = undefined;
          searchAt = Date.now() + restAfterSearch(performance.now() - started);
        });
    },
  };
}
