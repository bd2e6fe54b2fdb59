/**
 * What trainers print, line by line: verl's `step:1 - key:value - …`, SB3's tables between rules, RSL-RL's lists below
 * `Learning iteration 1/1500`, the dictionaries that Hugging Face's trainers print, and the errors that ended them.
 */
import { isObject, type JsonObject } from './json.ts';
import { type PrintedRecord, printedRecord } from './printed-records.ts';
import { frameWatch } from './printed-tables.ts';
import { parsePythonDict } from './python.ts';
import { ofTraining } from './training-words.ts';

const colours = new RegExp(`${String.fromCharCode(27)}\\[[0-9;?]*[A-Za-z]`, 'g');
/** `(TaskRunner pid=1234, ip=10.0.0.1) `, as Ray puts before each line; also with a time before it. */
const rayPrefix = /^\s*\([\w.:<>[\] -]{1,80}\bpid=\d+[^)]{0,80}\)\s?/;

const stamp = String.raw`^\[?\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[\d.,:+Z]{0,16}\]?[ \t]*(?:std(?:out|err) [FP] )?`;
/** `2024-01-01 10:00:00,123 - trainer - INFO - `, as Python's logging and many schedulers put before a line of a table. */
const tablePrefix = new RegExp(
  `${stamp}(?:[-:]?[ \\t]*\\[?[A-Za-z_.]{1,40}\\]?[ \\t]*[-:]?[ \\t]*){0,3}(?=\\||-{8})`,
);
/** As before any other line: the time, and a level. */
const logPrefix = new RegExp(
  `${stamp}(?:[-:]?[ \\t]*\\[?(?:INFO|DEBUG|WARNING|WARN|ERROR)\\]?[ \\t]*[-:]?[ \\t]*)?`,
);
/** `trainer-1  | `, as docker-compose puts before each line, and the `>` of a quote: only before what a trainer prints. */
const composePrefix =
  /^(?:[\w.-]{1,60}[ \t]+\|[ \t]?|[ \t]*(?:>[ \t]?){1,3}|\[?\d\d:\d\d:\d\d[\d.,]{0,8}\]?[ \t]+)(?=[ \t]*(?:\||-{8}|\{'|Learning iteration|[A-Z][\w ]{2,40}:|step:\d|\d{4}-\d\d-\d\d))/;
/** A table that was pasted as a text in quotes, line by line. */
const quotedLine = /^[ \t]*"((?:[|-]).*?)(?:\\n)?",?[ \t]*$/;

export const withoutColours = (line: string): string =>
  line.includes('\x1b') ? line.replace(colours, '') : line;

/** A printed line without colours and prefixes. */
export function cleanLine(line: string): string {
  let plain = withoutColours(line);
  if (plain.startsWith('(')) return plain.replace(rayPrefix, '');
  if (plain.length >= 500) return plain;
  const first = plain.charCodeAt(0);
  // `|` and `-`, of nearly every line of a table.
  if (first === 124 || first === 45) return plain;
  if (first === 34 || first === 32) plain = plain.replace(quotedLine, '$1');
  plain = plain.replace(composePrefix, '');
  if (!/^\[?\d{4}-/.test(plain)) return plain;
  const row = plain.replace(tablePrefix, '');
  return row === plain ? plain.replace(logPrefix, '') : row;
}

const verlStep = /(?:^|[\s\]:])step:(\d+) - /;
/** W&B's copy of a console cuts lines at this many characters. */
const cutAt = 4096;

/** The cells of verl's line, or undefined if it is none. The last is left out where the line was cut. */
export function verlCells(line: string, whole: boolean): [string, string][] | undefined {
  if (!line.includes('step:')) return undefined;
  const found = verlStep.exec(line);
  if (found === null) return undefined;
  const cells: [string, string][] = [['step', found[1]]];
  const parts = line.slice(found.index + found[0].length).split(' - ');
  if (!whole || (line.length >= cutAt - 4 && line.length <= cutAt + 80)) parts.pop();
  for (const part of parts) {
    const at = part.lastIndexOf(':');
    if (at > 0) cells.push([part.slice(0, at).trim(), part.slice(at + 1).trim()]);
  }
  return cells.length > 1 ? cells : undefined;
}

const bareStep = /(?:^|[\s\]:])step:\d+\s*$/;
const ownLine = /^\s*- [\w/@.-]+:\S+\s*$/;

/** `step:12` alone on a line, with its metrics below it. */
export const isBareStep = (line: string): boolean =>
  line.length < 300 && line.includes('step:') && bareStep.test(line);

/** ` - actor/lr:1e-06`, below such a line. */
export const isOwnLine = (line: string): boolean => line.length < 300 && ownLine.test(line);

/** The two cells of a line of a table: `| train/approx_kl | 0.01 |`. */
export function tableCells(line: string): [string, string] | undefined {
  const trimmed = line.trim();
  if (!trimmed.startsWith('|') || !trimmed.endsWith('|') || trimmed.length > 400) return undefined;
  const parts = trimmed.slice(1, -1).split('|');
  return parts.length === 2 ? [parts[0], parts[1].trim()] : undefined;
}

/** The cells of such a line whose value is a number: what a table without rules is made of. */
export function numberCell(line: string): [string, string] | undefined {
  const cells = tableCells(line);
  return cells !== undefined &&
    cells[0].trim() !== '' &&
    /^[-+]?[\d.]+(?:[eE][-+]?\d+)?$|^-?(?:nan|inf)$/i.test(cells[1])
    ? cells
    : undefined;
}

/** `-----`, above and below a table. */
export function isRule(line: string): boolean {
  const trimmed = line.trim();
  return trimmed.length >= 8 && trimmed.length < 400 && /^-+$/.test(trimmed);
}

/**
 * The dictionary in a line of output, such as `{'loss': 0.1, 'reward': 0.5}`, if it has one. One that is the value of
 * something else (`'kl_ctrl': {'kl_coef': 0.001}`, in settings that are printed) is no row.
 */
export function printedDict(line: string): JsonObject | undefined {
  const at = line.indexOf("{'");
  if (at < 0 || /['"]\s*:\s*$/.test(line.slice(Math.max(0, at - 8), at))) return undefined;
  const value = parsePythonDict(line, at);
  return isObject(value) ? value : undefined;
}

/** Names that make a printed dictionary a row of a log. */
const training =
  /^(loss|reward|learning_rate|lr|epoch|step|kl|grad_norm|eval_loss|train_loss|train_runtime|objective\/|rewards?\/|policy\/)/;

export function isTrainingDict(object: JsonObject): boolean {
  return Object.keys(object).some(key => training.test(key));
}

const iterationLine = /^[ \t]*Learning iteration (\d{1,12})\/\d{1,12}[ \t]*$/;

/** The number of an iteration that RSL-RL begins to tell of, or undefined. */
export function iterationOf(line: string): string | undefined {
  return line.includes('Learning iteration') ? iterationLine.exec(line)?.[1] : undefined;
}

const labelled =
  /^[ \t]*([A-Za-z][\w/.() -]{1,98}):[ \t]+([-+]?(?:[\d.]+(?:[eE][-+]?\d+)?|nan|inf))(?:s| steps\/s.{0,80})?[ \t]*$/;

/** `Mean reward: 0.71`, with or without a unit after it. */
export function labelledCell(line: string): [string, string] | undefined {
  if (line.length > 240) return undefined;
  const found = labelled.exec(line);
  return found === null ? undefined : [found[1], found[2]];
}

const pair =
  /([A-Za-z][\w./@-]{0,60}(?: [A-Za-z][\w./@-]{0,30}){0,3}) {0,12}[:=] {0,12}[[('"]?([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|nan|inf|-inf)(?=$|[\s,;|\])}'"%/])/gi;
const counter =
  /(?:^|[\s[(|])(episode|epoch|iteration|iter|step|update|timestep|global step)s?[ \t]*[:=#]?[ \t]*\[?(\d{1,12})(?=$|[\s,;:|\])/])/i;
const barCount = /\b(\d{1,9})\/\d{1,9} \[/;
const longestPairs = 1000;

/**
 * The cells of a line of the kind that people print themselves: `episode 12 | reward: 3.5 | loss: 0.1`, or
 * `global_step=1280, episodic_return=21.0`. At least two, one of them of training; undefined for any other line.
 */
export function pairCells(line: string): [string, string][] | undefined {
  if (line.length > longestPairs || !/[:=]/.test(line)) return undefined;
  const cells: [string, string][] = [];
  const seen = new Set<string>();
  const add = (name: string, value: string): void => {
    if (seen.has(name)) return;
    seen.add(name);
    cells.push([name, value]);
  };
  // A time of day is no pair.
  const plain = line.replace(/\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d+)?/g, ' ');
  for (const [, name, value] of plain.matchAll(pair)) add(name, value);
  if (!cells.some(([name]) => ofTraining.test(name))) return undefined;
  const count = counter.exec(plain);
  if (count !== null) add(count[1].toLowerCase(), count[2]);
  const bar = barCount.exec(plain);
  if (bar !== null && count === null) add('step', bar[1]);
  return cells.length > 1 ? cells : undefined;
}

/** Lines of pairs that say the same things are of one kind. */
export const kindOfPairs = (cells: readonly [string, string][]): string =>
  cells.map(([name]) => name).join('\n');

/** So many lines of one kind are a log; fewer are talk. */
export const fewestPairs = 3;
const mostKinds = 256;

const lone =
  /^[ \t]*(?:[-*=#>~_+]{1,200}[ \t]*)?(episode|epoch|iteration|iter|step|update|timestep)s?[ \t]*[:#=]?[ \t]*(\d{1,12})(?:[ \t]*(?:\/|of)[ \t]*\d{1,12})?[ \t:]*(?:[-*=#>~_+]{1,200})?[ \t]*$/i;
const loneLabelled =
  /^[ \t]*(?:[-*|•][ \t]+)?([A-Za-z][\w/@.() -]{1,60}?)[ \t]*[:=][ \t]*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|nan|-?inf)[ \t]*(?:\([^()]{0,40}\)|%|s)?[ \t]*$/i;

/** The cell of a line of a block: `Iteration 5/100` opens one, `  mean reward: 3.5` is in one. */
export function blockCell(
  line: string,
): { readonly cell: [string, string]; readonly opens: boolean } | undefined {
  if (line.length > 240) return undefined;
  const opening = lone.exec(line);
  if (opening !== null) return { cell: [opening[1].toLowerCase(), opening[2]], opens: true };
  const found = loneLabelled.exec(line);
  return found === null ? undefined : { cell: [found[1].trim(), found[2]], opens: false };
}

/** Tells lines of pairs, and blocks of such lines, from other text: true once there are enough of one kind. */
export function pairsWatch(): (line: string) => boolean {
  const kinds = new Map<string, number>();
  const count = (kind: string): number => {
    const known = (kinds.get(kind) ?? 0) + 1;
    if (known > 1 || kinds.size < mostKinds) kinds.set(kind, known);
    return known;
  };
  let blocks = 0;
  return line => {
    const cells = pairCells(line);
    if (cells !== undefined) return count(kindOfPairs(cells)) >= fewestPairs;
    const block = blockCell(line);
    if (block === undefined) return false;
    if (block.opens) blocks++;
    return (
      !block.opens &&
      ofTraining.test(block.cell[0]) &&
      count(block.cell[0]) >= fewestPairs &&
      blocks >= fewestPairs
    );
  };
}

export function pairsKind(lines: readonly string[]): 'console' | undefined {
  const watch = pairsWatch();
  for (const raw of lines) {
    for (const part of raw.includes('\r') ? raw.split('\r', 50) : [raw])
      if (watch(cleanLine(part))) return 'console';
  }
  return undefined;
}

const isRecord = (record: PrintedRecord | undefined): boolean => record !== undefined && record.more !== true;

export type ConsoleKind = 'verl-console' | 'console';

/** Tells printed output of trainers from other text, line by line. */
export function consoleWatch(): (line: string) => ConsoleKind | undefined {
  let [rules, cells, numbers, frames] = [0, 0, 0, 0];
  const frame = frameWatch();
  let afterStep = false;
  return raw => {
    const line = cleanLine(raw);
    if (afterStep && isOwnLine(line)) return 'verl-console';
    afterStep = isBareStep(line);
    if (verlCells(line, true) !== undefined) return 'verl-console';
    if (iterationOf(line) !== undefined || isRecord(printedRecord(line))) return 'console';
    const dict = printedDict(line);
    if (dict !== undefined && isTrainingDict(dict)) return 'console';
    if (isRule(line)) rules++;
    else if (tableCells(line) !== undefined) cells++;
    const value = /[:|]/.test(line) ? numberCell(line) : undefined;
    if (value !== undefined) numbers++;
    if (frame(line) !== undefined) frames++;
    return frames > 2 || (rules > 0 && cells > 1) || numbers > 5 ? 'console' : undefined;
  };
}

/** Tells printed output of trainers from other text. */
export function consoleKind(lines: readonly string[]): ConsoleKind | undefined {
  const watch = consoleWatch();
  for (const raw of lines) {
    for (const part of raw.includes('\r') ? raw.split('\r', 50) : [raw]) {
      const kind = watch(part);
      if (kind !== undefined) return kind;
    }
  }
  return undefined;
}
