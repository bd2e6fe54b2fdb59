/** Curves: what is drawn where, and that no spike is lost. */
import { describe, expect, test } from 'vitest';
import { painter } from '../../../src/base/terminal.ts';
import { chart, sparkline } from '../../../src/doctor/report/chart.ts';
import { bucketed, merged, PLOT_POINTS, plotsOf } from '../../../src/doctor/report/plot.ts';
import { logTicks, shareOf, ticks } from '../../../src/doctor/report/scale.ts';
import { diagnosisOf, findingOf, runOf, seriesOf } from './made.ts';

const style = { columns: 60, rows: 4, paint: painter(false) };
const plotOf = (values: readonly number[], id = 'loss/value', finding = {}) =>
  plotsOf(diagnosisOf({ findings: [findingOf({ marks: [], ...finding })] }), runOf({ [id]: values }))[0];

describe('scale', () => {
  test('more than three decades of positive values are drawn as logarithms, returns never', () => {
    expect(plotOf([1, 10, 1001])).toMatchObject({ log: true, low: 1, high: 1001 });
    expect(plotOf([1, 10, 999])).toMatchObject({ log: false });
    expect(plotOf([-1, 10, 1e6])).toMatchObject({ log: false, low: -1 });
    expect(plotOf([1, 10, 1e6], 'episode/return')).toMatchObject({ log: false });
  });

  test('a few zeros do not stretch it', () => {
    const values = Array.from({ length: 100 }, (_, i) => (i < 3 ? 0 : 10 ** (i / 20)));
    expect(plotOf(values)).toMatchObject({ log: true, low: 10 ** 0.15, high: 10 ** 4.95, lowest: 0 });
    expect(chart(plotOf(values), { ...style, unicode: true })[4]).toMatch(/^ *<1\.41 ┤/);
    expect(plotOf([1e-12, ...values.slice(3)])).toMatchObject({ log: true, low: 10 ** 0.15, lowest: 1e-12 });
  });

  test('shares are between 0 and 1 even at the ends of the number range', () => {
    expect(shareOf(0, -1.7e308, 1.7e308, false)).toBeCloseTo(0.5);
    expect(shareOf(10, 1, 100, true)).toBeCloseTo(0.5);
    expect(shareOf(0, 1, 100, true)).toBe(0);
    expect(shareOf(5, 5, 5, false)).toBe(0.5);
  });

  test('ticks are round and inside', () => {
    expect(ticks(0, 100, 5)).toEqual([0, 20, 40, 60, 80, 100]);
    expect(ticks(-0.82, 0.95, 4)).toEqual([-0.5, 0, 0.5]);
    expect(logTicks(0.002, 5, 5)).toEqual([0.01, 0.1, 1]);
    for (const [low, high] of [
      [1e-300, 2e-300],
      [-1e308, 1e308],
      [3, 3],
      [1e15, 1e15 + 4],
    ] as const) {
      const found = ticks(low, high, 5);
      expect(found.length).toBeGreaterThan(0);
      expect(found.length).toBeLessThan(14);
      for (const tick of found) expect(Number.isFinite(tick)).toBe(true);
    }
  });
});

describe('points', () => {
  test('are bounded, and every extreme and broken value survives', () => {
    const values = Array.from({ length: 50_000 }, (_, i) =>
      i === 31_337 ? 99 : i === 40_000 ? Number.NaN : 1,
    );
    const points = bucketed(seriesOf(values), PLOT_POINTS);
    expect(points).toHaveLength(PLOT_POINTS);
    expect(Math.max(...points.map(({ max }) => max))).toBe(99);
    expect(points.reduce((sum, { broken }) => sum + broken, 0)).toBe(1);
    expect(merged(points, 10).filter(({ max }) => max === 99)).toHaveLength(1);
  });

  test('cited series come first, then the headline metrics', () => {
    const run = runOf({
      'episode/return': [1, 2],
      'loss/value': [1, 2],
      'kl/step': [1, 2],
      'adv/std': [1, 2],
    });
    const marks = [{ metric: 'adv/std', theirs: 'adv', from: 0, to: 1 }];
    const plots = plotsOf(diagnosisOf({ findings: [findingOf({ marks })] }), run);
    expect(plots.map(({ metric }) => metric)).toEqual(['adv/std', 'kl/step', 'episode/return']);
  });
});

describe('in a terminal', () => {
  test('a rising line goes from the lower left to the upper right', () => {
    const lines = chart(plotOf(Array.from({ length: 40 }, (_, i) => i)), { ...style, unicode: true });
    expect(lines).toHaveLength(7);
    expect(lines[1]).toMatch(/^39 ┤ +\S+$/);
    expect(lines[4]).toMatch(/^ 0 ┤\S+$/);
    const starts = lines.slice(1, 5).map(line => line.slice(4).search(/\S/));
    expect(starts).toEqual([...starts].sort((a, b) => b - a));
  });

  test('each braille cell shows the dots that belong to it', () => {
    // Two columns of dots a cell, 4 rows: from the lowest to the highest in one step.
    const lines = chart(plotOf([0, 1]), { ...style, columns: 11, rows: 1, unicode: true });
    expect(lines[1]).toBe('1 ┤⣀⡠⠤⠤⠒⠒⠊⠉');
  });

  test('the cited stretch is marked under its columns', () => {
    const marks = [{ metric: 'loss/value', theirs: 'v', from: 51 * 2048, to: 100 * 2048 }];
    const values = Array.from({ length: 100 }, (_, i) => i % 7);
    const [, , , , , axis] = chart(plotOf(values, 'loss/value', { marks }), { ...style, unicode: true });
    expect(axis).toMatch(/^ {2}└─{28,30}━{27,30}$/);
  });

  test('a spike of one row among thousands is seen', () => {
    const values = Array.from({ length: 20_000 }, (_, i) => (i === 10_000 ? 50 : 1));
    for (const unicode of [true, false]) {
      const [, top] = chart(plotOf(values), { ...style, unicode });
      expect(top.slice(5).trim()).toHaveLength(1);
    }
    expect(sparkline(plotOf(values), 40)).toMatch(/^▁{19,20}█▁{19,20}$/);
  });

  test('what is not finite is a cross on the axis, and a gap in the line', () => {
    const values = Array.from({ length: 58 }, (_, i) => (i >= 29 ? Number.NaN : 1 + i));
    const lines = chart(plotOf(values), { ...style, columns: 62, unicode: true });
    expect(lines[5]).toMatch(/^ {3}└─{27,29}×{28,30}$/);
    expect(lines[1].trimEnd().length).toBeLessThan(36);
    expect(sparkline(plotOf(values), 58)).toMatch(/^[▁-█]{29}×{29}$/);
  });

  test('a line that never moves has its value beside it', () => {
    const lines = chart(plotOf([7, 7, 7]), { ...style, unicode: true });
    expect(lines.filter(line => /[\u2801-\u28ff]/.test(line))).toEqual([lines[3]]);
    expect(lines[3]).toMatch(/^7 ┤/);
  });

  test('nothing finite, one point, one value: still a chart', () => {
    for (const values of [[Number.NaN, Number.NaN], [3], [3, 3, 3], [Number.POSITIVE_INFINITY]]) {
      const lines = chart(plotOf(values), { ...style, unicode: true });
      expect(lines).toHaveLength(7);
      expect(lines.join('')).not.toContain('undefined');
    }
  });
});
