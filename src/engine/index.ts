/** Differentiable graphs that compile to ONNX Runtime. Start with {@link Graph}, then `grad` and `compile`. */
export type { DType, TypedArray } from './dtype.ts';
export { EngineError } from './errors.ts';
export { evaluate, type Feeds } from './evaluate.ts';
export { grad } from './grad.ts';
export { type Dense, Graph, type Operand, type Tensor, type TensorType } from './graph.ts';
export type { RowsGraph } from './onnx/any-rows.ts';
export { type OnnxModel, toOnnx } from './onnx/serialise.ts';
export {
  add,
  and,
  cast,
  clip,
  div,
  equal,
  erf,
  exp,
  expand,
  gelu,
  greater,
  greaterEqual,
  less,
  lessEqual,
  log,
  max,
  min,
  mul,
  neg,
  not,
  or,
  pow,
  relu,
  sigmoid,
  sqrt,
  stopGradient,
  sub,
  tanh,
  where,
} from './ops/elementwise.ts';
export { gather, scatterAlong, scatterRows, takeAlong } from './ops/gather.ts';
export { type LoopOptions, type LoopResult, loop } from './ops/loop.ts';
export { linear, matmul } from './ops/matmul.ts';
export { argMax, l2Norm, type ReduceOptions, reduceMax, reduceMean, reduceSum } from './ops/reduce.ts';
export { concat, pad, reshape, slice, split, transpose } from './ops/shape.ts';
export { layerNorm, logSoftmax, maskedSoftmax, softmax } from './ops/softmax.ts';
export { type CompileOptions, compile, type Device, devices, type Port, type Program } from './program.ts';
export { saveOnnx } from './save.ts';
export { checkShape, type Shape, showShape, sizeOf } from './shape.ts';
