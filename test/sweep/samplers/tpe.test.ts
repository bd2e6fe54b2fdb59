import { describe, expect, it } from 'vitest';
import { testFunctions } from '../../../bench/sweep/functions.ts';
import type { Params, Space } from '../../../src/studies/schema.ts';
import { makeSampler } from '../../../src/sweep/samplers/make.ts';
import { keyOf } from '../../../src/sweep/samplers/params.ts';
import type { Seen } from '../../../src/sweep/samplers/sampler.ts';
import { bestOf, least, manyKinds, samplerOf, seenTrial, study } from './support.ts';

const median = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[values.length >> 1];

const line: Space = [{ key: 'x', domain: { kind: 'float', low: 0, high: 1, log: false } }];
const xOf = (params: Params | undefined): number => params?.x as number;

/** Trials at even places on the line, with a value of each. */
const onLine = (count: number, rest: (x: number, i: number) => Partial<Seen>): Seen[] =>
  Array.from({ length: count }, (_, i) => {
    const x = (i + 0.5) / count;
    return seenTrial(i, { x }, rest(x, i));
  });

/** Where twenty asks with the same history land. */
const asks = (seen: readonly Seen[], objective = least): number[] =>
  Array.from({ length: 20 }, (_, i) =>
    xOf(makeSampler({ space: line, method: 'tpe', searchSeed: i, objective }).ask(seen.length, seen)),
  );

describe('against random search', () => {
  // Limits are two to three times the median regret that TPE had when they were set; random search is far above both.
  it.each([
    ['branin', 0.03],
    ['hartmann6', 0.5],
  ])('TPE on %s: regret below %f and below random search’s', (name, limit) => {
    const { space, value, best } = testFunctions.find(one => one.name === name)!;
    const regrets = (method: 'tpe' | 'random'): number[] =>
      Array.from(
        { length: 20 },
        (_, seed) =>
          bestOf(study(samplerOf(method, space, seed), 60, params => ({ value: value(params) }))) - best,
      );
    const [tpe, random] = [regrets('tpe'), regrets('random')];
    expect(Math.min(...tpe, ...random)).toBeGreaterThanOrEqual(-1e-6); // nothing is below the known minimum
    expect(median(tpe)).toBeLessThan(limit);
    expect(median(tpe)).toBeLessThan(median(random) / 2);
  });
});

describe('TPE', () => {
  it('begins as quasi-random search does', () => {
    const seen = study(samplerOf('tpe', manyKinds, 3), 10, () => ({ value: 1 }));
    expect(seen.map(trial => trial.params)).toEqual(
      study(samplerOf('quasi-random', manyKinds, 3), 10, () => ({})).map(trial => trial.params),
    );
  });

  it('looks where values are best, in either direction', () => {
    const seen = onLine(40, x => ({ value: (x - 0.8) ** 2 }));
    for (const x of asks(seen)) expect(Math.abs(x - 0.8)).toBeLessThan(0.2);
    const most = { ...least, direction: 'maximize' as const };
    for (const x of asks(seen, most)) expect(x).toBeLessThan(0.3);
  });

  it('takes the scale of a range: in a logarithm what is best is found decades below the top', () => {
    const space: Space = [{ key: 'rate', domain: { kind: 'float', low: 1e-8, high: 1, log: true } }];
    const seen = study(samplerOf('tpe', space, 0), 60, ({ rate }) => ({
      value: (Math.log10(rate as number) + 6) ** 2,
    }));
    expect(Math.sqrt(bestOf(seen))).toBeLessThan(0.1);
  });

  it('ranks trials with violations below all others, and failed ones', () => {
    // Left of the middle values are far better, and not allowed.
    const spoilt = [{ violations: ['sick'] }, { state: 'failed', value: null }] as const;
    for (const how of spoilt) {
      const seen = onLine(40, x => (x < 0.5 ? { value: x - 10, ...how } : { value: x }));
      for (const x of asks(seen)) expect(x).toBeGreaterThan(0.45);
    }
  });

  it('does not go by the rungs of a trial that failed later', () => {
    const seen = onLine(40, x => ({
      state: x < 0.5 ? 'failed' : 'pruned',
      value: null,
      rungs: [{ steps: 100, value: x }],
    }));
    for (const x of asks(seen)) expect(x).toBeGreaterThan(0.45);
  });

  it('gets away from where all trials violate', () => {
    const seen = Array.from({ length: 20 }, (_, i) =>
      seenTrial(i, { x: 0.2 + i / 100 }, { value: -1, violations: ['sick'] }),
    );
    for (const x of asks(seen)) expect(x > 0.41 || x < 0.18).toBe(true);
  });

  it('ranks pruned trials by how far they came, then by their value there', () => {
    const seen = onLine(40, x => ({
      state: 'pruned',
      value: null,
      // Those on the right came further; the others' values only look better.
      rungs: [{ steps: 100, value: x - 5 }, ...(x > 0.8 ? [{ steps: 300, value: 1 - x }] : [])],
    }));
    for (const x of asks(seen)) expect(x).toBeGreaterThan(0.7);
  });

  it('asks for different settings in parallel, and away from what is under way', () => {
    const judged = onLine(30, x => ({ value: (x - 0.5) ** 2 }));
    const sampler = samplerOf('tpe', line, 1);
    const seen = [...judged];
    for (let i = 0; i < 8; i++) {
      const number = seen.length;
      seen.push(seenTrial(number, sampler.ask(number, seen)!, { state: 'running', value: null }));
    }
    const parallel = seen.slice(30).map(({ params }) => xOf(params));
    expect(new Set(parallel).size).toBe(8);
    // One place that many are trying already is left alone.
    const crowd = Array.from({ length: 30 }, (_, i) =>
      seenTrial(30 + i, { x: 0.5 + (i - 15) / 1000 }, { state: 'running', value: null }),
    );
    const nearest = (history: readonly Seen[]): number => median(asks(history).map(x => Math.abs(x - 0.5)));
    expect(nearest([...judged, ...crowd])).toBeGreaterThan(2 * nearest(judged));
  });

  it('asks for different settings in parallel where there are few, before any is judged too', () => {
    const small: Space = [{ key: 'n', domain: { kind: 'int', low: 1, high: 12, log: false, step: 1 } }];
    const sampler = samplerOf('tpe', small, 2);
    const seen: Seen[] = [];
    for (let number = 0; number < 12; number++)
      seen.push(seenTrial(number, sampler.ask(number, seen)!, { state: 'running', value: null }));
    expect(new Set(seen.map(({ params }) => keyOf(small, params))).size).toBe(12);
    expect(sampler.ask(12, seen)).toBeUndefined();
  });

  it('finds the settings that belong to one choice', () => {
    const space: Space = [
      { key: 'kind', domain: { kind: 'choice', values: ['a', 'b', 'c'] } },
      { key: 'p', domain: { kind: 'float', low: 0, high: 1, log: false }, when: { key: 'kind', in: ['b'] } },
    ];
    const value = ({ kind, p }: Params): number => (kind === 'b' ? ((p as number) - 0.3) ** 2 : 1);
    const seen = study(samplerOf('tpe', space, 0), 50, params => ({ value: value(params) }));
    // Without a range, `a` and `c` are one trial each.
    expect(seen.filter(({ params }) => params.kind !== 'b')).toHaveLength(2);
    expect(Math.sqrt(bestOf(seen))).toBeLessThan(0.02);
  });

  it('does without values that are none of the space, and without numbers that are none', () => {
    const odd = [
      seenTrial(0, { algo: 'gone', rate: 'fast', width: 1e9 }, { value: -5 }),
      seenTrial(1, {}, { value: Number.NaN }),
      seenTrial(2, { rate: -1 }, { value: Number.NEGATIVE_INFINITY }),
    ];
    const seen = [...odd, ...study(samplerOf('random', manyKinds, 1), 30, () => ({ value: 1 }))];
    for (let number = 40; number < 60; number++) {
      const params = samplerOf('tpe', manyKinds, 1).ask(number, seen)!;
      expect(['a', 'b', 'c']).toContain(params.algo);
      expect(params.rate).toBeGreaterThanOrEqual(1e-5);
      expect(params.rate).toBeLessThanOrEqual(1e-1);
    }
  });
});
