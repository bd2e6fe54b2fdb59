import { appendFileSync, mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, test } from 'vitest';
import { judgePresets } from '../../bench/figures/conduct.ts';
import { curvesOf, tablesOf } from '../../bench/figures/document.ts';
import { hashOf, presetHash } from '../../bench/figures/preset.ts';
import { addRecord, type RunRecord, readRecords, seenBefore } from '../../bench/figures/record.ts';
import { freshSeeds, freshSeedsOf, refusal, type Seen, seedsOf } from '../../bench/figures/seeds.ts';
import { pickTasks, tasks } from '../../bench/figures/tasks.ts';
import { withMarked } from '../../bench/marked.ts';

describe('seeds that judge', () => {
  const seen: Seen[] = [
    { env: 'A', preset: 'old', seed: 1003 },
    { env: 'A', preset: 'old', seed: 4 },
    { env: 'A', preset: 'older', seed: 1205 },
    { env: 'B', preset: 'old', seed: 1101 },
  ];

  test('a changed preset gets the next block that no other was seen in', () => {
    expect(freshSeeds([], 'A', 'new', 2)).toEqual([1000, 1001]);
    expect(freshSeeds(seen, 'A', 'new', 3)).toEqual([1100, 1101, 1102]);
    expect(freshSeeds([...seen, { env: 'A', preset: 'newer', seed: 1100 }], 'A', 'new', 1)).toEqual([1300]);
  });

  test('the same preset keeps its own', () => {
    expect(freshSeeds(seen, 'A', 'old', 2)).toEqual([1000, 1001]);
    expect(refusal(seen, 'A', 'old', 1003)).toBeUndefined();
  });

  test.each([
    [0, /seed 0 tunes \(0 to 9\)/],
    [9, /seed 9 tunes/],
    [10, /seed 10 is neither/],
    [999, /seed 999 is neither/],
    [1000, /another preset of A was judged on \(old, seed 1003\).*begins at 1100/],
    [1299, /another preset of A was judged on \(older, seed 1205\)/],
  ])('seed %i is refused', (seed, why) => {
    expect(refusal(seen, 'A', 'new', seed)).toMatch(why);
  });

  test('a fresh one is not', () => {
    expect(refusal(seen, 'A', 'new', 1100)).toBeUndefined();
    expect(refusal(seen, 'A', 'new', 1199)).toBeUndefined();
  });

  test('are written as a range or a list', () => {
    expect(seedsOf('1000..1002')).toEqual([1000, 1001, 1002]);
    expect(seedsOf('7')).toEqual([7]);
    expect(seedsOf('1000,1005')).toEqual([1000, 1005]);
    expect(seedsOf('7,7')).toEqual([7]);
    for (const wrong of ['', 'a', '5..3', '1..', '1000,', '-1', '1000..999999999', '99999999999999999999'])
      expect(() => seedsOf(wrong)).toThrow('--seeds');
  });

  test('benches without records take no seed that tunes, and none that belongs to neither', () => {
    expect(freshSeedsOf('1000..1002')).toEqual([1000, 1001, 1002]);
    expect(() => freshSeedsOf('1000,9')).toThrow('seed 9 tunes (0 to 9)');
    expect(() => freshSeedsOf('999')).toThrow('neither');
  });
});

describe('a preset', () => {
  test('has a name that changes with its values alone', () => {
    expect(hashOf({ a: 1, b: [2] })).toBe(hashOf({ b: [2], a: 1 }));
    expect(hashOf({ a: 1, b: [2] })).not.toBe(hashOf({ a: 1, b: [3] }));
    expect(hashOf({ a: 1 })).toMatch(/^[0-9a-f]{12}$/);
  });

  const options = { tune: false, set: [], jobs: '1', runs: 'runs/figures' };
  it.each([
    ['a seed that tunes', { ...options, seeds: '0..4' }, /seed 0 tunes/],
    ['a seed that judges while tuning', { ...options, tune: true, seeds: '1000' }, /--tune with seed 1000/],
    ['another setting than its own', { ...options, set: ['gamma=0.9'] }, /without --tune/],
    ['no jobs', { ...options, jobs: '0' }, /--jobs 0/],
    ['more jobs than cores', { ...options, jobs: '1e3' }, /--jobs 1e3/],
    ['seeds beyond those that judge it', { ...options, seeds: '1140' }, /seed 1140 is none of the 40/],
    ['a setting without a value', { ...options, tune: true, set: ['gamma'] }, /--set gamma sets nothing/],
  ])('is not judged with %s', async (_, wrong, why) => {
    await expect(judgePresets(pickTasks(['classic'], ['cartpole']), wrong)).rejects.toThrow(why);
  });
});

test('tasks are picked by their names', () => {
  expect(pickTasks(['suite'], ['half-cheetah', 'hopper']).map(({ env }) => env)).toEqual([
    'HalfCheetah-v5',
    'Hopper-v5',
  ]);
  expect(pickTasks(['wild'], ['pendulum'])).toHaveLength(4);
  expect(pickTasks(['suite'], ['hopper', 'hop'])).toHaveLength(1);
  expect(() => pickTasks(['suite'], ['cartpole'])).toThrow("'cartpole' is none of HalfCheetah-v5");
  expect(new Set(tasks.map(({ id }) => id)).size).toBe(tasks.length);
});

const pendulum: RunRecord = {
  task: 'Pendulum-v1',
  env: 'Pendulum-v1',
  preset: presetHash('Pendulum-v1'),
  seed: 1100,
  changes: {},
  steps: 200_000,
  evaluated: -150,
  episodes: 200,
  trained: -160,
  guard: 0.05,
  klLargest: 0.0412,
  klLargestRaw: 0.05,
  klMedian: 0.01,
  klLongest: 2,
  updates: 98,
  guarded: 1,
  verdict: 'healthy',
  findings: [],
  minutes: 0.1,
  commit: 'abc',
  curve: [[2048, -900]],
};

describe('records', () => {
  test('come back as they were written; a half line is passed over, the newer of two stands', () => {
    const path = join(mkdtempSync(join(tmpdir(), 'keel-figures-')), 'records.jsonl');
    expect(readRecords(path)).toEqual([]);
    addRecord(pendulum, path);
    addRecord({ ...pendulum, seed: 1101 }, path);
    addRecord({ ...pendulum, evaluated: -140 }, path);
    appendFileSync(path, '{"task":"Pend');
    expect(readRecords(path)).toHaveLength(2);
    // What comes after the half line is on a line of its own.
    addRecord({ ...pendulum, seed: 1102 }, path);
    expect(readRecords(path)).toEqual([
      { ...pendulum, evaluated: -140 },
      { ...pendulum, seed: 1101 },
      { ...pendulum, seed: 1102 },
    ]);
  });

  test('of other presets and of seeds that tune are in no table', () => {
    const { 'figures classic': table } = tablesOf([
      pendulum,
      { ...pendulum, seed: 1101, evaluated: -250, verdict: 'watch', findings: ['kl-high'] },
      { ...pendulum, seed: 3, evaluated: -777 },
      { ...pendulum, seed: 1202, preset: 'other', evaluated: -888 },
      { ...pendulum, seed: 1120, evaluated: -666 },
      { ...pendulum, seed: 1102, episodes: 5, evaluated: -555 },
    ]);
    expect(table).toContain('1100, 1101 (2 of 20 are run)');
    expect(table).toContain(`\`${pendulum.preset}\` (1 judged before)`);
    expect(table).toContain('1 of 2 at -200');
    expect(table).toContain('1 healthy, 1 watch (kl-high)');
    expect(table).toContain('-150, -250');
    expect(table).not.toMatch(/777|888|666|555/);
  });

  test('no record has a seed that may not judge its preset', () => {
    const seen: Seen[] = seenBefore();
    let judged = 0;
    // As they were written, one after the other.
    for (const record of readRecords()) {
      const { env, preset, seed } = record;
      if (seed > 9) {
        expect(refusal(seen, env, preset, seed)).toBeUndefined();
        judged++;
      }
      seen.push(record);
    }
    expect(judged).toBeGreaterThan(0);
  });

  test("are what the document's tables and curves say", () => {
    const records = readRecords();
    const text = readFileSync('docs/results.md', 'utf8');
    expect(text).not.toContain('@@');
    for (const [name, table] of Object.entries(tablesOf(records)))
      expect(withMarked(text, name, table) === text, `${name}: run npm run bench -- figures`).toBe(true);
    expect(readFileSync('docs/pictures/robots.svg', 'utf8')).toBe(curvesOf(records));
  });
});
