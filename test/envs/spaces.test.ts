import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  box,
  dict,
  discrete,
  leavesOf,
  multiBinary,
  multiDiscrete,
  type Space,
  sameSpace,
  spaceFromJson,
  tuple,
} from '../../src/envs/index.ts';
import { Rng } from '../../src/random/index.ts';

const hybrid = dict({ move: box({ shape: [2], low: -1, high: 1 }), task: discrete(3) });
const spaces: Record<string, Space> = {
  box: box({ shape: [2, 3], low: -1, high: [1, 2, 3, 4, 5, 6] }),
  unlimited: box({ shape: [3] }),
  half: box({ shape: [2], low: [0, Number.NEGATIVE_INFINITY], high: [Number.POSITIVE_INFINITY, 0] }),
  narrow: box({ shape: [1], low: 0.1, high: 0.1 }),
  image: box({ shape: [4], dtype: 'uint8' }),
  counts: box({ shape: [2], dtype: 'int32', low: -3, high: 3 }),
  scalar: box({ shape: [], low: 0, high: 1 }),
  discrete: discrete(5),
  one: discrete(1),
  multiDiscrete: multiDiscrete([2, 7, 1]),
  multiBinary: multiBinary(4),
  hybrid,
  nested: tuple([hybrid, dict({ arm: tuple([discrete(2), multiBinary(2)]), b: box({ shape: [2] }) })]),
};

describe.each(Object.entries(spaces))('%s', (_, space) => {
  it('holds its samples, and nothing of another length or NaN', () => {
    const rng = new Rng(1);
    const out = new Float32Array(space.flatSize + 4).fill(77);
    for (let i = 0; i < 300; i++) {
      space.sample(rng, out, 2);
      const value = out.slice(2, -2);
      expect(space.contains(value)).toBe(true);
      expect(space.firstOutside(out, 2)).toBe(-1);
      const copy = value.slice();
      space.clip(copy);
      expect(copy).toEqual(value);
      expect([...out.slice(0, 2), ...out.slice(-2)]).toEqual([77, 77, 77, 77]);
      expect(space.contains([...value, 0])).toBe(false);
      expect(space.contains(value.slice(1))).toBe(false);
      for (const wrong of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
        const at = i % space.flatSize;
        const broken = value.slice();
        broken[at] = wrong;
        expect(space.firstOutside(broken)).toBe(at);
      }
    }
  });

  it('survives JSON, samples alike, and says what it is', () => {
    const copy = spaceFromJson(JSON.parse(JSON.stringify(space)));
    expect(sameSpace(copy, space)).toBe(true);
    expect(copy.flatSize).toBe(space.flatSize);
    const [a, b] = [new Float32Array(space.flatSize), new Float32Array(space.flatSize)];
    space.sample(new Rng(3), a);
    copy.sample(new Rng(3), b);
    expect(b).toEqual(a);
    expect(copy.describe()).toBe(space.describe());
    expect(space.describe()).toMatch(/^(Box|Discrete|MultiDiscrete|MultiBinary|Tuple|Dict)\(/);
  });

  it('its leaves cover it in order', () => {
    let at = 0;
    for (const { start, space: leaf } of leavesOf(space)) {
      expect(start).toBe(at);
      at += leaf.flatSize;
    }
    expect(at).toBe(space.flatSize);
  });
});

describe('spaces', () => {
  it('name their leaves by path', () => {
    expect(leavesOf(hybrid).map(leaf => [leaf.path, leaf.start])).toEqual([
      ['move', 0],
      ['task', 2],
    ]);
    expect(leavesOf(spaces.nested).map(leaf => leaf.path)).toEqual([
      '0.move',
      '0.task',
      '1.arm.0',
      '1.arm.1',
      '1.b',
    ]);
    expect(leavesOf(discrete(2))[0].path).toBe('');
  });

  it('limits are float32, as the values are: 0.1 rounds up and is inside', () => {
    const space = box({ shape: [1], low: -0.1, high: 0.1 });
    expect(space.contains(new Float32Array([0.1]))).toBe(true);
    expect(space.high[0]).toBe(Math.fround(0.1));
    expect(space.contains([0.1000001])).toBe(false);
  });

  it('clip takes several rows of a larger array at once', () => {
    const pair = box({ shape: [2], low: [-1, 0], high: [1, 5] });
    const rows = Float32Array.of(9, 9, -3, 7, 2, -2, 9, 9);
    pair.clip(rows, 2, 2);
    expect([...rows]).toEqual([9, 9, -1, 5, 1, 0, 9, 9]);
    const mixed = dict({ which: discrete(2), move: pair });
    const both = Float32Array.of(8, 8, 8, 7, -7, 7);
    mixed.clip(both, 0, 2);
    expect([...both]).toEqual([8, 1, 5, 7, -1, 5]);
  });

  it('clip moves boxes to their limits and leaves categories alone', () => {
    const values = new Float32Array([-7, 0.25, 9]);
    hybrid.clip(values);
    expect([...values]).toEqual([-1, 0.25, 9]);
    const whole = new Float32Array([-7, 1.6]);
    spaces.counts.clip(whole);
    expect([...whole]).toEqual([-3, 2]);
    fc.assert(
      fc.property(fc.array(fc.float({ noNaN: true }), { minLength: 6, maxLength: 6 }), numbers => {
        const clipped = Float32Array.from(numbers);
        spaces.box.clip(clipped);
        return spaces.box.contains(clipped);
      }),
    );
  });

  it('categories are whole numbers in range', () => {
    for (const wrong of [-1, 5, 0.5, 1e9]) expect(discrete(5).contains([wrong])).toBe(false);
    expect(discrete(5).contains([-0])).toBe(true);
    expect(multiDiscrete([2, 3]).firstOutside([1, 3])).toBe(1);
    expect(multiBinary(3).firstOutside([0, 1, 2])).toBe(2);
    expect(spaces.counts.contains([0.5, 0])).toBe(false);
    expect(hybrid.firstOutside([0, 0, 3])).toBe(2);
    expect(hybrid.firstOutside([0, -1.5, 3])).toBe(1);
  });

  it('samples spread over the space', () => {
    const rng = new Rng(2);
    const out = new Float32Array(1);
    const seen = new Set<number>();
    for (let i = 0; i < 200; i++) {
      discrete(5).sample(rng, out);
      seen.add(out[0]);
    }
    expect([...seen].sort()).toEqual([0, 1, 2, 3, 4]);
    let [low, high] = [1, 0];
    for (let i = 0; i < 2_000; i++) {
      spaces.scalar.sample(rng, out);
      low = Math.min(low, out[0]);
      high = Math.max(high, out[0]);
    }
    expect(low).toBeLessThan(0.01);
    expect(high).toBeGreaterThan(0.99);
  });

  it.each([
    [() => box({ shape: [0] }), /shape \[0\] is not a list of whole numbers/],
    [() => box({ shape: 3 as never }), /shape 3/],
    [() => box({ shape: [2], low: [1] }), /low \[1\] has 1 numbers, the shape has 2/],
    [() => box({ shape: [1], low: 2, high: 1 }), /low\[0\] 2 is above high\[0\] 1/],
    [() => box({ shape: [1], low: Number.NaN }), /low\[0\] is NaN/],
    [
      () => box({ shape: [1], dtype: 'float16' as never }),
      /dtype "float16" is unknown: use float32, int32, uint8/,
    ],
    [() => box({ shape: [1], dtype: 'uint8', high: 256 }), /leave the range 0..255 of uint8/],
    [() => box({ shape: [1], dtype: 'uint8', low: -1 }), /leave the range 0..255 of uint8/],
    [() => box({ shape: [1], dtype: 'int32', low: 0.5 }), /must be whole numbers/],
    [() => discrete(0), /discrete: 0 is not a whole number in 1..16777216/],
    [() => discrete(2.5), /discrete: 2.5/],
    [() => multiDiscrete([]), /not a list of counts/],
    [() => multiDiscrete([2, -1]), /count 1: -1/],
    [() => multiBinary(0), /multiBinary: 0/],
    [() => tuple([]), /not a list of spaces/],
    [() => tuple([3 as never]), /part 0 is 3, not a space/],
    [() => dict({}), /no parts/],
    [() => dict({ '0': discrete(2) }), /"0" is not a name/],
    [() => spaceFromJson(null), /null is not a space/],
    [() => spaceFromJson({ kind: 'sphere' }), /"sphere" is no kind of space/],
    [() => spaceFromJson({ kind: 'box', shape: 'x' }), /"x" is not a list/],
    [
      () => spaceFromJson({ kind: 'box', shape: [1], dtype: 'float32', low: [null], high: [1] }),
      /null, not a number/,
    ],
    [() => spaceFromJson({ kind: 'tuple' }), /not a list of spaces/],
    [() => spaceFromJson({ kind: 'dict' }), /has no spaces/],
  ])('refuses %s', (make, message) => {
    expect(make).toThrow(message);
  });
});
