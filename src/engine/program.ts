/** Compiling a graph to ONNX Runtime, and running it. */

import { nearest } from '../base/nearest.ts';
import { type DType, dtypes, type TypedArray } from './dtype.ts';
import { EngineError, fail } from './errors.ts';
import type { Graph, InputAttrs, Tensor } from './graph.ts';
import { toOnnx } from './onnx/serialise.ts';
import { type OrtSession, type OrtTensor, openSession } from './onnx/session.ts';
import { type Shape, showShape, sizeOf } from './shape.ts';

/** Where a program can run, as ONNX Runtime can. */
export const devices = ['cpu', 'webgpu', 'cuda'] as const;
/** One of {@link devices}. */
export type Device = (typeof devices)[number];

/** Where and how a program runs. */
export interface CompileOptions {
  /** Where to compute; `cpu` unless told otherwise. */
  device?: Device;
  /** Threads that one operator may use. 1 (the default) is best for small networks, a language model gains from more. */
  threads?: number;
  /**
   * Lay a run's memory out as one block after the first (the default). That block stands beside what the first run took: a
   * language model needs a third less memory without it, and is as fast.
   */
  planMemory?: boolean;
  /** Refuse feeds that hold a NaN (the default); costs about a nanosecond a value. */
  checkFeeds?: boolean;
}

/** One named input or output of a program. */
export interface Port {
  readonly name: string;
  readonly shape: Shape;
  readonly dtype: DType;
}

type Arrays = Record<string, TypedArray>;

/** A compiled graph: plain arrays in, plain arrays out. */
export interface Program {
  readonly inputs: readonly Port[];
  readonly outputs: readonly Port[];
  readonly device: Device;
  /** ONNX nodes, loop bodies included, before ONNX Runtime's own optimisations. */
  readonly nodeCount: number;
  /** ONNX nodes of each loop's body. */
  readonly bodyNodeCounts: readonly number[];
  /**
   * Runs the program, blocking this thread. Feeds are read in place. Arrays in `into` receive the outputs of their
   * names and are returned; other outputs come in fresh arrays.
   */
  run<O extends Arrays = Arrays>(feeds: Readonly<Arrays>, into?: Partial<NoInfer<O>>): O;
  /** Frees the native memory. The program cannot run afterwards. */
  dispose(): void;
}

/** Turns a graph into a program. */
export async function compile(graph: Graph, options: CompileOptions = {}): Promise<Program> {
  const { device = 'cpu', threads = 1, planMemory = true, checkFeeds = true } = options;
  if (!devices.includes(device)) fail(`device '${device}' is unknown: use ${devices.join(', ')}`);
  if (!Number.isInteger(threads) || threads < 1 || threads > 1024) {
    fail(`threads ${threads} is not possible: use a whole number from 1 to 1024`);
  }
  // All of the graph is read before waiting: what is added to it later belongs to another program.
  const model = toOnnx(graph);
  const feeds = graph.inputs.map(t => new Feed(t, checkFeeds));
  const outputs = [...graph.outputs].map(([name, t]) => new Fetch(name, t));
  const session = await openSession(model.bytes, { device, threads, planMemory });
  const wanted = new Set(session.inputNames);
  const inputs = feeds.filter(feed => wanted.has(feed.name));
  const ignored = new Set(feeds.map(feed => feed.name).filter(name => !wanted.has(name)));
  return makeProgram(session, inputs, ignored, outputs, { device, ...model });
}

function makeProgram(
  session: OrtSession,
  inputs: readonly Feed[],
  ignored: ReadonlySet<string>,
  outputs: readonly Fetch[],
  about: Pick<Program, 'device' | 'nodeCount' | 'bodyNodeCounts'>,
): Program {
  // Filled anew at each run instead of made anew.
  const feedTensors: Record<string, OrtTensor> = Object.create(null);
  const fetchTensors: Record<string, OrtTensor | null> = Object.create(null);
  let open = true;
  return {
    inputs: inputs.map(({ name, shape, dtype }) => ({ name, shape, dtype })),
    outputs: outputs.map(({ name, shape, dtype }) => ({ name, shape, dtype })),
    device: about.device,
    nodeCount: about.nodeCount,
    bodyNodeCounts: about.bodyNodeCounts,

    run<O extends Arrays>(feeds: Readonly<Arrays>, into?: Partial<O>): O {
      if (typeof feeds !== 'object' || feeds === null)
        fail(`run: feeds are ${String(feeds)}: give an object of typed arrays by name`);
      if (!open) fail('run: this program was disposed of: compile the graph again');
      for (const input of inputs) feedTensors[input.name] = input.bind(feeds[input.name], session);
      for (const name in feeds) {
        if (!(name in feedTensors) && !ignored.has(name)) fail(unknownName('feed', name, inputs));
      }
      for (const output of outputs) {
        const array = into?.[output.name];
        if (array) refuseOverlap(output, array, inputs, feeds, outputs, into);
        fetchTensors[output.name] = array ? output.bind(array, session) : null;
      }
      for (const name in into) if (!(name in fetchTensors)) fail(unknownName('output', name, outputs));
      let results: Record<string, OrtTensor>;
      try {
        results = session.run(feedTensors, fetchTensors);
      } catch (error) {
        throw new EngineError(`run: ONNX Runtime failed: ${firstLine(error)}`);
      }
      const out: Arrays = {};
      for (const { name } of outputs) out[name] = into?.[name] ?? results[name].data;
      return out as O;
    },

    dispose(): void {
      if (open) session.dispose();
      open = false;
    },
  };
}

/** The side of a port that checks an array and keeps its ONNX Runtime tensor for the next run with the same array. */
class Binding implements Port {
  readonly name: string;
  readonly shape: Shape;
  readonly dtype: DType;
  readonly #size: number;
  #array: TypedArray | undefined;
  #tensor: OrtTensor | undefined;

  constructor(name: string, { shape, dtype }: Tensor) {
    this.name = name;
    this.shape = shape;
    this.dtype = dtype;
    this.#size = sizeOf(shape);
  }

  tensorOf(what: 'feed' | 'output', array: TypedArray, session: OrtSession): OrtTensor {
    if (array === this.#array && this.#tensor && array.length === this.#size) return this.#tensor;
    checkArray(what, this, array);
    if (array.buffer instanceof SharedArrayBuffer) {
      fail(
        `${what} '${this.name}' is in shared memory, which ONNX Runtime does not read: give a copy, array.slice()`,
      );
    }
    this.#array = array;
    this.#tensor = session.tensor(this.dtype, array, this.shape);
    return this.#tensor;
  }
}

/** Refuses an array that is missing, of another type, or of another size than its port. */
export function checkArray(
  what: 'feed' | 'output',
  { name, dtype, shape }: Port,
  array: TypedArray | undefined,
): asserts array is TypedArray {
  const { array: wanted } = dtypes[dtype];
  if (array === undefined)
    fail(`${what} '${name}' is missing: give a ${wanted.name} for its shape ${showShape(shape)}`);
  if (!(array instanceof wanted))
    fail(`${what} '${name}' is ${typeName(array)}: ${dtype} ${showShape(shape)} takes a ${wanted.name}`);
  if (array.length !== sizeOf(shape)) {
    fail(
      `${what} '${name}' has ${array.length} values, but its shape ${showShape(shape)} holds ${sizeOf(shape)}: give as many`,
    );
  }
}

/** Refuses arrays under names that a program does not have; inputs that it found no use for are passed over. */
export function refuseUnknown(
  what: 'feed' | 'output',
  given: Readonly<Arrays>,
  ports: readonly Port[],
  ignored: ReadonlySet<string>,
): void {
  for (const name in given) {
    if (!ignored.has(name) && !ports.some(port => port.name === name)) fail(unknownName(what, name, ports));
  }
}

class Feed implements Port {
  readonly name: string;
  readonly shape: Shape;
  readonly dtype: DType;
  readonly #binding: Binding;
  readonly #refuseNaN: boolean;

  constructor(tensor: Tensor, refuseNaN: boolean) {
    const { name } = tensor.node.attrs as InputAttrs;
    this.name = name;
    this.shape = tensor.shape;
    this.dtype = tensor.dtype;
    this.#binding = new Binding(name, tensor);
    this.#refuseNaN = refuseNaN && tensor.dtype === 'float32';
  }

  bind(array: TypedArray | undefined, session: OrtSession): OrtTensor {
    if (array === undefined) checkArray('feed', this, array);
    const tensor = this.#binding.tensorOf('feed', array, session);
    if (this.#refuseNaN && mayHoldNaN(array as Float32Array)) {
      const at = (array as Float32Array).findIndex(Number.isNaN);
      if (at >= 0)
        fail(
          `feed '${this.name}' ${showShape(this.shape)} is NaN at index ${at}: check where it was computed`,
        );
    }
    return tensor;
  }
}

class Fetch implements Port {
  readonly name: string;
  readonly shape: Shape;
  readonly dtype: DType;
  readonly #binding: Binding;

  constructor(name: string, tensor: Tensor) {
    this.name = name;
    this.shape = tensor.shape;
    this.dtype = tensor.dtype;
    this.#binding = new Binding(name, tensor);
  }

  bind(array: TypedArray, session: OrtSession): OrtTensor {
    return this.#binding.tensorOf('output', array, session);
  }
}

/** Sums the values: a NaN among them makes the sum NaN (as do two infinities, which is why the caller looks again). */
function mayHoldNaN(values: Float32Array): boolean {
  let a = 0;
  let b = 0;
  let c = 0;
  let d = 0;
  const whole = values.length & ~3;
  // Four sums, because one addition has to wait for the one before it.
  for (let i = 0; i < whole; i += 4) {
    a += values[i];
    b += values[i + 1];
    c += values[i + 2];
    d += values[i + 3];
  }
  for (let i = whole; i < values.length; i++) a += values[i];
  return Number.isNaN(a + b + c + d);
}

/** ONNX Runtime may write an output before it has read all of an input; and no array can hold two outputs. */
function refuseOverlap(
  output: Port,
  array: TypedArray,
  inputs: readonly Port[],
  feeds: Readonly<Arrays>,
  outputs: readonly Port[],
  into: Partial<Arrays> | undefined,
): void {
  for (const { name } of inputs) {
    if (overlap(feeds[name], array)) {
      fail(
        `output '${output.name}' would be written over feed '${name}': give it another array and swap them after the run`,
      );
    }
  }
  for (const { name } of outputs) {
    const other = into?.[name];
    if (other && name !== output.name && overlap(other, array)) {
      fail(`outputs '${output.name}' and '${name}' would be written to one array: give each its own`);
    }
  }
}

function overlap(a: TypedArray, b: TypedArray): boolean {
  if (a.buffer !== b.buffer) return false;
  return a.byteOffset < b.byteOffset + b.byteLength && b.byteOffset < a.byteOffset + a.byteLength;
}

function unknownName(what: string, name: string, ports: readonly Port[]): string {
  const names = ports.map(port => port.name);
  const near = nearest(name, names);
  const hint = near ? `did you mean '${near}'?` : `there are ${names.join(', ')}`;
  return `${what} '${name}' is not one of the program's: ${hint}`;
}

function typeName(value: unknown): string {
  return value instanceof Object ? value.constructor.name : typeof value;
}

function firstLine(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.split('\n')[0].trim();
}
