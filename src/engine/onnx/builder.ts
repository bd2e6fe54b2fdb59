import type { DType } from '../dtype.ts';
import type { Shape } from '../shape.ts';

/** A value that an ONNX attribute can hold; whole numbers are written as ints, `{ float }` as floats. */
export type OnnxAttribute = number | string | readonly number[] | { readonly float: number };

/** What an operator writes itself to: one (sub)graph of an ONNX model under construction. Values go by name. */
export interface OnnxBuilder {
  /** Adds a node; names of outputs that are not wanted may be ''. */
  node(
    opType: string,
    inputs: readonly string[],
    outputs: readonly string[],
    attributes?: Record<string, OnnxAttribute>,
  ): void;
  /** A value name that is not taken. */
  fresh(): string;
  /** The name of an int64 vector constant (shapes, axes). */
  ints(values: readonly number[]): string;
  /** The name of a float32 constant of ones. */
  ones(shape: Shape): string;
  /** The name of a scalar constant. */
  scalar(value: number, dtype: DType): string;
}
