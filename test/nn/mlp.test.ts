import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  compile,
  EngineError,
  evaluate,
  Graph,
  grad,
  mul,
  reduceSum,
  sub,
  type Tensor,
} from '../../src/engine/index.ts';
import { type Activation, type Mlp, mlp } from '../../src/nn/mlp.ts';
import { parameters } from '../../src/nn/parameters.ts';
import { Rng } from '../../src/random/index.ts';
import { expectClose, finiteDifferences, runCompiled } from '../engine/support/check.ts';
import { activationFunctions, mlpLayers, mlpSize, normals } from './support/reference.ts';

const activations = Object.keys(activationFunctions) as Activation[];
const widths = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 2, maxLength: 6 });
const cases = fc.record({
  sizes: widths,
  activation: fc.constantFrom(...activations),
  rows: fc.integer({ min: 1, max: 5 }),
  seed: fc.nat(),
});

/** The network of a flat vector and rows of inputs. */
function graphOf(net: Mlp, rows: number, inputs: number): { g: Graph; flat: Tensor; x: Tensor; y: Tensor } {
  const g = new Graph();
  const layout = parameters(net.specs);
  const flat = g.input('flat', [layout.size]);
  const x = g.input('x', [rows, inputs]);
  return { g, flat, x, y: net.forward(layout.tensors(flat), x) };
}

function reference(
  sizes: readonly number[],
  activation: Activation,
  flat: ArrayLike<number>,
  x: readonly number[],
): number[] {
  const rows = x.length / sizes[0];
  return Array.from({ length: rows }, (_, r) => {
    const row = x.slice(r * sizes[0], (r + 1) * sizes[0]);
    return mlpLayers(flat, 0, sizes, activationFunctions[activation], row).at(-1)!;
  }).flat();
}

describe('forward', () => {
  it('is the network of plain loops, in float64', () => {
    fc.assert(
      fc.property(cases, ({ sizes, activation, rows, seed }) => {
        const net = mlp({ name: 'net', sizes, activation });
        const { g, y } = graphOf(net, rows, sizes[0]);
        g.output('y', y);
        const rng = new Rng(seed);
        const feeds = { flat: normals(rng, mlpSize(sizes)), x: normals(rng, rows * sizes[0], 2) };
        const out = evaluate(g, feeds).y;
        expect(out.shape).toEqual([rows, sizes.at(-1)]);
        expectClose('y', out.data, reference(sizes, activation, feeds.flat, feeds.x), 1e-12);
      }),
      { numRuns: 60, seed: 1 },
    );
  });

  it.each(activations)('compiled, with %s, is the same in float32', async activation => {
    for (const sizes of [
      [1, 1],
      [3, 2],
      [4, 1, 3],
      [5, 8, 7, 6, 2],
      [27, 64, 64, 8],
    ]) {
      const net = mlp({ name: 'net', sizes, activation });
      const { g, y } = graphOf(net, 6, sizes[0]);
      g.output('y', y);
      const flat = parameters(net.specs).initialise(new Rng(3));
      const x = normals(4, 6 * sizes[0]);
      const { y: out } = await runCompiled(g, { flat, x });
      expectClose(`${sizes}`, out, reference(sizes, activation, flat, x), 1e-5);
    }
  });

  it('takes tanh unless told otherwise, and no activation after the last layer', () => {
    const { g, y } = graphOf(mlp({ name: 'net', sizes: [1, 1, 1] }), 1, 1);
    g.output('y', y);
    // weight, bias, weight, bias
    expect(evaluate(g, { flat: [2, 0.5, 100, -7], x: [3] }).y.data[0]).toBeCloseTo(
      100 * Math.tanh(6.5) - 7,
      10,
    );
    const relu = graphOf(mlp({ name: 'net', sizes: [1, 1], activation: 'relu' }), 1, 1);
    relu.g.output('y', relu.y);
    expect(evaluate(relu.g, { flat: [2, 0], x: [-3] }).y.data[0]).toBe(-6);
  });

  it('treats rows alone: a row has the same result in any company', async () => {
    const sizes = [4, 8, 3];
    const net = mlp({ name: 'net', sizes });
    const flat = parameters(net.specs).initialise(new Rng(1));
    const x = normals(2, 5 * 4);
    const run = async (rows: readonly number[]): Promise<number[]> => {
      const { g, y } = graphOf(net, rows.length / 4, 4);
      g.output('y', y);
      return (await runCompiled(g, { flat, x: rows })).y;
    };
    const together = await run(x);
    for (let r = 0; r < 5; r++) {
      expectClose(`row ${r}`, await run(x.slice(4 * r, 4 * r + 4)), together.slice(3 * r, 3 * r + 3), 1e-6);
    }
  });
});

describe('derivatives', () => {
  it('by all parameters and inputs are those of finite differences through plain loops', async () => {
    const sample = fc.sample(cases, { numRuns: 12, seed: 6 });
    for (const { sizes, activation, rows, seed } of sample) {
      const net = mlp({ name: 'net', sizes, activation });
      const { g, flat, x, y } = graphOf(net, rows, sizes[0]);
      const targets = normals(seed + 1, rows * sizes.at(-1)!);
      const error = sub(y, g.constant(targets, y.shape));
      const loss = reduceSum(mul(error, error));
      const [byFlat, byX] = grad(loss, [flat, x]);
      g.output('loss', loss);
      g.output('byFlat', byFlat);
      g.output('byX', byX);

      const rng = new Rng(seed);
      const feeds = {
        flat: normals(rng, mlpSize(sizes), 0.7),
        x: normals(rng, rows * sizes[0]),
      };
      const plainLoss = (values: ArrayLike<number>, inputs: readonly number[]): number =>
        reference(sizes, activation, values, inputs).reduce((sum, v, i) => sum + (v - targets[i]) ** 2, 0);
      const expected = {
        loss: [plainLoss(feeds.flat, feeds.x)],
        byFlat: finiteDifferences(values => plainLoss(values, feeds.x), feeds.flat),
        byX: finiteDifferences(values => plainLoss(feeds.flat, values), feeds.x),
      };
      const what = `${activation} ${sizes}`;
      const evaluated = evaluate(g, feeds);
      const compiled = await runCompiled(g, feeds);
      for (const name of ['loss', 'byFlat', 'byX'] as const) {
        const scale = Math.max(1, ...expected[name].map(Math.abs));
        expectClose(`${what} ${name}`, evaluated[name].data, expected[name], 1e-7, scale);
        expectClose(`${what} ${name}, compiled`, compiled[name], evaluated[name].data, 1e-5, scale);
      }
    }
  });
});

describe('specs', () => {
  it('are a weight (inputs, outputs) and a bias for each layer, in one group', () => {
    const { specs } = mlp({ name: 'actor', sizes: [5, 4, 3] });
    expect(specs.map(({ name, shape, group }) => ({ name, shape, group }))).toEqual([
      { name: 'actor.0.weight', shape: [5, 4], group: 'actor' },
      { name: 'actor.0.bias', shape: [4], group: 'actor' },
      { name: 'actor.1.weight', shape: [4, 3], group: 'actor' },
      { name: 'actor.1.bias', shape: [3], group: 'actor' },
    ]);
    const shared = mlp({ name: 'actor', sizes: [5, 4], group: 'both' });
    expect(shared.specs.every(({ group }) => group === 'both')).toBe(true);
  });

  it.each([
    { options: {}, hidden: Math.SQRT2, output: 1 },
    { options: { outputGain: 0.01 }, hidden: Math.SQRT2, output: 0.01 },
    { options: { hiddenGain: 1, outputGain: 2 }, hidden: 1, output: 2 },
  ])('start orthogonal with the gains of $options', ({ options, hidden, output }) => {
    const layout = parameters(mlp({ name: 'n', sizes: [6, 10, 7, 3], ...options }).specs);
    const views = layout.views(layout.initialise(new Rng(8)));
    for (const [i, gain] of [hidden, hidden, output].entries()) {
      const [rows, columns] = layout.specs[2 * i].shape;
      const squares = views[`n.${i}.weight`].reduce((sum, v) => sum + v * v, 0);
      // The squared norm of k orthonormal vectors is k.
      expect(squares / Math.min(rows, columns) / gain ** 2).toBeCloseTo(1, 6);
      expect(views[`n.${i}.bias`].every(v => v === 0)).toBe(true);
    }
  });

  it('gives a network without hidden layers the output gain', () => {
    const layout = parameters(mlp({ name: 'n', sizes: [4, 4], outputGain: 0.01 }).specs);
    const weight = layout.views(layout.initialise(new Rng(8)))['n.0.weight'];
    expect(weight.reduce((sum, v) => sum + v * v, 0)).toBeCloseTo(4e-4, 9);
  });

  it('lets networks share a vector and a graph', async () => {
    const [a, b] = ['a', 'b'].map(name => mlp({ name, sizes: [2, 3, 1] }));
    const layout = parameters([...a.specs, ...b.specs]);
    expect(layout.groups).toEqual([
      { name: 'a', offset: 0, size: 13 },
      { name: 'b', offset: 13, size: 13 },
    ]);
    const g = new Graph();
    const tensors = layout.tensors(g.input('flat', [layout.size]));
    const x = g.input('x', [1, 2]);
    g.output('a', a.forward(tensors, x));
    g.output('b', b.forward(tensors, x));
    const flat = normals(1, 26);
    const out = await runCompiled(g, { flat, x: [0.5, -1] });
    expectClose('a', out.a, reference([2, 3, 1], 'tanh', flat.slice(0, 13), [0.5, -1]), 1e-6);
    expectClose('b', out.b, reference([2, 3, 1], 'tanh', flat.slice(13), [0.5, -1]), 1e-6);
  });
});

describe('what is refused', () => {
  it.each([
    { sizes: [] },
    { sizes: [3] },
    { sizes: [3, 0] },
    { sizes: [-1, 2] },
    { sizes: [3, 2.5, 1] },
    { sizes: [Number.NaN, 2] },
    { sizes: [3, Number.POSITIVE_INFINITY] },
  ])('sizes $sizes, with the values and what is possible', ({ sizes }) => {
    expect(() => mlp({ name: 'actor', sizes })).toThrow(RangeError);
    expect(() => mlp({ name: 'actor', sizes })).toThrow(
      `mlp 'actor': sizes [${sizes.join(', ')}] are not possible: give at least two whole numbers above 0`,
    );
  });

  it('an unknown activation, with those that there are', () => {
    const swish = () => mlp({ name: 'actor', sizes: [2, 1], activation: 'swish' as Activation });
    expect(swish).toThrow(RangeError);
    expect(swish).toThrow("mlp 'actor': activation 'swish' is unknown: use tanh, relu, gelu");
  });

  it.each(['constructor', 'toString', '__proto__'])('the activation %j, which every object has', name => {
    expect(() => mlp({ name: 'actor', sizes: [2, 3, 1], activation: name as Activation })).toThrow(
      RangeError,
    );
  });

  it('inputs of another width, with both shapes', () => {
    const net = mlp({ name: 'net', sizes: [2, 3, 1] });
    expect(() => graphOf(net, 5, 3)).toThrow(EngineError);
    expect(() => graphOf(net, 5, 3)).toThrow(/\(5, 3\) and \(2, 3\)/);
  });

  it('parameters that lack one of the network, with its name', () => {
    const net = mlp({ name: 'net', sizes: [2, 1] });
    const x = new Graph().input('x', [1, 2]);
    expect(() => net.forward({}, x)).toThrow(/net\.0\.weight/);
  });
});

it('has no more nodes than one for each layer, activation and weight', async () => {
  const net = mlp({ name: 'net', sizes: [3, 4, 4, 2] });
  const { g, y } = graphOf(net, 5, 3);
  g.output('y', y);
  const program = await compile(g);
  // One split, three reshapes of weights (the biases are vectors already), three layers, two activations.
  expect(program.nodeCount).toBeLessThanOrEqual(9);
  program.dispose();
});
