/**
 * Every operator and its derivative, over random shapes, four ways: compiled in float32, by the float64 reference
 * interpreter, by the naive formulas in support/naive.ts, and, for derivatives, by finite differences.
 */
import { readdirSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { derivativeOf } from '../../src/engine/derivatives/table.ts';
import type { Operator } from '../../src/engine/graph.ts';
import { add, evaluate, Graph, grad, mul, reduceSum, type Tensor } from '../../src/engine/index.ts';
import { isLoop } from '../../src/engine/ops/loop.ts';
import { cases, type Instance } from './support/cases.ts';
import {
  expectClose,
  finiteDifferences,
  type PlainFeeds,
  runCompiled,
  scale,
  seed,
} from './support/check.ts';
import { Draw } from './support/draw.ts';
import { exportedOperators } from './support/exports.ts';
import { naiveOps, value } from './support/naive.ts';
import { engineOps, type Typed } from './support/ops.ts';

const RUNS = 16;

/** Names of functions that a case called; operators of which nodes were made, and of which were differentiated. */
const covered = {
  functions: new Set<string>(),
  operators: new Set<string>(),
  derivatives: new Set<string>(),
};

interface Built {
  readonly graph: Graph;
  readonly feeds: PlainFeeds;
  readonly outputs: readonly Tensor[];
  readonly wrt: readonly string[];
}

function asList<T extends Typed>(out: T | readonly T[]): readonly T[] {
  return Array.isArray(out) ? (out as readonly T[]) : [out as T];
}

/** The graph of an instance with its outputs, their weighted sum as loss and, if asked for, its gradient. */
function build(instance: Instance, withGradient: boolean): Built {
  const graph = new Graph();
  const feeds: PlainFeeds = {};
  const x = Object.fromEntries(
    Object.entries(instance.inputs).map(([name, { shape, dtype, values }]) => {
      feeds[name] = values;
      return [name, graph.input(name, shape, dtype, { required: false })];
    }),
  );
  const outputs = asList(
    instance.f(
      engineOps(graph, name => covered.functions.add(name)),
      x,
    ),
  );
  outputs.forEach((t, i) => {
    graph.output(`out${i}`, t);
  });
  const floats = Object.keys(instance.inputs).filter(name => instance.inputs[name].dtype === 'float32');
  const wrt = (instance.wrt ?? floats).filter(name => floats.includes(name));
  if (wrt.length > 0) {
    // Weights differ from value to value: a derivative that mixes values up does not pass.
    const terms = outputs
      .filter(t => t.dtype === 'float32')
      .map((t, k) => {
        const size = t.shape.reduce((a, b) => a * b, 1);
        const weight = graph.input(`weight${k}`, t.shape);
        feeds[`weight${k}`] = Array.from({ length: size }, (_, i) => (((i + k) * 37 + 11) % 16) / 8 - 0.75);
        return reduceSum(mul(t, weight));
      });
    const loss = graph.output('loss', terms.reduce(add));
    if (withGradient) {
      // Zeros where an instance happens not to depend on an input, as at 0 trips.
      const gradients = grad(
        loss,
        wrt.map(name => x[name]),
        { unused: 'zero' },
      );
      gradients.forEach((t, i) => {
        expect(t.shape).toEqual(x[wrt[i]].shape);
        graph.output(`d/${wrt[i]}`, t);
      });
    }
  }
  return { graph, feeds, outputs, wrt };
}

function visit(graph: Graph, into: Set<string>): void {
  for (const node of graph.nodes) {
    into.add(node.op.name);
    if (isLoop(node)) visit(node.attrs.body, into);
  }
}

async function checkInstance(instance: Instance): Promise<void> {
  const { graph, feeds, outputs, wrt } = build(instance, true);
  visit(graph, covered.operators);
  if (wrt.length > 0) visit(build(instance, false).graph, covered.derivatives);

  const reference = evaluate(graph, feeds);
  const given = Object.fromEntries(
    Object.entries(instance.inputs).map(([name, x]) => [name, value(x.values, x.shape, x.dtype)]),
  );
  asList(instance.f(naiveOps(), given)).forEach((naive, i) => {
    expect(outputs[i].shape, `shape of output ${i}`).toEqual(naive.shape);
    expect(outputs[i].dtype, `dtype of output ${i}`).toBe(naive.dtype);
    expectClose(`evaluate, output ${i}`, reference[`out${i}`].data, naive.data, 1e-10);
  });

  if (wrt.length > 0) {
    const plain = build(instance, false);
    for (const name of wrt) {
      const expected = finiteDifferences(
        values => evaluate(plain.graph, { ...plain.feeds, [name]: values }).loss.data[0],
        instance.inputs[name].values,
      );
      expectClose(`derivative by ${name}`, reference[`d/${name}`].data, expected, 1e-6);
    }
  }

  const compiled = await runCompiled(graph, feeds);
  for (const [name, { data }] of Object.entries(reference)) {
    expectClose(`compiled ${name}`, compiled[name], data, 1e-4);
  }
}

describe('operators: compiled, evaluated, naive and differentiated values agree', () => {
  it.each(cases)('$name', async ({ make }) => {
    await fc.assert(
      fc.asyncProperty(fc.gen(), gen => checkInstance(make(new Draw(gen)))),
      { numRuns: RUNS * scale, seed },
    );
  });
});

describe('the table is complete', () => {
  it('every exported operator has a case', () => {
    const exported = exportedOperators();
    expect(exported.length).toBeGreaterThan(45);
    expect(exported.filter(name => !covered.functions.has(name))).toEqual([]);
  });

  it('every operator object is in the graph of a case, and every derivative was taken', async () => {
    const folder = new URL('../../src/engine/ops/', import.meta.url);
    const files = readdirSync(folder).filter(name => name.endsWith('.ts'));
    const modules: Record<string, unknown>[] = await Promise.all(
      files.map(name => import(new URL(name, folder).href)),
    );
    const isOperator = (v: unknown): v is Operator =>
      typeof v === 'object' && v !== null && 'infer' in v && 'name' in v;
    const operators = new Set(modules.flatMap(m => Object.values(m)).filter(isOperator));
    expect(operators.size).toBeGreaterThan(40);
    expect([...operators].map(op => op.name).filter(name => !covered.operators.has(name))).toEqual([]);
    const differentiable = [...operators].filter(op => derivativeOf(op) || op.name === 'loop');
    expect(differentiable.length).toBeGreaterThan(30);
    expect(differentiable.map(op => op.name).filter(name => !covered.derivatives.has(name))).toEqual([]);
  });

  it('operator names are unique, as nodes are shared by them', async () => {
    const folder = new URL('../../src/engine/ops/', import.meta.url);
    const modules: Record<string, unknown>[] = await Promise.all(
      readdirSync(folder).map(name => import(new URL(name, folder).href)),
    );
    const operators = new Set(
      modules
        .flatMap(m => Object.values(m))
        .filter((v): v is Operator => typeof v === 'object' && v !== null && 'infer' in v),
    );
    const names = [...operators].map(op => op.name);
    expect(names.filter((name, i) => names.indexOf(name) !== i)).toEqual([]);
  });
});
