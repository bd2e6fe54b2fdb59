/** The report as Markdown, for a comment on a pull request, a CI summary or a notebook. */

import { amount, counted } from '../../base/numbers.ts';
import { healthyWords } from '../../metrics/registry.ts';
import { spansOf } from '../findings.ts';
import { sparkline } from './chart.ts';
import { type Document, documentOfRuns, type Fact, type RunDocument, type Section } from './document.ts';
import type { Plot } from './plot.ts';
import type { Change } from './presentable.ts';
import type { Outcome } from './run-report.ts';

/** How a report is written as Markdown. */
export interface MarkdownOptions {
  /** The story of every run, not of those that are not healthy alone. */
  readonly all?: boolean;
}

/** Stories that a comment has room for. */
const MOST_STORIES = 20;

/** Reports as one Markdown document. */
export function renderMarkdown(outcomes: readonly Outcome[], { all = false }: MarkdownOptions = {}): string {
  const document = documentOfRuns(outcomes, {
    tells: verdict => all || verdict !== 'healthy',
    mostStories: all ? outcomes.length : MOST_STORIES,
  });
  const { rows, stories } = document;
  return `${[
    '# Keel doctor',
    ...(rows.items.length > 1 ? overview(document) : []),
    ...(rows.items.length === 1
      ? rows.items.flatMap(({ path, error }) =>
          error === undefined ? [] : [`${code(path)}: ${escaped(error)}`],
        )
      : []),
    ...stories.items.flatMap(story),
    ...(stories.left > 0 ? [`${counted(stories.left, 'run')} more: see the table.`] : []),
  ]
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

function overview({ title, counts, rows }: Document): string[] {
  const lines = rows.items.map(({ verdict, words, path, trainer, length, what, error }) =>
    error === undefined
      ? `| ${verdict === 'sick' ? '**sick**' : words} | ${code(path)} | ${escaped(trainer)} | ${escaped(length)} | ${prose(what)} |`
      : `| unread | ${code(path)} | | | ${escaped(what)} |`,
  );
  return [
    `${title}: ${counts.map(({ text }) => text).join(', ')}.`,
    ['| verdict | run | trainer | length | what |', '|---|---|---|--:|---|', ...lines].join('\n'),
  ];
}

function story(document: RunDocument): string[] {
  const { words, path, trainer, length, understood, headline, lead, sure, sections } = document;
  return [
    `## ${words}: ${prose(headline)}`,
    `${code(path)}, ${escaped(trainer)}, ${escaped(length)}`,
    ...sectionBlocks(understood),
    `${prose(lead)}${sure === undefined ? '' : ` (${sure})`}`,
    ...sections.flatMap(sectionBlocks),
  ];
}

function sectionBlocks(section: Section): string[] {
  switch (section.kind) {
    case 'understood':
      return [`**Understood:** ${escaped(section.summary)}`, bullets(section.facts.map(factWords))];
    case 'list':
      return [`**${section.title}**`, bullets(section.list.items.map(prose))];
    case 'text':
      return [`**${section.title}:** ${prose(section.text)}`];
    case 'plots':
      return [curves(section.plots)];
    case 'changes':
      return [`**${section.title}**`, ...section.changes.map(change)];
    case 'findings':
      return [
        `**${section.title}**`,
        bullets(
          section.list.items.map(
            ({ severity, title, code: name, stretch }) =>
              `${severity}: ${prose(title)} (${code(name)}, ${escaped(stretch)})`,
          ),
        ),
      ];
    default:
      return section satisfies never;
  }
}

const factWords = ({ label, items, isProse }: Fact): string =>
  `${label}: ${items.map(item => (isProse ? prose(item) : code(item))).join(isProse ? '; ' : ', ')}`;

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

function change({ code: typed, words }: Change): string {
  if (typed === undefined) return `- ${prose(words)}`;
  const fence = '`'.repeat(Math.max(3, longestTicks(typed) + 1));
  return `${fence}\n${typed}\n${fence}${words === '' ? '' : `\n\n${prose(words)}`}`;
}
