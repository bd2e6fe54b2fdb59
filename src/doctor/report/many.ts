/** Many runs in a terminal: a line each, worst first, and the story of those that are sick. */

import { counted, whole } from '../../base/numbers.ts';
import { columnsOf, fit, fitMiddle, hang, pad, type Tone } from '../../base/terminal.ts';
import { verdictWords } from '../findings.ts';
import { verdictTones } from './paint.ts';
import { presentable, presentableError, storyOf } from './presentable.ts';
import {
  commonDirectory,
  isRead,
  isUnreadable,
  type Outcome,
  tally,
  type Unreadable,
  worstFirst,
} from './run-report.ts';
import { finished, runLines, type Style, styleOf, type TerminalOptions } from './terminal.ts';

/** How a table of many runs is written. */
export interface ManyOptions extends TerminalOptions {
  /** The story of every run, not of the sick ones alone. */
  readonly all?: boolean;
}

/** Lines of a table that anyone would read, and stories. */
const MOST = { rows: 200, stories: 10 } as const;

/** Any number of runs: one is told in full, several get a table first. */
export function renderTerminalRuns(outcomes: readonly Outcome[], options: ManyOptions = {}): string {
  const style = styleOf(options);
  const [only] = outcomes;
  if (outcomes.length === 0) return '';
  const lines =
    outcomes.length === 1 && only !== undefined
      ? isUnreadable(only)
        ? errorLines(only, style)
        : runLines(only, style)
      : manyLines(outcomes, style, options.all ?? false);
  return finished(lines, style);
}

function manyLines(outcomes: readonly Outcome[], style: Style, all: boolean): string[] {
  const { paint, columns, verbose } = style;
  const ordered = worstFirst(outcomes);
  const whole = all || verbose;
  const counts = tally(outcomes).map(({ verdict, count }) =>
    paint(`${count} ${verdictWords(verdict)}`, verdictTones[verdict]),
  );
  const failed = outcomes.filter(isUnreadable).length;
  const summary = [...counts, ...(failed > 0 ? [paint(`${failed} could not be read`, 'red')] : [])];
  const stories = ordered.filter(isRead).filter(({ diagnosis }) => whole || diagnosis.verdict === 'sick');
  const told = whole ? stories : stories.slice(0, MOST.stories);
  const rows = whole ? ordered : ordered.slice(0, MOST.rows);
  const common = commonDirectory(ordered.map(outcome => cellsOf(outcome, style).path));
  return [
    `${counted(outcomes.length, 'run')}${common === '' ? '' : ` in ${fitMiddle(common, columns - 12)}`}`,
    summary.join(', '),
    '',
    ...table(rows, common.length, style),
    ...more(ordered.length - rows.length, 'run', style),
    ...told.flatMap(report => [
      '',
      paint((style.unicode ? '─' : '-').repeat(columns), 'dim'),
      ...runLines(report, style),
    ]),
    ...(stories.length > told.length ? ['', ...more(stories.length - told.length, 'sick run', style)] : []),
  ];
}

const more = (count: number, noun: string, { paint }: Style): string[] =>
  count > 0 ? [paint(`and ${counted(count, noun)} more: --all shows them`, 'dim')] : [];

interface RowCells {
  readonly verdict: string;
  readonly tone: Tone;
  readonly path: string;
  readonly steps: string;
  readonly what: string;
}

function cellsOf(outcome: Outcome, { unicode }: Style): RowCells {
  if (isUnreadable(outcome)) {
    const { path, why } = presentableError(outcome, unicode);
    return { verdict: 'unread', tone: 'red', path, steps: '-', what: why };
  }
  const report = presentable(outcome, unicode);
  const { verdict, path, steps, rootCause } = report.diagnosis;
  const what = verdict === 'healthy' ? '' : (rootCause ?? storyOf(report).headline.replaceAll('`', ''));
  return { verdict: verdictWords(verdict), tone: verdictTones[verdict], path, steps: whole(steps), what };
}

function table(outcomes: readonly Outcome[], common: number, style: Style): string[] {
  const { columns, paint } = style;
  const rows = outcomes
    .map(outcome => cellsOf(outcome, style))
    .map(row => ({ ...row, path: row.path.slice(common) }));
  const widest = (cell: (row: RowCells) => string, most: number): number =>
    Math.min(
      most,
      rows.reduce((width, row) => Math.max(width, columnsOf(cell(row))), 0),
    );
  const verdict = widest(row => row.verdict, 11);
  const steps = widest(row => row.steps, 14);
  const rest = columns - verdict - steps - 6;
  const what = Math.min(
    widest(row => row.what, rest),
    Math.max(Math.floor(rest / 2), 12),
  );
  const path = widest(row => row.path, rest - what);
  return rows.map(row => {
    const start = `${paint(pad(row.verdict, verdict), row.tone)}  ${pad(fitMiddle(row.path, path), path)}`;
    return `${start}  ${pad(fit(row.steps, steps), steps, 'left')}  ${fit(row.what, rest - path)}`.trimEnd();
  });
}

function errorLines(outcome: Unreadable, style: Style): string[] {
  return hang('', presentableError(outcome, style.unicode).error, style.columns);
}
