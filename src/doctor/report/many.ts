/** Many runs in a terminal: a line each, worst first, and the story of those that are sick. */

import { counted } from '../../base/numbers.ts';
import { columnsOf, fit, fitMiddle, hang, pad, type Tone } from '../../base/terminal.ts';
import { type Document, documentOfRuns, type Row } from './document.ts';
import { verdictTones } from './paint.ts';
import type { Outcome } from './run-report.ts';
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
  const { unicode, verbose } = style;
  const whole = options.all === true || verbose;
  const document = documentOfRuns(outcomes, {
    detail: verbose ? 'whole' : 'brief',
    unicode,
    tells: verdict => whole || verdict === 'sick',
    mostRows: whole ? outcomes.length : MOST.rows,
    mostStories: whole ? outcomes.length : MOST.stories,
  });
  if (outcomes.length === 0) return '';
  if (outcomes.length > 1) return finished(manyLines(document, style), style);
  const [story] = document.stories.items;
  const lines =
    story === undefined
      ? hang('', document.rows.items[0].error ?? '', style.columns)
      : runLines(story, style);
  return finished(lines, style);
}

const toneOf = (verdict: Row['verdict']): Tone => (verdict === 'unread' ? 'red' : verdictTones[verdict]);

function manyLines({ title, counts, common, rows, stories }: Document, style: Style): string[] {
  const { paint, columns } = style;
  return [
    `${title}${common === '' ? '' : ` in ${fitMiddle(common, columns - 12)}`}`,
    counts.map(({ verdict, text }) => paint(text, toneOf(verdict))).join(', '),
    '',
    ...table(rows.items, style),
    ...more(rows.left, 'run', style),
    ...stories.items.flatMap(story => [
      '',
      paint((style.unicode ? '─' : '-').repeat(columns), 'dim'),
      ...runLines(story, style),
    ]),
    ...(stories.left > 0 ? ['', ...more(stories.left, 'sick run', style)] : []),
  ];
}

const more = (count: number, noun: string, { paint }: Style): string[] =>
  count > 0 ? [paint(`and ${counted(count, noun)} more: --all shows them`, 'dim')] : [];

function table(rows: readonly Row[], { columns, paint }: Style): string[] {
  const widest = (cell: (row: Row) => string, most: number): number =>
    Math.min(
      most,
      rows.reduce((width, row) => Math.max(width, columnsOf(cell(row))), 0),
    );
  const verdict = widest(row => row.words, 11);
  const length = widest(row => row.length, 17);
  const rest = columns - verdict - length - 6;
  const room = Math.max(Math.floor(rest / 2), 12);
  // `The learning rate is too …` would leave out the word that matters.
  const most = Math.max(room, rest - widest(row => row.path, rest));
  const words = rows.every(row => row.error !== undefined || columnsOf(row.what) <= most) ? 'what' : 'brief';
  const what = Math.min(
    widest(row => row[words], rest),
    room,
  );
  const path = widest(row => row.path, rest - what);
  return rows.map(row => {
    const start = `${paint(pad(row.words, verdict), toneOf(row.verdict))}  ${pad(fitMiddle(row.path, path), path)}`;
    return `${start}  ${pad(fit(row.length, length), length, 'left')}  ${fit(row[words].replaceAll('`', ''), rest - path)}`.trimEnd();
  });
}
