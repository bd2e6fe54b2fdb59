/**
 * Checkpoints: whole or absent, and known to be undamaged before anything is made of them.
 *
 * A checkpoint is a directory `checkpoints/<step>` with the caller's files, `state.json` and, written last,
 * `checkpoint.json` with the size and SHA-256 of each. `last` is the highest step, `best` the highest score
 * (`bestScored`); the small files of those names say so to people and other tools, and are made again
 * when a kill came between.
 */
import { createHash, type Hash } from 'node:crypto';
import { closeSync, fstatSync, fsyncSync, openSync, rmSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { makeDirectoryIn, readNames, removeDirectory, writeDirectoryAtomic } from '../base/directories.ts';
import { codeOf, fail, RunError, show } from '../base/errors.ts';
import { attempt, readAt, readBounded, writeFileAtomic, writeNewFile } from '../base/files.ts';
import { encodeJson, parseJson } from '../base/json.ts';
import { checkpointDir, runPaths } from './layout.ts';
import { type CheckpointIndex, type EnvironmentSpec, parseCheckpointIndex, schemaVersion } from './schema.ts';
import { bestScored, type ScoreKind } from './score.ts';
import { thinned } from './thinned.ts';

/** A file's bytes, or a function that writes it: for weights that should not be in memory twice. */
export type CheckpointFile = Uint8Array | ((path: string) => void | Promise<void>);

/** What to save. */
export interface CheckpointInput {
  /** Environment steps so far: the checkpoint's name. */
  readonly step: number;
  /** The iteration whose row is the last before it. */
  readonly iteration: number;
  /** `policy.safetensors`, `optimizer.safetensors` … */
  readonly files: Readonly<Record<string, CheckpointFile>>;
  /** `state.json`: random states, normalisers, counters, environments. Must survive JSON; what would not is an error. */
  readonly state: Readonly<Record<string, unknown>>;
  /** What `best` is about, higher is better. */
  readonly score?: number | undefined;
  /** What that is of; of training unless told. */
  readonly scoredBy?: ScoreKind | undefined;
  /** Whether it is spared by pruning: one of "every N". */
  readonly keep?: boolean | undefined;
  /** What the policy was trained in: a resume compares it. */
  readonly environment?: EnvironmentSpec | undefined;
}

/** What a list of checkpoints shows. */
export interface CheckpointInfo {
  readonly step: number;
  readonly dir: string;
  /** Undefined if the index is unreadable. */
  readonly index: CheckpointIndex | undefined;
  /** Why it cannot be used, as far as can be told without reading all of it; undefined if it looks whole. */
  readonly problem: string | undefined;
  readonly isBest: boolean;
  readonly isLast: boolean;
}

/** A checkpoint that was read and found whole. */
export interface Checkpoint {
  readonly index: CheckpointIndex;
  readonly files: ReadonlyMap<string, Uint8Array>;
  readonly state: Readonly<Record<string, unknown>>;
}

const indexName = 'checkpoint.json';
export const stateName = 'state.json';
const maxIndexBytes = 2 ** 20;
const stepPattern = /^(0|[1-9]\d{0,15})$/;
/** A plain name on every system, and none of ours. */
const fileNamePattern = /^[a-z0-9][a-z0-9._-]{0,99}$/;
const hashChunkBytes = 2 ** 20;

// ---------------------------------------------------------------------------------------------------- saving

/**
 * Saves a checkpoint so that it appears whole or not at all, then prunes: besides the `keepLast` newest, the best,
 * those to keep and a thin history, older ones go. Rows and events up to its iteration must be on the disk before: see `RunWriter`.
 */
export async function saveCheckpoint(
  runDir: string,
  input: CheckpointInput,
  options: { readonly keepLast?: number; readonly now?: () => Date } = {},
): Promise<CheckpointInfo> {
  const { step, iteration, files } = input;
  for (const [name, value] of Object.entries({ step, iteration })) {
    if (!Number.isSafeInteger(value) || value < 0) {
      fail(`checkpoint: ${name} is ${show(value)}, must be a whole number from 0`);
    }
  }
  for (const name of Object.keys(files)) {
    if (!fileNamePattern.test(name) || name === indexName || name === stateName) {
      fail(`checkpoint: a file cannot be called ${show(name)}: use a plain lower-case name`);
    }
  }
  const state = encodeJson(input.state, 'state'); // before anything is written
  makeDirectoryIn(runDir, basename(runPaths(runDir).checkpoints));
  const dir = checkpointDir(runDir, step);
  await writeDirectoryAtomic(dir, async temporary => {
    const saved: Record<string, { bytes: number; sha256: string }> = {};
    for (const [name, file] of [...Object.entries(files), [stateName, Buffer.from(state)] as const]) {
      const path = join(temporary, name);
      if (typeof file === 'function') await file(path);
      else writeNewFile(path, file);
      saved[name] = sealFile(path, typeof file === 'function');
    }
    const index = {
      kind: 'keel-checkpoint',
      schema: schemaVersion,
      step,
      iteration,
      savedAt: (options.now ?? (() => new Date()))().toISOString(),
      score: input.score !== undefined && Number.isFinite(input.score) ? input.score : null,
      ...(input.scoredBy && { scoredBy: input.scoredBy }),
      keep: input.keep ?? false,
      environment: input.environment ?? null,
      files: saved,
    };
    parseCheckpointIndex(index, 'checkpoint');
    writeNewFile(join(temporary, indexName), encodeJson({ ...index, sha256: digestOf(index) }, 'checkpoint'));
  });
  updatePointers(runDir);
  pruneCheckpoints(runDir, options.keepLast ?? 2);
  return listCheckpoints(runDir).find(info => info.step === step)!;
}

/** Whether a score would make a checkpoint the best so far. */
export function wouldBeBest(
  runDir: string,
  { score, scoredBy }: Pick<CheckpointInput, 'score' | 'scoredBy'>,
): boolean {
  if (score === undefined || !Number.isFinite(score)) return false;
  const saved = { score, scoredBy };
  return bestScored([...readIndexes(runDir), saved]) === saved;
}

/** How many older checkpoints stay as a run's history. */
const historyLength = 6;

/**
 * Deletes all but the `keepLast` newest (at least one), the best, those that are to be kept, and a thin history of the
 * others: what went wrong is often seen late, and then there should be something from before it.
 */
export function pruneCheckpoints(runDir: string, keepLast: number): void {
  const indexes = readIndexes(runDir);
  const newest = Math.max(1, keepLast);
  const spared = new Set(indexes.slice(-newest).map(({ step }) => step));
  const best = bestScored(indexes);
  if (best !== undefined) spared.add(best.step);
  const older = indexes.slice(0, -newest).filter(({ keep }) => !keep);
  for (const step of thinned(
    older.map(({ step }) => step),
    indexes.at(-1)?.step ?? 0,
    historyLength,
  )) {
    spared.add(step);
  }
  for (const { step, keep } of indexes) {
    if (!keep && !spared.has(step)) removeDirectory(checkpointDir(runDir, step));
  }
}

/** Deletes the checkpoints after a step, damaged ones too: a run that goes on from there makes its own. */
export function discardCheckpointsAfter(runDir: string, step: number): void {
  for (const later of stepsOf(runDir).filter(s => s > step)) removeDirectory(checkpointDir(runDir, later));
  updatePointers(runDir);
}

/** Makes `best` and `last` say what is there. */
export function updatePointers(runDir: string): void {
  const { best, last } = runPaths(runDir);
  const indexes = readIndexes(runDir);
  point(best, bestScored(indexes)?.step);
  point(last, indexes.at(-1)?.step);
}

function point(path: string, step: number | undefined): void {
  const wanted = step === undefined ? undefined : `${step}\n`;
  let present: string | undefined;
  try {
    present = readBounded(path, 100).toString('utf8');
  } catch {
    // Absent or damaged: made again below.
  }
  if (wanted === present) return;
  if (wanted === undefined) attempt('delete', path, () => rmSync(path, { recursive: true, force: true }));
  else writeFileAtomic(path, wanted, false);
}

/** Size and checksum of a written file; one that the caller wrote is made durable too. */
function sealFile(path: string, sync: boolean): { bytes: number; sha256: string } {
  return attempt('write', path, () => {
    const fd = openSync(path, sync ? 'r+' : 'r');
    try {
      if (sync) fsyncSync(fd);
      const bytes = fstatSync(fd).size;
      const hash = createHash('sha256');
      const chunk = new Uint8Array(Math.min(bytes, hashChunkBytes));
      for (let at = 0; at < bytes; at += chunk.length) {
        hash.update(chunk.subarray(0, readAt(fd, chunk, Math.min(chunk.length, bytes - at), at)));
      }
      return { bytes, sha256: hash.digest('hex') };
    } finally {
      closeSync(fd);
    }
  });
}

// ---------------------------------------------------------------------------------------------------- listing

/** All checkpoints, oldest first, with what can be said about them without reading their weights. */
export function listCheckpoints(runDir: string): CheckpointInfo[] {
  const found = stepsOf(runDir).map(step => {
    const dir = checkpointDir(runDir, step);
    try {
      const index = readIndex(runDir, step);
      return { step, dir, index, problem: sizeProblem(dir, index) };
    } catch (error) {
      if (!(error instanceof RunError)) throw error;
      return { step, dir, index: undefined, problem: error.message };
    }
  });
  const indexes = found.flatMap(({ index }) => (index === undefined ? [] : [index]));
  const best = bestScored(indexes)?.step;
  const last = indexes.at(-1)?.step;
  return found.map(info => ({ ...info, isBest: info.step === best, isLast: info.step === last }));
}

/** Directories whose name is a step, oldest first. */
function stepsOf(runDir: string): number[] {
  return readNames(runPaths(runDir).checkpoints)
    .filter(name => stepPattern.test(name) && Number.isSafeInteger(Number(name)))
    .map(Number)
    .sort((a, b) => a - b);
}

/** The readable indexes, oldest first. */
function readIndexes(runDir: string): CheckpointIndex[] {
  return stepsOf(runDir).flatMap(step => {
    try {
      return [readIndex(runDir, step)];
    } catch (error) {
      if (error instanceof RunError) return [];
      throw error;
    }
  });
}

function sizeProblem(dir: string, index: CheckpointIndex): string | undefined {
  for (const [name, { bytes }] of Object.entries(index.files)) {
    const size = sizeOf(join(dir, name));
    if (size !== bytes) return wrongSize(join(dir, name), size, bytes);
  }
  return undefined;
}

function sizeOf(path: string): number | undefined {
  try {
    const stat = statSync(path);
    return stat.isFile() ? stat.size : undefined;
  } catch {
    return undefined;
  }
}

function wrongSize(path: string, size: number | undefined, bytes: number): string {
  return size === undefined
    ? `${path} is missing`
    : `${path} has ${size} bytes, ${bytes} were saved: it was cut off or overwritten`;
}

// ---------------------------------------------------------------------------------------------------- loading

/**
 * Reads a checkpoint and checks all of it. Damage is an error that names the file, what is wrong with it, and which
 * earlier checkpoint is whole. Undefined only for `last` of a run that has no checkpoint yet.
 */
export function loadCheckpoint(
  runDir: string,
  which: 'last' | 'best' | number = 'last',
): Checkpoint | undefined {
  const step = typeof which === 'number' ? which : findStep(runDir, which);
  if (step === undefined) return undefined;
  try {
    return readCheckpoint(runDir, step);
  } catch (error) {
    if (!(error instanceof RunError) || ['newer-schema', 'no-checkpoint'].includes(codeOf(error)))
      throw error;
    throw new RunError(`${error.message}; ${advice(runDir, step)}`, { code: 'damaged', cause: error });
  }
}

function findStep(runDir: string, which: 'last' | 'best'): number | undefined {
  // A damaged newest one is not passed over in silence: it is for the user to decide to go back.
  if (which === 'last') return stepsOf(runDir).at(-1);
  return (
    bestScored(readIndexes(runDir))?.step ??
    fail(`${runDir} has no best checkpoint: none was scored yet; use the last`, 'no-checkpoint')
  );
}

/** The newest checkpoint before a step that is whole to the last bit. */
export function wholeCheckpointBefore(runDir: string, step: number): number | undefined {
  return stepsOf(runDir)
    .filter(s => s < step)
    .reverse()
    .find(s => checkpointProblem(runDir, s) === undefined);
}

/** What is wrong with a checkpoint, after reading all of it; undefined if nothing is. */
export function checkpointProblem(runDir: string, step: number): string | undefined {
  try {
    readCheckpoint(runDir, step);
    return undefined;
  } catch (error) {
    if (error instanceof RunError) return error.message;
    throw error;
  }
}

function advice(runDir: string, step: number): string {
  const before = wholeCheckpointBefore(runDir, step);
  if (before !== undefined) return `the one before it is whole: use checkpoint ${before}`;
  return 'no earlier checkpoint is whole: start a new run';
}

function readCheckpoint(runDir: string, step: number): Checkpoint {
  const dir = checkpointDir(runDir, step);
  const index = readIndex(runDir, step);
  const files = new Map<string, Uint8Array>();
  for (const [name, { bytes, sha256 }] of Object.entries(index.files)) {
    files.set(name, readChecked(join(dir, name), bytes, sha256));
  }
  const bytes = files.get(stateName) ?? fail(`${join(dir, indexName)} lists no ${stateName}: it is damaged`);
  files.delete(stateName);
  const state = parseJson(Buffer.from(bytes), join(dir, stateName));
  return { index, files, state: state as Readonly<Record<string, unknown>> };
}

function readIndex(runDir: string, step: number): CheckpointIndex {
  const dir = checkpointDir(runDir, step);
  const path = join(dir, indexName);
  if (sizeOf(path) === undefined) {
    const steps = stepsOf(runDir);
    if (steps.includes(step)) fail(`${dir} is not whole: it has no ${indexName}`, 'invalid');
    fail(
      `there is no checkpoint ${step} in ${runDir}: ${steps.length === 0 ? 'there are none, train it first' : `use one of ${steps.join(', ')}`}`,
      'no-checkpoint',
    );
  }
  const json = parseJson(readBounded(path, maxIndexBytes), path);
  const index = parseCheckpointIndex(json, path);
  const { sha256, ...rest } = json as Record<string, unknown>;
  if (sha256 !== digestOf(rest)) fail(`${path} is damaged: its content is not what was saved`, 'invalid');
  if (index.step !== step) fail(`${path} is of step ${index.step}: the directory was renamed or copied`);
  for (const name of Object.keys(index.files)) {
    if (!fileNamePattern.test(name)) fail(`${path} names a file ${show(name)}: it is damaged`, 'invalid');
  }
  return index;
}

/** Reads a file whose size and checksum are known: nothing is allocated before the size on disk agrees. */
function readChecked(path: string, bytes: number, sha256: string): Uint8Array {
  const size = sizeOf(path);
  if (size !== bytes) fail(wrongSize(path, size, bytes));
  return attempt('read', path, () => {
    const fd = openSync(path, 'r');
    try {
      const data = new Uint8Array(bytes);
      const hash: Hash = createHash('sha256');
      for (let at = 0; at < bytes; at += hashChunkBytes) {
        const part = data.subarray(at, at + hashChunkBytes);
        if (readAt(fd, part, part.length, at) < part.length)
          fail(`${path} became shorter while it was read: try again`);
        hash.update(part);
      }
      if (hash.digest('hex') !== sha256) {
        fail(`${path} is damaged: it has the right size, but not the checksum that was saved`);
      }
      return data;
    } finally {
      closeSync(fd);
    }
  });
}

function digestOf(index: object): string {
  return createHash('sha256').update(encodeJson(index, 'checkpoint')).digest('hex');
}
