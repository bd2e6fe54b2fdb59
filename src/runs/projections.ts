/** CSV and TensorBoard files: made from `metrics.jsonl`, and made again from it whenever it was cut. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { readNames } from '../base/directories.ts';
import { attempt, replaceFile, temporaryBeside } from '../base/files.ts';
import { csvSink } from '../metrics/sinks/csv.ts';
import type { Sink } from '../metrics/sinks/sink.ts';
import { tensorboardSink } from '../metrics/sinks/tensorboard.ts';
import { runPaths, tensorboardName, tensorboardPattern } from './layout.ts';
import { iterateRows } from './log.ts';
import { readManifest } from './manifest.ts';
import type { Manifest } from './schema.ts';

/** Which projections a run has. */
export interface ProjectionOptions {
  /** Default true. */
  readonly csv?: boolean | undefined;
  /** Default true. */
  readonly tensorboard?: boolean | undefined;
}

/**
 * Makes the projections again from `metrics.jsonl`, each whole or not at all, and removes those that are not wanted.
 * They are then what a run that was never interrupted would have. The event file gets a new name: a TensorBoard that is
 * watching would not look again at one it has read.
 */
export function rebuildProjections(runDir: string, options: ProjectionOptions = {}): void {
  const manifest = readManifest(runDir);
  const { csv } = runPaths(runDir);
  if (options.csv ?? true) rebuild(runDir, csv, csvSink);
  else remove(csv);

  const old = tensorboardFiles(runDir);
  if (options.tensorboard ?? true) {
    const newest = Number(tensorboardPattern.exec(old.at(-1) ?? '')?.[1] ?? 0);
    const name = tensorboardName(Math.max(Date.now() / 1000, newest + 1));
    rebuild(runDir, join(runDir, name), path => openTensorboard(path, manifest));
  }
  for (const name of old) remove(join(runDir, name));
}

/** Sinks that continue the projections of a run. */
export function openProjections(runDir: string, options: ProjectionOptions = {}): Sink[] {
  const manifest = readManifest(runDir);
  const sinks: Sink[] = [];
  try {
    if (options.csv ?? true) sinks.push(csvSink(runPaths(runDir).csv));
    if (options.tensorboard ?? true) {
      const name = tensorboardFiles(runDir).at(-1) ?? tensorboardName(Date.parse(manifest.startedAt) / 1000);
      sinks.push(openTensorboard(join(runDir, name), manifest));
    }
  } catch (error) {
    for (const sink of sinks) sink.close();
    throw error;
  }
  return sinks;
}

/** The event file of a run, at `path`. */
export function openTensorboard(path: string, manifest: Manifest): Sink {
  const { algorithm, environment, seed, config } = manifest;
  return tensorboardSink(path, {
    startedUnixS: Date.parse(manifest.startedAt) / 1000,
    hyperparameters: { algorithm, environment: environment.id, seed, ...config },
  });
}

function rebuild(runDir: string, path: string, open: (path: string) => Sink): void {
  // Not named after an event file: TensorBoard reads whatever has "tfevents" in its name.
  const temporary = temporaryBeside(join(runDir, 'projection'));
  try {
    const sink = open(temporary);
    try {
      for (const row of iterateRows(runDir)) sink.write(row);
    } finally {
      sink.close();
    }
    attempt('write', path, () => replaceFile(temporary, path));
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
}

/** The event files of a run, oldest first. */
export function tensorboardFiles(runDir: string): string[] {
  return readNames(runDir)
    .filter(name => tensorboardPattern.test(name))
    .sort((a, b) => a.length - b.length || (a < b ? -1 : 1));
}

function remove(path: string): void {
  attempt('delete', path, () => rmSync(path, { force: true }));
}
