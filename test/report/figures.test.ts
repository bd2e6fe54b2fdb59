/** What the page of a report draws, and that nothing of a log gets out of it. */
import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { unreadable } from '../../src/doctor/report/run-report.ts';
import { figuresOf } from '../../src/report/figures.ts';
import { renderReport } from '../../src/report/page.ts';
import { seedRun } from './made.ts';

const attack = '</script><script>alert(1)</script><img src=x onerror=alert(1)>"\'&`\u2028\u202e\u001b[31m';

describe('figures', () => {
  test('the one large value of 4,000 rows is in the 400 points that are left', () => {
    const { metrics } = figuresOf([seedRun(0)], ['a']);
    const [line] = metrics.find(({ metric }) => metric === 'kl/step')!.runs;
    expect(line.x.length).toBeLessThanOrEqual(400);
    expect(Math.max(...line.max.map(Number))).toBe(3);
  });

  test('runs that differ in their seed alone are one line, with an interval and n', () => {
    const reports = [seedRun(0), seedRun(1), seedRun(10), seedRun(3, { rate: '0.01' })];
    const { runs, groups, metrics } = figuresOf(reports, ['a', 'b', 'c', 'd']);
    expect(runs.map(({ group }) => group)).toEqual([0, 0, 0, 1]);
    expect(groups).toEqual(['a and 2 other seeds', 'd']);
    const [line, ...others] = metrics.find(({ metric }) => metric === 'episode/return')!.groups;
    expect(others).toEqual([]);
    expect(line.n!.at(-1)).toBe(3);
    const [low, high] = [line.min.at(-1)!, line.max.at(-1)!];
    expect(low).toBeGreaterThan(493);
    expect(high).toBeLessThan(505);
    expect(line.mean.at(-1)).toBeGreaterThan(low);
    expect(line.mean.at(-1)).toBeLessThan(high);
    const [kl] = metrics.find(({ metric }) => metric === 'kl/step')!.groups;
    expect(Math.max(...kl.mean.map(Number))).toBeLessThan(3);
    expect(Math.max(...kl.peak!.map(Number))).toBe(3);
  });

  test('a run whose settings are not known is in no group', () => {
    const { log: _, ...bare } = seedRun(0);
    expect(figuresOf([bare, bare], ['a', 'b']).groups).toEqual(['a', 'b']);
  });
});

describe('the page', () => {
  test('has one script and one style, both by their hashes, and no address', () => {
    const page = renderReport([seedRun(0, { text: attack }), seedRun(1)], '2026-01-01');
    const scripts = [...page.matchAll(/<script([^>]*)>([\s\S]*?)<\/script>/g)];
    expect(scripts).toHaveLength(2);
    expect(scripts[0][1]).toBe(' type="application/json" id="data"');
    const policy = /http-equiv="Content-Security-Policy" content="([^"]*)"/.exec(page)![1];
    expect(policy).toContain(createHash('sha256').update(scripts[1][2]).digest('base64'));
    expect(policy).not.toContain('unsafe');
    expect(page).not.toMatch(/<img|https?:\/\/(?!www\.w3\.org\/2000\/svg)|\u202e|\u2028/);
    expect(page).not.toContain('\u001b');
    expect(() => JSON.parse(scripts[0][2])).not.toThrow();
  });

  test('stays small, however many rows and runs there are', () => {
    const page = renderReport(Array.from({ length: 40 }, (_, i) => seedRun(i)));
    expect(page.length).toBeLessThan(4e6);
    expect(renderReport([seedRun(0)]).length).toBeLessThan(150_000);
  });

  test('names what could not be read, and why', () => {
    const bad = unreadable(`runs/b${attack}`, `its manifest is missing${attack}`);
    const page = renderReport([seedRun(0), bad]);
    expect(page).toMatch(/<h2>Not read<\/h2><ul><li><code>runs\/b.*<\/code>: its manifest is missing/);
    expect(page).not.toMatch(/<img|\u202e/);
    expect(renderReport([seedRun(0)])).not.toContain('Not read');
  });

  test('of several runs shows the settings that differ, and how long each took', () => {
    const page = renderReport([seedRun(0), seedRun(1, { name: 'other', rate: '0.01' })]);
    expect(page).toContain('Settings that differ');
    expect(page).toContain('learning_rate</th><td>0.0003</td><td>0.01');
    expect(page).toContain('<td>1h02m</td><td>1h02m</td>');
  });
});
