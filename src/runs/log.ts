/** Reading a run's rows and events, also while they are being written, and cutting them back before a resume. */
import { closeSync, fsyncSync, ftruncateSync, openSync } from 'node:fs';
import { codeOf, fail, RunError } from '../base/errors.ts';
import { attempt, writeFileAtomic } from '../base/files.ts';
import { type Line, readLastLine, readLines } from '../metrics/lines.ts';
import { decodeRow, type Row, withoutTimes } from '../metrics/row.ts';
import { runPaths } from './layout.ts';
import { describeEventType, parseEventLine, type StoredEvent } from './schema.ts';

/** A whole line that could not be understood. */
export interface BrokenLine {
  /** From 1, counted from where reading began. */
  readonly line: number;
  readonly reason: string;
}

/** Part of a log. A line that is still being written is not in it, and not broken. */
export interface LogPart<T> {
  readonly items: readonly T[];
  readonly broken: readonly BrokenLine[];
  /** Where reading can go on when more was written. If the file is shorter than that by then, it was cut: begin at 0. */
  readonly end: number;
}

/** The rows of a run from a byte offset on (that of an earlier `end`). Damaged lines are reported, not thrown. */
export function readRows(runDir: string, from = 0): LogPart<Row> {
  return readPart(runPaths(runDir).metrics, decodeRow, from);
}

/** The events of a run, likewise. */
export function readEvents(runDir: string, from = 0): LogPart<StoredEvent> {
  return readPart(runPaths(runDir).events, parseEventLine, from);
}

/** The newest row, read from the end of the file; undefined if there is none or it is damaged. */
export function readLastRow(runDir: string): Row | undefined {
  try {
    const line = readLastLine(runPaths(runDir).metrics);
    return line === undefined ? undefined : decodeRow(line);
  } catch (error) {
    if (error instanceof RunError && ['', 'ENOENT'].includes(codeOf(error))) return undefined;
    throw error;
  }
}

/** Rows one by one; a damaged line is an error that names it. */
export function* iterateRows(runDir: string): Generator<Row, void, undefined> {
  const path = runPaths(runDir).metrics;
  for (const line of linesOf(path)) {
    const row = understand(line, decodeRow);
    yield row instanceof RunError ? damaged(path, line, row) : row;
  }
}

/**
 * What a run did, without what the clock said and what befell its process: equal for two runs of the same configuration
 * and seed, however often they were killed and resumed.
 */
export function readTrajectory(runDir: string): { rows: string[]; events: string[] } {
  const { metrics, events } = runPaths(runDir);
  const isTraining = (line: string): boolean =>
    describeEventType(parseEventLine(line).type).scope === 'training';
  return {
    rows: [...linesOf(metrics)].map(({ text }) => withoutTimes(text ?? '')),
    events: [...linesOf(events)]
      .map(({ text }) => text ?? '')
      .filter(isTraining)
      .map(withoutTimes),
  };
}

/**
 * Cuts the log back to the end of an iteration: later rows and training events go, and half a line that a kill left.
 * A run that goes on from that iteration's checkpoint then writes what an uninterrupted one would have. Each file is cut
 * in one stroke, so a kill leaves it as it was or as it should be, and doing it again does no harm. Below 0 for a run
 * without a checkpoint, which begins again: all rows and training events go.
 */
export function truncateTo(
  runDir: string,
  iteration: number,
): { droppedRows: number; droppedEvents: number } {
  const { metrics, events } = runPaths(runDir);
  let before = -1;
  const rows = plan(metrics, line => {
    const at = decodeRow(line)['train/iteration'];
    if (at <= before) fail(`iteration ${at} after ${before}`);
    before = at;
    return at <= iteration ? at : undefined;
  });
  if (iteration > 0 && rows.lastIteration !== iteration) {
    const end = rows.lastIteration === 0 ? 'has no rows' : `ends at iteration ${rows.lastIteration}`;
    fail(
      `${metrics} ${end}, but the checkpoint is of iteration ${iteration}: rows are missing; restore the file or resume from an earlier checkpoint`,
      'rows-missing',
    );
  }
  const happenings = plan(events, line => {
    const { type, iteration: at } = parseEventLine(line);
    return describeEventType(type).scope === 'process' || at <= iteration ? at : undefined;
  });
  cut(metrics, rows);
  cut(events, happenings);
  return { droppedRows: rows.dropped, droppedEvents: happenings.dropped };
}

interface Plan {
  /** Whole lines that go. */
  readonly dropped: number;
  /** The first byte that goes; what is kept after it must be moved. */
  readonly cutAt: number;
  readonly keptAfterCut: readonly string[];
  /** Of the last line that stays; 0 if none does. */
  readonly lastIteration: number;
}

/** `keeps` gives the iteration of a line that stays, and undefined for one that goes. */
function plan(path: string, keeps: (line: string) => number | undefined): Plan {
  let [dropped, cutAt, lastIteration] = [0, 0, 0];
  const keptAfterCut: string[] = [];
  let broken: { line: Line; why: RunError } | undefined;
  for (const line of linesOf(path)) {
    const kept = understand(line, keeps);
    if (kept instanceof RunError) {
      broken ??= { line, why: kept };
      dropped++;
    } else if (kept !== undefined) {
      // Damage at the very end goes with the cut; damage among what stays is for a person to look at.
      if (broken !== undefined) damaged(path, broken.line, broken.why);
      if (dropped === 0) cutAt = line.end;
      else keptAfterCut.push(line.text!);
      lastIteration = kept;
    } else {
      dropped++;
    }
  }
  return { dropped, cutAt, keptAfterCut, lastIteration };
}

function cut(path: string, { cutAt, keptAfterCut }: Plan): void {
  attempt('cut back', path, () => {
    if (keptAfterCut.length > 0) {
      const head: string[] = [];
      for (const line of readLines(path)) {
        if (line.end > cutAt) break;
        head.push(line.text!);
      }
      writeFileAtomic(path, [...head, ...keptAfterCut, ''].join('\n'));
      return;
    }
    const fd = openIfThere(path);
    if (fd === undefined) return;
    try {
      ftruncateSync(fd, cutAt);
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
  });
}

function openIfThere(path: string): number | undefined {
  try {
    return openSync(path, 'r+');
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

function readPart<T>(path: string, decode: (line: string) => T, from: number): LogPart<T> {
  const items: T[] = [];
  const broken: BrokenLine[] = [];
  let end = from;
  for (const line of linesOf(path, from)) {
    const item = understand(line, decode);
    if (item instanceof RunError) broken.push({ line: line.number, reason: item.message });
    else items.push(item);
    end = line.end;
  }
  return { items, broken, end };
}

/** The whole lines of a file that may not be there yet. */
function* linesOf(path: string, from = 0): Generator<Line, void, undefined> {
  try {
    yield* readLines(path, from);
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error;
  }
}

function understand<T>({ text }: Line, decode: (line: string) => T): T | RunError {
  if (text === null) return new RunError('the line is far too long to be ours');
  try {
    return decode(text);
  } catch (error) {
    if (error instanceof RunError) return error;
    throw error;
  }
}

function damaged(path: string, line: Line, why: RunError): never {
  return fail(
    `${path}, line ${line.number} is damaged (${why.message}): repair or delete that line`,
    'invalid',
  );
}
