/** What a trainer printed, kept in a file. */
import type { Reading } from './bytes.ts';
import {
  bestReward,
  cleanLine,
  fewestPairs,
  isRule,
  isTrainingDict,
  iterationOf,
  kindOfPairs,
  labelledCell,
  numberCell,
  pairCells,
  printedDict,
  rlGamesCells,
  tableCells,
  verlCells,
} from './console-lines.ts';
import { addSettings, isObject } from './json.ts';
import { addRow } from './jsonl.ts';
import { noNumber, readNumber } from './numbers.ts';
import { parsePythonDict } from './python.ts';
import { RowSink } from './rows.ts';
import type { RunBuilder } from './run-builder.ts';
import { forEachLine } from './text.ts';
import { joinVerl } from './verl-joined.ts';

/** A table of SB3 has thirty lines. */
const longestTable = 500;
const errorLine = /^[\w.]*(?:Error|Exception|Interrupt)\b(?:: .*)?$/;

/** Reads a console's output into a run. */
export async function readConsole(path: string, run: RunBuilder, reading: Reading): Promise<void> {
  const sink = new RowSink(run);
  const errors = errorWatch();
  let table: [string, string][] | undefined;
  let group = '';
  let cutLines = 0;
  /** Whether an iteration's list is open, and whether its last line was seen. */
  let [inIteration, iterationEnded] = [false, false];
  let inEpochs = false;
  /** Whether the table that is open, if one is, began without a rule. */
  let bare = false;
  let ruled = false;
  const pairs = pairsKept();
  const settings = settingsWatch();
  const joined = joinVerl(onLine);
  const half = await forEachLine(path, reading, run, joined.line, true);
  joined.end();
  if (inEpochs) sink.end();
  if (bare && table !== undefined && table.length > 0 && !half) endTable();
  // Only where a trainer printed nothing of its own.
  if (sink.rows === 0) {
    for (const cells of pairs.rows()) {
      for (const [name, value] of cells) cell(name, value);
      sink.end();
    }
  }
  // A last table without its lower rule is still being printed.
  if (inIteration) {
    if (iterationEnded) sink.end();
    else {
      sink.discard();
      run.unfinished = true;
    }
  }
  if (half || (table !== undefined && table.length > 0)) run.unfinished = true;
  sink.finish();
  const error = errors.found();
  if (error !== undefined) run.text('error', error);
  if (cutLines > 0)
    run.note(
      `${path}: ${cutLines} lines were cut at 4,096 characters when they were kept: what came after is missing`,
    );

  function onLine(raw: string, whole: boolean): void {
    const line = cleanLine(raw);
    errors.line(line);
    const printed = settings.line(line);
    if (printed !== undefined) addSettings(run, printed);
    const iteration = iterationOf(line);
    if (iteration !== undefined) {
      sink.end();
      [inIteration, iterationEnded] = [true, false];
      cell('iteration', iteration);
      return;
    }
    const labelled = inIteration ? labelledCell(line) : undefined;
    if (labelled !== undefined) {
      // The same words in later text are of no iteration.
      if (!iterationEnded) cell(labelled[0], labelled[1]);
      return;
    }
    if (inIteration && /^[ \t]*ETA:/.test(line)) {
      iterationEnded = true;
      return;
    }
    const epoch = rlGamesCells(line);
    if (epoch !== undefined) {
      sink.end();
      for (const [name, value] of epoch) cell(name, value);
      inEpochs = true;
      return;
    }
    const best = inEpochs ? bestReward(line) : undefined;
    if (best !== undefined) {
      cell('rewards/best', best);
      return;
    }
    if (isRule(line)) {
      // A rule ends the table that is open, or begins one.
      if (table !== undefined && table.length > 0) endTable();
      else table = [];
      bare = false;
      ruled = true;
      group = '';
      return;
    }
    const isCell = table === undefined ? isFirstOfBare(line) : true;
    const cells = isCell ? tableCells(line) : undefined;
    if (cells !== undefined) {
      if (table === undefined) {
        // One rule may stand between two tables; where there are none at all, tables end by themselves.
        table = [];
        bare = !ruled;
      }
      const [name, value] = cells;
      const full = /^ {3,}/.test(name) ? group + name.trim() : name.trim();
      // Without rules a name that comes again begins the next table.
      if (bare && value !== '' && table.some(([known]) => known === full)) {
        endTable();
        table = [];
      }
      if (value === '' && name.trim().endsWith('/')) group = name.trim();
      // Names of a group are indented below it.
      else if (table.length < longestTable) table.push([full, value]);
      return;
    }
    if (bare && table !== undefined && line.trim() === '') {
      endTable();
      return;
    }
    const verl = verlCells(line, whole);
    if (verl !== undefined) {
      if (line.length >= 4092 && line.length <= 4176) cutLines++;
      for (const [name, value] of verl) cell(name, value);
      sink.end();
      return;
    }
    const dict = printedDict(line);
    if (dict !== undefined && isTrainingDict(dict)) addRow(run, sink, dict);
    else if (sink.rows === 0) pairs.line(line);
  }

  function endTable(): void {
    for (const [name, value] of table ?? []) cell(name, value);
    sink.end();
    table = undefined;
  }

  /** A table without a rule above it begins with a group or with a number. */
  function isFirstOfBare(line: string): boolean {
    return numberCell(line) !== undefined || /^\s*\|\s*[\w-]+\/\s*\|\s*\|\s*$/.test(line);
  }

  function cell(name: string, text: string): void {
    const value = readNumber(text);
    if (typeof value === 'number') sink.number(name, value);
    else if (value === noNumber) sink.text(name, text);
  }
}

/** Lines beyond this many are left out: a log that people print themselves is shorter. */
const mostPairLines = 200_000;

/** Keeps lines of pairs until it is known that there is nothing better. */
function pairsKept(): { line(text: string): void; rows(): [string, string][][] } {
  const rows: [string, string][][] = [];
  const kinds = new Map<string, number>();
  return {
    line(text) {
      const cells = rows.length < mostPairLines ? pairCells(text) : undefined;
      if (cells === undefined) return;
      rows.push(cells);
      const kind = kindOfPairs(cells);
      kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
    },
    rows: () => rows.filter(cells => kinds.get(kindOfPairs(cells))! >= fewestPairs),
  };
}

/** Settings that a trainer prints before it begins are a few hundred lines. */
const longestSettings = 2 ** 17;
const mostTries = 64;

/** Puts together a dictionary of settings that is printed over many lines, as verl does when it begins. */
function settingsWatch(): { line(text: string): Record<string, unknown> | undefined } {
  let text = '';
  let tries = 0;
  return {
    line(line) {
      if (/^\s*\{'actor_rollout_ref'/.test(line)) [text, tries] = [line.trim(), 0];
      else if (text === '') return undefined;
      else text += ` ${line.trim()}`;
      if (text.length > longestSettings || tries > mostTries) text = '';
      if (text === '' || !line.trimEnd().endsWith('}')) return undefined;
      tries++;
      const value = parsePythonDict(text, 0);
      if (!isObject(value)) return undefined;
      text = '';
      return value;
    },
  };
}

/** Remembers the last error that a program printed: the line after its traceback. */
export function errorWatch(): { line(text: string): void; found(): string | undefined } {
  let inTraceback = false;
  let last: string | undefined;
  return {
    line(text) {
      if (text.startsWith('Traceback (most recent call last)')) inTraceback = true;
      else if (inTraceback && errorLine.test(text)) {
        last = text.slice(0, 500);
        inTraceback = false;
      }
    },
    found: () => last,
  };
}
