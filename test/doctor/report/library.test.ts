/** The library: series in memory, what changes between two looks, and the pages of rules. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { columnsOf } from '../../../src/base/terminal.ts';
import {
  causeTexts,
  diagnosePath,
  diagnoseSeries,
  explain,
  isRead,
  isUnreadable,
  listRules,
  newsOf,
  renderTerminal,
  reportSeries,
  rootCauses,
  rules,
  unknownCode,
} from '../../../src/doctor/index.ts';
import { unreadable } from '../../../src/doctor/report/run-report.ts';
import { dialectPage } from '../../../tools/doctor-docs/dialect-page.ts';
import { rulePages } from '../../../tools/doctor-docs/rule-page.ts';
import { findingOf, healthyReport, sickReport } from './made.ts';

const rows = Array.from({ length: 60 }, (_, i) => i);
const wave = (i: number): number => Math.sin(i * 1.7) + Math.sin(i * 0.37);
const spiky = {
  'kl/step': rows.map(i => 0.2 + 0.05 * wave(i)),
  'episode/return': rows.map(i => (i < 30 ? 20 + 10 * i : 320 - 10 * (i - 30)) + 3 * wave(i)),
};

describe('series in memory', () => {
  test('are judged by the same rules, with or without steps', () => {
    const plain = diagnoseSeries(spiky, { config: { learning_rate: 0.03 } });
    expect(plain).toMatchObject({ verdict: 'sick', rootCause: 'learning-rate-too-high', steps: 59 });
    const steps = rows.map(i => (i + 1) * 2048);
    const stated = diagnoseSeries({ ...spiky, 'kl/step': { steps, values: spiky['kl/step'] } }, { steps });
    expect(stated).toMatchObject({ verdict: 'sick', steps: 122_880 });
    expect(renderTerminal(reportSeries(spiky, { path: 'mine' }))).toMatch(/^ SICK {2}mine /);
  });

  test('their names may be those of a trainer, or anything with a map', () => {
    const theirs = { 'train/approx_kl': spiky['kl/step'], 'rollout/ep_rew_mean': spiky['episode/return'] };
    expect(diagnoseSeries(theirs, { trainer: 'stable-baselines3' })).toMatchObject({
      trainer: 'stable-baselines3',
      verdict: 'sick',
    });
    const own = { divergence: spiky['kl/step'], score: spiky['episode/return'] };
    const map = new Map([
      ['divergence', 'kl/step'],
      ['score', 'episode/return'],
    ]);
    expect(diagnoseSeries(own, { map }).verdict).toBe('sick');
  });

  test('too little, and what is no number, is refused with a sentence', () => {
    expect(() => diagnoseSeries({ 'kl/step': [0.1, 0.2] })).toThrow(/at least 3 rows.* found 2/);
    const short = diagnoseSeries({ 'kl/step': [0.01, 0.012, 0.009], 'episode/return': [20, 22, 25] });
    expect(short).toMatchObject({ verdict: 'cannot-tell', rootCause: null });
    expect(short.confidence).toBeLessThanOrEqual(0.3);
    expect(short.notes.join()).toMatch(/only 3 rows: most faults show later/);
    expect(() => diagnoseSeries({ weather: rows })).toThrow(
      /metrics that are known.* found none in weather.*--map/,
    );
    expect(() => diagnoseSeries({ 'kl/step': [1, 2, 3] }, { steps: [1, 2] })).toThrow(/3 values and 2 steps/);
    expect(() => diagnoseSeries({ 'kl/step': ['1' as unknown as number] })).toThrow(/give numbers/);
    expect(() => diagnoseSeries(spiky, { trainer: 'stable-baseline' })).toThrow(
      /did you mean stable-baselines3/,
    );
  });
});

async function all<T>(values: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const value of values) found.push(value);
  return found;
}

test('paths are read one after the other', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'keel-doctor-'));
  try {
    const line = (i: number): string =>
      `${JSON.stringify({ 'train/step': i, 'kl/step': spiky['kl/step'][i], 'episode/return': spiky['episode/return'][i] })}\n`;
    writeFileSync(join(dir, 'a.jsonl'), rows.map(line).join(''));
    const outcomes = await all(diagnosePath([dir, join(dir, 'none')]));
    expect(outcomes.filter(isUnreadable).map(({ path }) => path)).toEqual([join(dir, 'none')]);
    expect(outcomes.filter(isRead).map(({ diagnosis }) => diagnosis.verdict)).toEqual(['sick']);
  } finally {
    rmSync(dir, { recursive: true });
  }
});

describe('what changes', () => {
  const texts = (...args: Parameters<typeof newsOf>): string[] => newsOf(...args).map(({ text }) => text);

  test('the first look tells the verdict and every finding', () => {
    expect(texts(undefined, sickReport())).toEqual([
      'sick at 122,880 steps: The learning rate is too high',
      '+ kl-spikes: KL spikes up to 4.2 from step 61,440 on (steps 61,440 to 122,880)',
      '+ return-collapse: The return fell from 480 to 22 (steps 61,440 to 122,880)',
      '+ value-loss-large: The value loss is 120 at the end (steps 61,440 to 122,880)',
    ]);
  });

  test('the same again is no news, nor is a longer run', () => {
    expect(newsOf(sickReport(), sickReport({ steps: 130_000 }))).toEqual([]);
  });

  test('a verdict, a finding that comes, gets louder or goes', () => {
    const watch = sickReport({ verdict: 'watch', findings: [findingOf({ severity: 'warning' })] });
    expect(texts(healthyReport(), watch)[0]).toBe(
      'watch, was healthy at 122,880 steps: The learning rate is too high',
    );
    expect(texts(watch, sickReport())).toContainEqual(
      expect.stringMatching(/^kl-spikes: .*, now critical, was warning$/),
    );
    expect(texts(sickReport(), watch)).toContainEqual('- return-collapse: no longer seen');
    expect(texts(sickReport(), healthyReport('logs/ppo_1'))[0]).toBe(
      'healthy, was sick at 102,400 steps: Nothing wrong was found',
    );
  });

  test('what is only worth knowing and comes and goes is told once; a warning each time', () => {
    const said = new Set<string>();
    const looks = (severity: 'info' | 'warning'): string[] => {
      const seen = sickReport({ verdict: 'watch', findings: [findingOf({ severity })] });
      const calm = { ...seen, diagnosis: { ...seen.diagnosis, findings: [] } };
      return [texts(calm, seen, said), texts(seen, calm, said)].flat().map(text => text.slice(0, 11));
    };
    expect(looks('info')).toEqual(['+ kl-spikes', '- kl-spikes']);
    expect(looks('info')).toEqual([]);
    expect(looks('warning')).toEqual(['+ kl-spikes', '- kl-spikes']);
    expect(looks('warning')).toEqual(['+ kl-spikes', '- kl-spikes']);
  });

  test('what cannot be read is said once', () => {
    const gone = unreadable('x', 'its log is gone');
    expect(texts(sickReport(), gone)).toEqual(['not to be read now: x: its log is gone']);
    expect(newsOf(gone, { ...gone, error: 'x: two rows' })).toEqual([]);
    expect(texts(gone, healthyReport())[0]).toMatch(/^healthy at/);
  });
});

describe('pages', () => {
  test.each([...rules.map(({ code }) => code), ...rootCauses])('%s has one, and it fits', code => {
    const page = explain(code)!;
    expect(page).toContain(code);
    expect(page).toContain('What to do');
    for (const line of page.split('\n')) expect(columnsOf(line)).toBeLessThanOrEqual(80);
    expect(explain(code, { unicode: false })).toMatch(/^[\n -~]*$/);
  });

  test('every cause has words, and a rule that may point to it', () => {
    expect(causeTexts.map(({ code }) => code)).toEqual([...rootCauses]);
    for (const { title, meaning, remedy } of causeTexts)
      for (const text of [title, meaning, remedy]) expect(text.length).toBeGreaterThan(10);
    const pointed = new Set(rules.flatMap(({ causes }) => causes));
    expect(rootCauses.filter(cause => !pointed.has(cause))).toEqual([]);
  });

  test('codes are unique, and none hides a page', () => {
    const codes = rules.map(({ code }) => code);
    expect(new Set(codes).size).toBe(codes.length);
    for (const code of codes) expect(code).toMatch(/^[a-z0-9-]+$/);
  });

  test('an unknown code gets the nearest one', () => {
    expect(explain('kl-spike')).toBeUndefined();
    expect(unknownCode('kl-spike')).toContain('did you mean kl-spikes?');
    expect(unknownCode('qqqqqqqqqqqq')).toContain('--list-rules');
  });

  test('the list has every code', () => {
    for (const { code } of [...rules, ...causeTexts]) expect(listRules()).toContain(`  ${code}  `);
    for (const line of listRules().split('\n')) expect(columnsOf(line)).toBeLessThanOrEqual(80);
  });

  test('docs/rules is what the rules say: npx tsx tools/rule-pages.ts makes it', () => {
    const directory = fileURLToPath(new URL('../../../docs/rules/', import.meta.url));
    const pages = rulePages(rules);
    expect(readdirSync(directory).sort()).toEqual([...pages.keys()].sort());
    for (const [name, text] of pages) expect(readFileSync(`${directory}${name}`, 'utf8'), name).toBe(text);
  });

  test('and docs/dialects.md is what the dialects say', () => {
    const file = fileURLToPath(new URL('../../../docs/dialects.md', import.meta.url));
    expect(readFileSync(file, 'utf8')).toBe(dialectPage());
  });
});
