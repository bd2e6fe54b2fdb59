/** What a trainer printed, kept in a file. */
import type { Reading } from './bytes.ts';
import {
  cleanLine,
  isRule,
  isTrainingDict,
  iterationOf,
  labelledCell,
  numberCell,
  printedDict,
  tableCells,
  verlCells,
} from './console-lines.ts';
import { addSettings } from './json.ts';
import { addRow } from './jsonl.ts';
import { noNumber, readNumber } from './numbers.ts';
import { mostPairLines, pairsKept } from './printed-pairs.ts';
import { type Cells, printedRecord } from './printed-records.ts';
import { indentedSettings, settingsWatch } from './printed-settings.ts';
import { frameWatch } from './printed-tables.ts';
import { RowSink } from './rows.ts';
import { RunBuilder } from './run-builder.ts';
import { forEachLine } from './text.ts';
import { type Trainings, TrainingsWatch } from './trainings.ts';
import { joinVerl } from './verl-joined.ts';

/** A table of SB3 has thirty lines. */
const longestTable = 500;
const errorLine = /^[\w.]*(?:Error|Exception|Interrupt)\b(?:: .*)?$/;

/** Reads a console's output into a run; of several trainings only the one with this number. */
export async function readConsole(
  path: string,
  run: RunBuilder,
  reading: Reading,
  training?: number,
): Promise<void> {
  const sink = new RowSink(run);
  const part = training === undefined ? undefined : { trainings: await trainingsIn(path, reading), training };
  await parseConsole(path, run, reading, new PrintedRows(sink, part));
  sink.finish();
}

/** The trainings that an output tells of. */
export async function trainingsIn(path: string, reading: Reading): Promise<Trainings> {
  const watch = new TrainingsWatch();
  const rows = new PrintedRows({ row: (numbers, who) => watch.add(numbers, who) });
  await parseConsole(path, new RunBuilder(path, 'console', 'row'), reading, rows);
  return watch;
}

type Target = RowSink | { row(numbers: ReadonlyMap<string, number>, who: string | undefined): void };

interface Part {
  readonly trainings: Trainings;
  readonly training: number;
}

/** Takes the rows that were printed: those of one training, or of all, into a sink, or only to look at them. */
class PrintedRows {
  readonly #to: Target;
  readonly #part: Part | undefined;
  #numbers = new Map<string, number>();
  #texts = new Map<string, string>();
  #blanks: string[] = [];
  /** Rows of any training. */
  rows = 0;

  constructor(to: Target, part?: Part) {
    this.#to = to;
    this.#part = part;
  }

  number(name: string, value: number): void {
    this.#numbers.set(name, value);
  }

  text(name: string, value: string): void {
    this.#texts.set(name, value);
  }

  blank(name: string): void {
    this.#blanks.push(name);
  }

  end(who?: string): void {
    if (this.#numbers.size === 0) {
      this.discard();
      return;
    }
    const row = this.rows++;
    const to = this.#to;
    if (!(to instanceof RowSink)) to.row(this.#numbers, who);
    else if (this.#part === undefined || this.#part.trainings.rows[row] === this.#part.training) {
      for (const [name, value] of this.#numbers) to.number(name, value);
      for (const [name, value] of this.#texts) to.text(name, value);
      for (const name of this.#blanks) to.blank(name);
      to.end();
    }
    this.discard();
  }

  discard(): void {
    this.#numbers = new Map();
    this.#texts = new Map();
    this.#blanks = [];
  }

  /** Whether settings that are said of someone are those of this training. */
  isOf(who: string): boolean {
    return this.#part === undefined || this.#part.trainings.isOf(who, this.#part.training);
  }
}

async function parseConsole(
  path: string,
  run: RunBuilder,
  reading: Reading,
  sink: PrintedRows,
): Promise<void> {
  const errors = errorWatch();
  let table: [string, string][] | undefined;
  let group = '';
  let cutLines = 0;
  /** Whether an iteration's list is open, and whether its last line was seen. */
  let [inIteration, iterationEnded] = [false, false];
  /** Whether a row is open that lines may go on. */
  let inRecord = false;
  let who: string | undefined;
  /** Whether the table that is open, if one is, began without a rule. */
  let bare = false;
  let ruled = false;
  const pairs = pairsKept();
  const frame = frameWatch();
  const frames: Cells[] = [];
  const settings = settingsWatch();
  const indented = indentedSettings();
  const joined = joinVerl(onLine);
  const half = await forEachLine(path, reading, run, joined.line, true);
  joined.end();
  if (inRecord) sink.end(who);
  if (bare && table !== undefined && table.length > 0 && !half) endTable();
  // Only where a trainer printed nothing of its own.
  if (sink.rows === 0) {
    for (const cells of frames.length > 2 ? frames : pairs.rows()) {
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
  for (const [owner, name, value] of indented.found) if (sink.isOf(owner)) run.setting(name, value);
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
    if (indented.line(line)) return;
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
    const record = whole ? printedRecord(line) : undefined;
    if (record !== undefined && (record.more === undefined || inRecord)) {
      if (record.more === undefined) {
        sink.end(who);
        inRecord = true;
        who = record.who;
      }
      for (const [name, value] of record.cells) cell(name, value);
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
    else if (sink.rows === 0) {
      pairs.line(line);
      const cells = frame(line);
      if (cells !== undefined && frames.length < mostPairLines) frames.push(cells);
    }
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
