/**
 * Writes WebAssembly modules: as much of the binary format as vector loops need (https://webassembly.github.io/spec/core/binary/).
 *
 * Code is written as expressions, each the bytes of its operands and then its own opcode:
 * `f32x4.add(sum.get, v128.load(index.get, 0))`.
 */
import { setFlagsFromString } from 'node:v8';

/**
 * Bytes as the machine reads them, in lists of lists that are written out at the end: expressions are put together many
 * times over. An expression leaves one value, a statement none.
 */
export interface Code extends ReadonlyArray<number | Code> {}
type Bytes = readonly number[];

const valueTypes = { i32: 0x7f, i64: 0x7e, f32: 0x7d, v128: 0x7b } as const;
export type ValueType = keyof typeof valueTypes;

/** A whole number from 0 as LEB128: seven bits a byte, the low ones first, the eighth bit set on all but the last. */
function unsigned(value: number): Bytes {
  const bytes: number[] = [];
  let rest = value;
  for (; rest > 0x7f; rest >>>= 7) bytes.push((rest & 0x7f) | 0x80);
  return [...bytes, rest];
}

/** With its sign: bit 6 of the last byte is the sign, so that a number that has it set takes one byte more. */
function signed(value: number): Bytes {
  const bytes: number[] = [];
  let rest = value;
  for (; rest < -64 || rest > 63; rest >>= 7) bytes.push((rest & 0x7f) | 0x80);
  return [...bytes, rest & 0x7f];
}

const sized = (bytes: Bytes): Bytes => flatten([unsigned(bytes.length), bytes]);
const list = (items: readonly Bytes[]): Bytes => flatten([unsigned(items.length), ...items]);
const named = (name: string): Bytes => sized([...new TextEncoder().encode(name)]);

/** A parameter or variable of a function. */
export interface Local {
  readonly get: Code;
  set(value: Code): Code;
}

/** By number: parameters come first. */
const local = (index: number): Local => {
  const number = unsigned(index);
  return { get: [0x20, ...number], set: value => [value, 0x21, number] };
};

const operator = (...opcode: number[]) => ({
  unary: (x: Code): Code => [x, opcode],
  binary: (x: Code, y: Code): Code => [x, y, opcode],
});
/** Of an access: how it is aligned, as a power of 2 (a hint), and the constant that is added to the address. */
const place = (alignment: number, offset: number): Bytes => [alignment, ...unsigned(offset)];

/** Comparisons leave an i32. `lessThan` and `atLeast` are without sign, as addresses are. */
export const i32 = {
  constant: (value: number): Code => [0x41, ...signed(value)],
  load: (address: Code, offset: number): Code => [address, 0x28, ...place(2, offset)],
  store: (address: Code, offset: number, value: Code): Code => [address, value, 0x36, ...place(2, offset)],
  lessThan: operator(0x49).binary,
  negative: (x: Code): Code => [x, 0x41, 0, 0x48],
  atLeast: operator(0x4f).binary,
  add: operator(0x6a).binary,
  sub: operator(0x6b).binary,
  mul: operator(0x6c).binary,
  divide: operator(0x6d).binary,
  and: operator(0x71).binary,
  fromI64: operator(0xa7).unary,
};

export const i64 = {
  constant: (value: number): Code => {
    const bytes: number[] = [];
    let rest = BigInt(value);
    for (; rest < -64n || rest > 63n; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80);
    return [0x42, bytes, Number(rest & 0x7fn)];
  },
  load: (address: Code, offset: number): Code => [address, 0x29, ...place(3, offset)],
  store: (address: Code, offset: number, value: Code): Code => [address, value, 0x37, ...place(3, offset)],
  isZero: operator(0x50).unary,
  equal: operator(0x51).binary,
  less: operator(0x53).binary,
  greater: operator(0x55).binary,
  lessEqual: operator(0x57).binary,
  greaterEqual: operator(0x59).binary,
  add: operator(0x7c).binary,
  sub: operator(0x7d).binary,
  mul: operator(0x7e).binary,
  divide: operator(0x7f).binary,
  fromI32: operator(0xac).unary,
  /** Towards zero; beyond the range its end. */
  fromF32: operator(0xfc, 0x04).unary,
};

export const f32 = {
  fromI64: operator(0xb4).unary,
};

/** `yes` where the i32 is not 0, else `no`. */
export const select = (condition: Code, yes: Code, no: Code): Code => [yes, no, condition, 0x1b];
export const call = (index: number, operands: readonly Code[] = []): Code => [
  operands,
  0x10,
  ...unsigned(index),
];
/** Ends the program with an error. */
export const trap: Code = [0x00];
export const when = (condition: Code, statements: readonly Code[]): Code => [
  condition,
  ...[0x04, 0x40],
  statements,
  0x0b,
];
export const copyBytes = (to: Code, from: Code, bytes: Code): Code => [
  to,
  from,
  bytes,
  ...[0xfc, 0x0a, 0, 0],
];
export const fillBytes = (to: Code, value: Code, bytes: Code): Code => [to, value, bytes, ...[0xfc, 0x0b, 0]];

/** The statements again and again for as long as the condition holds after them: at least once. */
export const repeatWhile = (condition: Code, statements: readonly Code[]): Code => [
  ...[0x03, 0x40], // loop, without a value
  statements,
  condition,
  ...[0x0d, 0], // br_if: back to the beginning of the loop
  0x0b, // end
];

const simd = (opcode: number): Bytes => [0xfd, ...unsigned(opcode)];
const unary = (opcode: number) => {
  const bytes = simd(opcode);
  return (a: Code): Code => [a, bytes];
};
const binary = (opcode: number) => {
  const bytes = simd(opcode);
  return (a: Code, b: Code): Code => [a, b, bytes];
};
const bytesOf = (values: Float32Array | Int32Array): Bytes => [
  ...new Uint8Array(values.buffer, values.byteOffset, 16),
];
const lane = (opcode: number) => {
  const bytes = simd(opcode);
  return (address: Code, offset: number, vector: Code, index: number): Code => [
    address,
    vector,
    bytes,
    ...place(2, offset),
    index,
  ];
};

export const v128 = {
  load: (address: Code, offset: number): Code => [address, ...simd(0x00), ...place(4, offset)],
  /** Four bytes in every lane. */
  loadSplat: (address: Code, offset: number): Code => [address, ...simd(0x09), ...place(2, offset)],
  /** Four bytes in the first lane, 0 in the others. */
  loadFirst: (address: Code, offset: number): Code => [address, ...simd(0x5c), ...place(2, offset)],
  /** Eight bytes as the low half. */
  loadHalf: (address: Code, offset: number): Code => [address, ...simd(0x5d), ...place(3, offset)],
  /** The vector with four bytes read into one lane. */
  loadLane: lane(0x56),
  store: (address: Code, offset: number, value: Code): Code => [
    address,
    value,
    ...simd(0x0b),
    ...place(4, offset),
  ],
  storeLane: lane(0x5a),
  floats: (value: number): Code => [...simd(0x0c), ...bytesOf(new Float32Array(4).fill(value))],
  ints: (value: number): Code => [...simd(0x0c), ...bytesOf(new Int32Array(4).fill(value))],
  /** Sixteen bytes of two vectors, by their numbers: 0 to 15 are of the first. */
  shuffle: (a: Code, b: Code, bytes: readonly number[]): Code => [a, b, ...simd(0x0d), bytes],
  not: unary(0x4d),
  and: binary(0x4e),
  /** The bits of `a` that are not set in `b`. */
  without: binary(0x4f),
  or: binary(0x50),
  /** The bits of `yes` where those of the mask are set, else those of `no`. */
  choose: (mask: Code, yes: Code, no: Code): Code => [yes, no, mask, ...simd(0x52)],
};

/** Of lanes of 32 bits; comparisons set all bits of a lane where they hold. */
export const i32x4 = {
  splat: unary(0x11),
  first: (a: Code): Code => [a, ...simd(0x1b), 0],
  equal: binary(0x37),
  less: binary(0x39),
  greater: binary(0x3b),
  lessEqual: binary(0x3d),
  greaterEqual: binary(0x3f),
  shiftLeft: (a: Code, bits: number): Code => [a, 0x41, bits, ...simd(0xab)],
  /** Keeps the sign. */
  shiftRight: (a: Code, bits: number): Code => [a, 0x41, bits, ...simd(0xac)],
  add: binary(0xae),
  sub: binary(0xb1),
  mul: binary(0xb5),
  min: binary(0xb6),
  max: binary(0xb8),
  /** Towards zero; NaN is 0. */
  fromFloats: unary(0xf8),
};

export const f32x4 = {
  splat: unary(0x13),
  first: (a: Code): Code => [a, ...simd(0x1f), 0],
  equal: binary(0x41),
  /** All bits of a lane where it holds. */
  lessThan: binary(0x43),
  greater: binary(0x44),
  lessEqual: binary(0x45),
  greaterEqual: binary(0x46),
  nearest: unary(0x6a),
  abs: unary(0xe0),
  neg: unary(0xe1),
  sqrt: unary(0xe3),
  add: binary(0xe4),
  sub: binary(0xe5),
  mul: binary(0xe6),
  div: binary(0xe7),
  /** NaN where one of them is. */
  min: binary(0xe8),
  max: binary(0xe9),
  /** `b` where it is less than `a`, else `a`, NaN included: one instruction, where `min` takes several. */
  lesserOr: binary(0xea),
  /** `b` where it is more than `a`, else `a`, NaN included. */
  greaterOr: binary(0xeb),
  fromInts: unary(0xfa),
};

export const f64x2 = {
  add: binary(0xf0),
  mul: binary(0xf2),
  /** The low two lanes of an f32x4. */
  promoteLow: unary(0x5f),
};

/** a · b + c in one rounding. The proposal leaves that to the processor; those with AVX2 and all 64-bit ARM round once. */
const fusedOpcode = simd(0x105);
const fused = (a: Code, b: Code, c: Code): Code => [a, b, c, fusedOpcode];

let hasFused: boolean | undefined;

/**
 * a · b + c: fused where the engine knows relaxed SIMD (Node 20 behind a switch, later ones by default), which halves
 * the instructions of a matrix product.
 */
export function multiplyAdd(a: Code, b: Code, c: Code): Code {
  if (hasFused === undefined) {
    const zero = v128.floats(0);
    const probe = wasmModule({ pages: 1 }, [
      wasmFunction('probe', ['i32'], ([at]) => [v128.store(at.get, 0, fused(zero, zero, zero))]),
    ]);
    hasFused = WebAssembly.validate(probe);
    if (!hasFused) {
      setFlagsFromString('--experimental-wasm-relaxed-simd');
      hasFused = WebAssembly.validate(probe);
    }
  }
  return hasFused ? fused(a, b, c) : f32x4.add(f32x4.mul(a, b), c);
}

export interface WasmFunction {
  /** Under which it is exported; '' is not. */
  readonly name: string;
  /** What profilers and stacks call it. */
  readonly label: string;
  readonly parameters: readonly ValueType[];
  readonly locals: readonly ValueType[];
  readonly body: readonly Code[];
}

/** A function that returns nothing. `write` gets its parameters, and makes local variables (0 at first) as it needs them. */
export function wasmFunction(
  name: string,
  parameters: readonly ValueType[],
  write: (parameters: readonly Local[], variable: (type: ValueType) => Local) => readonly Code[],
  label = name,
): WasmFunction {
  const locals: ValueType[] = [];
  const body = write(
    parameters.map((_, i) => local(i)),
    type => local(parameters.length + locals.push(type) - 1),
  );
  return { name, label, parameters, locals, body };
}

/** Memory in pages of 64 KiB for good: the module's own, which it exports, or one that other threads see as well. */
export interface MemoryOptions {
  readonly pages: number;
  readonly shared?: boolean;
}

/** A module that exports functions and, unless it is given one as `env.memory`, `memory`. */
export function wasmModule(
  { pages, shared = false }: MemoryOptions,
  functions: readonly WasmFunction[],
): Uint8Array<ArrayBuffer> {
  const section = (id: number, items: readonly Bytes[]): Bytes => [id, ...sized(list(items))];
  const exported = (name: string, kind: number, index: number) => [...named(name), kind, ...unsigned(index)];
  const limits = (flags: number): Bytes => [flags, ...unsigned(pages), ...unsigned(pages)];
  const visible = [...functions.entries()].filter(([, f]) => f.name !== '');
  const labels = functions.map((f, i) => [...unsigned(i), ...named(f.label)]);
  const bodies = functions.map(f =>
    sized([...list(f.locals.map(type => [1, valueTypes[type]])), ...flatten(f.body), 0x0b]),
  );
  return Uint8Array.from(
    flatten([
      [0x00, 0x61, 0x73, 0x6d], // "\0asm"
      [0x01, 0x00, 0x00, 0x00], // the format's version
      section(
        1, // types: 0x60, parameters, results
        functions.map(f => [0x60, ...list(f.parameters.map(type => [valueTypes[type]])), ...list([])]),
      ),
      shared ? section(2, [[...named('env'), ...named('memory'), 0x02, ...limits(0x03)]]) : [],
      section(
        3, // functions: the number of each one's type
        functions.map((_, i) => unsigned(i)),
      ),
      shared ? [] : section(5, [limits(0x01)]), // memory: its least and largest size
      section(7, [
        ...(shared ? [] : [exported('memory', 2, 0)]),
        ...visible.map(([i, f]) => exported(f.name, 0, i)),
      ]),
      [10, ...sized(flatten([unsigned(bodies.length), ...bodies]))], // code: locals one by one, statements, end
      [0, ...sized([...named('name'), 1, ...sized(list(labels))])], // a custom section
    ]),
  );
}

/** All bytes in a row. */
function flatten(code: Code, all: number[] = []): number[] {
  for (const part of code) {
    if (typeof part === 'number') all.push(part);
    else flatten(part, all);
  }
  return all;
}

/** What of the JavaScript interface is used; TypeScript has it with the browser's types alone. */
declare const WebAssembly: {
  validate(bytes: Uint8Array<ArrayBuffer>): boolean;
  Module: new (bytes: Uint8Array<ArrayBuffer>) => object;
  Memory: new (limits: {
    initial: number;
    maximum: number;
    shared: true;
  }) => { readonly buffer: SharedArrayBuffer };
  Instance: new (module: object, imports?: object) => { readonly exports: object };
};

/** A compiled module, which threads can be sent. */
export type WasmCode = object;
/** Memory that threads share. */
export type SharedMemory = { readonly buffer: SharedArrayBuffer };

/** Compiles a module at once. */
export function compileModule(bytes: Uint8Array<ArrayBuffer>): WasmCode {
  try {
    return new WebAssembly.Module(bytes);
  } catch (error) {
    throw new Error(
      `this JavaScript engine (Node ${process.versions.node}) lacks 128-bit SIMD in WebAssembly: use Node 20.19 or newer on a 64-bit x86 or ARM processor`,
      { cause: error },
    );
  }
}

export function sharedMemory(pages: number): SharedMemory {
  return new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
}

/** What a module exports, with memory of its own or the one it is given. */
export function instantiate<Exports extends object>(module: WasmCode, memory?: SharedMemory): Exports {
  return new WebAssembly.Instance(module, memory ? { env: { memory } } : {}).exports as Exports;
}
