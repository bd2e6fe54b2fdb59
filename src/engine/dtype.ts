import { fail } from './errors.ts';

/** What a tensor holds. Derivatives flow through float32 only; booleans are bytes 0 and 1. */
export type DType = 'float32' | 'int32' | 'int64' | 'bool';

/** The array that carries a tensor's values in and out of a program. */
export type TypedArray = Float32Array | Int32Array | BigInt64Array | Uint8Array;

/** The array type of each dtype, its code in an ONNX file, and the bytes of one value. */
export const dtypes = {
  float32: { array: Float32Array, onnx: 1, bytes: 4 },
  int32: { array: Int32Array, onnx: 6, bytes: 4 },
  int64: { array: BigInt64Array, onnx: 7, bytes: 8 },
  bool: { array: Uint8Array, onnx: 9, bytes: 1 },
} as const;

/** Refuses a dtype that is none, as an untyped caller may give. */
export function checkDType(what: string, dtype: DType): void {
  if (!Object.hasOwn(dtypes, dtype))
    fail(`${what}: dtype '${dtype}' is unknown: use ${Object.keys(dtypes).join(', ')}`);
}

/** Whether a dtype can hold a number as it is; float32 holds every number, rounded. */
export function holds(dtype: DType, value: number): boolean {
  switch (dtype) {
    case 'float32':
      return true;
    case 'int32':
      return (value | 0) === value;
    case 'int64':
      return Number.isSafeInteger(value);
    case 'bool':
      return value === 0 || value === 1;
    default:
      return dtype satisfies never;
  }
}

/** Plain numbers as the array of a dtype: rounded to float32, truncated to integers, nonzero is true. */
export function toTypedArray(values: ArrayLike<number>, dtype: DType): TypedArray {
  switch (dtype) {
    case 'float32':
      return Float32Array.from(values);
    case 'int32':
      return Int32Array.from(values);
    case 'int64':
      return BigInt64Array.from(values as ArrayLike<never>, v => BigInt(v));
    case 'bool':
      return Uint8Array.from(values, v => (v ? 1 : 0));
    default:
      return dtype satisfies never;
  }
}
