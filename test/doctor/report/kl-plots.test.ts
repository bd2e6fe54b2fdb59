/** A KL is drawn from 0, with its healthy band, the run's own lines and the absolute marks, in every report. */
import { describe, expect, it } from 'vitest';
import { reportSeries } from '../../../src/doctor/in-memory.ts';
import { renderHtml } from '../../../src/doctor/report/html.ts';
import { renderMarkdown } from '../../../src/doctor/report/markdown.ts';
import type { Plot } from '../../../src/doctor/report/plot.ts';
import { renderTerminal } from '../../../src/doctor/report/terminal.ts';
import { klMarks } from '../../../src/metrics/registry.ts';
import { tonePaints } from '../../../src/metrics/tones.ts';

const N = 40;
const rows = (f: (i: number) => number): number[] => Array.from({ length: N }, (_, i) => f(i));
const reportOf = (kl: readonly number[], settings: Record<string, number | null> = {}) =>
  reportSeries(
    {
      'kl/step': kl,
      'kl/step_raw': kl,
      'episode/return': rows(i => 20 + 10 * i),
      'train/iteration': rows(i => i + 1),
      'guard/scale': rows(() => 1),
    },
    {
      trainer: 'keel',
      config: Object.fromEntries(Object.entries(settings).map(([k, v]) => [`config/${k}`, v])),
    },
  );
const plotOf = (...args: Parameters<typeof reportOf>): Plot =>
  reportOf(...args).plots.find(({ metric }) => metric === 'kl/step')!;

describe('the plot of a KL', () => {
  it('begins at 0 and reaches the end of the healthy band, whatever its values', () => {
    const large = plotOf(rows(i => 0.031 + 0.0004 * i));
    expect(large).toMatchObject({ log: false, low: 0, lowest: 0.031 });
    expect(large.high).toBe(large.highest);
    const tiny = plotOf(rows(i => 2e-5 + 1e-7 * i));
    expect(tiny).toMatchObject({ log: false, low: 0, high: 0.01, lowest: 2e-5 });
    expect(tiny.highest).toBeLessThan(3e-5);
    expect(
      plotOf(
        rows(() => 0.001),
        { targetKl: 0.03 },
      ).high,
    ).toBe(0.03);
  });

  it('has the healthy band on a logarithmic scale, too', () => {
    const spiky = plotOf(rows(i => (i === 20 ? 3 : 0.02)));
    expect(spiky.log).toBe(true);
    expect([spiky.low, spiky.high]).toEqual([0.001, 3]);
    // Small values are no reason for one: 0 stays on the axis.
    const small = plotOf(rows(i => (i === 20 ? 0.004 : 3e-6)));
    expect(small.log).toBe(false);
    expect([small.low, small.high]).toEqual([0, 0.01]);
  });

  it('has the bands of the contract, its target and its guard with their words, and the quiet marks', () => {
    const kl = rows(i => 0.031 + 0.0006 * i);
    const page = renderHtml([reportOf(kl, { targetKl: 0.03, guard: 0.05 })]);
    expect(page).toContain('>target 0.03</text>');
    expect(page).toContain('>guard 0.05</text>');
    expect(page).toContain('healthy to 0.03, ok to 0.05');
    expect(page).not.toContain('>problem</text>');
    // The raw KL and the one that stands: five marks each, the largest within the scale of both.
    expect([...page.matchAll(/class="quiet"/g)].length).toBeGreaterThanOrEqual(klMarks.length);
    const plain = renderHtml([reportOf(kl, { targetKl: null, guard: null })]);
    expect(plain).toContain('>problem</text>');
    expect(plain).not.toContain('class="level');
    expect(plain).toContain('healthy to 0.01, ok to 0.02');
  });

  it('says the same in words and in Markdown: the highest value is a value, not the end of the scale', () => {
    const report = reportOf(rows(i => 2e-5 + 1e-7 * i));
    expect(renderHtml([report])).toMatch(/Lowest 2e-5, highest 2\.4e-5/);
    expect(renderMarkdown([report], { all: true })).toMatch(
      /healthy to 0\.01, ok to 0\.02.*\| 2e-5 \| 2\.4e-5 \|/,
    );
    expect(renderTerminal(report, { verbose: true })).toContain('healthy to 0.01, ok to 0.02');
    expect(renderTerminal(report, { verbose: true })).toMatch(/0\.01 ┤/);
  });

  it('has the colours of the page', () => {
    const page = renderHtml([reportOf(rows(() => 0.04))]);
    for (const theme of ['light', 'dark'] as const) expect(page).toContain(tonePaints[theme].bad.tint);
  });
});
