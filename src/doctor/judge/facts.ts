/**
 * The numbers of sentences. A rule does not print a number that it has: it names what is cited (which series, which rows,
 * which statistic), and the number is worked out here from the series. So a sentence cannot say what its rows do not.
 */
import { whole } from '../../base/numbers.ts';
import type { Fact, Mark } from '../findings.ts';
import type { KnownSetting } from '../known-settings.ts';
import type { Progress } from '../rules/progress.ts';
import type { Signals, StepKl } from '../rules/signals.ts';
import type { Track } from '../rules/track.ts';
import { num, percent, place, type Said } from '../rules/words.ts';
import { type Statistic, statistics } from './statistics.ts';

/** A stretch of a track's rows, by their places among its finite values; the second is not included. */
export interface Rows {
  readonly track: Track;
  readonly rows: readonly [number, number];
}

/** The rows from share `from` to share `to` of a track: `rowsOf(t, 0.5)` is the second half. At least one row. */
export function rowsOf(track: Track, from = 0, to = 1): Rows {
  const a = Math.min(Math.floor(track.n * from), Math.max(0, track.n - 1));
  return { track, rows: [a, Math.max(a + 1, Math.ceil(track.n * to))] };
}

/** The rows between two places; to the end unless told. */
export const rowsBetween = (track: Track, from: number, to = track.n): Rows => ({
  track,
  rows: [Math.max(0, from), Math.min(track.n, to)],
});

/** The rows of a KL after the first tenth. */
export const settledOf = ({ track, settled }: StepKl): Rows => rowsBetween(track, track.n - settled.length);

/** The place of the first row at or after a step. */
export function rowAt({ x, n }: Track, step: number): number {
  let i = 0;
  while (i < n && x[i] < step) i++;
  return i;
}

/** The rows at or after a step, and those before it. */
export const rowsSince = (track: Track, step: number): Rows => rowsBetween(track, rowAt(track, step));
export const rowsBefore = (track: Track, step: number): Rows => rowsBetween(track, 0, rowAt(track, step));

/** A track counts its rows, a stretch of them has two places. */
const isRows = (of: Track | Rows): of is Rows => typeof of.rows !== 'number';

/** How a number is printed. */
export type Print = (value: number) => string;
const prints = { number: num, share: percent, count: whole } as const;

/** A number as it stands in a sentence. */
export interface Cited extends Said {
  readonly value: number;
}

const cited = (fact: Fact, of: readonly Mark[] = []): Cited => ({
  text: fact.text,
  value: fact.value,
  facts: [fact],
  of,
});

const markOf = ({ id, theirs, x }: Track, [a, b]: Rows['rows']): Mark[] =>
  b > a ? [{ metric: id, theirs, from: x[a], to: x[b - 1] }] : [];

/** A statistic of a track's rows; printed as such a number is, unless told. */
export function cite(of: Track | Rows, statistic: Statistic, argument?: number, print?: Print): Cited {
  const { track, rows } = isRows(of) ? of : rowsBetween(of, 0);
  const entry = statistics[statistic];
  const value = entry.work(track.v.subarray(...rows), argument ?? Number.NaN);
  const fact: Fact = {
    kind: 'rows',
    text: (print ?? prints[entry.print])(value),
    value,
    statistic,
    ...(argument === undefined ? {} : { argument }),
    metric: track.id,
    theirs: track.theirs,
    rows,
  };
  return cited(fact, markOf(track, rows));
}

/** The step of a row. */
export function citeStep(track: Track, row: number): Cited {
  const { id, theirs, x } = track;
  return cited({ kind: 'step', text: place(x[row]), value: x[row], metric: id, theirs, row }, [
    { metric: id, theirs, from: x[row], to: x[row] },
  ]);
}

/** The step of the first row at or after a step. */
export const citeAt = (track: Track, step: number): Cited => citeStep(track, rowAt(track, step));

/** Levels of a return, and where they are. */
export const courseKeys = ['start', 'end', 'best', 'worst', 'noise', 'bestX', 'worstX', 'drawdownX'] as const;
export type CourseKey = (typeof courseKeys)[number];

export function citeCourse(progress: Progress, what: CourseKey): Cited {
  const value = progress[what];
  const { track } = progress;
  const text = what.endsWith('X') ? place(value) : num(value);
  return cited(
    { kind: 'course', text, value, metric: track.id, theirs: track.theirs, what },
    markOf(track, [0, track.n]),
  );
}

/** A setting, as the rule has it. */
export const citeSetting = (setting: KnownSetting, value: number, print: Print = num): Cited =>
  cited({ kind: 'setting', text: print(value), value, setting });

/** A number of the rule's own: a limit, or what is usual. */
export const limit = (value: number, print: Print = num): Cited =>
  cited({ kind: 'limit', text: print(value), value });

/** Words of the log or of the trainer, whatever numbers are in them. */
export const quoted = (text: string): Said => cited({ kind: 'quoted', text, value: Number.NaN });

/** What only a rule works out, by its name. */
export const citeCount = (what: string, value: number, print: Print = whole, of?: Track): Cited =>
  cited(
    { kind: 'counted', text: print(value), value, what, ...(of === undefined ? {} : { metric: of.id }) },
    of === undefined ? [] : markOf(of, [0, of.n]),
  );

/** The last step of the run. */
export const citeEnd = ({ to }: Pick<Signals, 'to'>): Cited => citeCount('last step', to, place);

export const workedOut = {
  times: (a: number, b: number) => a / b,
  less: (a: number, b: number) => a - b,
  product: (a: number, b: number) => a * b,
} as const;

/** What comes of two numbers: how many times the second the first is, how much more it is, their product. */
export function workOut(kind: keyof typeof workedOut, a: Cited, b: Cited, print: Print = num): Cited {
  const value = workedOut[kind](a.value, b.value);
  return cited({ kind, text: print(value), value, of: [a.facts[0], b.facts[0]] }, [...a.of, ...b.of]);
}

/** `` say`${name(kl)} has a median of ${cite(kl, 'median')}` ``: words and names are strings, numbers never are. */
export function say(words: TemplateStringsArray, ...parts: readonly (string | Said)[]): Said {
  let text = words[0];
  const facts: Fact[] = [];
  const of: Mark[] = [];
  parts.forEach((part, i) => {
    text += (typeof part === 'string' ? part : part.text) + words[i + 1];
    if (typeof part === 'string') return;
    facts.push(...part.facts);
    for (const mark of part.of) if (!of.some(one => isSame(one, mark))) of.push(mark);
  });
  return { text, facts, of };
}

const isSame = (a: Mark, b: Mark): boolean => a.metric === b.metric && a.from === b.from && a.to === b.to;

/** `0.1 to 0.2 is usual`. */
export const usual = (from: number, to: number): Said => say`${limit(from)} to ${limit(to)} is usual`;
