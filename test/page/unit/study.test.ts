/** What the page makes of a study: axes, brushes, who is best, orders, colours. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { StudyRun, StudyTrial } from '../../../src/server/api.ts';
import type { Domain } from '../../../src/studies/schema.ts';
import {
  axesPath,
  dragBrush,
  isWithin,
  moveEnd,
  nearestLine,
  nearestPoint,
  paramText,
  resultScale,
  settingScale,
  withBrush,
} from '../../../web/lib/scale.ts';
import {
  bestSoFar,
  klOf,
  objectiveText,
  rampColor,
  ranks,
  reuseTrials,
  sortTrials,
  stepsOf,
  verdictOf,
} from '../../../web/lib/study.ts';

const run = (change: Partial<StudyRun> = {}): StudyRun => ({
  id: 'x',
  run: 'r',
  seed: 0,
  status: 'done',
  step: 10,
  finished: true,
  value: 1,
  verdict: 'healthy',
  rootCause: null,
  klMedian: null,
  klLargest: null,
  seconds: 1,
  worker: 'w',
  problem: null,
  ...change,
});
const trial = (number: number, value: number | null, change: Partial<StudyTrial> = {}): StudyTrial => ({
  number,
  state: value === null ? 'running' : 'complete',
  params: {},
  purpose: 'search',
  seeds: [0],
  value,
  rungs: [],
  violations: [],
  startedAt: null,
  endedAt: null,
  runs: [],
  coming: [],
  ...change,
});

describe('axes', () => {
  const float = (low: number, high: number, log = false): Domain => ({ kind: 'float', low, high, log });

  test('linear, logarithmic, choices', () => {
    const linear = settingScale(float(0, 10));
    expect([0, 2.5, 10].map(linear.at)).toEqual([0, 0.25, 1]);
    expect(linear.ticks.map(({ text }) => text)).toEqual(['0', '5', '10']);
    const log = settingScale(float(1e-5, 1e-1, true));
    expect([1e-5, 1e-3, 1e-1].map(v => log.at(v)!.toFixed(6))).toEqual(['0.000000', '0.500000', '1.000000']);
    expect(log.ticks.map(({ text }) => text)).toEqual(['10⁻⁵', '10⁻⁴', '0.001', '0.01', '0.1']);
    expect(log.textAt(0.5)).toBe('0.001');
    const choice = settingScale({ kind: 'choice', values: ['a', null, [64, 64], true] });
    expect(choice.ticks.map(({ text }) => text)).toEqual(['a', 'null', '[64,64]', 'true']);
    expect(choice.at([64, 64])).toBe(0.625);
    expect(choice.textAt(1)).toBe('true');
    expect(choice.textAt(0)).toBe('a');
  });

  test('what is absent or of another kind has no place; a trial beyond the domain widens it', () => {
    const axis = settingScale(float(0, 10), [3, 20, undefined, 'x']);
    expect(axis.at(20)).toBe(1);
    expect([undefined, 'x', null, Number.NaN].map(axis.at)).toEqual([null, null, null, null]);
    expect(settingScale(float(1, 10, true)).at(-1)).toBeNull();
    expect(settingScale({ kind: 'choice', values: ['a'] }).at(undefined)).toBeNull();
    // 0 has no logarithm: the axis is linear rather than empty.
    expect(settingScale(float(0, 10, true)).log).toBe(false);
  });

  test('results have room at both ends, also when there is one or none', () => {
    const axis = resultScale([10, null, 20, Number.NaN]);
    expect(axis.at(10)).toBeGreaterThan(0);
    expect(axis.at(20)).toBeLessThan(1);
    expect(resultScale([5]).at(5)).toBeCloseTo(0.5);
    expect(resultScale([0]).at(0)).toBeCloseTo(0.5);
    expect(resultScale([]).at(0.5)).toBe(0.5);
  });

  test('every value of a domain is on its axis, in order, and every tick too', () => {
    const ends = fc.tuple(
      fc.double({ min: 1e-9, max: 1e9, noNaN: true }),
      fc.double({ min: 1.01, max: 1e6, noNaN: true }),
    );
    fc.assert(
      fc.property(ends, fc.boolean(), fc.double({ min: 0, max: 1, noNaN: true }), ([low, factor], log, u) => {
        const axis = settingScale(float(low, low * factor, log));
        const at = axis.at(low + u * (low * factor - low))!;
        if (!(at >= -1e-9 && at <= 1 + 1e-9)) throw new Error(`${at}`);
        for (const tick of axis.ticks)
          if (!(tick.at >= -1e-6 && tick.at <= 1 + 1e-6)) throw new Error(`tick ${tick.text} at ${tick.at}`);
      }),
    );
  });

  test('values as one would type them', () => {
    expect([0.0003, 'adam', true, null, [1, 2], undefined].map(paramText)).toEqual([
      '0.0003',
      'adam',
      'true',
      'null',
      '[1,2]',
      '–',
    ]);
  });
});

describe('brushes', () => {
  test('a drag in either direction, held to the axis; a click is none', () => {
    expect(dragBrush(0.2, 0.6)).toEqual([0.2, 0.6]);
    expect(dragBrush(0.6, -3)).toEqual([0, 0.6]);
    expect(dragBrush(0.5, 0.51)).toBeUndefined();
  });

  test('an end is moved, never beyond the other; over the whole axis it is none', () => {
    expect(moveEnd(undefined, 0, 0.3)).toEqual([0.3, 1]);
    expect(moveEnd([0.3, 0.5], 1, 0.1)).toEqual([0.3, 0.32]);
    expect(moveEnd([0.3, 0.5], 0, 0.9)![0]).toBeCloseTo(0.48);
    expect(moveEnd([0.3, 1], 0, -1)).toBeUndefined();
  });

  test('all must hold; what has no place on an axis is in no part of it', () => {
    const brushes = withBrush(withBrush({}, 'a', [0.2, 0.4]), 'b', [0.5, 1]);
    const places = (a: number | null, b: number | null) => (key: string) => (key === 'a' ? a : b);
    expect(isWithin(brushes, places(0.3, 0.5))).toBe(true);
    expect(isWithin(brushes, places(0.3, 0.4))).toBe(false);
    expect(isWithin(brushes, places(null, 0.6))).toBe(false);
    expect(isWithin({}, places(null, null))).toBe(true);
    expect(withBrush(brushes, 'a', undefined)).toEqual({ b: [0.5, 1] });
  });
});

describe('what is under the pointer', () => {
  const xs = [0, 100, 200];
  const lines = [
    { number: 1, ys: [0, 50, 50] },
    { number: 2, ys: [100, 100, null] },
  ];
  test('the line that passes nearest, between the axes too', () => {
    expect(nearestLine(lines, xs, 50, 24, 10)).toBe(1);
    expect(nearestLine(lines, xs, 50, 97, 10)).toBe(2);
    expect(nearestLine(lines, xs, 50, 60, 10)).toBeNull();
    expect(nearestLine(lines, xs, 150, 98, 10)).toBeNull();
    expect(nearestLine(lines, xs, -5, 2, 10)).toBe(1);
    expect(nearestLine(lines, xs, 300, 52, 10)).toBe(1);
    expect(nearestLine([], [], 0, 0, 10)).toBeNull();
  });
  test('the nearest point within reach', () => {
    const points = [
      { number: 4, x: 0, y: 0 },
      { number: 5, x: 10, y: 0 },
    ];
    expect(nearestPoint(points, 6, 0, 20)).toBe(5);
    expect(nearestPoint(points, 6, 30, 20)).toBeNull();
  });
  test('a line is broken where it has no place', () => {
    expect(axesPath([1, 2, null, 4], [0, 10, 20, 30])).toBe('M0.0 1.0L10.0 2.0M30.0 4.0');
  });
});

describe('trials', () => {
  test('the best so far leaves out what may not win, and goes by number', () => {
    const trials = [
      trial(4, 9),
      trial(0, 5),
      trial(1, 4),
      trial(2, 100, { violations: ['sick'] }),
      trial(3, 100, { state: 'pruned' }),
      trial(5, null),
      trial(6, 9),
    ];
    expect(bestSoFar(trials, 'maximize')).toEqual([
      { number: 0, value: 5 },
      { number: 4, value: 9 },
    ]);
    expect(bestSoFar(trials, 'minimize')).toEqual([
      { number: 0, value: 5 },
      { number: 1, value: 4 },
    ]);
    expect([...ranks(trials, 'maximize')]).toEqual([
      [4, 1],
      [0, 0.5],
      [1, 0],
      [6, 1],
    ]);
    expect(ranks(trials, 'minimize').get(1)).toBe(1);
    expect([...ranks([trial(0, 3)], 'maximize')]).toEqual([[0, 1]]);
  });

  test('KL, verdict and steps over the runs of a trial', () => {
    const some = trial(0, 1, {
      runs: [
        run({ klMedian: 0.01, klLargest: 0.02, verdict: 'healthy' }),
        run({ klMedian: 0.03, klLargest: 0.09, verdict: 'sick' }),
        run({ klMedian: 0.02, klLargest: null, verdict: null }),
      ],
    });
    expect(klOf(some)).toEqual({ median: 0.02, largest: 0.09 });
    expect(klOf({ ...some, runs: some.runs.slice(0, 2) }).median).toBeCloseTo(0.02);
    expect([verdictOf(some), stepsOf(some)]).toEqual(['sick', 30]);
    expect(klOf(trial(0, 1))).toEqual({ median: null, largest: null });
    expect(verdictOf(trial(0, 1))).toBeNull();
  });

  test('sorted by any column, without a value last either way', () => {
    const trials = [
      trial(0, 2, { params: { rate: 0.1, net: 'b' } }),
      trial(1, null, { params: { net: 'a' } }),
      trial(2, 7, { params: { rate: 0.01, net: 'b' } }),
    ];
    const order = (column: string, down: boolean) => sortTrials(trials, column, down).map(t => t.number);
    expect(order('value', true)).toEqual([2, 0, 1]);
    expect(order('value', false)).toEqual([0, 2, 1]);
    expect(order('p.rate', false)).toEqual([2, 0, 1]);
    expect(order('p.net', false)).toEqual([1, 0, 2]);
    expect(order('number', true)).toEqual([2, 1, 0]);
    expect(order('p.nothing', true)).toEqual([0, 1, 2]);
  });

  test('what has not changed stays the same object, so that nothing is drawn again', () => {
    const before = [trial(0, 2), trial(1, null)];
    expect(reuseTrials(before, [trial(0, 2), trial(1, null)])).toBe(before);
    const after = reuseTrials(before, [trial(0, 2), trial(1, 5), trial(2, null)]);
    expect([after[0] === before[0], after[1].value, after.length]).toEqual([true, 5, 3]);
  });

  test('words and colours', () => {
    const objective = { metric: 'score', direction: 'maximize', of: 'last', over: 'iqm' } as const;
    expect(objectiveText(objective, 3)).toBe(
      'score at the end, interquartile mean over 3 seeds, higher is better',
    );
    expect(objectiveText({ ...objective, direction: 'minimize' }, 1)).toBe(
      'score at the end, 1 seed, lower is better',
    );
    expect([rampColor(0, false), rampColor(1, false)]).toEqual(['#c9a227', '#2c2a78']);
    expect(rampColor(0.125, false)).toBe('#a8a339');
    expect(rampColor(7, true)).toBe(rampColor(1, true));
  });
});
