/** Files and directories for one test, and short ways to have them read. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { RawRun } from '../../../src/doctor/raw-run.ts';
import { findRuns } from '../../../src/doctor/readers/find.ts';
import { readRun } from '../../../src/doctor/readers/read.ts';
import type { Limits } from '../../../src/doctor/readers/run-builder.ts';

/** A directory that is gone after the test. */
export function temporaryDirectory(): string {
  const path = mkdtempSync(join(tmpdir(), 'keel-readers-'));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** Writes files, by their paths below `root`. */
export function writeTree(root: string, files: Readonly<Record<string, string | Uint8Array>>): string {
  for (const [name, content] of Object.entries(files)) {
    const path = join(root, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content);
  }
  return root;
}

/** Reads the one run that is at a path. */
export async function readOnly(path: string, limits?: Limits): Promise<RawRun> {
  const { candidates } = await findRuns(path);
  if (candidates.length !== 1) {
    throw new Error(`expected one run, found ${candidates.map(one => one.path).join(', ')}`);
  }
  return readRun(candidates[0], limits === undefined ? {} : { limits });
}

/** Reads content as a file whose name tells nothing. */
export function readContent(content: string | Uint8Array, limits?: Limits): Promise<RawRun> {
  const root = writeTree(temporaryDirectory(), { 'some-file': content });
  return readOnly(join(root, 'some-file'), limits);
}

/** A series as a list of [x, value]. */
export function points(run: RawRun, name: string): [number, number][] {
  const series = run.series.get(name);
  if (series === undefined) throw new Error(`no ${name}; there are ${[...run.series.keys()].join(', ')}`);
  return Array.from(series.x, (x, i) => [x, series.values[i]]);
}

/** The values of a series. */
export function values(run: RawRun, name: string): number[] {
  return points(run, name).map(([, value]) => value);
}
