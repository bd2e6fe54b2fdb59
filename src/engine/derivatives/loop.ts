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
import { addLoop, addScans, captures, innermost, isLoop, type LoopAttrs } from '../ops/loop.ts';
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
  const outer = captures(node);
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
    const seedsHere: { of: Tensor; grad: Tensor }[] = [];
    floatCarried.forEach((i, k) => {
      seedsHere.push({ of: replay(carriedOut[i], known, attrs.body), grad: byCarried[k] });
    });
    scanGrads.forEach((g, i) => {
      if (g) seedsHere.push({ of: replay(scans[i], known, attrs.body), grad: gather(g, iteration) });
    });
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

/** A tensor of a loop's body computed anew from other values of what is `known`; tensors from outside stay. */
function replay(tensor: Tensor, known: Map<Tensor, Tensor>, body: Graph): Tensor {
  const done = known.get(tensor);
  if (done) return done;
  if (!tensor.node.graph.sees(body)) return tensor;
  const { node } = tensor;
  const outputs = isLoop(node)
    ? replayLoop(node, known, body)
    : apply(
        node.op,
        node.inputs.map(t => replay(t, known, body)),
        node.attrs,
      );
  node.outputs.forEach((t, i) => {
    known.set(t, outputs[i]);
  });
  return outputs[tensor.index];
}

function replayLoop(node: Node<LoopAttrs>, known: Map<Tensor, Tensor>, body: Graph): readonly Tensor[] {
  const { attrs } = node;
  const inputs = node.inputs.map(t => replay(t, known, body));
  const [count, initial] = attrs.tripsAsInput ? [inputs[0], inputs.slice(1)] : [undefined, inputs];
  const outer = captures(node).map(t => replay(t, known, body));
  const trips = count ? { count, atMost: attrs.maxTrips } : { atMost: attrs.maxTrips };
  return addLoop(innermost([...inputs, ...outer]), trips, initial, (iteration, carried) => {
    const inner = new Map(known);
    inner.set(attrs.iteration, iteration);
    attrs.carriedIn.forEach((t, i) => {
      inner.set(t, carried[i]);
    });
    const again = (t: Tensor): Tensor => replay(t, inner, body);
    return {
      carried: attrs.carriedOut.map(again),
      scans: attrs.scans.map(again),
      goOn: attrs.goOn && again(attrs.goOn),
    };
  }).node.outputs;
}
