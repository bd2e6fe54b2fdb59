/**
 * A directory that all test files of a run share, for what is made once: the compiled package. Temporary files of all tests
 * are in it, too, in memory where there is room: runs are written with one fsync after the other, and a disk takes
 * milliseconds for each. Gone afterwards. What a user keeps for themselves is there, too: tests leave the real user's alone.
 */
import { mkdirSync, mkdtempSync, rmSync, statfsSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  export interface ProvidedContext {
    sharedScratch: string;
  }
}

/** Four times what all tests together leave there at most. */
const roomBytes = 4 * 2 ** 30;

/** Linux has a file system in memory here; containers are often given 64 MB of it. */
function memoryDirectory(): string | undefined {
  try {
    const { bavail, bsize } = statfsSync('/dev/shm');
    return bavail * bsize >= roomBytes ? '/dev/shm' : undefined;
  } catch {
    return undefined;
  }
}

/**
 * What tests set for all that they start: temporary files, the user's own settings, which are none of theirs, and a path with
 * `keel` on it, so that commands are printed with that name; test/cli/printed-commands.test.ts is about all others.
 */
const places = ['TMPDIR', 'KEEL_CONFIG_DIR', 'PATH'] as const;

/** Each project of vitest.config.ts sets up, in one process: all share what the first makes, until the last is done. */
const shared = globalThis as {
  keelScratch?: { dir: string; users: number; before: readonly (string | undefined)[] };
};

function makeScratch(before: readonly (string | undefined)[]) {
  const dir = mkdtempSync(join(before[0] ?? memoryDirectory() ?? tmpdir(), 'keel-tests-'));
  mkdirSync(join(dir, 'bin'));
  symlinkSync(join(import.meta.dirname, '../bin/keel.js'), join(dir, 'bin', 'keel'));
  return { dir, users: 0, before };
}

export default function setup({ provide }: TestProject): () => void {
  const before = places.map(name => process.env[name]);
  shared.keelScratch ??= makeScratch(before);
  const scratch = shared.keelScratch;
  scratch.users++;
  process.env.TMPDIR = scratch.dir;
  process.env.KEEL_CONFIG_DIR = join(scratch.dir, 'config');
  process.env.PATH = [join(scratch.dir, 'bin'), scratch.before[2]].join(delimiter);
  provide('sharedScratch', scratch.dir);
  return () => {
    if (--scratch.users > 0) return;
    delete shared.keelScratch;
    for (const [i, name] of places.entries()) {
      const value = scratch.before[i];
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
    rmSync(scratch.dir, { recursive: true, force: true });
  };
}
