/**
 * Writes WebAssembly modules: as much of the binary format as vector loops need (https://webassembly.github.io/spec/core/binary/).
 *
 * Code is written as expressions, each the bytes of its operands and then its own opcode:
 * `f32x4.add(sum.get, v128.load(index.get, 0))`.
 */

/** Bytes as the machine reads them. An expression leaves one value, a statement none. */
export type Code = readonly number[];

const valueTypes = { i32: 0x7f, f32: 0x7d, v128: 0x7b } as const;
export type ValueType = keyof typeof valueTypes;

/** A whole number from 0 as LEB128: seven bits a byte, the low ones first, the eighth bit set on all but the last. */
function unsigned(value: number): Code {
  const bytes: number[] = [];
  let rest = value;
  for (; rest > 0x7f; rest >>>= 7) bytes.push((rest & 0x7f) | 0x80);
  return [...bytes, rest];
}

/** With its sign: bit 6 of the last byte is the sign, so that a number that has it set takes one byte more. */
function signed(value: number): Code {
  const bytes: number[] = [];
  let rest = value;
  for (; rest < -64 || rest > 63; rest >>= 7) bytes.push((rest & 0x7f) | 0x80);
  return [...bytes, rest & 0x7f];
}

const sized = (bytes: Code): Code => [...unsigned(bytes.length), ...bytes];
const list = (items: readonly Code[]): Code => [...unsigned(items.length), ...items.flat()];
const named = (name: string): Code => sized([...new TextEncoder().encode(name)]);

/** A parameter or variable of a function. */
export interface Local {
  readonly get: Code;
  set(value: Code): Code;
}

/** By number: parameters come first. */
const local = (index: number): Local => ({
  get: [0x20, ...unsigned(index)],
  set: value => [...value, 0x21, ...unsigned(index)],
});

export const i32 = {
  constant: (value: number): Code => [0x41, ...signed(value)],
  add: (a: Code, b: Code): Code => [...a, ...b, 0x6a],
  lessThan: (a: Code, b: Code): Code => [...a, ...b, 0x49],
};

/** The statements again and again for as long as the condition holds after them: at least once. */
export const repeatWhile = (condition: Code, statements: readonly Code[]): Code => [
  ...[0x03, 0x40], // loop, without a value
  ...statements.flat(),
  ...condition,
  ...[0x0d, 0], // br_if: back to the beginning of the loop
  0x0b, // end
];

const simd = (opcode: number): Code => [0xfd, ...unsigned(opcode)];
const unary = (opcode: number) => {
  const bytes = simd(opcode);
  return (a: Code): Code => [...a, ...bytes];
};
const binary = (opcode: number) => {
  const bytes = simd(opcode);
  return (a: Code, b: Code): Code => [...a, ...b, ...bytes];
};
/** Of an access: how it is aligned, as a power of 2 (a hint), and the constant that is added to the address. */
const place = (alignment: number, offset: number): Code => [alignment, ...unsigned(offset)];

export const v128 = {
  load: (address: Code, offset: number): Code => [...address, ...simd(0x00), ...place(4, offset)],
  /** Eight bytes as the low half. */
  loadHalf: (address: Code, offset: number): Code => [...address, ...simd(0x5d), ...place(3, offset)],
  store: (address: Code, offset: number, value: Code): Code => [
    ...address,
    ...value,
    ...simd(0x0b),
    ...place(4, offset),
  ],
  /** The bits of `a` that are not set in `b`. */
  without: binary(0x4f),
};

export const f32x4 = {
  splat: unary(0x13),
  /** All bits of a lane where it holds. */
  lessThan: binary(0x43),
  abs: unary(0xe0),
  sqrt: unary(0xe3),
  add: binary(0xe4),
  sub: binary(0xe5),
  mul: binary(0xe6),
  div: binary(0xe7),
};

export const f64x2 = {
  add: binary(0xf0),
  mul: binary(0xf2),
  /** The low two lanes of an f32x4. */
  promoteLow: unary(0x5f),
};

export interface WasmFunction {
  readonly name: string;
  readonly parameters: readonly ValueType[];
  readonly locals: readonly ValueType[];
  readonly body: readonly Code[];
}

/** A function that returns nothing. `write` gets its parameters, and makes local variables (0 at first) as it needs them. */
export function wasmFunction(
  name: string,
  parameters: readonly ValueType[],
  write: (parameters: readonly Local[], variable: (type: ValueType) => Local) => readonly Code[],
): WasmFunction {
  const locals: ValueType[] = [];
  const body = write(
    parameters.map((_, i) => local(i)),
    type => local(parameters.length + locals.push(type) - 1),
  );
  return { name, parameters, locals, body };
}

/** A module that exports `memory`, of so many pages of 64 KiB for good, and functions. */
export function wasmModule(pages: number, functions: readonly WasmFunction[]): Uint8Array<ArrayBuffer> {
  const section = (id: number, items: readonly Code[]): Code => [id, ...sized(list(items))];
  const exported = (name: string, kind: number, index: number) => [...named(name), kind, ...unsigned(index)];
  return Uint8Array.from([
    ...[0x00, 0x61, 0x73, 0x6d], // "\0asm"
    ...[0x01, 0x00, 0x00, 0x00], // the format's version
    ...section(
      1, // types: 0x60, parameters, results
      functions.map(f => [0x60, ...list(f.parameters.map(type => [valueTypes[type]])), ...list([])]),
    ),
    ...section(
      3, // functions: the number of each one's type
      functions.map((_, i) => unsigned(i)),
    ),
    ...section(5, [[0x01, ...unsigned(pages), ...unsigned(pages)]]), // memory: its least and largest size
    ...section(7, [exported('memory', 2, 0), ...functions.map((f, i) => exported(f.name, 0, i))]),
    ...section(
      10, // code: runs of locals of one type, statements, end
      functions.map(f =>
        sized([...list(f.locals.map(type => [1, valueTypes[type]])), ...f.body.flat(), 0x0b]),
      ),
    ),
  ]);
}

/** What of the JavaScript interface is used; TypeScript has it with the browser's types alone. */
declare const WebAssembly: {
  validate(bytes: Uint8Array<ArrayBuffer>): boolean;
  Module: new (bytes: Uint8Array<ArrayBuffer>) => object;
  Instance: new (module: object) => { readonly exports: object };
};

/** Compiles a module at once and returns what it exports. */
export function instantiate<Exports extends object>(bytes: Uint8Array<ArrayBuffer>): Exports {
  if (!WebAssembly.validate(bytes))
    throw new Error(
      `this JavaScript engine (Node ${process.versions.node}) lacks 128-bit SIMD in WebAssembly: use Node 20.19 or newer on a 64-bit x86 or ARM processor`,
    );
  return new WebAssembly.Instance(new WebAssembly.Module(bytes)).exports as Exports;
}
