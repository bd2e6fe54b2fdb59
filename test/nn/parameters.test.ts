import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  add,
  EngineError,
  evaluate,
  Graph,
  grad,
  mul,
  reduceSum,
  type Tensor,
} from '../../src/engine/index.ts';
import { constant, type Initialiser, normal, zeros } from '../../src/nn/initialise.ts';
import { type ParameterSpec, parameters } from '../../src/nn/parameters.ts';
import { Rng } from '../../src/random/index.ts';
import { runCompiled } from '../engine/support/check.ts';
import { normals } from './support/reference.ts';

const spec = (
  name: string,
  shape: readonly number[],
  group = 'g',
  init: Initialiser = zeros,
): ParameterSpec => ({
  name,
  shape,
  group,
  init,
});

const count = (shape: readonly number[]): number => shape.reduce((a, b) => a * b, 1);

/** Layouts of one to nine tensors with up to three axes, in up to four groups. */
const layouts = fc
  .array(
    fc.record({
      shape: fc.array(fc.integer({ min: 1, max: 4 }), { maxLength: 3 }),
      opensGroup: fc.boolean(),
    }),
    { minLength: 1, maxLength: 9 },
  )
  .map(entries => {
    let group = 0;
    return entries.map(({ shape, opensGroup }, i) => {
      if (opensGroup) group++;
      return spec(`t${i}`, shape, `group${group}`, normal(1));
    });
  });

describe('layout', () => {
  it('puts tensors one after another, in the order given, without gaps', () => {
    fc.assert(
      fc.property(layouts, specs => {
        const layout = parameters(specs);
        let offset = 0;
        expect(layout.specs.length).toBe(specs.length);
        layout.specs.forEach((placed, i) => {
          expect(placed).toEqual({ ...specs[i], offset });
          offset += count(specs[i].shape);
        });
        expect(layout.size).toBe(offset);
      }),
      { seed: 1 },
    );
  });

  it('has groups that cover the vector, each in one piece', () => {
    fc.assert(
      fc.property(layouts, specs => {
        const { groups, size } = parameters(specs);
        expect(groups.map(group => group.name)).toEqual([...new Set(specs.map(s => s.group))]);
        let offset = 0;
        for (const group of groups) {
          expect(group.offset).toBe(offset);
          const own = specs.filter(s => s.group === group.name);
          expect(group.size).toBe(own.reduce((sum, s) => sum + count(s.shape), 0));
          offset += group.size;
        }
        expect(offset).toBe(size);
      }),
      { seed: 1 },
    );
  });

  it('counts a scalar as one value and an empty tensor as none', () => {
    const layout = parameters([spec('temperature', []), spec('nothing', [0, 3]), spec('pair', [2])]);
    expect(layout.specs.map(s => s.offset)).toEqual([0, 1, 1]);
    expect(layout.size).toBe(3);
    expect(layout.views(new Float32Array(3)).nothing.length).toBe(0);
  });

  it('leaves what it was given alone', () => {
    const given = [Object.freeze(spec('a', Object.freeze([2, 2]))), Object.freeze(spec('b', [3]))];
    parameters(Object.freeze(given));
    expect(Object.keys(given[0])).not.toContain('offset');
  });
});

describe('views', () => {
  it('are windows on the vector: writing shows through, both ways', () => {
    fc.assert(
      fc.property(layouts, specs => {
        const layout = parameters(specs);
        const flat = Float32Array.from({ length: layout.size }, (_, i) => i);
        const views = layout.views(flat);
        expect(Object.keys(views)).toEqual(specs.map(s => s.name));
        for (const { name, shape, offset } of layout.specs) {
          expect(views[name].buffer).toBe(flat.buffer);
          expect(Array.from(views[name])).toEqual(Array.from({ length: count(shape) }, (_, i) => offset + i));
          views[name][0] = -1;
          expect(flat[offset]).toBe(-1);
          flat[offset] = -2;
          expect(views[name][0]).toBe(-2);
        }
      }),
      { seed: 1 },
    );
  });

  it('respect where a vector starts in its buffer', () => {
    const layout = parameters([spec('a', [2]), spec('b', [1])]);
    const buffer = Float32Array.of(9, 9, 1, 2, 3, 9);
    const { a, b } = layout.views(buffer.subarray(2, 5));
    expect([...a, ...b]).toEqual([1, 2, 3]);
    b[0] = 5;
    expect(buffer).toEqual(Float32Array.of(9, 9, 1, 2, 5, 9));
  });

  it.each([0, 5, 7])('refuse a vector of %i values for 6', length => {
    const layout = parameters([spec('a', [2, 3])]);
    expect(() => layout.views(new Float32Array(length))).toThrow(RangeError);
    expect(() => layout.views(new Float32Array(length))).toThrow(
      `parameters: the vector has ${length} values, the layout 6`,
    );
  });
});

describe('initialise', () => {
  it('calls each initialiser once, in order, with its shape and its window', () => {
    const calls: { name: string; shape: readonly number[]; rng: Rng; length: number }[] = [];
    const noting =
      (name: string, value: number): Initialiser =>
      (rng, shape, out) => {
        calls.push({ name, shape, rng, length: out.length });
        out.fill(value);
      };
    const layout = parameters([
      spec('a', [2, 2], 'g', noting('a', 1)),
      spec('s', [], 'g', noting('s', 2)),
      spec('b', [3], 'h', noting('b', 3)),
    ]);
    const rng = new Rng(1);
    expect(Array.from(layout.initialise(rng))).toEqual([1, 1, 1, 1, 2, 3, 3, 3]);
    expect(calls).toEqual([
      { name: 'a', shape: [2, 2], rng, length: 4 },
      { name: 's', shape: [], rng, length: 1 },
      { name: 'b', shape: [3], rng, length: 3 },
    ]);
  });

  it('is decided by the seed, and gives a fresh vector each time', () => {
    const layout = parameters([spec('a', [4], 'g', normal(1)), spec('b', [2], 'g', constant(3))]);
    const first = layout.initialise(new Rng(5));
    const again = layout.initialise(new Rng(5));
    expect(again).toEqual(first);
    expect(again.buffer).not.toBe(first.buffer);
    expect(layout.initialise(new Rng(6))).not.toEqual(first);
  });
});

describe('tensors', () => {
  it('in a graph are the views, compiled and evaluated', async () => {
    const sample = fc.sample(layouts, { numRuns: 12, seed: 3 });
    for (const specs of sample) {
      const layout = parameters(specs);
      const g = new Graph();
      const tensors = layout.tensors(g.input('flat', [layout.size]));
      expect(Object.keys(tensors)).toEqual(specs.map(s => s.name));
      for (const { name, shape } of specs) {
        expect(tensors[name].shape).toEqual(shape);
        // Times 1.5, because an output that is the input itself would test less.
        g.output(name, mul(tensors[name], 1.5));
      }
      const flat = layout.initialise(new Rng(2));
      const views = layout.views(flat);
      const compiled = await runCompiled(g, { flat });
      const evaluated = evaluate(g, { flat });
      for (const { name, shape } of specs) {
        expect(compiled[name]).toEqual(Array.from(views[name], v => Math.fround(1.5 * v)));
        expect(Array.from(evaluated[name].data)).toEqual(Array.from(views[name], v => 1.5 * v));
        expect(evaluated[name].shape).toEqual(shape);
      }
    }
  });

  it('pass derivatives to where their values lie, and none to what the loss does not use', async () => {
    const sample = fc.sample(fc.tuple(layouts, fc.nat()), { numRuns: 12, seed: 4 });
    for (const [specs, pick] of sample) {
      const layout = parameters(specs);
      const g = new Graph();
      const flat = g.input('flat', [layout.size]);
      const tensors = layout.tensors(flat);
      const unused = specs.length > 1 ? pick % specs.length : -1;
      const expected = new Float64Array(layout.size);
      const values = normals(pick, layout.size);
      let loss: Tensor | undefined;
      layout.specs.forEach(({ name, offset, shape }, i) => {
        if (i === unused) return;
        // Σ (i + 1)·c·x² with another c at each place: no two places have the same derivative.
        const factors = Array.from({ length: count(shape) }, (_, k) => (i + 1) * (1 + k / 16));
        const x = tensors[name];
        const term = reduceSum(mul(mul(x, x), g.constant(factors, shape)));
        loss = loss ? add(loss, term) : term;
        factors.forEach((c, k) => {
          expected[offset + k] = 2 * c * values[offset + k];
        });
      });
      g.output('gradient', grad(loss!, [flat])[0]);
      const compiled = (await runCompiled(g, { flat: values })).gradient;
      const evaluated = evaluate(g, { flat: values }).gradient.data;
      compiled.forEach((v, i) => {
        expect(v).toBeCloseTo(expected[i], 4);
      });
      evaluated.forEach((v, i) => {
        expect(v).toBeCloseTo(expected[i], 12);
      });
    }
  });

  it.each([
    { specs: [spec('a', [2, 3])], length: 5 },
    { specs: [spec('a', [2, 3])], length: 7 },
    { specs: [spec('a', [2]), spec('b', [3])], length: 4 },
    { specs: [spec('a', [2]), spec('b', [3])], length: 6 },
  ])('refuse a vector of $length values', ({ specs, length }) => {
    const layout = parameters(specs);
    const flat = new Graph().input('flat', [length]);
    expect(() => layout.tensors(flat)).toThrow(EngineError);
    expect(() => layout.tensors(flat)).toThrow(String(layout.size));
    expect(() => layout.tensors(flat)).toThrow(String(length));
  });
});

describe('what cannot be laid out', () => {
  it('no parameters at all', () => {
    expect(() => parameters([])).toThrow(RangeError);
    expect(() => parameters([])).toThrow('parameters: there are none: give at least one');
  });

  it('one name twice, also in another group', () => {
    const twice = [spec('a', [1]), spec('b', [1]), spec('a', [2], 'h')];
    expect(() => parameters(twice)).toThrow(RangeError);
    expect(() => parameters(twice)).toThrow("parameters: 'a' is there twice: rename one of them");
  });

  it('a group that another interrupts', () => {
    const torn = [spec('a', [1], 'actor'), spec('b', [1], 'critic'), spec('c', [1], 'actor')];
    expect(() => parameters(torn)).toThrow(RangeError);
    expect(() => parameters(torn)).toThrow(
      "parameters: 'c' comes after another group than its own 'actor': keep groups together",
    );
  });

  it.each([[[-2]], [[2.5]], [[3, Number.NaN]], [[Number.POSITIVE_INFINITY]]])('the shape %j', shape => {
    expect(() => parameters([spec('a', shape)])).toThrow(/'a'.*whole number/);
  });
});
