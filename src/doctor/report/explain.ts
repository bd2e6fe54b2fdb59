/** What `keel doctor --explain` prints: the page of a rule or of a root cause. */
import { documentPath } from '../../base/documents.ts';
import { nearest } from '../../base/nearest.ts';
import { counted } from '../../base/numbers.ts';
import { columnsOf, fit, pad, paragraph } from '../../base/terminal.ts';
import { typed } from '../../base/typed.ts';
import { cureFigures } from '../cure-figures.ts';
import { rootCauses } from '../findings.ts';
import { rules } from '../rules/all.ts';
import type { Rule } from '../rules/rule.ts';
import { type CauseText, causeText, causeTexts } from './causes.ts';
import { toAscii } from './clean.ts';
import { type Style, styleOf, type TerminalOptions } from './terminal.ts';

/** The page of a code, or undefined if no rule and no cause has it. */
export function explain(code: string, options: TerminalOptions = {}): string | undefined {
  const wanted = code.trim().toLowerCase();
  const style = styleOf(options);
  const rule = rules.find(({ code }) => code === wanted);
  const cause = causeTexts.find(({ code }) => code === wanted);
  if (rule === undefined && cause === undefined) return undefined;
  const lines = [
    ...(rule === undefined ? [] : rulePage(rule, style)),
    // A rule may have its cause's name: `non-finite`.
    ...(rule !== undefined && cause !== undefined ? [''] : []),
    ...(cause === undefined ? [] : causePage(cause, style)),
  ];
  return shown(lines, style);
}

/** A sentence for a code that does not exist. */
export function unknownCode(code: string): string {
  const codes = [...rules.map(rule => rule.code), ...rootCauses];
  const near = nearest(code.trim().toLowerCase(), codes);
  return `there is no rule or root cause ${JSON.stringify(code.slice(0, 60))}: ${
    near === undefined ? '' : `did you mean ${near}? `
  }${typed('doctor', '--list-rules')} shows all`;
}

/** Every code with its title. */
export function listRules(options: TerminalOptions = {}): string {
  const style = styleOf(options);
  const { paint, columns } = style;
  const width = [...rules.map(({ code }) => code), ...rootCauses].reduce(
    (most, code) => Math.max(most, columnsOf(code)),
    0,
  );
  const line = ({ code, title }: { readonly code: string; readonly title: string }): string =>
    `  ${paint(pad(code, width), 'cyan')}  ${fit(title, columns - width - 4)}`;
  return shown(
    [
      paint('Rules', 'bold'),
      ...rules.map(line),
      '',
      paint('Root causes', 'bold'),
      ...causeTexts.map(line),
      '',
      paint(`${typed('doctor', '--explain')} <code> says more about one.`, 'dim'),
    ],
    style,
  );
}

function shown(lines: readonly string[], { unicode }: Style): string {
  return lines.map(line => `${unicode ? line : asciiLine(line)}\n`).join('');
}

/** Escapes are ASCII but for their first character. */
const asciiLine = (line: string): string => line.split('\u001b').map(toAscii).join('\u001b');

function section(title: string, text: string, { paint, columns }: Style): string[] {
  return text === ''
    ? []
    : ['', paint(title, 'bold'), ...paragraph(text, columns - 2).map(line => `  ${line}`)];
}

function rulePage({ code, title, text, causes, looksAt }: Rule, style: Style): string[] {
  const { paint, columns } = style;
  return [
    `${paint(title, 'bold')}  ${paint(code, 'cyan')}`,
    ...section('What it means', text.means, style),
    ...section('What it looks for', text.seen, style),
    ...section('What to do', text.todo, style),
    ...section('How often that has cured', cureSentence(code), style),
    ...section('When it stays silent', text.silent, style),
    ...section('Looks at', looksAt.join(', '), style),
    ...(causes.length === 0 ? [] : ['', paint('May point to', 'bold')]),
    ...causes.map(
      cause => `  ${paint(cause, 'cyan')}: ${fit(causeText(cause).title, columns - cause.length - 4)}`,
    ),
    ...(text.references.length === 0 ? [] : ['', paint('Met in', 'bold')]),
    ...text.references.flatMap(reference =>
      paragraph(
        reference.startsWith('docs/') ? documentPath(reference) : referenceLink(reference),
        columns - 2,
      ).map(line => `  ${line}`),
    ),
  ];
}

/** How often the rule's first fix has cured, from the bench; empty where it was not tried. */
export function cureSentence(code: string): string {
  if (!Object.hasOwn(cureFigures, code)) return '';
  const { runs, cured } = cureFigures[code];
  return `${cured} of ${counted(runs, 'sick log')} of known fault got within a tenth of the healthy return when their run was trained again with the first fix of this rule (docs/results.md).`;
}

function causePage({ code, title, meaning, remedy }: CauseText, style: Style): string[] {
  const { paint, columns } = style;
  const seenBy = rules.filter(({ causes }) => causes.includes(code));
  return [
    `${paint(title, 'bold')}  ${paint(code, 'cyan')}`,
    ...section('What it means', meaning, style),
    ...section('What to do', remedy, style),
    ...(seenBy.length === 0 ? [] : ['', paint('Rules that may point to it', 'bold')]),
    ...seenBy.map(
      rule => `  ${paint(rule.code, 'cyan')}: ${fit(rule.title, columns - rule.code.length - 4)}`,
    ),
  ];
}

/** `DLR-RM/stable-baselines3#324` as an address; what is none stays as it is. */
export function referenceLink(reference: string): string {
  const [, repository, number] = /^([\w.-]+\/[\w.-]+)#(\d+)$/.exec(reference) ?? [];
  if (repository !== undefined) return `https://github.com/${repository}/issues/${number}`;
  const [, paper] = /^arXiv:(\d{4}\.\d{4,5})$/i.exec(reference) ?? [];
  return paper === undefined ? reference : `https://arxiv.org/abs/${paper}`;
}
