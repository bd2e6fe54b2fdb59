/**
 * Graphs as WebAssembly programs. That every operator agrees with ONNX Runtime over random shapes is checked wherever
 * the engine's tests compile a graph (support/check.ts); here is what is promised of these programs alone.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compileNetwork } from '../../src/algos/agents/actor.ts';
import { networkFor } from '../../src/algos/agents/networks/network.ts';
import { isForWasm, isWasm, widestInWasm } from '../../src/algos/agents/runtime.ts';
import {
  add,
  compile,
  evaluate,
  Graph,
  gather,
  less,
  loop,
  matmul,
  mul,
  pow,
  reduceSum,
  slice,
  type Tensor,
} from '../../src/engine/index.ts';
import { erf, exp, log, sigmoid, tanh } from '../../src/engine/ops/elementwise.ts';
import { compileWasm, tryCompileWasm, wasmRefusal } from '../../src/engine/wasm/program.ts';
import { box, dict, discrete, type Space } from '../../src/envs/index.ts';
import { Rng } from '../../src/random/index.ts';

const normals = (count: number, rng: Rng, scale = 1): Float32Array =>
  Float32Array.from({ length: count }, () => scale * rng.normal());

const networks = {
  'an MLP': (hidden: number[], size: number, actions: number, activation: 'tanh' | 'relu' | 'gelu') =>
    networkOf(hidden, activation, box({ shape: [size] }), box({ shape: [actions], low: -1, high: 1 })),
  'an MLP with categories': (
    hidden: number[],
    size: number,
    actions: number,
    activation: 'tanh' | 'relu' | 'gelu',
  ) => networkOf(hidden, activation, box({ shape: [size] }), discrete(actions)),
  'a set network': (hidden: number[], size: number, actions: number, activation: 'tanh' | 'relu' | 'gelu') =>
    networkOf(
      hidden,
      activation,
      dict({ items: box({ shape: [actions, size] }), shared: box({ shape: [3] }) }),
      discrete(actions),
      'set',
    ),
};

function networkOf(
  hidden: number[],
  activation: 'tanh' | 'relu' | 'gelu',
  observations: Space,
  actions: Space,
  network: 'mlp' | 'set' = 'mlp',
) {
  const logStds = { logStdInitial: -5, logStdMin: -20, logStdMax: 2 };
  return networkFor({ network, hidden, activation, ...logStds }, observations, actions);
}

describe.each(Object.entries(networks))('%s', (_, make) => {
  const shape = fc.record({
    hidden: fc.array(fc.integer({ min: 1, max: 70 }), { minLength: 1, maxLength: 3 }),
    size: fc.integer({ min: 1, max: 40 }),
    actions: fc.integer({ min: 1, max: 19 }),
    activation: fc.constantFrom('tanh', 'relu', 'gelu'),
    rows: fc.integer({ min: 1, max: 33 }),
    seed: fc.nat(1e6),
  });

  it('agrees with ONNX Runtime, and a row does not depend on how many there are, nor on the others', async () => {
    await fc.assert(
      fc.asyncProperty(shape, async ({ hidden, size, actions, activation, rows, seed }) => {
        const model = make(hidden, size, actions, activation);
        expect(isForWasm(model, 'learn')).toBe(true);
        const rng = new Rng(seed);
        const weights = model.layout.initialise(rng).map(w => w + 0.1 * rng.normal());
        const observations = normals(rows * model.observationSize, rng, 2);
        for (const which of ['actor', 'critic'] as const) {
          const many = await compileNetwork(model, which, rows);
          const one = await compileNetwork(model, which, 1);
          for (const network of [many, one]) network.setWeights(weights);
          many.observations.set(observations);
          many.run();
          const width = many.out.length / rows;
          for (let r = 0; r < rows; r++) {
            one.observations.set(
              observations.subarray(r * model.observationSize, (r + 1) * model.observationSize),
            );
            one.run();
            for (let k = 0; k < width; k++)
              if (!Object.is(one.out[k], many.out[r * width + k]))
                throw new Error(
                  `row ${r} of ${rows}, value ${k}: ${one.out[k]} alone, ${many.out[r * width + k]}`,
                );
          }
          const expected = await byOnnxRuntime(model, which, rows, weights, observations);
          const size = Math.max(1, ...expected.map(Math.abs));
          expected.forEach((value, i) => {
            if (Math.abs(many.out[i] - value) > 2e-5 * size)
              throw new Error(`value ${i}: ${many.out[i]} instead of ${value}`);
          });
        }
      }),
      { numRuns: 25 },
    );
  });
});

async function byOnnxRuntime(
  model: ReturnType<typeof networkOf>,
  which: 'actor' | 'critic',
  rows: number,
  weights: Float32Array,
  observations: Float32Array,
): Promise<Float32Array> {
  const g = new Graph();
  const tensors = model.layout.tensors(g.input('weights', [model.layout.size]));
  const obs = g.input('observations', [rows, model.observationSize]);
  g.output('out', which === 'actor' ? model.policy(tensors, obs) : model.value(tensors, obs));
  const program = await compile(g);
  const { out } = program.run<{ out: Float32Array }>({ weights, observations });
  program.dispose();
  return out;
}

it('wider networks are left to ONNX Runtime', async () => {
  const ofWidth = (width: number) => networkOf([width], 'tanh', box({ shape: [2] }), discrete(2));
  for (const purpose of ['act', 'learn'] as const) {
    const widest = widestInWasm[purpose];
    expect(isForWasm(ofWidth(widest), purpose)).toBe(true);
    expect(isForWasm(ofWidth(widest + 1), purpose)).toBe(false);
    expect(isForWasm(ofWidth(8), purpose, { device: 'cuda' })).toBe(false);
  }
  const model = ofWidth(widestInWasm.act + 1);
  const network = await compileNetwork(model, 'critic', 3);
  const weights = model.layout.initialise(new Rng(3));
  network.setWeights(weights);
  network.observations.fill(1);
  network.run();
  expect([...network.out]).toEqual([
    ...(await byOnnxRuntime(model, 'critic', 3, weights, network.observations)),
  ]);
  network.dispose();
});

describe('functions', () => {
  const values = [
    ...Array.from({ length: 4001 }, (_, i) => (i - 2000) / 100),
    ...[1e-30, 1e-10, 1e-4, 88.5, 88.7, 89, -87, -88, -100, -110, 1e4, -1e4, 3e38],
    ...[1e-40, -0, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, Number.NaN],
  ];
  const run = (f: (x: Tensor) => Tensor): Float32Array => {
    const g = new Graph();
    g.output('y', f(g.input('x', [values.length])));
    return compileWasm(g).run<{ y: Float32Array }>({ x: Float32Array.from(values) }).y;
  };
  // Units in the last place of float32 are 6e-8 to 1.2e-7 of a value; below 1.2e-38 it has fewer digits.
  it.each<[string, (x: Tensor) => Tensor, (x: number) => number, number]>([
    ['exp', exp, Math.exp, 2e-7],
    ['log', log, Math.log, 2e-7],
    ['tanh', tanh, Math.tanh, 4e-7],
    ['sigmoid', sigmoid, x => 1 / (1 + Math.exp(-x)), 3e-7],
  ])('%s is right to the last digits, and at its ends', (name, f, reference, tolerance) => {
    run(f).forEach((found, i) => {
      const wanted = Math.fround(reference(Math.fround(values[i])));
      const close =
        Object.is(found, wanted) ||
        (found === 0 && wanted === 0) ||
        Math.abs(found - wanted) <= tolerance * Math.abs(wanted) + (name === 'exp' ? 3e-45 : 1e-43) ||
        // log's digits near 1 are those of x - 1
        (name === 'log' && Math.abs(found - wanted) <= 1e-7);
      if (!close) throw new Error(`${name}(${values[i]}) is ${found} instead of ${wanted}`);
    });
  });

  it('erf is odd, and right to 4e-7', () => {
    const found = run(erf);
    const at = (x: number): number => found[values.indexOf(x)];
    expect(at(1)).toBeCloseTo(0.8427007929, 6);
    expect(at(0.5)).toBeCloseTo(0.5204998778, 6);
    expect(at(2)).toBeCloseTo(0.995322265, 6);
    expect(at(-1.5)).toBeCloseTo(-0.9661051464, 6);
    expect(at(1e4)).toBe(1);
    expect(at(1e-10) / 1e-10).toBeCloseTo(2 / Math.sqrt(Math.PI), 5);
    expect(found.at(-1)).toBeNaN();
  });
});

describe('a program', () => {
  it('refuses what it has no instructions for, by name', () => {
    const g = new Graph();
    g.output('y', pow(g.input('x', [3]), g.input('e', [3])));
    expect(wasmRefusal(g)).toBe('pow');
    expect(() => compileWasm(g)).toThrow('pow is not written for it: use compile');
    const batches = new Graph();
    batches.output('y', matmul(batches.input('a', [2, 3, 4]), batches.input('b', [2, 4, 5])));
    expect(wasmRefusal(batches)).toBe('matmul of other than two axes');
  });

  it('that would need more memory than there is is none', () => {
    const g = new Graph();
    const x = g.input('x', [1 << 15, 1 << 14]);
    g.output('y', mul(x, 2));
    expect(tryCompileWasm(g)).toBeUndefined();
    expect(() => compileWasm(g)).toThrow('pages of memory, 32768 are possible');
  });

  it('ends with an error where an index lies outside, and counts negative ones from the end', () => {
    const g = new Graph();
    g.output('y', gather(g.input('x', [4]), g.input('i', [1], 'int64')));
    const program = compileWasm(g);
    const at = (i: bigint): number =>
      program.run<{ y: Float32Array }>({ x: Float32Array.of(1, 2, 3, 4), i: BigInt64Array.of(i) }).y[0];
    expect([at(0n), at(3n), at(-1n), at(-4n)]).toEqual([1, 4, 4, 1]);
    for (const outside of [4n, -5n, 2n ** 31n - 1n])
      expect(() => at(outside)).toThrow('an index lies outside of the tensor that it points into');
    expect(at(1n)).toBe(2);
  });

  it('names a feed that is missing, of another type, of another size, or of another name', () => {
    const g = new Graph();
    g.output('y', mul(g.input('x', [2]), 2));
    const program = compileWasm(g);
    const x = Float32Array.of(1, 2);
    expect(() => program.run({})).toThrow("feed 'x' is missing: give a Float32Array for its shape (2)");
    expect(() => program.run({ x: Int32Array.of(1, 2) })).toThrow("feed 'x' is Int32Array");
    expect(() => program.run({ x: Float32Array.of(1) })).toThrow("feed 'x' has 1 values");
    expect(() => program.run({ x, z: x })).toThrow("feed 'z' is not one of the program's");
    expect(() => program.run({ x }, { w: x } as never)).toThrow("output 'w' is not one of the program's");
    expect(program.run({ x }).y).toEqual(Float32Array.of(2, 4));
    expect(isWasm(program)).toBe(true);
    program.dispose();
    expect(() => program.run({ x })).toThrow('disposed of');
  });

  it('carries values that change places, and those that stay where they are', () => {
    const g = new Graph();
    const [a, b] = [g.input('a', [5]), g.input('b', [5])];
    const { carry } = loop({
      trips: 3,
      carry: { a, b },
      body: ({ carry }) => ({ carry: { a: carry.b, b: carry.a } }),
    });
    g.output('x', carry.a);
    g.output('y', carry.b);
    const { x, y } = compileWasm(g).run<Record<'x' | 'y', Float32Array>>({
      a: new Float32Array(5).fill(1),
      b: new Float32Array(5).fill(2),
    });
    expect([...x, ...y]).toEqual([2, 2, 2, 2, 2, 1, 1, 1, 1, 1]);
  });

  it('does not replace a carried value while its first row is still read for the other rows', () => {
    const g = new Graph();
    const { carry } = loop({
      trips: 2,
      carry: { x: g.input('x', [3, 4]) },
      body: ({ carry: { x } }) => ({ carry: { x: add(x, slice(x, [0], [1])) } }),
    });
    g.output('y', carry.x);
    const x = Float32Array.of(1, 2, 3, 4, 10, 20, 30, 40, 0, 0, 0, 0);
    const { y } = compileWasm(g).run<{ y: Float32Array }>({ x });
    // The first row r becomes 2 r and then 4 r; the others get r and then 2 r.
    expect([...y]).toEqual([4, 8, 12, 16, 13, 26, 39, 52, 3, 6, 9, 12]);
  });

  it('asks whether to go on before the carried values are replaced', () => {
    const g = new Graph();
    const x = g.input('x', [2]);
    const { iterations } = loop({
      trips: 9,
      carry: { x, on: less(reduceSum(x), 100) },
      body({ carry }) {
        const next = add(carry.x, 1);
        return { carry: { x: next, on: less(reduceSum(next), 5) }, goOn: carry.on };
      },
    });
    g.output('iterations', iterations);
    const feeds = { x: Float32Array.of(0, 0) };
    expect(Number(compileWasm(g).run(feeds).iterations[0])).toBe(evaluate(g, feeds).iterations.data[0]);
  });

  it('gives the same arrays of values for its life, and computes in them', () => {
    const g = new Graph();
    g.output('y', mul(g.input('x', [3]), 3));
    const program = compileWasm(g);
    const [x, y] = [program.values('x'), program.values('y')];
    x.set([1, 2, 3]);
    program.execute();
    expect([...y]).toEqual([3, 6, 9]);
    expect(() => program.values('z')).toThrow("'z' is neither an input nor an output");
  });
});
