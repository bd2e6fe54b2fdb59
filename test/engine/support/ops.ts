/** The engine's operators as an interface, so that one expression can be built as a graph and computed on plain arrays. */

import type { DType, Graph, ReduceOptions, Tensor } from '../../../src/engine/index.ts';
import * as engine from '../../../src/engine/index.ts';

type Shape = readonly number[];

export interface LoopSpec<T> {
  readonly trips: number | { readonly count: T; readonly atMost: number };
  readonly carry: Record<string, T>;
  readonly body: (state: { iteration: T; carry: Record<string, T> }) => {
    carry: Record<string, T>;
    scan?: Record<string, T>;
    goOn?: T;
  };
}

export interface Typed {
  readonly shape: Shape;
  readonly dtype: DType;
}

type Unary<T> = (x: T) => T;
type Binary<T> = (a: T | number, b: T | number) => T;

/** T is the engine's `Tensor`, or a plain array with a shape. */
export interface Ops<T> {
  constant(values: readonly number[], shape: Shape, dtype?: DType): T;
  add: Binary<T>;
  sub: Binary<T>;
  mul: Binary<T>;
  div: Binary<T>;
  pow: Binary<T>;
  min: Binary<T>;
  max: Binary<T>;
  neg: Unary<T>;
  exp: Unary<T>;
  log: Unary<T>;
  sqrt: Unary<T>;
  tanh: Unary<T>;
  sigmoid: Unary<T>;
  relu: Unary<T>;
  erf: Unary<T>;
  gelu(x: T, options?: { approximate?: 'none' | 'tanh' }): T;
  stopGradient: Unary<T>;
  clip(x: T, lo: T | number, hi: T | number): T;
  equal: Binary<T>;
  less: Binary<T>;
  lessEqual: Binary<T>;
  greater: Binary<T>;
  greaterEqual: Binary<T>;
  and(a: T, b: T): T;
  or(a: T, b: T): T;
  not: Unary<T>;
  where(condition: T, a: T | number, b: T | number): T;
  cast(x: T, dtype: DType): T;
  expand(x: T, shape: Shape): T;
  reshape(x: T, shape: Shape): T;
  transpose(x: T, order?: readonly number[]): T;
  concat(parts: readonly T[], axis: number): T;
  split(x: T, sizes: readonly number[], axis: number): readonly T[];
  slice(x: T, starts: readonly number[], ends: readonly number[], axes?: readonly number[]): T;
  pad(x: T, before: readonly number[], after: readonly number[]): T;
  matmul(a: T, b: T, options?: { transposeA?: boolean; transposeB?: boolean }): T;
  linear(x: T, w: T, b: T, options?: { transposeW?: boolean }): T;
  gather(x: T, indices: T, axis?: number): T;
  takeAlong(x: T, indices: T, axis: number): T;
  scatterRows(indices: T, updates: T, shape: Shape): T;
  scatterAlong(indices: T, updates: T, axis: number, shape: Shape): T;
  reduceSum(x: T, options?: ReduceOptions): T;
  reduceMean(x: T, options?: ReduceOptions): T;
  reduceMax(x: T, options?: ReduceOptions): T;
  l2Norm(x: T, options?: ReduceOptions): T;
  argMax(x: T, axis: number, options?: { keepDims?: boolean }): T;
  softmax(x: T, axis?: number): T;
  maskedSoftmax(x: T, axis?: number): T;
  logSoftmax(x: T, axis?: number): T;
  layerNorm(x: T, scale: T, bias: T, epsilon?: number): T;
  loop(spec: LoopSpec<T>): { carry: Record<string, T>; scan: Record<string, T>; iterations: T };
}

/** The engine's own functions; `onCall` hears the name of each that is called from here. */
export function engineOps(graph: Graph, onCall: (name: string) => void = () => {}): Ops<Tensor> {
  const constant: Ops<Tensor>['constant'] = (values, shape, dtype) => graph.constant(values, shape, dtype);
  return new Proxy({ ...engine, constant } as unknown as Ops<Tensor>, {
    get(target, name: string) {
      onCall(name);
      return target[name as keyof Ops<Tensor>];
    },
  });
}
