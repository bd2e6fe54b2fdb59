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
