import {
  compile,
  evaluate,
  Graph,
  grad,
  type Program,
  reduceSum,
  type Tensor,
} from '../../../src/engine/index.ts';
import type { Distribution } from '../../../src/kl/index.ts';
import type { Rng } from '../../../src/random/index.ts';

/** A batch in the layout of the graph: rows one after the other. */
export interface Batch {
  readonly rows: number;
  readonly p: Float64Array;
  readonly q: Float64Array;
  readonly noise: Float64Array;
  readonly action: Float64Array;
}

export type BatchResult = Record<
  'logProb' | 'entropy' | 'kl' | 'sample' | 'mode' | 'dLogProb' | 'dEntropy' | 'dKlP' | 'dKlQ',
  ArrayLike<number>
>;

/** Every function of a distribution and its derivatives by the parameters, in one graph. */
export function batchGraph(dist: Distribution, rows: number): Graph {
  const g = new Graph();
  const p = g.input('p', [rows, dist.paramSize]);
  const q = g.input('q', [rows, dist.paramSize]);
  const noise = g.input('noise', [rows, dist.noiseSize]);
  const action = g.input('action', [rows, dist.actionSize]);
  const logProb = g.output('logProb', dist.graph.logProb(p, action));
  const entropy = g.output('entropy', dist.graph.entropy(p));
  const kl = g.output('kl', dist.graph.kl(p, q));
  g.output('sample', dist.graph.sample(p, noise));
  g.output('mode', dist.graph.mode(p));
  // Rows are independent: the derivative of the sum holds each row's own.
  g.output('dLogProb', grad(reduceSum(logProb), [p])[0]);
  g.output('dEntropy', grad(reduceSum(entropy), [p])[0]);
  const [dKlP, dKlQ] = grad(reduceSum(kl), [p, q]);
  g.output('dKlP', dKlP);
  g.output('dKlQ', dKlQ);
  return g;
}

/** By the float64 reference interpreter. */
export function reference(dist: Distribution, { rows, p, q, noise, action }: Batch): BatchResult {
  const out = evaluate(batchGraph(dist, rows), { p, q, noise, action });
  return Object.fromEntries(
    Object.entries(out).map(([name, { data }]) => [name, data]),
  ) as unknown as BatchResult;
}

/** Programs by distribution and rows: compiling one takes far longer than running it. */
const programs = new WeakMap<Distribution, Map<number, Promise<Program>>>();

function programFor(dist: Distribution, rows: number): Promise<Program> {
  const own = programs.get(dist) ?? new Map<number, Promise<Program>>();
  programs.set(dist, own);
  // NaN is fed on purpose here and there.
  const program =
    own.get(rows) ?? compile(batchGraph(dist, rows), { device: 'cpu', threads: 1, checkFeeds: false });
  own.set(rows, program);
  return program;
}

/** Compiled, in float32. The batch's numbers must be float32 already, for a comparison to mean something. */
export async function compiled(
  dist: Distribution,
  { rows, p, q, noise, action }: Batch,
): Promise<BatchResult> {
  const program = await programFor(dist, rows);
  const out = program.run({
    p: Float32Array.from(p),
    q: Float32Array.from(q),
    noise: Float32Array.from(noise),
    action: Float32Array.from(action),
  });
  return out as unknown as BatchResult;
}

/** Row `i` of a flat batch. */
export function row(values: ArrayLike<number>, i: number, size: number): Float64Array {
  const out = new Float64Array(size);
  for (let k = 0; k < size; k++) out[k] = values[i * size + k];
  return out;
}

/**
 * Random rows: p normal with the given scale, q at a distance from p; noise as the distribution wants it; actions sampled
 * from p. All are float32 numbers.
 */
export function randomBatch(
  dist: Distribution,
  rng: Rng,
  rows: number,
  scale: number,
  distance: (row: number) => number,
): Batch {
  const p = Float64Array.from({ length: rows * dist.paramSize }, () => Math.fround(scale * rng.normal()));
  const q = p.map((v, i) => Math.fround(v + distance(Math.floor(i / dist.paramSize)) * rng.normal()));
  const noise32 = new Float32Array(rows * dist.noiseSize);
  dist.fillNoise(rng, noise32);
  const noise = Float64Array.from(noise32);
  const action = new Float64Array(rows * dist.actionSize);
  const out = new Float64Array(dist.actionSize);
  for (let i = 0; i < rows; i++) {
    dist.sample(row(p, i, dist.paramSize), row(noise, i, dist.noiseSize), out);
    action.set(out.map(Math.fround), i * dist.actionSize);
  }
  return { rows, p, q, noise, action };
}

/** How many nodes a result takes, without inputs, constants and what costs nothing: what a run pays for. */
export function nodeCount(result: Tensor): number {
  const seen = new Set<Tensor['node']>();
  const visit = (node: Tensor['node']): void => {
    if (seen.has(node)) return;
    seen.add(node);
    for (const input of node.inputs) visit(input.node);
  };
  visit(result.node);
  const free = ['input', 'constant', 'stopGradient'];
  return [...seen].filter(({ op }) => !free.includes(op.name)).length;
}
