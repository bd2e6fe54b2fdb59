import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Domain } from '../../src/studies/schema.ts';
import { countOf, gridOf, has, isActive, isSame, valueAt, valuesOf } from '../../src/studies/space.ts';
import { cellOf, fromUnit, toUnit } from '../../src/studies/unit.ts';

const domains: Domain[] = [
  { kind: 'float', low: -2, high: 6, log: false },
  { kind: 'float', low: 1e-5, high: 1e-1, log: true },
  { kind: 'float', low: 0, high: 0.5, log: false, step: 0.05 },
  { kind: 'int', low: 1, high: 9, log: false, step: 3 },
  { kind: 'int', low: 8, high: 512, log: true, step: 1 },
  { kind: 'int', low: 1, high: 8, log: true, step: 2 },
  { kind: 'int', low: 4, high: 4, log: false, step: 1 },
  { kind: 'choice', values: ['a', null, [1, 2], true] },
];

describe('a place', () => {
  it('takes a value to 0..1 and back, on every kind of domain', () => {
    for (const domain of domains) {
      for (let i = 0; i <= 200; i++) {
        const value = fromUnit(domain, i / 200);
        const unit = toUnit(domain, value)!;
        expect(unit).toBeGreaterThanOrEqual(0);
        expect(unit).toBeLessThanOrEqual(1);
        const again = fromUnit(domain, unit);
        if (typeof value === 'number') expect(again).toBeCloseTo(value, 10);
        else expect(again).toEqual(value);
      }
    }
  });

  it('is even in the logarithm where the range is logarithmic', () => {
    const domain: Domain = { kind: 'float', low: 1e-5, high: 1e-1, log: true };
    expect(fromUnit(domain, 0.5)).toBeCloseTo(1e-3, 12);
    expect(toUnit(domain, 1e-4)).toBeCloseTo(0.25, 12);
    expect([fromUnit(domain, 0), fromUnit(domain, 1)]).toEqual([1e-5, 1e-1]);
  });

  it('gives each value of steps an equal share, the ends too', () => {
    const domain: Domain = { kind: 'int', low: 1, high: 9, log: false, step: 3 }; // 1, 4, 7
    const counts = new Map<unknown, number>();
    for (let i = 0; i < 3000; i++) {
      const value = fromUnit(domain, (i + 0.5) / 3000);
      counts.set(value, (counts.get(value) ?? 0) + 1);
    }
    expect([...counts]).toEqual([
      [1, 1000],
      [4, 1000],
      [7, 1000],
    ]);
  });

  it('writes steps of a fraction as they are meant', () => {
    const domain: Domain = { kind: 'float', low: 0, high: 0.5, log: false, step: 0.05 };
    expect(countOf(domain)).toBe(11);
    expect(Array.from({ length: 11 }, (_, i) => valueAt(domain, i))).toEqual([
      0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5,
    ]);
  });

  it('has cells that lie side by side and fill 0..1', () => {
    for (const domain of domains.filter(one => countOf(one) < Infinity)) {
      const cells = Array.from({ length: countOf(domain) }, (_, i) => cellOf(domain, i));
      expect(cells[0][0]).toBe(0);
      expect(cells.at(-1)![1]).toBeCloseTo(1, 12);
      for (let i = 1; i < cells.length; i++) expect(cells[i][0]).toBeCloseTo(cells[i - 1][1], 12);
    }
  });

  it('knows no place for what is no value of the domain', () => {
    expect(toUnit(domains[7], 'z')).toBeUndefined();
    expect(toUnit(domains[0], 'z')).toBeUndefined();
    expect(toUnit(domains[0], NaN)).toBeUndefined();
    expect(toUnit(domains[0], undefined)).toBeUndefined();
  });

  it('compares the value of a condition by content', () => {
    const axis = { key: 'y', domain: domains[0], when: { key: 'x', in: [[1, 2], null] } };
    expect(isActive(axis, { x: [1, 2] })).toBe(true);
    expect(isActive(axis, { x: null })).toBe(true);
    expect(isActive(axis, { x: 1 })).toBe(false);
    expect(isActive(axis, {})).toBe(false);
  });

  it('lists all combinations in order, without those of axes that are not searched', () => {
    expect(
      gridOf([
        { key: 'a', domain: { kind: 'choice', values: ['p', 'q'] } },
        {
          key: 'n',
          domain: { kind: 'int', low: 1, high: 2, log: false, step: 1 },
          when: { key: 'a', in: ['q'] },
        },
        { key: 'b', domain: { kind: 'choice', values: [false, true] } },
      ]),
    ).toEqual([
      { a: 'p', b: false },
      { a: 'p', b: true },
      { a: 'q', n: 1, b: false },
      { a: 'q', n: 1, b: true },
      { a: 'q', n: 2, b: false },
      { a: 'q', n: 2, b: true },
    ]);
  });
});

describe('places from 0 to 1', () => {
  const domains: fc.Arbitrary<Domain> = fc.oneof(
    fc
      .uniqueArray(
        fc.oneof(fc.integer(), fc.string(), fc.boolean(), fc.constant(null), fc.array(fc.integer())),
        {
          minLength: 1,
          selector: value => JSON.stringify(value),
        },
      )
      .map((values): Domain => ({ kind: 'choice', values })),
    fc
      .tuple(
        fc.integer({ min: -1000, max: 1000 }),
        fc.integer({ min: 1, max: 1000 }),
        fc.integer({ min: 1, max: 50 }),
      )
      .map(
        ([low, count, step]): Domain => ({ kind: 'int', low, high: low + count * step, log: false, step }),
      ),
    fc
      .tuple(fc.integer({ min: 1, max: 1000 }), fc.integer({ min: 1, max: 1e6 }))
      .map(([low, more]): Domain => ({ kind: 'int', low, high: low + more, log: true, step: 1 })),
    fc
      .tuple(fc.double({ min: -1e6, max: 1e6, noNaN: true }), fc.double({ min: 1e-3, max: 1e6, noNaN: true }))
      .map(([low, more]): Domain => ({ kind: 'float', low, high: low + more, log: false })),
    fc
      .tuple(fc.double({ min: 1e-9, max: 1, noNaN: true }), fc.double({ min: 1.01, max: 1e9, noNaN: true }))
      .map(([low, factor]): Domain => ({ kind: 'float', low, high: low * factor, log: true })),
    fc
      .tuple(
        fc.integer({ min: -50, max: 50 }),
        fc.integer({ min: 1, max: 60 }),
        fc.constantFrom(0.1, 0.05, 0.25, 1.5),
      )
      .map(([start, count, step]): Domain => {
        const low = Number((start * step).toPrecision(12));
        return { kind: 'float', low, high: Number((low + count * step).toPrecision(12)), log: false, step };
      }),
  );

  it('give values of the domain, which give a place that gives them again', () => {
    fc.assert(
      fc.property(domains, fc.double({ min: 0, max: 1, noNaN: true }), (domain, at) => {
        const value = fromUnit(domain, at);
        expect(has(domain, value)).toBe(true);
        const unit = toUnit(domain, value)!;
        expect(unit >= 0 && unit <= 1).toBe(true);
        const again = fromUnit(domain, unit);
        if (domain.kind === 'float' && domain.step === undefined) {
          expect(unit).toBeCloseTo(at, 6);
          expect(Math.abs((again as number) - (value as number))).toBeLessThanOrEqual(
            1e-9 * (Math.abs(value as number) + Math.abs(domain.high) * 1e-3),
          );
        } else expect(isSame(again, value)).toBe(true);
      }),
      { numRuns: 500 },
    );
  });

  it('reach every value that can be counted, and both ends', () => {
    fc.assert(
      fc.property(domains, domain => {
        const [first, last] = [fromUnit(domain, 0), fromUnit(domain, 1)];
        if (domain.kind !== 'choice')
          expect([first, last]).toEqual([expect.closeTo(domain.low, 9), domain.high]);
        if (countOf(domain) > 2000) return;
        for (const value of valuesOf(domain))
          expect(isSame(fromUnit(domain, toUnit(domain, value)!), value)).toBe(true);
      }),
    );
  });

  it('are even in what is evenly drawn', () => {
    const int: Domain = { kind: 'int', low: 1, high: 4, log: false, step: 1 };
    expect([0, 0.24, 0.25, 0.5, 0.75, 0.999].map(at => fromUnit(int, at))).toEqual([1, 1, 2, 3, 4, 4]);
    const log: Domain = { kind: 'float', low: 1e-4, high: 1e-2, log: true };
    expect(fromUnit(log, 0.5)).toBeCloseTo(1e-3, 12);
    expect(toUnit(log, 1e-3)).toBeCloseTo(0.5, 12);
    const steps: Domain = { kind: 'float', low: 0.1, high: 0.4, log: false, step: 0.1 };
    expect(valuesOf(steps)).toEqual([0.1, 0.2, 0.3, 0.4]);
    // Whole numbers in the logarithm: as much room for 1 to 2 as for 8 to 16, within half a step.
    const octaves: Domain = { kind: 'int', low: 1, high: 1024, log: true, step: 1 };
    expect(fromUnit(octaves, 0.5)).toBe(23); // the root of 0.5 x 1024.5 is 22.6
  });
});
