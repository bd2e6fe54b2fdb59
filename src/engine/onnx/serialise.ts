/**
 * A graph as an ONNX model: standard operators of opset 20 only, so that any ONNX tool opens the file.
 *
 * Only what the outputs need is written. Constants are initialisers of the (sub)graph that uses them, because a value
 * that a loop's body takes from outside is handed in again at each iteration.
 */
import { type DType, type TypedArray, toTypedArray } from '../dtype.ts';
import { fail } from '../errors.ts';
import {
  type ConstantAttrs,
  constantArray,
  constantOp,
  type Graph,
  type InputAttrs,
  inputOp,
  type Node,
  type Operator,
  type Tensor,
  type TensorType,
} from '../graph.ts';
import { type Live, liveFrom } from '../live.ts';
import { stopGradientOp } from '../ops/elementwise.ts';
import { isLoop, type LoopAttrs } from '../ops/loop.ts';
import { type Shape, showShape, sizeOf } from '../shape.ts';
import { ROW_COUNTS, type RowsGraph, withAnyRows } from './any-rows.ts';
import type { OnnxAttribute, OnnxBuilder } from './builder.ts';
import { encodeModel, nodesIn, type OnnxGraph, type OnnxPart } from './model.ts';

/** A graph as an ONNX file, and how large it is. */
export interface OnnxModel {
  readonly bytes: Uint8Array;
  /** Nodes of the outermost graph and of all loop bodies together. */
  readonly nodeCount: number;
  /** Nodes of each loop's body, in the order in which loops come: what one iteration costs. */
  readonly bodyNodeCounts: readonly number[];
}

/**
 * Writes a graph as ONNX. A function that builds a graph for so many rows becomes a model for any number of them: the
 * first size of its inputs and outputs is open, under the name `rows`.
 */
export function toOnnx(graph: Graph | RowsGraph): OnnxModel {
  const { onnx, bodyNodeCounts } = typeof graph === 'function' ? writtenForAnyRows(graph) : written(graph);
  return {
    bytes: encodeModel(onnx),
    nodeCount: bodyNodeCounts.reduce((sum, n) => sum + n, nodesIn(onnx)),
    bodyNodeCounts,
  };
}

interface Written {
  readonly onnx: OnnxGraph;
  readonly bodyNodeCounts: readonly number[];
  /** A value name that the graph has not taken. */
  fresh(): string;
}

function writtenForAnyRows(build: RowsGraph): Written {
  const [few, more] = ROW_COUNTS.map(rows => written(build(rows)));
  return { ...few, onnx: withAnyRows(few.onnx, more.onnx, few.fresh) };
}

function written(graph: Graph): Written {
  if (graph.parent) fail('toOnnx: this graph is the body of a loop: save the graph around it');
  if (graph.outputs.size === 0)
    fail('toOnnx: the graph has no output: name one with graph.output(name, tensor)');
  const live = liveFrom(graph.outputs.values());
  for (const input of graph.inputs) {
    const { name, required } = input.node.attrs as InputAttrs;
    if (required && !live.tensors.has(input)) {
      fail(
        `input '${name}' ${showShape(input.shape)} is used by no output: use it, remove it, or declare it { required: false }`,
      );
    }
  }
  const names = new Names(
    graph.inputs.map(t => (t.node.attrs as InputAttrs).name),
    graph.outputs,
  );
  const writer = new GraphWriter(live, names, undefined);
  for (const input of graph.inputs) {
    if (live.tensors.has(input)) writer.input(input, (input.node.attrs as InputAttrs).name);
  }
  writer.nodes(graph);
  for (const [name, tensor] of graph.outputs) writer.output(tensor, name);
  return { onnx: writer.finish('keel'), bodyNodeCounts: names.bodyNodeCounts, fresh: () => names.fresh() };
}

/** What all graphs of one model share: value names are unique across them, as outer values are visible inside. */
class Names {
  readonly bodyNodeCounts: number[] = [];
  readonly #taken: Set<string>;
  readonly #wished = new Map<Tensor, string>();
  #next = 0;

  constructor(inputs: readonly string[], outputs: ReadonlyMap<string, Tensor>) {
    this.#taken = new Set([...inputs, ...outputs.keys()]);
    for (const name of inputs) {
      if (outputs.has(name)) fail(`'${name}' names both an input and an output: rename one of them`);
    }
    for (const [name, tensor] of outputs) if (!this.#wished.has(tensor)) this.#wished.set(tensor, name);
  }

  /** A name for a value that a node computes: the output's, if it is one. */
  of(tensor: Tensor): string {
    return this.#wished.get(tensor) ?? this.fresh();
  }

  fresh(): string {
    for (;;) {
      const name = `t${this.#next++}`;
      if (!this.#taken.has(name)) return name;
    }
  }
}

class GraphWriter implements OnnxBuilder {
  readonly #parts: OnnxPart[] = [];
  readonly #live: Live;
  readonly #names: Names;
  readonly #outer: GraphWriter | undefined;
  readonly #known = new Map<Tensor, string>();
  readonly #constants = new Map<string, string>();
  /** Names that a node of this very graph computes, and that are not an output yet. */
  readonly #computed = new Set<string>();

  constructor(live: Live, names: Names, outer: GraphWriter | undefined) {
    this.#live = live;
    this.#names = names;
    this.#outer = outer;
  }

  fresh(): string {
    return this.#names.fresh();
  }

  node(
    opType: string,
    inputs: readonly string[],
    outputs: readonly string[],
    attributes: Record<string, OnnxAttribute | OnnxGraph> = {},
  ): void {
    this.#parts.push({ kind: 'node', opType, inputs, outputs, attributes });
    for (const name of outputs) this.#computed.add(name);
  }

  ints(values: readonly number[]): string {
    return this.#constant(toTypedArray(values, 'int64'), { shape: [values.length], dtype: 'int64' });
  }

  ones(shape: Shape): string {
    return this.#constant(new Float32Array(sizeOf(shape)).fill(1), { shape, dtype: 'float32' });
  }

  scalar(value: number, dtype: DType): string {
    return this.#constant(toTypedArray([value], dtype), { shape: [], dtype });
  }

  input(tensor: TensorType | Tensor, name: string): void {
    if ('node' in tensor) this.#known.set(tensor, name);
    this.#port('input', name, tensor);
  }

  /** Declares an output of the model; what is not computed under its name already passes through a node. */
  output(tensor: Tensor, name: string): void {
    const source = this.#nameOf(tensor);
    if (source !== name) this.node('Identity', [source], [name]);
    this.#port('output', name, tensor);
  }

  /** Declares an output of a loop's body, under the name it has if it can. */
  bodyOutput(name: string, type: TensorType): void {
    let own = name;
    if (!this.#computed.delete(name)) {
      own = this.fresh();
      this.node('Identity', [name], [own]);
      this.#computed.delete(own);
    }
    this.#port('output', own, type);
  }

  #port(kind: 'input' | 'output', name: string, { shape, dtype }: TensorType): void {
    this.#parts.push({ kind, name, shape, dtype });
  }

  nodes(graph: Graph): void {
    for (const node of this.#live.nodesOf(graph)) {
      if (node.op === (inputOp as Operator) || node.op === (constantOp as Operator)) continue;
      if (node.op === (stopGradientOp as Operator)) {
        this.#known.set(node.outputs[0], this.#nameOf(node.inputs[0]));
      } else if (isLoop(node)) {
        this.#loop(node);
      } else {
        const inputs = node.inputs.map(t => this.#nameOf(t));
        node.op.onnx!(this, inputs, this.#nameOutputs(node.outputs), node);
      }
    }
  }

  finish(name: string): OnnxGraph {
    return { name, parts: this.#parts };
  }

  #nameOutputs(outputs: readonly Tensor[]): string[] {
    return outputs.map(t => {
      const name = this.#names.of(t);
      this.#known.set(t, name);
      return name;
    });
  }

  #nameOf(tensor: Tensor): string {
    if (tensor.node.op === (constantOp as Operator)) {
      const attrs = tensor.node.attrs as ConstantAttrs;
      return this.#constant(constantArray(attrs), attrs.type);
    }
    return (
      this.#find(tensor) ??
      fail(`internal: ${tensor.node.op.name} ${showShape(tensor.shape)} has not been written`)
    );
  }

  #find(tensor: Tensor): string | undefined {
    return this.#known.get(tensor) ?? (this.#outer ? this.#outer.#find(tensor) : undefined);
  }

  #constant(values: TypedArray, type: TensorType): string {
    const raw = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
    const key = `${type.dtype} ${type.shape.join()} ${Buffer.from(raw).toString('latin1')}`;
    const known = this.#constants.get(key);
    if (known !== undefined) return known;
    const name = this.fresh();
    this.#constants.set(key, name);
    this.#parts.push({ kind: 'initialiser', name, type, raw });
    return name;
  }

  #loop(node: Node<LoopAttrs>): void {
    const { body, maxTrips, tripsAsInput, iteration, carriedIn, carriedOut, scans, goOn } = node.attrs;
    const carried = carriedIn.length;
    const wanted = this.#live.scansOf(node);
    const stops = goOn !== undefined || tripsAsInput;
    const counted = stops && this.#live.tensors.has(node.outputs[carried]);
    // A scan has as many rows as iterations ran; without one to look at, the loop counts.
    const counts = counted && wanted.length === 0;
    const initial = (tripsAsInput ? node.inputs.slice(1) : node.inputs).map(t => this.#nameOf(t));

    const inner = new GraphWriter(this.#live, this.#names, this);
    const int64: TensorType = { shape: [], dtype: 'int64' };
    const bool: TensorType = { shape: [], dtype: 'bool' };
    const [iterationName, conditionName] = [this.fresh(), this.fresh()];
    inner.input(iteration, iterationName);
    inner.input(bool, conditionName);
    for (const t of carriedIn) inner.input(t, this.fresh());
    if (counts) inner.input(int64, this.fresh());
    inner.nodes(body);
    inner.bodyOutput(goOn ? inner.#nameOf(goOn) : conditionName, bool);
    for (const t of carriedOut) inner.bodyOutput(inner.#nameOf(t), t);
    if (counts) {
      const next = this.fresh();
      inner.node('Add', [iterationName, inner.scalar(1, 'int64')], [next]);
      inner.bodyOutput(next, int64);
    }
    for (const i of wanted) inner.bodyOutput(inner.#nameOf(scans[i]), scans[i]);

    const outputs = this.#nameOutputs(node.outputs.slice(0, carried + (counts ? 1 : 0)));
    if (!counted) this.#known.set(node.outputs[carried], this.scalar(maxTrips, 'int64'));
    const stacked = wanted.map(() => this.fresh());
    const trips = tripsAsInput
      ? this.#atMost(this.#nameOf(node.inputs[0]), maxTrips)
      : this.scalar(maxTrips, 'int64');
    const start = counts ? [...initial, this.scalar(0, 'int64')] : initial;
    const onnxBody = inner.finish(`body_${outputs[0]}`);
    this.#names.bodyNodeCounts.push(nodesIn(onnxBody));
    this.node('Loop', [trips, '', ...start], [...outputs, ...stacked], { body: onnxBody });
    if (counted && !counts) this.#rowCount(stacked[0], this.#nameOutputs([node.outputs[carried]])[0]);
    wanted.forEach((i, k) => {
      const full = stops
        ? this.#padded(stacked[k], [maxTrips, ...scans[i].shape], scans[i].dtype)
        : stacked[k];
      this.#known.set(node.outputs[carried + 1 + i], full);
    });
  }

  #rowCount(rows: string, out: string): void {
    const shape = this.fresh();
    this.node('Shape', [rows], [shape]);
    this.node('Gather', [shape, this.scalar(0, 'int64')], [out]);
  }

  #atMost(count: string, most: number): string {
    const out = this.fresh();
    this.node('Min', [count, this.scalar(most, 'int64')], [out]);
    return out;
  }

  /** A scan of a loop that may end early has as many rows as iterations ran: fills up to the declared shape. */
  #padded(rows: string, shape: Shape, dtype: DType): string {
    const [zeros, both, out] = [this.fresh(), this.fresh(), this.fresh()];
    this.node('Expand', [this.scalar(0, dtype), this.ints(shape)], [zeros]);
    this.node('Concat', [rows, zeros], [both], { axis: 0 });
    this.node('Slice', [both, this.ints([0]), this.ints([shape[0]]), this.ints([0])], [out]);
    return out;
  }
}
