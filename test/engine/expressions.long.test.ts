/**
 * Random expressions: what the engine makes of them, simplified, shared, hoisted and folded, has the values and the
 * derivatives of what was written. The values are those of support/naive.ts, which simplifies nothing.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { add, evaluate, Graph, grad, mul, reduceSum, type Tensor } from '../../src/engine/index.ts';
import { derivativeAtZero, expectClose, type PlainFeeds, runCompiled, scale, seed } from './support/check.ts';
import { decode, floatInputs, inputTypes } from './support/expressions.ts';
import { naiveOps, type Trace, type Value, value } from './support/naive.ts';
import { engineOps } from './support/ops.ts';

type Name = keyof typeof inputTypes;
const names = Object.keys(inputTypes) as Name[];

function count(shape: readonly number[]): number {
  return shape.reduce((a, b) => a * b, 1);
}

const floats = (n: number) =>
  // Whole numbers now and then: ties, and constants that meet inputs.
  fc.array(
    fc.oneof(
      { weight: 6, arbitrary: fc.integer({ min: -250, max: 250 }).map(v => v / 128) },
      { weight: 1, arbitrary: fc.integer({ min: -1, max: 1 }) },
    ),
    { minLength: n, maxLength: n },
  );
const feedsArbitrary = fc.record({
  a: floats(6),
  b: floats(3),
  c: floats(2),
  s: floats(1),
  n: fc.integer({ min: 0, max: 4 }).map(v => [v]),
  m: fc.array(fc.integer({ min: 0, max: 1 }), { minLength: 6, maxLength: 6 }),
});
type Feeds = Record<Name, number[]>;
const genesArbitrary = fc.array(fc.nat(5000), { minLength: 1, maxLength: 140, size: 'max' });
const directionArbitrary = fc.array(
  fc.integer({ min: -4, max: 4 }).map(v => v / 4),
  {
    minLength: 12,
    maxLength: 12,
  },
);

interface Naive {
  readonly loss: number;
  readonly values: readonly Value[];
  readonly trace: Trace;
}

function naively(genes: readonly number[], feeds: Feeds): Naive {
  const trace: Trace = { branches: [], largest: 0 };
  const inputs = Object.fromEntries(
    names.map(name => [name, value(feeds[name], inputTypes[name].shape, inputTypes[name].dtype)]),
  ) as Record<Name, Value>;
  const { loss, values } = decode(naiveOps(trace), inputs, genes);
  return { loss: loss.data[0], values, trace };
}

/** The inputs moved along a direction. */
function moved(feeds: Feeds, direction: readonly number[], t: number): Feeds {
  let at = 0;
  const moving = floatInputs.map(name => [name, feeds[name].map(v => v + t * direction[at++])] as const);
  return { ...feeds, ...Object.fromEntries(moving) };
}

interface Built {
  readonly graph: Graph;
  readonly inputs: Record<Name, Tensor>;
  readonly loss: Tensor;
  readonly values: readonly Tensor[];
}

function build(genes: readonly number[]): Built {
  const graph = new Graph();
  const inputs = Object.fromEntries(
    names.map(name => [
      name,
      graph.input(name, inputTypes[name].shape, inputTypes[name].dtype, { required: false }),
    ]),
  ) as Record<Name, Tensor>;
  return { graph, inputs, ...decode(engineOps(graph), inputs, genes) };
}

function gradients({ inputs }: Built, loss: Tensor): Tensor[] {
  return grad(
    loss,
    floatInputs.map(name => inputs[name]),
    { unused: 'zero' },
  );
}

/** The derivative of the loss along a direction, as a graph. */
function slope(built: Built, direction: readonly number[]): Tensor {
  let from = 0;
  return gradients(built, built.loss)
    .map(t => {
      const weights = direction.slice(from, from + count(t.shape));
      from += weights.length;
      return reduceSum(mul(t, built.graph.constant(weights, t.shape)));
    })
    .reduce((x, y) => add(x, y));
}

/** Beyond this, float32 and finite differences say nothing. */
const LARGEST = 1e3;

/** Differences of `f` along a direction, if no branch changes on the way and they settle. */
function measured(
  genes: readonly number[],
  feeds: Feeds,
  direction: readonly number[],
  f: (feeds: Feeds) => number,
): number | undefined {
  const width = 1e-3;
  const branches = [0, 1, -1, 0.5, -0.5].map(t =>
    naively(genes, moved(feeds, direction, t * width)).trace.branches.join(),
  );
  if (new Set(branches).size > 1) return undefined;
  const found = derivativeAtZero(t => f(moved(feeds, direction, t)), width);
  return found.uncertainty < 1e-6 * (1 + Math.abs(found.value)) ? found.value : undefined;
}

/** Counts what a property looked at, so that one that skips everything does not pass. */
function counter(): { compared: number; skipped: number } {
  return { compared: 0, skipped: 0 };
}

describe('random expressions', () => {
  it('have the values that were written', () => {
    const tally = counter();
    fc.assert(
      fc.property(genesArbitrary, feedsArbitrary, (genes, feeds) => {
        const naive = naively(genes, feeds);
        const { graph, loss, values } = build(genes);
        graph.output('loss', loss);
        values.forEach((t, i) => {
          expect(t.shape).toEqual(naive.values[i].shape);
          graph.output(`value${i}`, t);
        });
        if (!(naive.trace.largest < 1e9)) {
          tally.skipped++;
          return;
        }
        tally.compared++;
        const out = evaluate(graph, feeds);
        naive.values.forEach((v, i) => {
          expectClose(`value ${i}`, out[`value${i}`].data, v.data, 1e-11, 1 + naive.trace.largest);
        });
        expectClose('loss', out.loss.data, [naive.loss], 1e-11, 1 + naive.trace.largest ** 2);
      }),
      { numRuns: 1500 * scale, seed },
    );
    expect(tally.compared).toBeGreaterThan(tally.skipped);
  });

  it('have the derivatives of what was written', () => {
    const tally = counter();
    fc.assert(
      fc.property(genesArbitrary, feedsArbitrary, directionArbitrary, (genes, feeds, direction) => {
        const naive = naively(genes, feeds);
        const expected =
          naive.trace.largest < LARGEST
            ? measured(genes, feeds, direction, moving => naively(genes, moving).loss)
            : undefined;
        if (expected === undefined) {
          tally.skipped++;
          return;
        }
        tally.compared++;
        const built = build(genes);
        built.graph.output('slope', slope(built, direction));
        const actual = evaluate(built.graph, feeds).slope.data;
        expectClose('slope', actual, [expected], 1e-5, 1 + naive.trace.largest);
      }),
      { numRuns: 700 * scale, seed },
    );
    expect(tally.compared).toBeGreaterThan(tally.skipped);
  });

  it('have the second derivatives of what was written', () => {
    const tally = counter();
    fc.assert(
      fc.property(genesArbitrary, feedsArbitrary, directionArbitrary, (genes, feeds, direction) => {
        const built = build(genes);
        // The first derivatives by every input, weighted: their slope is what the second derivatives must give.
        const weights = direction.map((_, i) => ((i * 5) % 7) / 4 - 0.75);
        const weighted = slope(built, weights);
        built.graph.output('first', weighted);
        const bent = { ...built, loss: weighted };
        built.graph.output('second', slope(bent, direction));
        const naive = naively(genes, feeds);
        const expected =
          naive.trace.largest < 100
            ? measured(genes, feeds, direction, moving => evaluate(built.graph, moving).first.data[0])
            : undefined;
        if (expected === undefined) {
          tally.skipped++;
          return;
        }
        tally.compared++;
        const actual = evaluate(built.graph, feeds).second.data;
        expectClose('slope of the slope', actual, [expected], 1e-5, 1 + naive.trace.largest);
      }),
      { numRuns: 150 * scale, seed },
    );
    expect(tally.compared).toBeGreaterThan(tally.skipped);
  });

  it('are computed alike by ONNX Runtime, derivatives included', async () => {
    const tally = counter();
    await fc.assert(
      fc.asyncProperty(genesArbitrary, feedsArbitrary, async (genes, feeds) => {
        const naive = naively(genes, feeds);
        const built = build(genes);
        built.graph.output('loss', built.loss);
        built.values.forEach((t, i) => {
          built.graph.output(`value${i}`, t);
        });
        gradients(built, built.loss).forEach((t, i) => {
          built.graph.output(`d/${floatInputs[i]}`, t);
        });
        const compiled = await runCompiled(built.graph, feeds as PlainFeeds);
        if (!(naive.trace.largest < 100)) {
          tally.skipped++;
          return;
        }
        tally.compared++;
        const reference = evaluate(built.graph, feeds);
        const size = 1 + naive.trace.largest ** 2;
        for (const [name, { data }] of Object.entries(reference)) {
          expectClose(name, compiled[name], data, 1e-4, size);
        }
      }),
      { numRuns: 250 * scale, seed },
    );
    expect(tally.compared).toBeGreaterThan(tally.skipped);
  });
});
