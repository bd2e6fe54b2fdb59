/**
 * A graph as one WebAssembly program, for small networks: no call into native code, no node that costs a microsecond, no
 * allocation. Loops over values are fused, matrix products stay in registers, and every result of a product or a
 * row is the same however many rows there are (docs/decisions/0010-webassembly.md has the measurements).
 */
import { type DType, dtypes, type TypedArray, toTypedArray } from '../dtype.ts';
import { EngineError, fail } from '../errors.ts';
import type { ConstantAttrs, Graph, InputAttrs, Node, Operator, Tensor } from '../graph.ts';
import { linearOp, type MatmulAttrs, matmulOp } from '../ops/matmul.ts';
import { checkArray, type Port, type Program, refuseUnknown } from '../program.ts';
import { sizeOf, stridesOf } from '../shape.ts';
import { writeFused } from './elementwise.ts';
import { copyTo, kernelFor } from './kernels.ts';
import {
  type Code,
  call,
  compileModule,
  fillBytes,
  i32,
  i64,
  instantiate,
  repeatWhile,
  type SharedMemory,
  sharedMemory,
  type WasmCode,
  type WasmFunction,
  wasmFunction,
  wasmModule,
  when,
} from './module.ts';
import { type LoopStep, type Plan, plan, refusal, type Step } from './plan.ts';
import { MOST_TERMS, type ProductShape, productFunction, transposeFunction } from './product.ts';
import { broadcastStrides, bytesPer, type View } from './views.ts';

const PAGE = 65_536;

/** A compiled graph whose memory can be read and written in place. */
export interface WasmProgram extends Program {
  /** The values of an input or output where the program keeps them: float32 alone, and never to be kept by a caller of `dispose`. */
  values(name: string): Float32Array;
  /** Writes some of the inputs. */
  write(feeds: Readonly<Record<string, TypedArray>>): void;
  /** The outputs of the last execution, in fresh arrays. */
  read(): Record<string, TypedArray>;
  /** Computes the outputs from what the inputs hold now. */
  execute(): void;
  /** What another thread needs to execute it; only with `shared`. */
  readonly code: WasmCode;
  readonly memory: SharedMemory | undefined;
}

/** Memory of a program at most: half of what an address of 32 bits reaches. */
const MOST_PAGES = 32_768;

/** Whether a graph can become a WebAssembly program; if not, why. */
export const wasmRefusal = refusal;

/** A graph as a WebAssembly program, or undefined where it cannot be one: an operator that is not written, or too much memory. */
export function tryCompileWasm(graph: Graph, options: WasmOptions = {}): WasmProgram | undefined {
  if (refusal(graph)) return undefined;
  const laid = plan(graph);
  return pagesOf(laid) > MOST_PAGES ? undefined : programOf(graph, laid, options);
}

export interface WasmOptions {
  /** In memory that other threads see. */
  readonly shared?: boolean;
}

const pagesOf = ({ size }: Plan): number => Math.ceil(size / PAGE);

/** Turns a graph into a WebAssembly program. */
export function compileWasm(graph: Graph, options: WasmOptions = {}): WasmProgram {
  const refused = refusal(graph);
  if (refused) fail(`WebAssembly: ${refused} is not written for it: use compile, which has all operators`);
  const laid = plan(graph);
  const pages = pagesOf(laid);
  if (pages > MOST_PAGES)
    fail(`WebAssembly: the graph needs ${pages} pages of memory, ${MOST_PAGES} are possible: use compile`);
  return programOf(graph, laid, options);
}

function programOf(graph: Graph, laid: Plan, { shared = false }: WasmOptions): WasmProgram {
  const pages = pagesOf(laid);
  const functions = writeFunctions(laid);
  const code = compileModule(wasmModule({ pages, shared }, functions));
  const memory = shared ? sharedMemory(pages) : undefined;
  const exported = instantiate<{ run(): void; memory: { buffer: ArrayBuffer } }>(code, memory);
  const buffer: ArrayBufferLike = memory?.buffer ?? exported.memory.buffer;
  for (const t of laid.constants) memoryOf(buffer, t, laid.addressOf(t)).write(constantValues(t));
  const inputs = laid.inputs.map(t => ({ ...portOf(t), ...memoryOf(buffer, t, laid.addressOf(t)) }));
  const outputs = [...graph.outputs].map(([name, t]) => ({
    ...portOf(t, name),
    ...memoryOf(buffer, t, laid.addressOf(t)),
  }));
  const ports = ({ name, shape, dtype }: Port): Port => ({ name, shape, dtype });
  const unused = graph.inputs.filter(t => !laid.inputs.includes(t));
  for (const t of unused) {
    const { name, required } = t.node.attrs as InputAttrs;
    if (required) fail(`input '${name}' is used by no output: remove it, or make it { required: false }`);
  }
  const ignored = new Set(unused.map(t => portOf(t).name));
  let open = true;
  const execute = (): void => {
    if (!open) fail('run: this program was disposed of: compile the graph again');
    try {
      exported.run();
    } catch (error) {
      throw new EngineError(
        `run: an index lies outside of the tensor that it points into (${error instanceof Error ? error.message : error})`,
      );
    }
  };
  const write = (feeds: Readonly<Record<string, TypedArray>>): void => {
    refuseUnknown('feed', feeds, inputs, ignored);
    for (const input of inputs) {
      const array = feeds[input.name];
      if (array === undefined) continue;
      checkArray('feed', input, array);
      input.write(array);
    }
  };
  const read = (into: Partial<Record<string, TypedArray>> = {}): Record<string, TypedArray> => {
    const out: Record<string, TypedArray> = {};
    for (const output of outputs) {
      const array = into[output.name] ?? new dtypes[output.dtype].array(sizeOf(output.shape));
      checkArray('output', output, array);
      output.read(array);
      out[output.name] = array;
    }
    return out;
  };
  return {
    inputs: inputs.map(ports),
    outputs: outputs.map(ports),
    device: 'cpu',
    nodeCount: countSteps(laid.steps),
    bodyNodeCounts: loopsOf(laid.steps).map(step => countSteps(step.steps)),
    code,
    memory,
    values(name) {
      const port = [...inputs, ...outputs].find(each => each.name === name);
      if (!port) return fail(`'${name}' is neither an input nor an output of this program`);
      return port.values;
    },
    execute,
    write,
    read: () => read(),
    run<O extends Record<string, TypedArray>>(
      feeds: Readonly<Record<string, TypedArray>>,
      into?: Partial<O>,
    ): O {
      if (typeof feeds !== 'object' || feeds === null)
        fail(`run: feeds are ${String(feeds)}: give an object of typed arrays by name`);
      for (const input of inputs) checkArray('feed', input, feeds[input.name]);
      write(feeds);
      if (into) refuseUnknown('output', into as Record<string, TypedArray>, outputs, new Set());
      execute();
      return read(into) as O;
    },
    dispose() {
      open = false;
    },
  };
}

function portOf(t: Tensor, name = (t.node.attrs as InputAttrs).name): Port {
  return { name, shape: t.shape, dtype: t.dtype };
}

function constantValues({ node, dtype }: Tensor): TypedArray {
  return toTypedArray((node.attrs as ConstantAttrs).values, dtype);
}

/** A tensor's bytes, as the arrays that go in and out of a program; a bool is a mask of a lane in there. */
function memoryOf(buffer: ArrayBufferLike, { dtype, shape }: Tensor, address: number) {
  const size = sizeOf(shape);
  const inside: Record<DType, () => TypedArray> = {
    float32: () => new Float32Array(buffer as ArrayBuffer, address, size),
    int32: () => new Int32Array(buffer as ArrayBuffer, address, size),
    bool: () => new Int32Array(buffer as ArrayBuffer, address, size),
    int64: () => new BigInt64Array(buffer as ArrayBuffer, address, size),
  };
  const own = inside[dtype]();
  return {
    values: own as Float32Array,
    write(array: TypedArray): void {
      if (dtype === 'bool') for (let i = 0; i < size; i++) own[i] = array[i] ? -1 : 0;
      else own.set(array as never);
    },
    read(array: TypedArray): void {
      if (dtype === 'bool') for (let i = 0; i < size; i++) array[i] = own[i] ? 1 : 0;
      else array.set(own as never);
    },
  };
}

/** Whether no instruction is in it. */
const isNothing = (code: Code): boolean => code.every(part => typeof part !== 'number' && isNothing(part));
const nameOf = ({ op, inputs }: Node): string =>
  `${op.name} ${inputs.map(({ shape }) => `(${shape})`).join(' ')}`;
const loopsOf = (steps: readonly Step[]): LoopStep[] =>
  steps.flatMap(step => (step.kind === 'loop' ? [step, ...loopsOf(step.steps)] : []));
const countSteps = (steps: readonly Step[]): number =>
  steps.reduce((sum, step) => sum + 1 + (step.kind === 'loop' ? countSteps(step.steps) : 0), 0);

/**
 * One function a step, so that the engine optimises each after some calls of it, and `run`, which calls them: a function
 * that is under way is never replaced by its faster self.
 */
function writeFunctions(laid: Plan): WasmFunction[] {
  const functions: WasmFunction[] = [];
  const shared = new Map<string, number>();
  const add = (f: WasmFunction): number => functions.push(f) - 1;
  const once = (key: string, make: () => WasmFunction): number => {
    if (!shared.has(key)) shared.set(key, add(make()));
    return shared.get(key)!;
  };
  const { addressOf } = laid;

  const product = (node: Node, scratch: number): Code[] => {
    const [a, b] = node.inputs;
    const isLinear = node.op === (linearOp as Operator);
    const { transposeA, transposeB } = isLinear
      ? { transposeA: false, transposeB: (node.attrs as { transposeW: boolean }).transposeW }
      : (node.attrs as MatmulAttrs);
    const [rows, columns] = node.outputs[0].shape;
    const inner = a.shape[transposeA ? 0 : 1];
    const turn = transposeB
      ? [
          call(
            once(`transpose ${b.shape}`, () => transposeFunction(b.shape[0], b.shape[1])),
            [i32.constant(addressOf(b)), i32.constant(scratch)],
          ),
        ]
      : [];
    const right = transposeB ? scratch : addressOf(b);
    const terms = transposeA ? MOST_TERMS : inner;
    const parts = Array.from({ length: Math.ceil(inner / terms) }, (_, part) => {
      const first = part * terms;
      const shape: ProductShape = {
        rows,
        inner: Math.min(terms, inner - first),
        columns,
        transposeA,
        start: part > 0 ? 'result' : isLinear ? 'bias' : 'zero',
      };
      const operands = [
        addressOf(a) + 4 * first * rows,
        right + 4 * first * columns,
        addressOf(node.outputs[0]),
        isLinear ? addressOf(node.inputs[2]) : 0,
      ];
      const index = once(`product ${Object.values(shape)}`, () => productFunction(shape));
      return call(index, operands.map(i32.constant));
    });
    return [...turn, ...parts];
  };

  const written = (step: Step): Code[] => {
    if (step.kind === 'loop') return loopCode(step);
    if (step.kind === 'kernel') {
      const { node } = step;
      if (node.op === (matmulOp as Operator) || node.op === (linearOp as Operator))
        return product(node, step.scratch ? laid.addressOfStorage(step.scratch) : 0);
      const placed = {
        node,
        inputs: node.inputs.map(addressOf),
        outputs: node.outputs.map(t => (laid.live.tensors.has(t) ? addressOf(t) : -1)),
      };
      const body = wasmFunction('', [], (_, variable) => kernelFor(node)!(placed, variable), nameOf(node));
      return isNothing(body.body) ? [] : [call(add(body))];
    }
    const body = wasmFunction(
      '',
      [],
      (_, variable) =>
        writeFused(
          {
            shape: step.shape.filter(n => n !== 1),
            nodes: step.nodes,
            kept: step.kept,
            source: t => laid.sourceIn(step, t),
            view: (t, consumer): View => {
              const { shape } = consumer ? consumer.outputs[0] : t;
              const strides = consumer ? broadcastStrides(t.shape, shape) : stridesOf(shape);
              return {
                address: addressOf(t),
                dtype: t.dtype,
                strides: strides.filter((_, axis) => shape[axis] !== 1),
              };
            },
          },
          variable,
        ),
      `${step.nodes.map(node => node.op.name).join(' ')} (${step.shape})`,
    );
    return [call(add(body))];
  };

  const loopCode = ({ node, steps, scans, spare, condition }: LoopStep): Code[] => {
    const { attrs, inputs, outputs } = node;
    const { carriedIn, carriedOut, iteration, goOn, maxTrips, tripsAsInput } = attrs;
    const bytes = (t: Tensor): number => sizeOf(t.shape) * bytesPer[t.dtype];
    const zero = i32.constant(0);
    const counter = addressOf(iteration);
    const ran = addressOf(outputs[carriedIn.length]);
    const initial = tripsAsInput ? inputs.slice(1) : inputs;
    const stacks = scans.map(i => ({ from: attrs.scans[i], to: outputs[carriedIn.length + 1 + i] }));
    const begin: Code[] = [
      ...carriedIn.map((t, i) => copyTo(addressOf(t), addressOf(initial[i]), bytes(t))),
      ...stacks.map(({ to }) => fillBytes(i32.constant(addressOf(to)), zero, i32.constant(bytes(to)))),
      i64.store(zero, counter, i64.constant(0)),
    ];
    const asked = condition && laid.addressOfStorage(condition);
    const next: Code[] = [
      ...(goOn && asked !== undefined ? [copyTo(asked, addressOf(goOn), bytesPer.bool)] : []),
      ...stacks.map(({ from, to }) =>
        copyTo(addressOf(to), addressOf(from), bytes(from), { iteration: counter, step: bytes(from) }),
      ),
      ...[...spare].map(([i, storage]) =>
        copyTo(laid.addressOfStorage(storage), addressOf(carriedOut[i]), bytes(carriedOut[i])),
      ),
      ...carriedIn.flatMap((t, i) => {
        const held = spare.get(i);
        const from = held ? laid.addressOfStorage(held) : addressOf(carriedOut[i]);
        return from === addressOf(t) ? [] : [copyTo(addressOf(t), from, bytes(t))];
      }),
      i64.store(zero, counter, i64.add(i64.load(zero, counter), i64.constant(1))),
    ];
    const trips = tripsAsInput ? i64.load(zero, addressOf(inputs[0])) : i64.constant(maxTrips);
    const now = i64.load(zero, counter);
    const more = i32.and(i64.less(now, trips), i64.less(now, i64.constant(maxTrips)));
    const goes = asked === undefined ? more : i32.and(more, i32.and(i32.load(zero, asked), i32.constant(1)));
    return [
      ...begin,
      when(more, [repeatWhile(goes, [...steps.flatMap(written), ...next])]),
      i64.store(zero, ran, i64.load(zero, counter)),
    ];
  };

  const body = laid.steps.flatMap(written);
  functions.push(wasmFunction('run', [], () => body));
  return functions;
}
