/** The replays of a run: `replays/<step>.replay`, and `<step>-<n>.replay` for more episodes of the same policy. */
import { closeSync, rmSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { cleanLeftovers, makeDirectoryIn, readNames } from '../base/directories.ts';
import { fail, RunError, show } from '../base/errors.ts';
import { attempt, openRegular, readAt, readBounded, writeFileAtomic } from '../base/files.ts';
import { typed } from '../base/typed.ts';
import { runPaths } from './layout.ts';
import { referenceTo } from './reference.ts';
import {
  decodeReplay,
  encodeReplay,
  type Replay,
  type ReplayHeader,
  replayHeader,
  replayHeaderBytes,
  replayLimits,
  replayPrefixBytes,
} from './replay-format.ts';
import { thinned } from './thinned.ts';

const filePattern = /^(\d{1,16})(?:-(\d{1,3}))?\.replay$/;
/** What a directory may hold before the rest is not looked at. */
const mostFiles = 2000;

/** One replay of a run as its file's name and header tell of it. */
export interface ReplayInfo extends ReplayHeader {
  /** In two dimensions, as a board is. */
  readonly drawn: boolean;
  /** Without its ending: the step, and `-<n>` for a further episode. */
  readonly name: string;
  readonly bytes: number;
  /** Another value when the file is another one. */
  readonly version: string;
}

/** Whether a replay may be called so. */
export const isReplayName = (name: string): boolean => filePattern.test(`${name}.replay`);

/** The file of a replay that may be there. */
export function replayPath(runDir: string, name: string): string {
  if (!isReplayName(name)) fail(`replay ${show(name)} is not a step, such as 4096 or 4096-2`, 'invalid-id');
  return join(runPaths(runDir).replays, `${name}.replay`);
}

interface Listed {
  readonly name: string;
  readonly step: number;
  readonly episode: number;
}

function listed(runDir: string): Listed[] {
  return readNames(runPaths(runDir).replays)
    .slice(0, mostFiles)
    .flatMap(file => {
      const match = filePattern.exec(file);
      if (match === null) return [];
      return [
        { name: file.slice(0, -'.replay'.length), step: Number(match[1]), episode: Number(match[2] ?? 0) },
      ];
    })
    .sort((a, b) => a.step - b.step || a.episode - b.episode);
}

/** What stands for a file's content in caches: another value when the file is another one. */
export const replayVersion = (bytes: number, modifiedMs: number): string =>
  `${bytes.toString(36)}-${Math.round(modifiedMs).toString(36)}`;

/** Headers that were read, by path, so that a list costs no more than looking at times. */
export type ReplayCache = Map<string, ReplayInfo>;

/** All whole replays, oldest policy first. Damaged ones are left out: they can be recorded again. */
export function listReplays(runDir: string, cache: ReplayCache = new Map()): ReplayInfo[] {
  const found = listed(runDir).flatMap(({ name }) => {
    const path = replayPath(runDir, name);
    try {
      const { size, mtimeMs } = statSync(path);
      const version = replayVersion(size, mtimeMs);
      const known = cache.get(path);
      const info =
        known?.version === version ? known : { ...headerOf(path, size), name, bytes: size, version };
      cache.set(path, info);
      return [info];
    } catch {
      cache.delete(path); // damaged, or deleted meanwhile
      return [];
    }
  });
  return found;
}

function headerOf(path: string, size: number): ReplayHeader & { readonly drawn: boolean } {
  const fd = attempt('read', path, () => openRegular(path));
  try {
    const prefix = Buffer.alloc(replayPrefixBytes);
    const got = readAt(fd, prefix, prefix.length, 0);
    const start = Buffer.alloc(replayPrefixBytes + replayHeaderBytes(prefix.subarray(0, got), path));
    return replayHeader(start.subarray(0, readAt(fd, start, start.length, 0)), size, path);
  } finally {
    closeSync(fd);
  }
}

/** Whether the newest replay of a run is drawn in two dimensions; false where there is none that can be read. */
export function isDrawn(runDir: string): boolean {
  const newest = listed(runDir).at(-1);
  if (newest === undefined) return false;
  try {
    const path = replayPath(runDir, newest.name);
    return headerOf(path, statSync(path).size).drawn;
  } catch {
    return false; // damaged, or deleted meanwhile
  }
}

/** One replay, checked. */
export function loadReplay(path: string): Replay {
  return decodeReplay(readBounded(path, replayLimits.bytes), path);
}

/** The bytes of one replay, checked. */
export function readReplayBytes(path: string): Uint8Array {
  const bytes = readBounded(path, replayLimits.bytes);
  decodeReplay(bytes, path);
  return bytes;
}

/** Writes a replay so that it appears whole, and deletes those that are too many. Returns its name. */
export function saveReplay(runDir: string, replay: Replay, episode = 0): string {
  const name = episode === 0 ? String(replay.step) : `${replay.step}-${episode}`;
  makeDirectoryIn(runDir, basename(runPaths(runDir).replays));
  // It can be recorded again: no need to wait for the disk.
  writeFileAtomic(replayPath(runDir, name), encodeReplay(replay), false);
  pruneReplays(runDir);
  return name;
}

/** How many stay: the newest, and of the older ones the first, the best and a history that thins out with age. */
const keepNewest = 8;
const keepOlder = 24;

/** Deletes replays that are too many. */
export function pruneReplays(runDir: string, newest = keepNewest, older = keepOlder): void {
  const all = listReplays(runDir);
  const steps = [...new Set(all.map(({ step }) => step))];
  const recent = steps.slice(-newest);
  const past = steps.slice(0, -newest);
  const best = bestReplay(all);
  const keep = new Set([...recent, ...thinned(past, recent[0] ?? 0, older), ...(best ? [best.step] : [])]);
  for (const { name, step } of all) if (!keep.has(step)) rmSync(replayPath(runDir, name), { force: true });
}

/** The replay with the highest return; the newest of several. */
export function bestReplay<T extends Pick<ReplayInfo, 'episodeReturn'>>(all: readonly T[]): T | undefined {
  return all.reduce<T | undefined>(
    (best, next) => (best === undefined || next.episodeReturn >= best.episodeReturn ? next : best),
    undefined,
  );
}

/** Deletes replays of policies that a resume takes back, and what a kill left half made. */
export function discardReplaysAfter(runDir: string, after: number): void {
  cleanLeftovers(runPaths(runDir).replays);
  for (const { name, step } of listed(runDir))
    if (step > after) rmSync(replayPath(runDir, name), { force: true });
}

/** The replay of that name, `best`, or the newest. */
export function chooseReplay(runDir: string, which: 'best' | 'last' | number = 'last'): ReplayInfo {
  const all = listReplays(runDir);
  const found =
    which === 'best'
      ? bestReplay(all)
      : which === 'last'
        ? all.at(-1)
        : all.find(({ step }) => step === which);
  if (found !== undefined) return found;
  const there = all.length === 0 ? 'it has none' : `there are ${all.map(({ name }) => name).join(', ')}`;
  throw new RunError(
    `${runDir} has no replay ${which}: ${there}; ${typed('record', referenceTo(runDir))} makes one from a checkpoint`,
    {
      code: 'no-replay',
    },
  );
}
