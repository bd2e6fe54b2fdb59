/**
 * The derivative of a loop is a loop that runs backwards.
 *
 * Forwards, every iteration's carried values are kept as scans. Backwards, each iteration takes its values from there,
 * computes the body anew, and passes the derivative by its results on to the carried values before it; what reaches
 * tensors from outside is summed up over iterations. Memory is the carried values times the iterations, nothing more.
 */
import { apply, type Graph, type Node, type Tensor } from '../graph.ts';
import { add, expand, sub } from '../ops/elementwise.ts';
import { gather } from '../ops/gather.ts';
import {
  addLoop,
  addScans,
  captures,
  innermost,
  isLoop,
  type LoopAttrs,
  valueCaptures,
} from '../ops/loop.ts';
import { zerosLike } from './table.ts';

/** Derivatives by `leaves` of a loss whose derivatives by other tensors are given; undefined where it has none. */
export type Backpropagate = (
  seeds: readonly { of: Tensor; grad: Tensor }[],
  leaves: readonly Tensor[],
) => readonly (Tensor | undefined)[];

/** Derivatives by the loop's operands: its inputs, then its captures, in that order. */
export function loopDerivative(
  node: Node<LoopAttrs>,
  grads: readonly (Tensor | undefined)[],
  backpropagate: Backpropagate,
): readonly (Tensor | undefined)[] {
  const { attrs, outputs } = node;
  const { carriedIn, carriedOut, scans, maxTrips } = attrs;
  const carried = carriedIn.length;
  const iterations = outputs[carried];
  const scanGrads = scans.map((_, i) => grads[carried + 1 + i]);
  const outer = valueCaptures(node);
  const saved = addScans(node, carriedIn);

  const floatCarried = [...carriedIn.keys()].filter(i => carriedIn[i].dtype === 'float32');
  const floatOuter = [...outer.keys()].filter(i => outer[i].dtype === 'float32');
  const seeds = grads.filter(g => g !== undefined);
  const parent = innermost([node.graph, ...seeds, ...outer]);
  const start = [
    ...floatCarried.map(i => expand(grads[i] ?? zerosLike(carriedIn[i]), carriedIn[i].shape)),
    ...floatOuter.map(i => zerosIn(node.graph, outer[i])),
  ];
  const backwards = addLoop(parent, { count: iterations, atMost: maxTrips }, start, (step, states) => {
    const iteration = sub(sub(iterations, 1), step);
    const byCarried = states.slice(0, floatCarried.length);
    const sums = states.slice(floatCarried.length);
    const before = saved.map(rows => gather(rows, iteration));
    const known = new Map<Tensor, Tensor>([[attrs.iteration, iteration]]);
    carriedIn.forEach((t, i) => {
      known.set(t, before[i]);
    });
    const used = [...scans.keys()].filter(i => scanGrads[i]);
    replay([...floatCarried.map(i => carriedOut[i]), ...used.map(i => scans[i])], known, attrs.body);
    const seedsHere = [
      ...floatCarried.map((i, k) => ({ of: known.get(carriedOut[i]) ?? carriedOut[i], grad: byCarried[k] })),
      ...used.map(i => ({ of: known.get(scans[i]) ?? scans[i], grad: gather(scanGrads[i]!, iteration) })),
    ];
    const leaves = [...floatCarried.map(i => before[i]), ...floatOuter.map(i => outer[i])];
    const found = backpropagate(seedsHere, leaves);
    return {
      carried: [
        ...byCarried.map((t, k) => found[k] ?? zerosLike(t)),
        ...sums.map((sum, k) => {
          const more = found[byCarried.length + k];
          return more ? add(sum, more) : sum;
        }),
      ],
      scans: [],
    };
  });

  const results: (Tensor | undefined)[] = new Array(node.inputs.length + outer.length).fill(undefined);
  const offset = node.inputs.length - carried;
  floatCarried.forEach((i, k) => {
    results[offset + i] = backwards.node.outputs[k];
  });
  floatOuter.forEach((i, k) => {
    results[node.inputs.length + i] = backwards.node.outputs[floatCarried.length + k];
  });
  return results;
}

function zerosIn(graph: Graph, like: Tensor): Tensor {
  return expand(graph.constant(0, [], like.dtype), like.shape);
}

/**
 * Computes tensors of a loop's body anew from other values of what is `known`, to which it adds them; tensors from
 * outside stay. Goes by the order in which nodes were made, since a body can be deeper than the call stack.
 */
function replay(wanted: readonly Tensor[], known: Map<Tensor, Tensor>, body: Graph): void {
  const needed = new Set<Node>();
  const stack = [...wanted];
  while (stack.length > 0) {
    const tensor = stack.pop()!;
    const { node } = tensor;
    if (node.graph !== body || known.has(tensor) || needed.has(node)) continue;
    needed.add(node);
    stack.push(...(isLoop(node) ? [...node.inputs, ...captures(node)] : node.inputs));
  }
  const now = (t: Tensor): Tensor => known.get(t) ?? t;
  for (const node of body.nodes) {
    if (!needed.has(node)) continue;
    const outputs = isLoop(node) ? replayLoop(node, known) : apply(node.op, node.inputs.map(now), node.attrs);
    node.outputs.forEach((t, i) => {
      known.set(t, outputs[i]);
    });
  }
}

function replayLoop(node: Node<LoopAttrs>, known: ReadonlyMap<Tensor, Tensor>): readonly Tensor[] {
  const { attrs } = node;
  const now = (t: Tensor): Tensor => known.get(t) ?? t;
  const inputs = node.inputs.map(now);
  const [count, initial] = attrs.tripsAsInput ? [inputs[0], inputs.slice(1)] : [undefined, inputs];
  const trips = count ? { count, atMost: attrs.maxTrips } : { atMost: attrs.maxTrips };
  const parent = innermost([...inputs, ...captures(node).map(now)]);
  return addLoop(parent, trips, initial, (iteration, carried) => {
    const inner = new Map(known);
    inner.set(attrs.iteration, iteration);
    attrs.carriedIn.forEach((t, i) => {
      inner.set(t, carried[i]);
    });
    const results = [...attrs.carriedOut, ...attrs.scans, ...(attrs.goOn ? [attrs.goOn] : [])];
    replay(results, inner, attrs.body);
    const then = (t: Tensor): Tensor => inner.get(t) ?? t;
    return {
      carried: attrs.carriedOut.map(then),
      scans: attrs.scans.map(then),
      goOn: attrs.goOn && then(attrs.goOn),
    };
  }).node.outputs;
}
