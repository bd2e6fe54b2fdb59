/** A worker's directory of runs, where none is shared, and how runs come into it and leave it: through Redis. */
import { createHash } from 'node:crypto';
import { rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import type { Redis } from 'ioredis';
import { cleanDeadLeftovers, makeDirectories, readNames } from '../base/directories.ts';
import { readBounded, temporaryBeside } from '../base/files.ts';
import { DataError } from './job.ts';
import { packRun, stepOf, unpackRun } from './redis/archive.ts';
import { type Envelope, homeFile, keys, runLifeS } from './redis/names.ts';

/** Of its own runs that a worker keeps, in case that their next part comes to it. */
const mostKept = 200;

/** A directory of its own, which the next worker clears away if this one is killed. */
export function makeOwnRoot(): string {
  const base = join(tmpdir(), `keel-worker-${process.getuid?.() ?? 'user'}`);
  makeDirectories(base);
  cleanDeadLeftovers(base);
  const own = temporaryBeside(join(base, 'runs'));
  makeDirectories(own);
  return own;
}

/** Whether this is the study's own directory of runs, as its conductor has marked it. */
export function isHome(root: string, home: string): boolean {
  try {
    return readBounded(join(root, homeFile), 100).toString('utf8').trim() === home;
  } catch {
    return false;
  }
}

/** Gets what was done of a run elsewhere, if that is more than what is here. */
export async function fetchRun(redis: Redis, { study, job }: Envelope, root: string): Promise<void> {
  const bytes = await redis.getBuffer(keys.run(study, job));
  if (bytes === null) return;
  try {
    await unpackRun(bytes, root, job.run);
  } catch (error) {
    // A damaged one costs the time to train it again.
    if (!(error instanceof DataError)) throw error;
  }
}

/** Puts a run into Redis: the hash of its bytes; null if there is no run, undefined if it is too large. */
export async function carryRun(
  redis: Redis,
  { study, job }: Envelope,
  root: string,
): Promise<string | null | undefined> {
  const dir = join(root, job.run);
  if (stepOf(dir) < 0) return null;
  const bytes = packRun(dir);
  if (bytes === undefined) return undefined;
  await redis.set(keys.run(study, job), bytes, 'EX', runLifeS);
  return createHash('sha256').update(bytes).digest('hex');
}

/** Keeps a worker's own directory small; what is needed again comes from Redis. */
export function forgetOldest(root: string, used: ReadonlySet<string>): void {
  const dirs = readNames(root).flatMap(study =>
    readNames(join(root, study)).map(run => join(root, study, run)),
  );
  if (dirs.length <= mostKept) return;
  for (const dir of dirs.slice(0, dirs.length - mostKept))
    if (!used.has(basename(dir))) rmSync(dir, { recursive: true, force: true });
}
