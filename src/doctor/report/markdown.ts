/** The report as Markdown, for a comment on a pull request, a CI summary or a notebook. */

import { amount, counted, whole } from '../../base/numbers.ts';
import { healthyWords } from '../../metrics/registry.ts';
import { type Finding, spansOf, verdictWords } from '../findings.ts';
import type { Fix } from '../fixes.ts';
import { sparkline } from './chart.ts';
import { sureness } from './figures.ts';
import type { Plot } from './plot.ts';
import { changeOf, presentable, presentableError, storyOf, stretchOf } from './presentable.ts';
import { isRead, isUnreadable, type Outcome, type RunReport, tally, worstFirst } from './run-report.ts';

/** How a report is written as Markdown. */
export interface MarkdownOptions {
  /** The story of every run, not of those that are not healthy alone. */
  readonly all?: boolean;
}

/** Stories that a comment has room for. */
const MOST_STORIES = 20;

/** Reports as one Markdown document. */
export function renderMarkdown(outcomes: readonly Outcome[], { all = false }: MarkdownOptions = {}): string {
  const ordered = worstFirst(outcomes).map(outcome =>
    isUnreadable(outcome) ? presentableError(outcome) : presentable(outcome),
  );
  const wanted = ordered
    .filter(isRead)
    .filter(({ diagnosis }) => all || ordered.length === 1 || diagnosis.verdict !== 'healthy');
  const told = all ? wanted : wanted.slice(0, MOST_STORIES);
  const left = wanted.length - told.length;
  return `${[
    '# Keel doctor',
    ordered.length > 1 ? overview(ordered) : [],
    ordered.length === 1
      ? ordered.filter(isUnreadable).map(({ path, error }) => `${code(path)}: ${escaped(error)}`)
      : [],
    told.flatMap(story),
    left > 0 ? [`${counted(left, 'run')} more: see the table.`] : [],
  ]
    .flat()
    .filter(block => block !== '')
    .join('\n\n')}\n`;
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '|': '&#124;',
  '@': '&#64;',
  '#': '&#35;',
};

/** Without any meaning in Markdown or HTML; on GitHub `@` would call people, `#` and addresses would become links. */
const escaped = (text: string): string =>
  text
    .replaceAll(/[&<>|@#]/g, character => entities[character])
    .replaceAll(/[\\`*_{}[\]~$]/g, '\\$&')
    .replaceAll(/\b(https?|ftp|www)(?=[:.])/gi, '$1&#8203;')
    .replace(/^([-+=]|\d+[.)])(?=\s|$)/, '\\$1');

const longestTicks = (text: string): number =>
  Math.max(0, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length));

/** A span of code, with a fence longer than any inside it. In a table a pipe ends a cell even inside of code. */
function code(text: string): string {
  if (text.trim() === '' || /[|\\]/.test(text)) return escaped(text);
  const fence = '`'.repeat(longestTicks(text) + 1);
  const gap = text.startsWith('`') || text.endsWith('`') ? ' ' : '';
  return `${fence}${gap}${text}${gap}${fence}`;
}

const prose = (text: string): string =>
  spansOf(text)
    .map(span => (span.code ? code(span.text) : escaped(span.text)))
    .join('');

function overview(outcomes: readonly Outcome[]): string[] {
  const failed = outcomes.filter(isUnreadable).length;
  const counts = tally(outcomes).map(({ verdict, count }) => `${count} ${verdictWords(verdict)}`);
  const rows = outcomes.map(outcome => {
    if (isUnreadable(outcome)) return `| unread | ${code(outcome.path)} | | | ${escaped(outcome.error)} |`;
    const { verdict, path, trainer, steps } = outcome.diagnosis;
    const what = verdict === 'healthy' ? '' : prose(storyOf(outcome).headline);
    return `| ${verdict === 'sick' ? '**sick**' : verdictWords(verdict)} | ${code(path)} | ${escaped(trainer)} | ${whole(steps)} ${escaped(outcome.unit)} | ${what} |`;
  });
  return [
    `${counted(outcomes.length, 'run')}: ${[...counts, ...(failed > 0 ? [`${failed} could not be read`] : [])].join(', ')}.`,
    ['| verdict | run | trainer | length | what |', '|---|---|---|--:|---|', ...rows].join('\n'),
  ];
}

function story(report: RunReport): string[] {
  const { diagnosis, unit, plots } = report;
  const { headline, lead, main, others } = storyOf(report);
  const sure =
    main !== undefined && diagnosis.rootCause !== null ? ` (${sureness(diagnosis.confidence)})` : '';
  return [
    `## ${verdictWords(diagnosis.verdict)}: ${prose(headline)}`,
    `${code(diagnosis.path)}, ${escaped(diagnosis.trainer)}, ${whole(diagnosis.steps)} ${escaped(unit)}`,
    `${prose(lead)}${sure}`,
    ...(main === undefined
      ? []
      : [bullets([`${prose(main.title)} (${escaped(stretchOf(main, unit))})`, ...main.evidence.map(prose)])]),
    curves(plots),
    ...(main === undefined ? [] : whatToDo(main)),
    ...(others.length === 0
      ? []
      : [
          '**Also seen**',
          bullets(
            others.map(
              finding =>
                `${finding.severity}: ${prose(finding.title)} (${code(finding.code)}, ${escaped(stretchOf(finding, unit))})`,
            ),
          ),
        ]),
    ...(diagnosis.notes.length === 0 ? [] : ['**About the log**', bullets(diagnosis.notes.map(prose))]),
  ];
}

const bullets = (lines: readonly string[]): string => lines.map(line => `- ${line}`).join('\n');

/** A row of blocks for each series. */
function curves(plots: readonly Plot[]): string {
  if (plots.length === 0) return '';
  return [
    '| series | | lowest | highest |',
    '|---|---|--:|--:|',
    ...plots.map(plot => {
      const hints = [
        ...(plot.log ? ['log scale'] : []),
        ...(plot.bands === undefined ? [] : [healthyWords(plot.bands)]),
      ];
      const scale = hints.length === 0 ? '' : ` (${hints.join(', ')})`;
      return `| ${escaped(plot.title)} ${code(plot.theirs)}${scale} | \`${sparkline(plot, 40)}\` | ${amount(plot.lowest)} | ${amount(plot.highest)} |`;
    }),
  ].join('\n');
}

function whatToDo({ fixes, watch }: Finding): string[] {
  return [
    ...(fixes.length === 0 ? [] : ['**Change this**', ...fixes.map(change)]),
    ...(watch === undefined || watch === '' ? [] : [`**Then watch:** ${prose(watch)}`]),
  ];
}

function change(fix: Fix): string {
  const { code: typed, words } = changeOf(fix);
  if (typed === undefined) return `- ${prose(words)}`;
  const fence = '`'.repeat(Math.max(3, longestTicks(typed) + 1));
  return `${fence}\n${typed}\n${fence}${words === '' ? '' : `\n\n${prose(words)}`}`;
}
