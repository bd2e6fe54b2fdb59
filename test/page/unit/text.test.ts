/** How numbers are written, ticks, sparklines, and the files that plots are saved as. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { spansOf } from '../../../src/doctor/findings.ts';
import { formatPlace, formatTicks, formatTimeTick, timeTicks } from '../../../web/lib/axis.ts';
import type { Line } from '../../../web/lib/envelope.ts';
import { csvCell, lineToCsv, plotToSvg } from '../../../web/lib/export.ts';
import {
  formatAge,
  formatBytes,
  formatCount,
  formatDuration,
  formatMoment,
  formatPercent,
  formatSetting,
  formatShort,
  formatTick,
  formatValue,
  sentence,
  words,
} from '../../../web/lib/format.ts';
import { gapAfter } from '../../../web/lib/gap.ts';
import { createPace } from '../../../web/lib/pace.ts';
import { curveOf } from '../../../web/lib/plot-data.ts';
import { plain } from '../../../web/lib/prose.ts';
import { sparklinePaths } from '../../../web/lib/sparkline.ts';
import { decades, niceTicks } from '../../../web/lib/ticks.ts';

describe('numbers', () => {
  test.each([
    [null, '–'],
    [Number.NaN, '–'],
    [0, '0'],
    [0.00612, '0.00612'],
    [0.0574, '0.0574'],
    [0.5, '0.5000'],
    [1.5, '1.500'],
    [347.84, '347.8'],
    [-12.3, '−12.30'],
    [12345.6, '12,345.6'],
    [9_999_999, '9,999,999'],
    [1e7, '1.00×10⁷'],
    [1.25e-5, '1.25×10⁻⁵'],
    [3e12, '3.00×10¹²'],
  ])('%s reads %s', (value, text) => expect(formatValue(value)).toBe(text));
  test.each([
    [0, '0'],
    [999, '999'],
    [1000, '1k'],
    [1_250_000, '1.25M'],
    [999_999, '1M'],
    [2_048_000_000, '2.05B'],
    [0.25, '0.25'],
  ])('%s is short as %s', (value, text) => expect(formatShort(value)).toBe(text));
  test('counts, durations, ages, bytes, words', () => {
    expect(formatCount(1234567)).toBe('1,234,567');
    expect([5, 65, 3700, 90_000].map(s => formatDuration(s * 1000))).toEqual([
      '5 s',
      '1 min 05 s',
      '1 h 01 min',
      '1 d 01 h',
    ]);
    expect([3, 45, 200, 8000, 200_000, 9e6].map(s => formatAge(0, s * 1000))).toEqual([
      'now',
      '40 s ago',
      '3 min ago',
      '2 h ago',
      '2 d ago',
      '3 months ago',
    ]);
    expect([0, 0.954, 1].map(formatPercent)).toEqual(['0%', '95%', '100%']);
    // On an axis as in a readout.
    expect([1e-4, 2e-5, 1.2e-5, -1e-7].map(v => formatTick(v, Math.abs(v)))).toEqual([
      '10⁻⁴',
      '2×10⁻⁵',
      '10⁻⁵',
      '−10⁻⁷',
    ]);
    expect([12, 184_320, 2.5e9].map(formatBytes)).toEqual(['12 B', '184 kB', '2.5 GB']);
    expect([0.02, 3e-4, 1e-7, 2048, -0.5, null].map(formatSetting)).toEqual([
      '0.02',
      '0.0003',
      '1e−7',
      '2048',
      '−0.5',
      '–',
    ]);
    expect(sentence(words('learning-rate-too-high'))).toBe('Learning rate too high');
  });
  test('neighbouring ticks never read the same', () => {
    fc.assert(
      fc.property(
        fc.double({ min: -1e6, max: 1e6, noNaN: true }),
        fc.double({ min: 1e-5, max: 1e6, noNaN: true }),
        (from, width) => {
          fc.pre(width > Math.abs(from) * 1e-4);
          const ticks = niceTicks(from, from + width, 6);
          const labels = ticks.map(tick => formatTick(tick, ticks.length > 1 ? ticks[1] - ticks[0] : width));
          expect(new Set(labels).size).toBe(labels.length);
        },
      ),
    );
  });
});

describe('axes', () => {
  test('round numbers inside, about as many as asked for', () => {
    expect(niceTicks(0, 100, 5)).toEqual([0, 20, 40, 60, 80, 100]);
    expect(niceTicks(0.01, 0.05, 4)).toEqual([0.01, 0.02, 0.03, 0.04, 0.05]);
    expect(decades(0.00005, 3)).toEqual([0.0001, 0.001, 0.01, 0.1, 1]);
    expect(decades(0.012, 0.3)).toEqual([0.02, 0.05, 0.1, 0.2]);
    // Within a part of a decade: round numbers, where its own would be one or none.
    expect(decades(190, 310)).toEqual([200, 250, 300]);
    expect(decades(1, 100)).toEqual([1, 2, 5, 10, 20, 50, 100]);
    expect(decades(1, 1000)).toEqual([1, 10, 100, 1000]);
  });
  test('time is counted from the first point, in its own units', () => {
    const origin = 1_700_000_000_123;
    expect(timeTicks(origin, origin + 3600_000, origin, 700).map(t => (t - origin) / 60_000)).toEqual([
      0, 10, 20, 30, 40, 50, 60,
    ]);
    expect(formatTimeTick(origin + 90_000, origin, 30_000)).toBe('1:30 min');
    expect(formatTimeTick(origin + 2 * 3600_000, origin, 3600_000)).toBe('2 h');
    expect(formatTimeTick(origin + 5400_000, origin, 1800_000)).toBe('1:30 h');
    expect(formatTimeTick(origin + 3600_000, origin, 1800_000)).toBe('1:00 h');
    expect(formatTicks('step', [0, 500_000, 1_000_000, 1_500_000], 0)).toEqual(['0', '500k', '1M', '1.5M']);
    // There is nothing between two steps, and what would not be short is told in full.
    expect(formatTicks('step', [639.8, 640, 640.2], 0)).toEqual(['', '640', '']);
    expect(formatTicks('step', [16_383.8, 16_384, 16_384.2], 0)).toEqual(['', '16,384', '']);
    expect(formatPlace('iteration', 1200, 0)).toBe('iteration 1,200');
    expect(formatPlace('time', origin + 65_000, origin)).toMatch(
      /^1 min 05 s · 2023-11-\d\d \d\d:\d\d:\d\d$/,
    );
  });
});

describe('the pace of a run', () => {
  test('is that of the last minute, however each row scatters', () => {
    const pace = createPace();
    let [time, step, last] = [0, 0, 0];
    for (let i = 0; i < 120; i++) {
      // Iterations of 1 s and 3 s in turn: rows claim 2,048 and 683 steps per second, the truth is 1,024.
      time += i % 2 === 0 ? 1000 : 3000;
      step += 2048;
      last = pace(time, step, i % 2 === 0 ? 2048 : 2048 / 3)!;
      if (time > 64_000) expect(Math.abs(last / 1024 - 1)).toBeLessThan(0.05);
    }
    // It follows a change within the minute.
    for (let i = 0; i < 61; i++) {
      time += 1000;
      step += 100;
      last = pace(time, step, 100)!;
    }
    expect(last).toBeCloseTo(100, 6);
  });
  test('begins with the first claim, moves slowly from it, and forgets what a rewound log said', () => {
    const pace = createPace();
    expect(pace(0, 1000, 500)).toBe(500);
    expect(pace(6000, 1000, 1)).toBeCloseTo(450, 9);
    expect(pace(7000, 10, 80)).toBe(80);
    const without = createPace();
    expect(without(0, 0, null)).toBeNull();
    expect(without(2000, 100, null)).toBe(50);
  });
});

describe('a name that is cut', () => {
  test('the gap is what is left after the letters that fit and the ellipsis', () => {
    // Letters of 10 pixels, an ellipsis of 12.
    const measure = (text: string) => (text.length - 1) * 10 + 12;
    expect(gapAfter('abcdefghij', 57, measure)).toBe(5);
    expect(gapAfter('abcdefghij', 62, measure)).toBe(0);
    expect(gapAfter('abcdefghij', 5, measure)).toBe(0);
    expect(gapAfter('', 20, measure)).toBe(8);
  });
});

describe('sparklines', () => {
  test('stay in their box, break at holes, are flat for a constant', () => {
    expect(sparklinePaths([[0, 5, 10]], 100, 20)).toEqual(['M0 20L50 10L100 0']);
    expect(sparklinePaths([[1, null, 1]], 100, 20)).toEqual(['M0 10h.01M100 10h.01']);
    expect(sparklinePaths([[null, Number.NaN]], 100, 20)).toEqual(['']);
    expect(sparklinePaths([[7]], 100, 20)).toEqual(['M0 10h.01']);
  });
});

describe('files', () => {
  const line: Line = {
    x: [1, 2, 3],
    min: [1, 2, null],
    max: [3, 4, null],
    mean: [2, 3, null],
    count: [2, 2, 1],
    broken: [{ x: 3, count: 1 }],
  };
  test('CSV has the buckets that are seen', () => {
    expect(lineToCsv('kl/step', 'step', line, 2, 3)).toBe(
      'step,kl/step min,kl/step mean,kl/step max,points\n2,2,3,4,2\n3,,,,1\n',
    );
    expect(csvCell('=cmd("x")')).toBe('"\'=cmd(""x"")"');
    expect(csvCell('a,b')).toBe('"a,b"');
  });
  test('SVG holds the curve, and nothing that a name could smuggle in', () => {
    const curve = curveOf(line, { label: 'a', color: 0, smooth: 0, log: false });
    const svg = plotToSvg({
      title: '<script>alert(1)</script>&',
      axis: 'step',
      origin: 0,
      from: 1,
      to: 3,
      low: 0,
      high: 5,
      log: false,
      curves: [curve, { ...curve, label: '"><g onload=x>' }],
      colors: { paper: '#fff', ink: '#000', grid: '#eee', lines: ['#123456'] },
      tints: [{ from: 1, to: Number.POSITIVE_INFINITY, color: 'red' }],
      levels: [{ value: 2, label: 'target' }],
    });
    expect(svg).not.toMatch(/<script|<g onload/);
    expect(svg).toContain('&#60;script&#62;');
    expect(svg).toContain('stroke="#123456"');
    // x from 64 to 784, y from 368 (0) to 40 (5): the first two means, 2 and 3.
    expect(svg).toContain('d="M64 236.8L424 171.2"');
    expect(svg).toContain('>target<');
  });
});

describe('sentences of the doctor', () => {
  test('names in backticks are code; a lonely backtick is text', () => {
    expect(spansOf('`kl/step` is above `0.05` now')).toEqual([
      { text: 'kl/step', code: true },
      { text: ' is above ', code: false },
      { text: '0.05', code: true },
      { text: ' now', code: false },
    ]);
    expect(plain('a ` b')).toBe('a ` b');
    fc.assert(
      fc.property(fc.string(), text => {
        expect(plain(text).length).toBeLessThanOrEqual(text.length);
      }),
    );
  });
});

test('a moment is a time of day, and of another day says which', () => {
  const at = (text: string) => new Date(text).getTime();
  expect(formatMoment(at('2026-01-05T04:03:09'), at('2026-01-05T23:59:59'))).toBe('04:03:09');
  expect(formatMoment(at('2026-01-05T23:59:59'), at('2026-01-06T00:00:01'))).toBe('2026-01-05 23:59:59');
});
