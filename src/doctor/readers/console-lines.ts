/**
 * What trainers print, line by line: verl's `step:1 - key:value - …`, SB3's tables between rules, RSL-RL's lists below
 * `Learning iteration 1/1500`, the dictionaries that Hugging Face's trainers print, and the errors that ended them.
 */
import { isObject, type JsonObject } from './json.ts';
import { parsePythonDict } from './python.ts';

const colours = new RegExp(`${String.fromCharCode(27)}\\[[0-9;?]*[A-Za-z]`, 'g');
/** `(TaskRunner pid=1234, ip=10.0.0.1) `, as Ray puts before each line; also with a time before it. */
const rayPrefix = /^\s*\([\w.:<>[\] -]{1,80}\bpid=\d+[^)]{0,80}\)\s?/;

/** A printed line without colours and prefixes. */
export function cleanLine(line: string): string {
  const plain = line.includes('\x1b') ? line.replace(colours, '') : line;
  return plain.startsWith('(') ? plain.replace(rayPrefix, '') : plain;
}

const verlStep = /(?:^|[\s\]:])step:(\d+) - /;
/** W&B's copy of a console cuts lines at this many characters. */
const cutAt = 4096;

/** The cells of verl's line, or undefined if it is none. The last is left out where the line was cut. */
export function verlCells(line: string, whole: boolean): [string, string][] | undefined {
  if (!line.includes('step:')) return undefined;
  const found = verlStep.exec(line);
  if (found === null) return undefined;
  const cells: [string, string][] = [['step', found[1]!]];
  const parts = line.slice(found.index + found[0].length).split(' - ');
  if (!whole || (line.length >= cutAt - 4 && line.length <= cutAt + 80)) parts.pop();
  for (const part of parts) {
    const at = part.lastIndexOf(':');
    if (at > 0) cells.push([part.slice(0, at).trim(), part.slice(at + 1).trim()]);
  }
  return cells.length > 1 ? cells : undefined;
}

/** The two cells of a line of a table: `| train/approx_kl | 0.01 |`. */
export function tableCells(line: string): [string, string] | undefined {
  const trimmed = line.trim();
  if (!trimmed.startsWith('|') || !trimmed.endsWith('|') || trimmed.length > 400) return undefined;
  const parts = trimmed.slice(1, -1).split('|');
  return parts.length === 2 ? [parts[0]!, parts[1]!.trim()] : undefined;
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
  return found === null ? undefined : [found[1]!, found[2]!];
}

export type ConsoleKind = 'verl-console' | 'console';

/** Tells printed output of trainers from other text, line by line. */
export function consoleWatch(): (line: string) => ConsoleKind | undefined {
  let [rules, cells] = [0, 0];
  return raw => {
    const line = cleanLine(raw);
    if (verlCells(line, true) !== undefined) return 'verl-console';
    if (iterationOf(line) !== undefined) return 'console';
    const dict = printedDict(line);
    if (dict !== undefined && isTrainingDict(dict)) return 'console';
    if (isRule(line)) rules++;
    else if (tableCells(line) !== undefined) cells++;
    return rules > 0 && cells > 1 ? 'console' : undefined;
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
