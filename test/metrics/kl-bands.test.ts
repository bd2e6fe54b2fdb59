/** Bands, words and colours of a KL: for the seeds' marks, and under any contract. */
import { readFileSync } from 'node:fs';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  bandOfRow,
  contractOf,
  FROZEN_KL,
  healthyEnds,
  healthyWords,
  isAtRest,
  isWorse,
  type KlBandName,
  klBand,
  klBands,
  klBandsFor,
  klLevels,
  klMarks,
  redAbove,
} from '../../src/metrics/kl-bands.ts';
import { findMetric, heldTo } from '../../src/metrics/registry.ts';
import { toneColours, tonePaints, toneProperties, tones } from '../../src/metrics/tones.ts';

const order: readonly KlBandName[] = ['frozen', 'small', 'healthy', 'ok', 'warning', 'problem', 'critical'];

describe('bands without a target', () => {
  const cases: [number, KlBandName][] = [
    [0, 'frozen'],
    [9.9e-7, 'frozen'],
    [1e-6, 'small'],
    [0.00099, 'small'],
    [0.001, 'healthy'],
    [0.01, 'healthy'],
    [0.0101, 'ok'],
    [0.02, 'ok'],
    [0.021, 'warning'],
    [0.03, 'warning'],
    [0.031, 'problem'],
    [0.05, 'problem'],
    [0.0501, 'critical'],
    [113, 'critical'],
    [Number.POSITIVE_INFINITY, 'critical'],
    [Number.NaN, 'invalid'],
    [-1e-9, 'invalid'],
    [Number.NEGATIVE_INFINITY, 'invalid'],
  ];

  it('are those of the design, with the default guard as without one', () => {
    for (const contract of [{}, { guard: null }, { target: null, guard: 0.05 }, { target: 0.01 }])
      for (const [value, name] of cases) expect(klBand(value, contract).name, String(value)).toBe(name);
  });

  it('end at the absolute marks', () => {
    expect(klBands.slice(1, -1).map(({ to }) => to)).toEqual([...klMarks]);
  });
});

describe('docs/kl.md', () => {
  it('has the bands of the code', () => {
    const short = (value: number): string => (value < 1e-3 ? '1e-6' : String(value).replace(/^0/, ''));
    const times = ['', '0.1 ×', '1 ×', '2 ×', '3 ×', '5 ×', ''];
    const lines = klBands.map(({ name, from, to, tone, meaning, action }, i) => {
      const range =
        from === 0
          ? `below ${short(to)}`
          : to === Infinity
            ? `above ${short(from)}`
            : `${short(from)} to ${short(to)}`;
      const until = times[i] === '' ? '' : `up to ${times[i]} the target`;
      return `| ${name} | ${range} | ${until} | ${tone} | ${meaning} | ${action} |`;
    });
    const head = [
      '| band | KL | with a target KL | tone | what it means | what to do |',
      '|---|---|---|---|---|---|',
    ];
    const page = readFileSync(new URL('../../docs/kl.md', import.meta.url), 'utf8');
    expect(page).toContain([...head, ...lines].join('\n'));
  });
});

describe('a contract', () => {
  it('moves the bands by its target', () => {
    const at = (value: number): string => klBand(value, { target: 0.03, guard: null }).name;
    expect([0.0029, 0.003, 0.03, 0.06, 0.061, 0.09, 0.091, 0.15, 0.151].map(at)).toEqual([
      ...['small', 'healthy', 'healthy', 'ok', 'warning', 'warning', 'problem', 'problem', 'critical'],
    ]);
  });

  it('cuts them off at its guard, and says so', () => {
    const contract = { target: 0.03, guard: 0.05 };
    expect(klBandsFor(contract).map(({ name }) => name)).toEqual([
      ...['frozen', 'small', 'healthy', 'ok', 'critical'],
    ]);
    expect(klBand(0.05, contract).name).toBe('ok');
    // 0.05 in single precision: what the guard let pass.
    expect(klBand(Math.fround(0.05), contract).name).toBe('ok');
    expect(klBand(0.0501, contract).name).toBe('critical');
    expect(klBand(0.0501, contract).meaning).toContain('guard');
    expect(klBand(0.2, { target: 0.03, guard: null }).meaning).not.toContain('guard');
    // A guard below everything that is healthy leaves smaller steps.
    expect(klBand(5e-4, { guard: 5e-4 }).name).toBe('small');
    expect(klBand(1e-6, { guard: 1e-6 }).name).toBe('frozen');
    expect(klBand(2e-6, { guard: 1e-6 }).name).toBe('critical');
  });

  it('has actions that can be done', () => {
    const action = (name: string, contract: object): string | undefined =>
      klBandsFor(contract).find(band => band.name === name)?.action;
    expect(action('problem', {})).toContain('set a target KL');
    expect(action('problem', { target: 0.01 })).not.toContain('set a target');
    expect(action('critical', { guard: null })).toContain('the guard on');
    // Other trainers have none.
    expect(action('critical', {})).not.toContain('guard');
  });

  const contracts = fc.record({
    target: fc.oneof(fc.constant(null), fc.double({ min: 1e-7, max: 10, noNaN: true })),
    guard: fc.oneof(
      fc.constant(null),
      fc.constant(undefined),
      fc.double({ min: 1e-6, max: 1, noNaN: true }),
    ) as fc.Arbitrary<number | null>,
  });
  const values = fc.oneof(
    fc.double({ min: 0, max: 1e-5, noNaN: true }),
    fc.double({ min: 0, max: 0.2, noNaN: true }),
    fc.double({ min: 0, noNaN: true }),
  );

  it('leaves no gap and no overlap', () => {
    fc.assert(
      fc.property(contracts, contract => {
        const bands = klBandsFor(contract);
        expect(bands[0].from).toBe(0);
        expect(bands.at(-1)!.to).toBe(Number.POSITIVE_INFINITY);
        for (let i = 1; i < bands.length; i++) expect(bands[i].from).toBe(bands[i - 1].to);
        for (const { from, to } of bands) expect(from).toBeLessThan(to);
      }),
    );
  });

  it('gives a larger KL never a calmer band, and each value the band that holds it', () => {
    fc.assert(
      fc.property(contracts, values, values, (contract, a, b) => {
        const [low, high] = [Math.min(a, b), Math.max(a, b)];
        const [calm, loud] = [klBand(low, contract), klBand(high, contract)];
        expect(order.indexOf(loud.name)).toBeGreaterThanOrEqual(order.indexOf(calm.name));
        const slack = low * 2e-6;
        expect(low).toBeGreaterThanOrEqual(calm.from - slack);
        expect(low).toBeLessThanOrEqual(calm.to + slack);
      }),
    );
  });

  it('makes of what is beyond the guard critical, and never loosens', () => {
    fc.assert(
      fc.property(contracts, values, (contract, value) => {
        const { guard, ...free } = contract;
        const [held, unheld] = [klBand(value, contract).name, klBand(value, free).name];
        if (typeof guard === 'number' && value > guard * (1 + 1e-5)) expect(held).toBe('critical');
        // Just around the bound the band before it holds; below it nothing changes.
        else if (typeof guard !== 'number' || value < guard * (1 - 1e-5)) expect(held).toBe(unheld);
        else if (guard > 2 * FROZEN_KL && value <= guard)
          expect(order.indexOf(held)).toBeLessThanOrEqual(order.indexOf(unheld));
      }),
    );
  });
});

describe('words', () => {
  it('say what is worse from warning on', () => {
    const worse = (a: number, b: number): boolean => isWorse(klBand(a), klBand(b));
    expect(worse(0.041, 0.008)).toBe(true);
    expect(worse(0.021, 0.019)).toBe(true);
    expect(worse(0.019, 0.008)).toBe(false);
    expect(worse(0.041, 0.042)).toBe(false);
    expect(worse(1e-8, 0.008)).toBe(false);
    expect(worse(Number.NaN, 0.008)).toBe(true);
    expect(worse(0.2, Number.NaN)).toBe(false);
  });

  it('name the healthy range and what a plot has to show', () => {
    expect(healthyWords(klBands)).toBe('healthy to 0.01, ok to 0.02');
    expect(healthyWords(klBandsFor({ target: 0.03, guard: 0.02 }))).toBe('healthy to 0.02');
    expect(healthyEnds(klBands)).toEqual([0.001, 0.01]);
    expect(healthyEnds(klBandsFor({ guard: 5e-4 }))).toEqual([1e-6, 5e-4]);
    expect(klLevels({ target: 0.015, guard: 0.05 }).map(({ label }) => label)).toEqual([
      ...['target 0.015', 'guard 0.05'],
    ]);
    expect(klLevels({ target: null, guard: null })).toEqual([]);
  });

  it('call what stands still frozen, with or without a schedule', () => {
    const still = klBand(1e-9);
    const meant = klBand(1e-9, {}, true);
    expect([still.name, meant.name]).toEqual(['frozen', 'frozen']);
    expect([still.tone, meant.tone]).toEqual(['warn', 'muted']);
    expect(meant.meaning).toContain('by schedule');
    expect(klBand(0.04, {}, true)).toEqual(klBand(0.04));
    expect(isAtRest(1e-6, 3e-4)).toBe(true);
    expect(isAtRest(3e-4 / 49, 3e-4)).toBe(false);
    expect(isAtRest(undefined, 3e-4)).toBe(false);
    expect(isAtRest(0, undefined)).toBe(false);
    // What a guard has cut is no schedule.
    expect(isAtRest(1e-6, 3e-4, 0.01)).toBe(false);
    expect(isAtRest(1e-8, 3e-4, 0.01)).toBe(true);
    expect(isAtRest(1e-6, 3e-4, null)).toBe(true);
  });

  it('are red above one value, whatever the contract', () => {
    const size = fc.oneof(fc.constant(null), fc.double({ min: 1e-5, max: 0.5, noNaN: true }));
    fc.assert(
      fc.property(size, size, fc.double({ min: 0, max: 4, noNaN: true }), (target, guard, times) => {
        const contract = { target, guard };
        for (const value of [
          redAbove(contract) * times,
          redAbove(contract),
          guard ?? 0,
          Math.fround(guard ?? 0),
        ])
          expect(klBand(value, contract).tone === 'bad').toBe(value > redAbove(contract));
      }),
    );
  });

  it('are those of a row by the settings of its run', () => {
    const config = { targetKl: 0.03, guard: 0.05, learningRate: 3e-4 };
    expect(bandOfRow({ 'kl/step': 0.04 }, config)?.name).toBe('ok');
    expect(bandOfRow({ 'kl/step': 0, 'train/lr': 1e-9 }, config)?.tone).toBe('muted');
    expect(bandOfRow({ 'kl/step': 0, 'train/lr': 3e-4 }, config)?.tone).toBe('warn');
    expect(bandOfRow({ 'kl/step': 0, 'train/lr': 1e-6, 'guard/rate': 0.003 }, config)?.tone).toBe('warn');
    expect(bandOfRow({}, config)).toBeUndefined();
    expect(contractOf({ targetKl: null, guard: null })).toEqual({ target: null, guard: null });
    expect(contractOf({})).toEqual({ target: null });
  });

  it('cut nothing off what the guard is still to look at', () => {
    expect(findMetric('kl/step_raw')?.heldTo).toEqual(['target']);
    const contract = { target: 0.03, guard: 0.05 };
    expect(klBand(0.1, heldTo('kl/step_raw', contract)).name).toBe('problem');
    expect(klBand(0.1, heldTo('kl/step', contract)).name).toBe('critical');
    expect(heldTo('kl/ref', contract)).toBeUndefined();
  });
});

describe('tones', () => {
  it('are told apart wherever they are shown', () => {
    expect(new Set(Object.values(toneColours)).size).toBe(tones.length);
    for (const theme of ['light', 'dark'] as const) {
      for (const of of ['line', 'tint', 'mark'] as const)
        expect(new Set(tones.map(tone => tonePaints[theme][tone][of])).size).toBe(tones.length);
      const words = toneProperties(theme).matchAll(/--(\w+)(-soft)?: (#\w+);/g);
      expect(new Set([...words].map(([, , , colour]) => colour)).size).toBe(2 * tones.length);
    }
  });
});
