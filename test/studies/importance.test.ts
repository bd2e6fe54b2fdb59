import { describe, expect, it } from 'vitest';
import { Rng } from '../../src/random/rng.ts';
import { type Importance, importanceOf } from '../../src/studies/importance.ts';
import type { Params, Space, Trial } from '../../src/studies/schema.ts';
import { activeAxes } from '../../src/studies/space.ts';
import { fromUnit } from '../../src/studies/unit.ts';
import { trial } from './support/studies.ts';

const float = (key: string, more: Partial<Space[number]> = {}): Space[number] => ({
  key,
  domain: { kind: 'float', low: 0, high: 1, log: false },
  ...more,
});

/** Random trials of a function. */
function trialsOf(
  space: Space,
  count: number,
  value: (params: Params, rng: Rng) => number,
  seed = 1,
): Trial[] {
  const rng = new Rng(seed);
  return Array.from({ length: count }, (_, number) => {
    let params: Params = {};
    for (const axis of space)
      if (activeAxes([axis], params).length > 0)
        params = { ...params, [axis.key]: fromUnit(axis.domain, rng.uniform()) };
    return trial({ number, params, value: value(params, rng) });
  });
}

const sharesOf = (importance: Importance | undefined): Record<string, number> =>
  Object.fromEntries(importance!.axes.map(({ key, share }) => [key, share]));

describe('importance', () => {
  const abc = [float('a'), float('b'), float('c')];

  it('of 3 a + b has order and ratio, and none of what does nothing', () => {
    const trials = trialsOf(abc, 200, ({ a, b }) => 3 * (a as number) + (b as number));
    const importance = importanceOf(abc, trials)!;
    const { a, b, c } = sharesOf(importance);
    expect(a + b + c).toBeCloseTo(1, 12);
    // Of variance: nine to one.
    expect(a / b).toBeGreaterThan(6);
    expect(a / b).toBeLessThan(14);
    expect(c).toBeLessThan(0.01);
    expect(importance.explained).toBeGreaterThan(0.9);
    expect(importance.trials).toBe(200);
  });

  it('does not hang on the order of the axes, nor on the scale or the sign of the value', () => {
    const value = ({ a, b }: Params) => 3 * (a as number) + (b as number);
    const there = sharesOf(importanceOf(abc, trialsOf(abc, 150, value)));
    const turned = [...abc].reverse();
    const back = sharesOf(importanceOf(turned, trialsOf(abc, 150, value)));
    const other = sharesOf(
      importanceOf(
        abc,
        trialsOf(abc, 150, params => 1e6 - 1e4 * value(params)),
      ),
    );
    for (const key of ['a', 'b', 'c']) {
      expect(back[key]).toBeCloseTo(there[key], 1);
      expect(other[key]).toBeCloseTo(there[key], 6);
    }
  });

  it('sees what only counts together', () => {
    // Neither alone says anything: the best is where both are on the same side.
    const trials = trialsOf(abc, 400, ({ a, b }) => ((a as number) > 0.5 === (b as number) > 0.5 ? 1 : 0));
    const { a, b, c } = sharesOf(importanceOf(abc, trials));
    expect(a).toBeGreaterThan(0.3);
    expect(b).toBeGreaterThan(0.3);
    expect(c).toBeLessThan(0.1);
  });

  it('of choices, whole numbers and logarithms', () => {
    const space: Space = [
      { key: 'rate', domain: { kind: 'float', low: 1e-5, high: 1e-1, log: true } },
      { key: 'shape', domain: { kind: 'choice', values: ['a', [1], null] } },
      { key: 'epochs', domain: { kind: 'int', low: 1, high: 20, log: false, step: 1 } },
    ];
    const trials = trialsOf(
      space,
      200,
      ({ rate, shape }) => Math.log10(rate as number) + (shape === null ? 8 : 0),
    );
    const { rate, shape, epochs } = sharesOf(importanceOf(space, trials));
    expect(shape).toBeGreaterThan(rate);
    expect(rate).toBeGreaterThan(0.02);
    expect(epochs).toBeLessThan(0.01);
  });

  it('of an axis with a condition is its own, and not that of the condition', () => {
    const space: Space = [
      { key: 'on', domain: { kind: 'choice', values: [false, true] } },
      float('target', { when: { key: 'on', in: [true] } }),
      float('idle', { when: { key: 'on', in: [true] } }),
    ];
    // Being on is worth 4, and the target up to 1 where it is on.
    const trials = trialsOf(space, 300, ({ on, target }) => (on ? 4 + (target as number) : 0));
    const { on, target, idle } = sharesOf(importanceOf(space, trials));
    expect(on).toBeGreaterThan(0.9);
    expect(target).toBeGreaterThan(0.001);
    expect(target).toBeLessThan(0.1);
    expect(idle).toBeLessThan(0.002);
    // Exchanged, being on costs half the trials 1.04 on average, and the target a sixth where it counts, which is half.
    const both = trialsOf(space, 600, ({ on, target }) => (on ? 0.5 + (target as number) : 0));
    const ratio = sharesOf(importanceOf(space, both));
    expect(ratio.on / ratio.target).toBeGreaterThan(5.2);
    expect(ratio.on / ratio.target).toBeLessThan(7.7);
    // The target alone matters where it always counts, which the condition is then worth nothing for.
    const only = trialsOf(space, 300, ({ on, target }) => (on ? (target as number) - 0.5 : 0));
    const shares = sharesOf(importanceOf(space, only));
    expect(shares.target).toBeGreaterThan(0.6);
    expect(shares.idle).toBeLessThan(0.05);
  });

  it('counts the middle value of a list like others', () => {
    const space: Space = [{ key: 'shape', domain: { kind: 'choice', values: [0, 1, 0.5] } }, float('b')];
    const value = ({ shape, b }: Params) => (shape === 1 ? 1 : 0) + 0.1 * (b as number);
    // The place of the middle one is that of an axis that does not count.
    const turned: Space = [{ key: 'shape', domain: { kind: 'choice', values: [1, 0, 0.5] } }, float('b')];
    const there = sharesOf(importanceOf(space, trialsOf(space, 200, value)));
    const back = sharesOf(importanceOf(turned, trialsOf(turned, 200, value)));
    expect(there.shape).toBeCloseTo(back.shape, 2);
    expect(there.shape).toBeGreaterThan(0.98);
  });

  it('of chance alone is told to be worth nothing', () => {
    const trials = trialsOf(abc, 100, (_, rng) => rng.normal());
    expect(importanceOf(abc, trials)!.explained).toBeLessThan(0.05);
  });

  it('is not told of too few trials, of equal ones, nor without axes', () => {
    const value = ({ a }: Params) => a as number;
    expect(importanceOf(abc, trialsOf(abc, 15, value))).toBeUndefined();
    expect(importanceOf(abc, trialsOf(abc, 16, value))).toBeDefined();
    expect(
      importanceOf(
        abc,
        trialsOf(abc, 50, () => 7),
      ),
    ).toBeUndefined();
    expect(importanceOf([], trialsOf(abc, 50, value))).toBeUndefined();
    expect(importanceOf(abc, [])).toBeUndefined();
  });

  it('counts complete trials of the search, with a value', () => {
    const good = trialsOf(abc, 40, ({ a }) => a as number);
    const others = [
      ...good.map(one => ({ ...one, state: 'pruned' as const, value: 1e9 })),
      ...good.map(one => ({ ...one, purpose: 'confirm-winner' as const, value: 1e9 })),
      ...good.map(one => ({ ...one, value: Number.POSITIVE_INFINITY })),
      ...good.map(one => ({ ...one, value: null })),
    ];
    expect(importanceOf(abc, [...others, ...good])).toEqual(importanceOf(abc, good));
    expect(importanceOf(abc, good)!.trials).toBe(40);
  });

  it('is the same each time, and bounded however many trials there are', () => {
    const many = trialsOf(abc, 3000, ({ b }) => b as number);
    const importance = importanceOf(abc, many)!;
    expect(importance.trials).toBe(1000);
    expect(importanceOf(abc, many)).toEqual(importance);
    expect(sharesOf(importance).b).toBeGreaterThan(0.98);
  });
});
