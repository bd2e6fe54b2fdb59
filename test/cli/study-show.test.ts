/** A study in a narrow terminal: columns are whole or left out, and what was left out is named. */
import { expect, test } from 'vitest';
import type { Context } from '../../src/cli/context.ts';
import { printStudy } from '../../src/cli/study/show.ts';
import { fakeStudy, fakeTrials } from '../studies/support/fake-study.ts';

const settings = fakeStudy.space.map(({ key }) => key);

function shownIn(columns: number, trials = 20): string[] {
  const lines: string[] = [];
  const add = (text = ''): void => void lines.push(text);
  const context = { columns, print: add, raw: add, note: add, paint: (text: string) => text };
  printStudy(context as unknown as Context, { dir: 'studies/s', study: fakeStudy }, fakeTrials(trials));
  return lines;
}

test.each([60, 80, 100, 200])('%i columns', columns => {
  const lines = shownIn(columns);
  const table = lines.slice(
    lines.findIndex(line => line.includes('largest KL')),
    lines.findIndex(line => /^ {2}… /.test(line)),
  );
  expect(table).toHaveLength(11);
  for (const line of table) {
    expect(line.length).toBeLessThanOrEqual(columns);
    expect(line).not.toContain('…');
  }
  const shown = settings.filter(key => table[0].split(/\s+/).includes(key));
  const left = settings.slice(shown.length);
  expect(shown).toEqual(settings.slice(0, shown.length));
  expect(lines.some(line => line.includes(`too wide for here: ${left.join(', ')}; --json has all`))).toBe(
    left.length > 0,
  );
});

test('why a trial may not win stands before its settings', () => {
  expect(shownIn(80, 6).find(line => /^ +3 /.test(line))).toMatch(/sick +cannot win/);
});

test('nothing is left out where there is room', () => {
  expect(shownIn(200).join('\n')).not.toContain('too wide');
  expect(shownIn(60).join('\n')).toContain('too wide');
});
