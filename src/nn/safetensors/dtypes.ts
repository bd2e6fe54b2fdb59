/** The element types of the format: how wide each is, and how it becomes float32. */
import { show } from './refuse.ts';

/** The typed arrays that have a dtype of their own. */
export type TensorData =
  | Float32Array
  | Float64Array
  | Int8Array
  | Uint8Array
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | BigInt64Array
  | BigUint64Array;

interface DtypeSpec {
  readonly bits: number;
  /** Takes bytes aligned to the element; absent where float32 has no meaning or nobody needed it yet. */
  readonly toFloat32?: (bytes: Uint8Array) => Float32Array;
}

/** In the reference implementation's order, which is also how it orders tensors in a file: the last ones come first. */
export const dtypes = {
  BOOL: { bits: 8, toFloat32: bytes => new Float32Array(bytes).map(value => (value === 0 ? 0 : 1)) },
  F4: { bits: 4 },
  F6_E2M3: { bits: 6 },
  F6_E3M2: { bits: 6 },
  U8: { bits: 8, toFloat32: bytes => new Float32Array(bytes) },
  I8: { bits: 8, toFloat32: bytes => new Float32Array(over(Int8Array, bytes)) },
  F8_E5M2: { bits: 8, toFloat32: bytes => lookUp(bytes, f8E5M2()) },
  F8_E4M3: { bits: 8, toFloat32: bytes => lookUp(bytes, f8E4M3()) },
  F8_E8M0: { bits: 8 },
  F8_E4M3FNUZ: { bits: 8 },
  F8_E5M2FNUZ: { bits: 8 },
  I16: { bits: 16, toFloat32: bytes => new Float32Array(over(Int16Array, bytes)) },
  U16: { bits: 16, toFloat32: bytes => new Float32Array(over(Uint16Array, bytes)) },
  F16: { bits: 16, toFloat32: bytes => lookUp(over(Uint16Array, bytes), f16()) },
  BF16: { bits: 16, toFloat32: bytes => bfloat16ToFloat32(over(Uint16Array, bytes)) },
  I32: { bits: 32, toFloat32: bytes => new Float32Array(over(Int32Array, bytes)) },
  U32: { bits: 32, toFloat32: bytes => new Float32Array(over(Uint32Array, bytes)) },
  F32: { bits: 32, toFloat32: bytes => over(Float32Array, bytes) },
  C64: { bits: 64 },
  F64: { bits: 64, toFloat32: bytes => new Float32Array(over(Float64Array, bytes)) },
  I64: { bits: 64, toFloat32: bytes => int64ToFloat32(over(BigInt64Array, bytes)) },
  U64: { bits: 64, toFloat32: bytes => int64ToFloat32(over(BigUint64Array, bytes)) },
} satisfies Record<string, DtypeSpec>;

/** The element types of the format. Sub-byte, complex and FNUZ ones can be read as `raw` only. */
export type Dtype = keyof typeof dtypes;

export const dtypeNames = Object.keys(dtypes) as Dtype[];

export const spec = (dtype: Dtype): DtypeSpec => dtypes[dtype];

/** By `Symbol.toStringTag`, which holds for subclasses (`Buffer`) and arrays of other realms too. */
export const dtypeOfArray: Readonly<Record<TensorData[typeof Symbol.toStringTag], Dtype>> = {
  Float32Array: 'F32',
  Float64Array: 'F64',
  Int8Array: 'I8',
  Uint8Array: 'U8',
  Int16Array: 'I16',
  Uint16Array: 'U16',
  Int32Array: 'I32',
  Uint32Array: 'U32',
  BigInt64Array: 'I64',
  BigUint64Array: 'U64',
};

export const isDtype = (value: unknown): value is Dtype =>
  typeof value === 'string' && Object.hasOwn(dtypes, value);

export const unknownDtype = (what: string, dtype: unknown): string =>
  `${what}: unknown dtype ${show(dtype)}; convert it to one of ${dtypeNames.join(', ')}`;

type ArrayOver<T> = {
  new (buffer: ArrayBufferLike, byteOffset: number, length: number): T;
  readonly BYTES_PER_ELEMENT: number;
};

const over = <T>(type: ArrayOver<T>, bytes: Uint8Array): T =>
  new type(bytes.buffer, bytes.byteOffset, bytes.byteLength / type.BYTES_PER_ELEMENT);

function lookUp(patterns: Uint8Array | Uint16Array, table: Float32Array): Float32Array {
  const values = new Float32Array(patterns.length);
  for (let i = 0; i < values.length; i++) values[i] = table[patterns[i]];
  return values;
}

const f16 = tableOnUse({ exponentBits: 5, mantissaBits: 10, special: 'ieee' });

const f8E5M2 = tableOnUse({ exponentBits: 5, mantissaBits: 2, special: 'ieee' });

const f8E4M3 = tableOnUse({ exponentBits: 4, mantissaBits: 3, special: 'onlyNaN' });

/**
 * Every pattern of a small float, by the definition of the format; built when first asked for.
 * `ieee`: the top exponent is infinity and NaN. `onlyNaN`: no infinity, and NaN only where all other bits are set, as
 * in OCP's e4m3 (https://www.opencompute.org/documents/ocp-8-bit-floating-point-specification-ofp8-revision-1-0).
 */
function tableOnUse(format: { exponentBits: number; mantissaBits: number; special: 'ieee' | 'onlyNaN' }) {
  const { exponentBits, mantissaBits, special } = format;
  const signBit = 2 ** (exponentBits + mantissaBits);
  const topExponent = 2 ** exponentBits - 1;
  const bias = 2 ** (exponentBits - 1) - 1;
  const magnitude = (pattern: number): number => {
    const exponent = pattern >> mantissaBits;
    const fraction = (pattern % 2 ** mantissaBits) / 2 ** mantissaBits;
    if (special === 'onlyNaN' && pattern === signBit - 1) return Number.NaN;
    if (special === 'ieee' && exponent === topExponent)
      return fraction === 0 ? Number.POSITIVE_INFINITY : Number.NaN;
    return exponent === 0 ? fraction * 2 ** (1 - bias) : (1 + fraction) * 2 ** (exponent - bias);
  };
  let table: Float32Array | undefined;
  return () => {
    table ??= Float32Array.from({ length: 2 * signBit }, (_, pattern) =>
      pattern < signBit ? magnitude(pattern) : -magnitude(pattern - signBit),
    );
    return table;
  };
}

/** bfloat16 is the upper half of a float32. */
function bfloat16ToFloat32(patterns: Uint16Array): Float32Array {
  const bits = new Uint32Array(patterns.length);
  for (let i = 0; i < bits.length; i++) bits[i] = patterns[i] << 16;
  return new Float32Array(bits.buffer);
}

/**
 * Rounds once. Through a double it would be twice, and from 2^53 on that can give the wrong neighbour: so the low 16
 * bits, too low to matter but for telling "half" from "more than half", are first folded into one (round to odd).
 */
function int64ToFloat32(integers: BigInt64Array | BigUint64Array): Float32Array {
  const values = new Float32Array(integers.length);
  for (let i = 0; i < values.length; i++) {
    const integer = integers[i];
    const double = Number(integer);
    if (Number.isSafeInteger(double)) {
      values[i] = double;
    } else {
      const high = integer >> 16n;
      const sticky = (integer & 0xffffn) === 0n ? 0n : 1n;
      values[i] = Number(high | sticky) * 2 ** 16;
    }
  }
  return values;
}
