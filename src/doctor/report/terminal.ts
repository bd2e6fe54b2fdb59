/** The report in a terminal: one story on top, then what supports it, then the rest in brief. */

import { whole } from '../../base/numbers.ts';
import {
  columnsOf,
  fit,
  fitMiddle,
  hang,
  type Paint,
  painter,
  paragraph,
  type Tone,
} from '../../base/terminal.ts';
import { typed } from '../../base/typed.ts';
import { type Finding, type Verdict, verdictWords } from '../findings.ts';
import type { Fix } from '../fixes.ts';
import { chart, gutterOf } from './chart.ts';
import { laidOutAscii } from './clean.ts';
import { sureness } from './figures.ts';
import { severityTones } from './paint.ts';
import { type Plot, rangeOf } from './plot.ts';
import { changeOf, presentable, storyOf, stretchOf } from './presentable.ts';
import type { RunReport } from './run-report.ts';

/** How a report is written for a terminal. */
export interface TerminalOptions {
  /** Of the terminal. The report takes no more than 100, and 80 where it is not known. */
  readonly columns?: number;
  readonly colour?: boolean;
  /** False for terminals that show ASCII alone. */
  readonly unicode?: boolean;
  /** Everything: all evidence, all findings in full, all charts. */
  readonly verbose?: boolean;
}

/** The resolved options, as the parts of a report take them. */
export interface Style {
  readonly columns: number;
  readonly unicode: boolean;
  readonly verbose: boolean;
  readonly colour: boolean;
  readonly paint: Paint;
}

export function styleOf({
  columns = 80,
  colour = false,
  unicode = true,
  verbose = false,
}: TerminalOptions): Style {
  return {
    columns: Math.min(100, Math.max(40, Math.floor(columns) || 80)),
    unicode,
    verbose,
    colour,
    paint: painter(colour),
  };
}

/** How much of a story is told without `--verbose`. */
const FEW = { evidence: 4, charts: 3, context: 2, others: 6, notes: 4 } as const;
const CHART_ROWS = 4;

/** The report of one run, with a line break at its end. */
export function renderTerminal(report: RunReport, options: TerminalOptions = {}): string {
  return finished(runLines(report, styleOf(options)), styleOf(options));
}

/** Lines to text, in what the terminal can show. */
export function finished(lines: readonly string[], { unicode }: Style): string {
  const text = `${lines.join('\n')}\n`;
  return unicode ? text : laidOutAscii(text);
}

export function runLines(raw: RunReport, style: Style): string[] {
  const report = presentable(raw, style.unicode);
  const { diagnosis, unit } = report;
  const { headline, lead, main, others } = storyOf(report);
  const { paint, columns } = style;
  const sure =
    diagnosis.rootCause !== null && main !== undefined ? ` (${sureness(diagnosis.confidence)})` : '';
  const lines = [
    titleLine(report, style),
    '',
    ...paragraph(`${headline}${sure}`, columns).map(line => paint(line, 'bold')),
    ...sentence('', lead, style),
  ];
  if (main !== undefined) lines.push(...why(main, style));
  lines.push(...charts(report, style));
  if (main !== undefined) lines.push(...whatToDo(main, style));
  lines.push(...otherFindings(others, unit, style));
  lines.push(...notes(diagnosis.notes, style));
  const codes = [...new Set(diagnosis.findings.map(({ code }) => code))];
  if (codes.length > 0) {
    const [lead, command] = ['More on this:', typed('doctor', '--explain', codes[0])];
    const isShort = columnsOf(`${lead} ${command}`) <= style.columns;
    lines.push(
      '',
      ...(isShort ? [paint(`${lead} ${command}`, 'dim')] : [lead, ...codeLines(command, style)]),
    );
  }
  return lines;
}

const badges: Readonly<Record<Verdict, Tone>> = {
  healthy: 'badge-green',
  watch: 'badge-yellow',
  sick: 'badge-red',
  'cannot-tell': 'badge-dim',
};

/** ` SICK  path            trainer, 60,000 steps`; on two lines where one is too short. */
function titleLine({ diagnosis, unit }: RunReport, { paint, columns }: Style): string {
  const badge = ` ${verdictWords(diagnosis.verdict).toUpperCase()} `;
  const facts = fit(`${diagnosis.trainer}, ${whole(diagnosis.steps)} ${unit}`, columns - 4);
  const room = columns - badge.length - 1 - columnsOf(facts) - 2;
  const left = paint(badge, badges[diagnosis.verdict]);
  if (room < columnsOf(diagnosis.path)) {
    const path = fitMiddle(diagnosis.path, columns - badge.length - 1);
    return `${left} ${paint(path, 'bold')}\n${' '.repeat(badge.length + 1)}${paint(fit(facts, columns - badge.length - 1), 'dim')}`;
  }
  const path = fitMiddle(diagnosis.path, room);
  const gap = ' '.repeat(room - columnsOf(path) + 2);
  return `${left} ${paint(path, 'bold')}${gap}${paint(facts, 'dim')}`;
}

const heading = (text: string, { paint }: Style): string[] => ['', paint(text, 'bold')];

function why(main: Finding, style: Style): string[] {
  const told = style.verbose ? main.evidence : main.evidence.slice(0, FEW.evidence);
  const left = main.evidence.length - told.length;
  return [
    ...heading('Why', style),
    ...told.flatMap(text => sentence('  • ', text, style)),
    ...(left > 0 ? [style.paint(`    and ${left} more: -v shows them`, 'dim')] : []),
  ];
}

function charts({ plots, unit }: RunReport, style: Style): string[] {
  const cited = plots.filter(({ marks }) => marks.length > 0);
  const context = plots.filter(({ marks }) => marks.length === 0);
  // One cited series says more beside another: KL beside the return, say.
  const few = [...cited.slice(0, FEW.charts), ...context.slice(0, Math.max(0, FEW.context - cited.length))];
  const shown = style.verbose ? plots : few;
  const range = sharedRange(shown);
  const gutter = shown.reduce((width, plot) => Math.max(width, gutterOf(plot)), 0);
  return shown.flatMap(plot => [
    '',
    ...chart(plot, {
      ...style,
      columns: style.columns - 2,
      rows: CHART_ROWS,
      xUnit: unit,
      range,
      gutter,
    }).map(line => `  ${line}`),
  ]);
}

/** One x axis for all charts of a run, so that cause and consequence stand under each other. */
function sharedRange(plots: readonly Plot[]): [number, number] {
  return rangeOf(plots.flatMap(({ points }) => points));
}

function whatToDo({ fixes, watch }: Finding, style: Style): string[] {
  return [
    ...(fixes.length === 0 ? [] : heading('Change this', style)),
    ...fixes.flatMap(fix => fixLines(fix, style)),
    ...(watch === undefined || watch === '' ? [] : heading('Then watch', style)),
    ...(watch === undefined ? [] : sentence('  ', watch, style)),
  ];
}

/** Code stands by itself without a bullet, so that it can be copied; sentences have one. */
function fixLines(fix: Fix, style: Style): string[] {
  const { code, words } = changeOf(fix);
  return [
    ...(code?.split('\n') ?? []).flatMap(line => codeLines(line, style)),
    ...sentence(code === undefined ? '  • ' : '    ', words, style),
  ];
}

/** What does not fit goes on after a backslash, as a shell and Python take it: it can be typed as it stands there. */
function codeLines(code: string, { columns, paint }: Style): string[] {
  const whole = `    ${code}`;
  const parts = columnsOf(whole) <= columns ? [whole] : hang('    ', code, columns - 2);
  return parts.map((part, i) => paint(i < parts.length - 1 ? `${part} \\` : part, 'cyan'));
}

/** Wrapped, and names between backticks in a colour where there are colours. */
function sentence(lead: string, text: string, style: Style): string[] {
  const lines = hang(lead, text, style.columns);
  if (!style.colour) return lines;
  let inside = false;
  return lines.map(line => {
    const parts = line.split('`');
    // A name may go on in the next line.
    const painted = parts.map((part, i) => (inside !== (i % 2 === 1) ? style.paint(part, 'cyan') : part));
    if (parts.length % 2 === 0) inside = !inside;
    return painted.join('');
  });
}

function otherFindings(others: readonly Finding[], unit: string, style: Style): string[] {
  if (others.length === 0) return [];
  const { paint, verbose } = style;
  const told = verbose ? others : others.slice(0, FEW.others);
  const left = others.length - told.length;
  return [
    ...heading('Also seen', style),
    ...told.flatMap(finding => {
      const sign = { info: 'i', warning: '!', critical: '!!' }[finding.severity].padEnd(2);
      const [first, ...rest] = sentence(
        `  ${sign} `,
        `${finding.title} (${finding.code}, ${stretchOf(finding, unit)})`,
        style,
      );
      return [
        `  ${paint(sign, severityTones[finding.severity])}${first.slice(4)}`,
        ...rest,
        ...(verbose ? inFull(finding, style) : []),
      ];
    }),
    ...(left > 0 ? [paint(`     and ${left} more: -v shows them`, 'dim')] : []),
  ];
}

function inFull({ evidence, fix, watch }: Finding, style: Style): string[] {
  return [
    ...evidence.flatMap(text => sentence('     • ', text, style)),
    ...fix.flatMap(text => sentence('     → ', text, style)),
    ...(watch === undefined ? [] : sentence('     ', watch, style)),
  ];
}

function notes(all: readonly string[], style: Style): string[] {
  if (all.length === 0) return [];
  const told = style.verbose ? all : all.slice(0, FEW.notes);
  const left = all.length - told.length;
  return [
    ...heading('About the log', style),
    ...told.flatMap(text => hang('  • ', text, style.columns).map(line => style.paint(line, 'dim'))),
    ...(left > 0 ? [style.paint(`    and ${left} more: -v shows them`, 'dim')] : []),
  ];
}
