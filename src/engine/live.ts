import type { Graph, Node, Tensor } from './graph.ts';
import { isLoop, type LoopAttrs } from './ops/loop.ts';

/** What the outputs of a graph need. Everything else is never computed nor written. */
export interface Live {
  readonly tensors: ReadonlySet<Tensor>;
  /** Needed nodes of one graph, operands first. */
  nodesOf(graph: Graph): Node[];
  /** Which scans of a loop are needed, as positions among its scans. */
  scansOf(node: Node<LoopAttrs>): number[];
}

/** Finds what `outputs` depend on, inside of loops as well. */
export function liveFrom(outputs: Iterable<Tensor>): Live {
  const tensors = new Set<Tensor>();
  const nodes = new Set<Node>();
  const stack: Tensor[] = [...outputs];
  const scansOf = ({ attrs, outputs: all }: Node<LoopAttrs>): number[] =>
    [...attrs.scans.keys()].filter(i => tensors.has(all[attrs.carriedOut.length + 1 + i]));
  while (stack.length > 0) {
    const tensor = stack.pop()!;
    if (tensors.has(tensor)) continue;
    tensors.add(tensor);
    const { node } = tensor;
    if (isLoop(node)) {
      const { carriedOut, scans, goOn } = node.attrs;
      const scan = scans[tensor.index - carriedOut.length - 1];
      if (scan) stack.push(scan);
      if (!nodes.has(node as Node)) stack.push(...carriedOut, ...(goOn ? [goOn] : []));
    }
    if (!nodes.has(node)) stack.push(...node.inputs);
    nodes.add(node);
  }
  return { tensors, nodesOf: graph => graph.nodes.filter(node => nodes.has(node)), scansOf };
}
