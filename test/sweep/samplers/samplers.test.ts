/** What every sampler keeps to, and what random, quasi-random and grid search are by themselves. */
import { describe, expect, it } from 'vitest';
import { methods, type Params, type Space } from '../../../src/studies/schema.ts';
import { isActive } from '../../../src/studies/space.ts';
import { fromUnit, toUnit } from '../../../src/studies/unit.ts';
import { keyOf } from '../../../src/sweep/samplers/params.ts';
import { manyKinds, samplerOf, seenTrial, study } from './support.ts';

/** A grid cannot do with the range. */
const gridKinds = manyKinds.filter(axis => axis.key !== 'rate' && axis.key !== 'width');
const spaceOf = (method: string): Space => (method === 'grid' ? gridKinds : manyKinds);

/** Depends on most of the settings, so that TPE has something to go by. */
const judge = (params: Params) => ({
  value: (params.share as number) + (params.algo === 'a' ? 0 : 1) + Number(params.depth ?? 4) / 10,
});

describe.each(methods)('%s', method => {
  const space = spaceOf(method);

  it('asks for the same where it has seen the same, and for other things with another seed', () => {
    const seen = study(samplerOf(method, space, 5), 40, judge);
    for (const number of [0, 7, 25, 39]) {
      // A sampler made anew, as after a kill; one that was used in between gives the same too.
      const again = samplerOf(method, space, 5);
      again.ask(number + 1, seen);
      expect(again.ask(number, seen.slice(0, number))).toEqual(seen[number].params);
    }
    if (method !== 'grid')
      expect(study(samplerOf(method, space, 6), 40, judge).map(trial => trial.params)).not.toEqual(
        seen.map(trial => trial.params),
      );
  });

  it('gives values of the domains, for the axes whose condition holds and no others', () => {
    for (const { params } of study(samplerOf(method, space, 1), 60, judge)) {
      const expected = space.filter(axis => isActive(axis, params)).map(axis => axis.key);
      expect(Object.keys(params)).toEqual(expected);
      for (const { key, domain } of space) {
        if (!(key in params)) continue;
        const unit = toUnit(domain, params[key]);
        expect(unit).toBeDefined();
        const again = fromUnit(domain, unit!);
        if (typeof again === 'number') expect(again).toBeCloseTo(params[key] as number, 9);
        else expect(again).toEqual(params[key]);
      }
    }
  });

  it('tries nothing twice, and ends when all has been tried', () => {
    const small: Space = [
      { key: 'a', domain: { kind: 'choice', values: [1, 2, 3] } },
      {
        key: 'b',
        domain: { kind: 'int', low: 1, high: 4, log: false, step: 1 },
        when: { key: 'a', in: [2, 3] },
      },
    ];
    const seen = study(samplerOf(method, small, 3), 100, ({ a }) => ({ value: a as number }));
    expect(seen).toHaveLength(9);
    expect(new Set(seen.map(({ params }) => keyOf(small, params))).size).toBe(9);
  });
});

describe('random', () => {
  it('is uniform on each axis, in the logarithm where that is asked for', () => {
    const sampler = samplerOf('random', manyKinds, 2);
    const seen = Array.from({ length: 2000 }, (_, number) => seenTrial(number, sampler.ask(number, [])!));
    const rates = seen.map(({ params }) => Math.log10(params.rate as number));
    // The mean of 2,000 uniforms over four decades has a standard deviation of 0.026.
    expect(Math.abs(rates.reduce((a, b) => a + b, 0) / rates.length + 3)).toBeLessThan(0.1);
    const share = (value: string): number => seen.filter(({ params }) => params.algo === value).length / 2000;
    for (const value of ['a', 'b', 'c']) expect(Math.abs(share(value) - 1 / 3)).toBeLessThan(0.04);
  });
});

describe('quasi-random', () => {
  const square: Space = ['x', 'y'].map(key => ({
    key,
    domain: { kind: 'float', low: 0, high: 1, log: false },
  }));

  it('has one point in each of 8 x 9 boxes among the first 72, whatever the seed', () => {
    for (const seed of [0, 1, 2]) {
      const boxes = study(samplerOf('quasi-random', square, seed), 72, () => ({})).map(
        ({ params }) => `${Math.floor((params.x as number) * 8)},${Math.floor((params.y as number) * 9)}`,
      );
      expect(new Set(boxes).size).toBe(72);
    }
  });

  it('does not depend on what was seen', () => {
    const sampler = samplerOf('quasi-random', square, 4);
    expect(sampler.ask(17, [])).toEqual(sampler.ask(17, [seenTrial(0, { x: 0.25, y: 0.5 })]));
  });

  it('keeps neighbouring axes apart where there are many', () => {
    const many: Space = Array.from({ length: 20 }, (_, i) => ({ ...square[0], key: `x${i}` }));
    const seen = study(samplerOf('quasi-random', many, 0), 50, () => ({}));
    const column = (i: number): number[] => seen.map(({ params }) => (params[`x${i}`] as number) - 0.5);
    // Unscrambled, the last two axes' first 50 points correlate above 0.9.
    const [a, b] = [column(18), column(19)];
    const dot = (u: number[], v: number[]): number => u.reduce((sum, x, i) => sum + x * v[i], 0);
    expect(Math.abs(dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b)))).toBeLessThan(0.4);
  });
});

describe('grid', () => {
  it('is all combinations in order, by trial number', () => {
    const sampler = samplerOf('grid', [
      { key: 'a', domain: { kind: 'choice', values: ['p', 'q'] } },
      { key: 'b', domain: { kind: 'int', low: 0, high: 2, log: false, step: 2 } },
    ]);
    expect([0, 1, 2, 3, 4].map(number => sampler.ask(number, []))).toEqual([
      { a: 'p', b: 0 },
      { a: 'p', b: 2 },
      { a: 'q', b: 0 },
      { a: 'q', b: 2 },
      undefined,
    ]);
  });
});

it('refuses a trial number that is none', () => {
  expect(() => samplerOf('random', manyKinds).ask(-1, [])).toThrow(/trial -1 is not an integer in 0\.\./);
});
