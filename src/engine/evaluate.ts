/**
 * The reference interpreter: runs a graph in plain TypeScript and float64, slowly and obviously.
 *
 * It is what compiled programs are tested against, and how operators on constants are folded.
 */
import { fail } from './errors.ts';
import {
  type ConstantAttrs,
  constantOp,
  type Dense,
  type Graph,
  type InputAttrs,
  inputOp,
  type Node,
  type Operator,
  type Tensor,
} from './graph.ts';
import { type Live, liveFrom } from './live.ts';
import { isLoop, type LoopAttrs } from './ops/loop.ts';
import { showShape, sizeOf } from './shape.ts';

/** A feed by input name: plain numbers or the typed arrays that a program takes. */
export type Feeds = Readonly<Record<string, ArrayLike<number> | ArrayLike<bigint>>>;

/** The graph's outputs by name. */
export function evaluate(graph: Graph, feeds: Feeds = {}): Record<string, Dense> {
  const live = liveFrom(graph.outputs.values());
  const values = new Map<Tensor, Dense>();
  for (const input of graph.inputs) {
    if (!live.tensors.has(input)) continue;
    const { name } = input.node.attrs as InputAttrs;
    const feed = feeds[name] ?? fail(`feed '${name}' ${showShape(input.shape)} is missing`);
    if (feed.length !== sizeOf(input.shape)) {
      fail(
        `feed '${name}' has ${feed.length} values, but ${showShape(input.shape)} holds ${sizeOf(input.shape)}`,
      );
    }
    values.set(input, { shape: input.shape, data: Float64Array.from(feed as ArrayLike<number>, Number) });
  }
  runNodes(graph, live, values);
  return Object.fromEntries([...graph.outputs].map(([name, t]) => [name, values.get(t)!]));
}

function runNodes(graph: Graph, live: Live, values: Map<Tensor, Dense>): void {
  for (const node of live.nodesOf(graph)) {
    if (node.op === (inputOp as Operator)) continue;
    if (isLoop(node)) runLoop(node, live, values);
    else setOutputs(node, values, outputsOf(node, values));
  }
}

function outputsOf(node: Node, values: Map<Tensor, Dense>): Float64Array[] {
  if (node.op === (constantOp as Operator)) return [(node.attrs as ConstantAttrs).values];
  const inputs = node.inputs.map(t => values.get(t)!);
  return node.op.evaluate!(inputs, node.attrs, node.outputs);
}

function setOutputs(node: Node, values: Map<Tensor, Dense>, data: readonly Float64Array[]): void {
  node.outputs.forEach((t, i) => {
    values.set(t, { shape: t.shape, data: data[i] });
  });
}

function runLoop(node: Node<LoopAttrs>, live: Live, values: Map<Tensor, Dense>): void {
  const { body, maxTrips, tripsAsInput, iteration, carriedIn, carriedOut, scans, goOn } = node.attrs;
  const inputs = node.inputs.map(t => values.get(t)!);
  const trips = tripsAsInput ? Math.min(inputs[0].data[0], maxTrips) : maxTrips;
  let carried = tripsAsInput ? inputs.slice(1) : inputs;
  const wanted = live.scansOf(node);
  const stacked = scans.map(t => new Float64Array(maxTrips * sizeOf(t.shape)));
  let ran = 0;
  for (let more = true; more && ran < trips; ran++) {
    const inner = new Map(values);
    inner.set(iteration, { shape: [], data: Float64Array.of(ran) });
    carriedIn.forEach((t, i) => {
      inner.set(t, carried[i]);
    });
    runNodes(body, live, inner);
    carried = carriedOut.map(t => inner.get(t)!);
    for (const i of wanted) stacked[i].set(inner.get(scans[i])!.data, ran * sizeOf(scans[i].shape));
    more = !goOn || inner.get(goOn)!.data[0] !== 0;
  }
  setOutputs(node as Node, values, [...carried.map(t => t.data), Float64Array.of(ran), ...stacked]);
}
