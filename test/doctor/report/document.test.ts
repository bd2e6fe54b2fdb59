/** What a report says before anyone writes it down: the same in a terminal, in Markdown and in HTML. */
import { describe, expect, test } from 'vitest';
import type { Diagnosis } from '../../../src/doctor/findings.ts';
import { documentOf, type Section } from '../../../src/doctor/report/document.ts';
import { renderHtml } from '../../../src/doctor/report/html.ts';
import { renderMarkdown } from '../../../src/doctor/report/markdown.ts';
import type { RunReport } from '../../../src/doctor/report/run-report.ts';
import { renderTerminal } from '../../../src/doctor/report/terminal.ts';
import { healthyReport, sickReport } from './made.ts';

const withMore = (report: RunReport, more: Partial<Diagnosis>): RunReport => ({
  ...report,
  diagnosis: { ...report.diagnosis, ...more },
});

const poor: Partial<Diagnosis> = {
  understood: {
    columns: Array.from({ length: 9 }, (_, i) => ({ metric: `loss/${i}`, theirs: `train/${i}` })).concat({
      metric: 'episode/return',
      theirs: 'ep_rew',
    }),
    settings: [{ setting: 'learningRate', name: 'learning_rate', value: 0.0003 }],
    rows: 1200,
    from: 10,
    to: 12_000,
    notUnderstood: ['strange', 'stranger'],
    absent: [{ metric: 'kl/step', why: 'without it nobody can tell how far an update moves the policy' }],
  },
  basis: ['ep_rew rises from 22 to 490', 'train/ev has a median of 0.9 over the second half'],
  checked: [
    { code: 'return-flat', state: 'clear' },
    { code: 'std-growing', state: 'near', limit: { of: 'the growth of std', at: 2, value: 1.9 } },
    { code: 'kl-high', state: 'blind', missing: ['kl/step'] },
    { code: 'kl-spikes', state: 'blind', missing: ['kl/step'] },
  ],
};

/** HTML and Markdown as text, so that all writers can be asked for the same words. */
const plain = (text: string): string =>
  text
    .replaceAll(/<style>[\s\S]*?<\/style>|<[^>]*>/g, '')
    .replaceAll(/[\\`*]/g, '')
    .replaceAll(/\s+/g, ' ');

const writers: Readonly<Record<string, (report: RunReport) => string>> = {
  terminal: report => renderTerminal(report, { columns: 100, verbose: true }),
  Markdown: report => renderMarkdown([report], { all: true }),
  HTML: report => renderHtml([report]),
};

describe.each(Object.entries(writers))('%s', (_, write) => {
  test('begins with what was understood and what was not, before it judges', () => {
    const text = plain(write(withMore(healthyReport(), poor)));
    const words = [
      'logs/ppo_2',
      '1,200 rows, steps 10 to 12,000; 10 columns and 1 setting understood, 2 names not',
      'ep_rew = episode/return',
      'learning_rate 0.0003',
      'strange, stranger',
      'KL of the update: without it nobody can tell how far an update moves the policy',
      'The return rose from 20 to 496',
    ];
    let at = 0;
    for (const part of words) {
      const found = text.indexOf(part, at);
      expect(found, `${part} in ${text}`).toBeGreaterThanOrEqual(at);
      at = found;
    }
  });

  test('of a healthy run says what that rests on, what was near, and which rules could not look', () => {
    const text = plain(write(withMore(healthyReport(), poor)));
    for (const part of [
      'ep_rew rises from 22 to 490',
      'std-growing: the growth of std is 1.9, its limit 2',
      '2 rules looked and saw nothing; 2 could not look: the log has no kl/step.',
    ])
      expect(text).toContain(part);
  });

  test('says how sure it is in the words that all use', () => {
    expect(plain(write(sickReport()))).toContain('(almost certain, 90%)');
  });
});

const kinds = (sections: readonly Section[]): string[] =>
  sections.map(section => ('title' in section ? section.title : section.kind));

test('in brief a sick run is told without what was not seen, in whole with it', () => {
  expect(kinds(documentOf(sickReport(), 'brief').sections)).toEqual([
    'Why',
    'plots',
    'Change this',
    'Then watch',
    'Also seen',
    'About the log',
  ]);
  expect(kinds(documentOf(sickReport(), 'whole').sections)).toContain('Checked');
});

test('in brief the columns that anyone asks for come first, and the others are counted', () => {
  const [columns] = documentOf(withMore(healthyReport(), poor), 'brief').understood.facts;
  expect(columns.items[0]).toBe('ep_rew = episode/return');
  expect(columns.items).toHaveLength(5);
  expect(columns.left).toBe(5);
});

test('no text of a log leaves the document as it came', () => {
  const bad = 'a\u001b[31mb\u202ec';
  const { understood } = documentOf(
    withMore(healthyReport(), {
      path: bad,
      understood: {
        ...poor.understood!,
        columns: [{ metric: 'kl/step', theirs: bad }],
        settings: [{ setting: 'task', name: bad, value: bad }],
        notUnderstood: [bad],
      },
    }),
  );
  expect(JSON.stringify(understood)).not.toMatch(/\\u001b|\u202e/);
  expect(understood.facts.map(({ items }) => items[0])).toEqual([
    'abc = kl/step',
    'abc abc',
    'abc',
    expect.stringContaining('KL of the update'),
  ]);
});
