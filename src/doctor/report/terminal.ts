/** The report in a terminal: one story on top, then what supports it, then the rest in brief. */

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
import type { Verdict } from '../findings.ts';
import { chart, gutterOf } from './chart.ts';
import { laidOutAscii } from './clean.ts';
import { documentOf, type OtherFinding, type RunDocument, type Section } from './document.ts';
import { severityTones } from './paint.ts';
import { type Plot, rangeOf } from './plot.ts';
import type { Change } from './presentable.ts';
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

const CHART_ROWS = 4;

/** The report of one run, with a line break at its end. */
export function renderTerminal(report: RunReport, options: TerminalOptions = {}): string {
  const style = styleOf(options);
  const document = documentOf(report, style.verbose ? 'whole' : 'brief', style.unicode);
  return finished(runLines(document, style), style);
}

/** Lines to text, in what the terminal can show. */
export function finished(lines: readonly string[], { unicode }: Style): string {
  const text = `${lines.join('\n')}\n`;
  return unicode ? text : laidOutAscii(text);
}

export function runLines(document: RunDocument, style: Style): string[] {
  const { headline, sure, lead, understood, sections, code } = document;
  const { paint, columns } = style;
  return [
    titleLine(document, style),
    ...understoodLines(understood, style),
    '',
    ...paragraph(`${headline}${sure === undefined ? '' : ` (${sure})`}`, columns).map(line =>
      paint(line, 'bold'),
    ),
    ...sentence('', lead, style),
    ...sections.flatMap(section => sectionLines(section, document, style)),
    ...(code === undefined ? [] : ['', ...moreLines(code, style)]),
  ];
}

function moreLines(code: string, style: Style): string[] {
  const [lead, command] = ['More on this:', typed('doctor', '--explain', code)];
  const isShort = columnsOf(`${lead} ${command}`) <= style.columns;
  return isShort ? [style.paint(`${lead} ${command}`, 'dim')] : [lead, ...codeLines(command, style)];
}

const badges: Readonly<Record<Verdict, Tone>> = {
  healthy: 'badge-green',
  watch: 'badge-yellow',
  sick: 'badge-red',
  'cannot-tell': 'badge-dim',
};

/** ` SICK  path            trainer, 60,000 steps`; on two lines where one is too short. */
function titleLine(document: RunDocument, { paint, columns }: Style): string {
  const badge = ` ${document.words.toUpperCase()} `;
  const facts = fit(`${document.trainer}, ${document.length}`, columns - 4);
  const room = columns - badge.length - 1 - columnsOf(facts) - 2;
  const left = paint(badge, badges[document.verdict]);
  if (room < columnsOf(document.path)) {
    const path = fitMiddle(document.path, columns - badge.length - 1);
    return `${left} ${paint(path, 'bold')}\n${' '.repeat(badge.length + 1)}${paint(fit(facts, columns - badge.length - 1), 'dim')}`;
  }
  const gap = ' '.repeat(room - columnsOf(document.path) + 2);
  return `${left} ${paint(document.path, 'bold')}${gap}${paint(facts, 'dim')}`;
}

const heading = (text: string, { paint }: Style): string[] => ['', paint(text, 'bold')];

/** A line for each thing that is known; with `--verbose` as many as it takes. */
function understoodLines({ summary, facts }: RunDocument['understood'], style: Style): string[] {
  const { paint, columns } = style;
  const width = facts.reduce((most, { label }) => Math.max(most, label.length), 0);
  return [
    ...heading('Understood', style),
    ...hang('  ', summary, columns).map(line => paint(line, 'dim')),
    ...facts.flatMap(({ label, items, left, isProse }) => {
      const lead = `  ${label.padEnd(width)}  `;
      const lines = isProse
        ? items.flatMap((item, i) => hang(i === 0 ? lead : ' '.repeat(lead.length), item, columns))
        : itemLines(lead, items, left, style);
      return lines.map(line => paint(line, 'dim'));
    }),
  ];
}

/** Names one after the other: with `--verbose` all, else whole ones on two lines, and how many more there are. */
function itemLines(lead: string, items: readonly string[], left: number, style: Style): string[] {
  const { columns, verbose } = style;
  for (let shown = items.length; ; shown--) {
    const more = items.length - shown + left;
    const text = `${items.slice(0, shown).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
    const lines = hang(lead, text, columns);
    if (verbose || lines.length <= 2) return lines;
    if (shown === 1) return [`${lead}${fit(text, columns - lead.length)}`];
  }
}

function sectionLines(section: Section, { unit }: RunDocument, style: Style): string[] {
  switch (section.kind) {
    case 'understood':
      return understoodLines(section, style);
    case 'list':
      return [
        ...heading(section.title, style),
        ...section.list.items.flatMap(text =>
          section.isQuiet
            ? hang('  • ', text, style.columns).map(line => style.paint(line, 'dim'))
            : sentence('  • ', text, style),
        ),
        ...left(section.list.left, '    ', style),
      ];
    case 'text':
      return [...heading(section.title, style), ...sentence('  ', section.text, style)];
    case 'plots':
      return charts(section.plots, unit, style);
    case 'changes':
      return [
        ...heading(section.title, style),
        ...section.changes.flatMap(change => changeLines(change, style)),
      ];
    case 'findings':
      return [
        ...heading(section.title, style),
        ...section.list.items.flatMap(finding => otherLines(finding, style)),
        ...left(section.list.left, '     ', style),
      ];
    default:
      return section satisfies never;
  }
}

const left = (count: number, indent: string, { paint }: Style): string[] =>
  count > 0 ? [paint(`${indent}and ${count} more: -v shows them`, 'dim')] : [];

/** One x axis for all charts of a run, so that cause and consequence stand under each other. */
function charts(plots: readonly Plot[], unit: string, style: Style): string[] {
  const range = rangeOf(plots.flatMap(({ points }) => points));
  const gutter = plots.reduce((width, plot) => Math.max(width, gutterOf(plot)), 0);
  const size = { columns: style.columns - 2, rows: CHART_ROWS, xUnit: unit, range, gutter };
  return plots.flatMap(plot => ['', ...chart(plot, { ...style, ...size }).map(line => `  ${line}`)]);
}

/** Code stands by itself without a bullet, so that it can be copied; sentences have one. */
function changeLines({ code, words }: Change, style: Style): string[] {
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

function otherLines(finding: OtherFinding, style: Style): string[] {
  const { severity, title, code, stretch, evidence, changes, watch } = finding;
  const sign = { info: 'i', warning: '!', critical: '!!' }[severity].padEnd(2);
  const [first, ...rest] = sentence(`  ${sign} `, `${title} (${code}, ${stretch})`, style);
  return [
    `  ${style.paint(sign, severityTones[severity])}${first.slice(4)}`,
    ...rest,
    ...(style.verbose
      ? [
          ...evidence.flatMap(text => sentence('     • ', text, style)),
          ...changes.flatMap(({ code, words }) => [
            ...(code === undefined ? [] : sentence('     → ', code, style)),
            ...(words === '' ? [] : sentence(code === undefined ? '     → ' : '       ', words, style)),
          ]),
          ...(watch === undefined ? [] : sentence('     ', watch, style)),
        ]
      : []),
  ];
}
