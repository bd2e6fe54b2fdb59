/**
 * The graph: typed tensors with static shapes, and the nodes that make them.
 *
 * Operators are plain functions over {@link Tensor}s (`add(a, b)`); each adds a node to the innermost graph that its
 * operands belong to. A loop's body is a graph of its own whose parent is the graph around it, so an expression over
 * outer tensors only, even when written inside a body, lands outside of the loop and is computed once.
 *
 * Nodes are shared: the same operator on the same operands with the same attributes is one node, and an operator on
 * constants is a constant. Node count is what a small network's step costs (docs/decisions/0001-engine.md).
 */
import { checkDType, type DType, holds, type TypedArray, toTypedArray } from './dtype.ts';
import { fail } from './errors.ts';
import type { OnnxBuilder } from './onnx/builder.ts';
import { checkShape, type Shape, sameShape, showShape, sizeOf } from './shape.ts';

/** What is known of a tensor before anything runs. */
export interface TensorType {
  readonly shape: Shape;
  readonly dtype: DType;
}

/** A value in a graph. Made by operators, {@link Graph.input} and {@link Graph.constant}; never by hand. */
export interface Tensor extends TensorType {
  /** Unique in the process; orders tensors by when they were made. */
  readonly id: number;
  readonly node: Node;
  /** Which of its node's outputs this is. */
  readonly index: number;
}

/** Where an operator takes a tensor it also takes a number, which becomes a constant of the other operand's dtype. */
export type Operand = Tensor | number;

export interface Node<A = unknown> {
  readonly op: Operator<A>;
  readonly inputs: readonly Tensor[];
  readonly attrs: A;
  readonly outputs: readonly Tensor[];
  readonly graph: Graph;
}

/** A value of the reference interpreter: any dtype's numbers as float64, row by row. */
export interface Dense {
  readonly shape: Shape;
  readonly data: Float64Array;
}

/** One kind of node: how it checks shapes, how it computes (slowly, for reference), and how it looks in ONNX. */
export interface Operator<A = unknown> {
  readonly name: string;
  /** Types of the outputs; throws an error that names the shapes where they do not fit. */
  infer(inputs: readonly Tensor[], attrs: A): TensorType[];
  /** The outputs in float64. Absent where the interpreter itself knows (inputs, constants, loops). */
  evaluate?(inputs: readonly Dense[], attrs: A, outputs: readonly TensorType[]): Float64Array[];
  /** `false` keeps the operator on constants as a node: an expand that broadcasting can drop is better than its values. */
  readonly folds?: false;
  /** Writes the node as standard ONNX operators. Absent as above. */
  onnx?(builder: OnnxBuilder, inputs: readonly string[], outputs: readonly string[], node: Node<A>): void;
}

/** Attributes of an `input` node. */
export interface InputAttrs {
  readonly name: string;
  readonly type: TensorType;
  readonly required: boolean;
}

/** Attributes of a `constant` node; the values stay float64 so that the reference interpreter sees no rounding. */
export interface ConstantAttrs {
  readonly type: TensorType;
  readonly values: Float64Array;
}

export const inputOp: Operator<InputAttrs> = { name: 'input', infer: (_, { type }) => [type] };
export const constantOp: Operator<ConstantAttrs> = { name: 'constant', infer: (_, { type }) => [type] };

/** Constants up to this size are folded and shared; larger ones are left as they were written. */
const FOLD_LIMIT = 4096;

let nextId = 0;

/** A program as tensors and the operators that make them, with static shapes: built by calling operators, then derived and compiled. */
export class Graph {
  readonly nodes: Node[] = [];
  readonly inputs: Tensor[] = [];
  readonly outputs = new Map<string, Tensor>();
  /** The graph around this one, if this is a loop's body. */
  readonly parent: Graph | undefined;
  readonly depth: number;
  /** A finished loop body takes no further nodes. */
  closed = false;
  readonly #shared = new Map<string, Node>();

  constructor(parent?: Graph) {
    this.parent = parent;
    this.depth = parent ? parent.depth + 1 : 0;
  }

  /**
   * A value that each run is fed. `required` inputs (the default) must be used by some output: one that is not is
   * most often a mistake in the graph, and compiling says so.
   */
  input(name: string, shape: Shape, dtype: DType = 'float32', options: { required?: boolean } = {}): Tensor {
    if (name === '') fail("input '': a name has at least one character");
    if (this.inputs.some(t => (t.node.attrs as InputAttrs).name === name)) {
      fail(
        `input '${name}' is there already, as ${showShape(this.inputNamed(name)!.shape)}: choose another name`,
      );
    }
    checkShape(`input '${name}'`, shape);
    checkDType(`input '${name}'`, dtype);
    const type = { shape: [...shape], dtype };
    const node = this.#append(inputOp, [], { name, type, required: options.required ?? true }, [type]);
    this.inputs.push(node.outputs[0]);
    return node.outputs[0];
  }

  inputNamed(name: string): Tensor | undefined {
    return this.inputs.find(t => (t.node.attrs as InputAttrs).name === name);
  }

  /** Fixed values; a single number is a scalar, a list a vector unless `shape` says otherwise. */
  constant(values: number | ArrayLike<number | bigint>, shape?: Shape, dtype: DType = 'float32'): Tensor {
    const data =
      typeof values === 'number'
        ? Float64Array.of(values)
        : Float64Array.from(values as ArrayLike<number>, Number);
    const type = { shape: shape ? [...shape] : typeof values === 'number' ? [] : [data.length], dtype };
    checkShape('constant', type.shape);
    checkDType('constant', dtype);
    if (sizeOf(type.shape) !== data.length) {
      fail(
        `constant: shape ${showShape(type.shape)} holds ${sizeOf(type.shape)} values, but ${data.length} were given`,
      );
    }
    const odd = data.findIndex((value, i) => !holds(dtype, value) || !isExact(values, i, value));
    if (odd >= 0) {
      const value = typeof values === 'number' ? values : values[odd];
      fail(
        `constant: ${value} is not a value of ${dtype}: use ${dtype === 'bool' ? '0 and 1' : 'whole numbers in its range'}`,
      );
    }
    return this.root.#add(constantOp, [], { type, values: data })[0];
  }

  /** Names a tensor as a result of every run. */
  output(name: string, tensor: Tensor): Tensor {
    if (name === '') fail("output '': a name has at least one character");
    if (this.outputs.has(name)) fail(`output '${name}' is there already: choose another name`);
    if (tensor.node.graph !== this) fail(`output '${name}' belongs to another graph: name it there`);
    this.outputs.set(name, tensor);
    return tensor;
  }

  get root(): Graph {
    return this.parent ? this.parent.root : this;
  }

  /** Whether a node of this graph may use that graph's tensors: its own and those of the graphs around it. */
  sees(other: Graph): boolean {
    return this === other || (this.parent?.sees(other) ?? false);
  }

  /** @internal Use {@link apply}. */
  add<A>(op: Operator<A>, inputs: readonly Tensor[], attrs: A): readonly Tensor[] {
    return this.#add(op, inputs, attrs);
  }

  /** @internal Adds a node that is never shared nor folded, with types that the caller has worked out. */
  addUnique<A>(op: Operator<A>, inputs: readonly Tensor[], attrs: A, types: readonly TensorType[]): Node<A> {
    return this.#append(op, inputs, attrs, types);
  }

  /** @internal Gives a node further outputs. */
  addOutputs<A>(node: Node<A>, types: readonly TensorType[]): Tensor[] {
    const outputs = node.outputs as Tensor[];
    const added = types.map((type, i) => ({
      id: nextId++,
      node: node as Node,
      index: outputs.length + i,
      ...typeOf(type),
    }));
    outputs.push(...added);
    return added;
  }

  #add<A>(op: Operator<A>, inputs: readonly Tensor[], attrs: A): readonly Tensor[] {
    this.#refuseIfClosed(op.name);
    const types = op.infer(inputs, attrs);
    const folded = foldConstants(this, op, inputs, attrs, types);
    if (folded) return folded;
    const key = keyOf(op as Operator, inputs, attrs);
    const known = key === undefined ? undefined : this.#shared.get(key);
    if (known) return known.outputs;
    const node = this.#append(op, inputs, attrs, types);
    if (key !== undefined) this.#shared.set(key, node as Node);
    return node.outputs;
  }

  #refuseIfClosed(what: string): void {
    if (this.closed)
      fail(`${what}: the loop body is finished: use what the loop returns instead of its inner tensors`);
  }

  #append<A>(op: Operator<A>, inputs: readonly Tensor[], attrs: A, types: readonly TensorType[]): Node<A> {
    this.#refuseIfClosed(op.name);
    const node: Node<A> = { op, inputs: [...inputs], attrs, outputs: [], graph: this };
    this.addOutputs(node, types);
    this.nodes.push(node as Node);
    return node;
  }
}

/** Adds a node for `op` to the innermost graph of its operands and returns its outputs. */
export function apply<A>(op: Operator<A>, inputs: readonly Tensor[], attrs: A): readonly Tensor[] {
  inputs.forEach((input, i) => {
    requireTensor(op.name, input, i);
  });
  let graph = inputs[0].node.graph;
  for (const { node } of inputs) if (node.graph.depth > graph.depth) graph = node.graph;
  for (const { node } of inputs) {
    if (!graph.sees(node.graph))
      fail(`${op.name}: operands belong to different graphs: build both in one Graph`);
  }
  return graph.add(op, inputs, attrs);
}

/** {@link apply} for the many operators that have one output. */
export function apply1<A>(op: Operator<A>, inputs: readonly Tensor[], attrs: A): Tensor {
  return apply(op, inputs, attrs)[0];
}

/** Refuses what an untyped caller may give in place of a tensor. */
export function requireTensor(what: string, value: unknown, position = 0): asserts value is Tensor {
  if (typeof value === 'object' && value !== null && 'node' in value && 'shape' in value) return;
  fail(
    `${what}: operand ${position + 1} is ${Array.isArray(value) ? 'an array' : String(value)}: give a tensor, or make one with graph.constant`,
  );
}

/** Whether a 64-bit integer came through float64 unchanged. */
function isExact(values: number | ArrayLike<number | bigint>, i: number, value: number): boolean {
  if (typeof values === 'number') return true;
  const given = values[i];
  return typeof given === 'number' || BigInt(value) === given;
}

/** Operands as tensors: numbers become scalar constants of the dtype of the tensors beside them. */
export function toTensors(what: string, ...operands: Operand[]): Tensor[] {
  operands.forEach((operand, i) => {
    if (typeof operand !== 'number') requireTensor(what, operand, i);
  });
  const tensor = operands.find((operand): operand is Tensor => typeof operand !== 'number');
  if (!tensor) fail(`${what}: all operands are numbers: at least one must be a tensor`);
  return operands.map(operand => {
    if (typeof operand !== 'number') return operand;
    if (!holds(tensor.dtype, operand))
      fail(`${what}: ${operand} is not a value of ${tensor.dtype}, the other operand's: cast that first`);
    return tensor.node.graph.constant(operand, [], tensor.dtype);
  });
}

/** The values of a constant, or undefined if the tensor is not one. */
function constantValues(tensor: Tensor): Float64Array | undefined {
  return tensor.node.op === (constantOp as Operator)
    ? (tensor.node.attrs as ConstantAttrs).values
    : undefined;
}

/** The number that a constant holds in every place, or undefined. */
export function constantScalar(tensor: Tensor): number | undefined {
  const values = constantValues(tensor);
  return values && values.length > 0 && values.every(v => Object.is(v, values[0])) ? values[0] : undefined;
}

function typeOf({ shape, dtype }: TensorType): TensorType {
  return { shape, dtype };
}

export function sameType(a: TensorType, b: TensorType): boolean {
  return a.dtype === b.dtype && sameShape(a.shape, b.shape);
}

/** A constant's values in the array that a program takes. */
export function constantArray({ type, values }: ConstantAttrs): TypedArray {
  return toTypedArray(values, type.dtype);
}

function foldConstants<A>(
  graph: Graph,
  op: Operator<A>,
  inputs: readonly Tensor[],
  attrs: A,
  types: readonly TensorType[],
): Tensor[] | undefined {
  if (!op.evaluate || op.folds === false || inputs.length === 0) return undefined;
  const size = types.reduce((sum, { shape }) => sum + sizeOf(shape), 0);
  if (size > FOLD_LIMIT) return undefined;
  const dense: Dense[] = [];
  for (const input of inputs) {
    const data = constantValues(input);
    if (!data) return undefined;
    dense.push({ shape: input.shape, data });
  }
  return op
    .evaluate(dense, attrs, types)
    .map((data, i) => graph.constant(data, types[i].shape, types[i].dtype));
}

/** Two nodes with the same key compute the same values; undefined for nodes that are never shared. */
function keyOf(op: Operator, inputs: readonly Tensor[], attrs: unknown): string | undefined {
  if (op === (constantOp as Operator)) {
    const { type, values } = attrs as ConstantAttrs;
    if (values.length > FOLD_LIMIT) return undefined;
    // String(-0) is '0', yet 1/-0 is not 1/0.
    const text = Array.from(values, v => (Object.is(v, -0) ? '-0' : String(v))).join();
    return `constant ${type.dtype} ${type.shape.join()} ${text}`;
  }
  return `${op.name} ${inputs.map(t => t.id).join()} ${JSON.stringify(attrs)}`;
}
