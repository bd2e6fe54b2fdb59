/** Operators that work value by value, as instructions on vectors. Many of them in a row become one loop. */
import type { DType } from '../dtype.ts';
import { type ConstantAttrs, constantOp, type Node, type Operator, type Tensor } from '../graph.ts';
import * as ops from '../ops/elementwise.ts';
import { geluTanh } from '../ops/elementwise.ts';
import { type Shape, sizeOf } from '../shape.ts';
import type { Computed, Variable } from './mathematics.ts';
import * as mathematics from './mathematics.ts';
import { type Code, f32, f32x4, i32, i32x4, i64, type Local, select, v128 } from './module.ts';
import { type Lanes, type Place, type View, walk } from './views.ts';

/** What an operator makes of its operands' values: vectors, masks for bool, an i64 for int64 (one value at a time). */
type Write = (operands: readonly Code[], node: Node, variable: Variable) => Computed | Code;

const table = new Map<Operator, Write>();
const define = (op: unknown, write: Write): void => {
  table.set(op as Operator, write);
};

/** Whether an operator goes value by value and can be written here. */
export const isElementwise = (node: Node): boolean => table.has(node.op);

const isWhole = (dtype: DType): boolean => dtype === 'int64' || dtype === 'int32';

/** A mask from an i32 that is 0 or 1. */
const maskOf = (truth: Code): Code => i32x4.splat(i32.sub(i32.constant(0), truth));

define(ops.expandOp, ([x]) => x);
define(ops.stopGradientOp, ([x]) => x);
define(ops.negOp, ([x]) => f32x4.neg(x));
define(ops.sqrtOp, ([x]) => f32x4.sqrt(x));
define(ops.reluOp, ([x]) => f32x4.greaterOr(x, v128.floats(0)));
define(ops.expOp, ([x], _, variable) => mathematics.exp(x, variable));
define(ops.logOp, ([x], _, variable) => mathematics.log(x, variable));
define(ops.tanhOp, ([x], _, variable) => mathematics.tanh(x, variable));
define(ops.sigmoidOp, ([x], _, variable) => mathematics.sigmoid(x, variable));
define(ops.erfOp, ([x], _, variable) => mathematics.erf(x, variable));
define(ops.geluTanhOp, ([x], _, variable) => {
  const slope = f32x4.add(
    f32x4.mul(f32x4.mul(x, x), v128.floats(geluTanh.cubic)),
    v128.floats(geluTanh.scale),
  );
  const { before, value } = mathematics.sigmoid(f32x4.mul(x, slope), variable);
  return { before, value: f32x4.mul(x, value) };
});
define(ops.clipOp, ([x, least, most]) => f32x4.lesserOr(f32x4.greaterOr(x, least), most));

type Pair = (a: Code, b: Code) => Code;
/** By the operands' dtype. */
function pairs(op: unknown, float: Pair, int32: Pair, int64: Pair): void {
  define(op, ([a, b], { inputs: [{ dtype }] }) => {
    if (dtype === 'float32') return float(a, b);
    return dtype === 'int64' ? int64(a, b) : int32(a, b);
  });
}
pairs(ops.addOp, f32x4.add, i32x4.add, i64.add);
pairs(ops.subOp, f32x4.sub, i32x4.sub, i64.sub);
pairs(ops.mulOp, f32x4.mul, i32x4.mul, i64.mul);
pairs(ops.divOp, f32x4.div, (a, b) => i32x4.splat(i32.divide(i32x4.first(a), i32x4.first(b))), i64.divide);
pairs(ops.minOp, f32x4.min, i32x4.min, (a, b) => select(i64.less(a, b), a, b));
pairs(ops.maxOp, f32x4.max, i32x4.max, (a, b) => select(i64.greater(a, b), a, b));

function comparison(op: unknown, float: Pair, int32: Pair, int64: Pair): void {
  pairs(op, float, int32, (a, b) => maskOf(int64(a, b)));
}
comparison(ops.equalOp, f32x4.equal, i32x4.equal, i64.equal);
comparison(ops.lessOp, f32x4.lessThan, i32x4.less, i64.less);
comparison(ops.lessEqualOp, f32x4.lessEqual, i32x4.lessEqual, i64.lessEqual);
comparison(ops.greaterOp, f32x4.greater, i32x4.greater, i64.greater);
comparison(ops.greaterEqualOp, f32x4.greaterEqual, i32x4.greaterEqual, i64.greaterEqual);

define(ops.andOp, ([a, b]) => v128.and(a, b));
define(ops.orOp, ([a, b]) => v128.or(a, b));
define(ops.notOp, ([a]) => v128.not(a));
define(ops.whereOp, ([condition, a, b], { outputs: [out] }) =>
  out.dtype === 'int64' ? select(i32x4.first(condition), a, b) : v128.choose(condition, a, b),
);

define(ops.castOp, ([x], { inputs: [{ dtype: from }], outputs: [{ dtype: to }] }) => {
  switch (to) {
    case 'float32':
      if (from === 'bool') return v128.and(x, v128.floats(1));
      return from === 'int32' ? f32x4.fromInts(x) : f32x4.splat(f32.fromI64(x));
    case 'int32':
      if (from === 'bool') return v128.and(x, v128.ints(1));
      return from === 'float32' ? i32x4.fromFloats(x) : i32x4.splat(i32.fromI64(x));
    case 'int64':
      if (from === 'float32') return i64.fromF32(f32x4.first(x));
      return i64.fromI32(from === 'bool' ? i32.and(i32x4.first(x), i32.constant(1)) : i32x4.first(x));
    case 'bool':
      if (from === 'int64') return i32x4.splat(i32.sub(i64.isZero(x), i32.constant(1)));
      return v128.not(from === 'float32' ? f32x4.equal(x, v128.floats(0)) : i32x4.equal(x, v128.ints(0)));
    default:
      return to satisfies never;
  }
});

/** A number in every lane, in the way of its dtype. */
function constantCode(value: number, dtype: DType): Code {
  switch (dtype) {
    case 'float32':
      return v128.floats(value);
    case 'int32':
      return v128.ints(value);
    case 'bool':
      return v128.ints(value === 0 ? 0 : -1);
    case 'int64':
      return i64.constant(value);
    default:
      return dtype satisfies never;
  }
}

/** The value of a constant of one number. */
export function onlyValue({ node, shape }: Tensor): number | undefined {
  if (node.op !== (constantOp as Operator) || sizeOf(shape) !== 1) return undefined;
  return (node.attrs as ConstantAttrs).values[0];
}

/** One loop that computes nodes of one shape, operands first. */
export interface Fused {
  readonly shape: Shape;
  readonly nodes: readonly Node[];
  /** The tensors of these nodes that others read. */
  readonly kept: readonly Tensor[];
  /** The node of this loop that a tensor comes from, if it does. */
  source(tensor: Tensor): Tensor | undefined;
  /** Where tensors are; the strides are those over `shape`. */
  view(tensor: Tensor, consumer: Node | undefined): View;
}

/** Writes the loop. */
export function writeFused({ shape, nodes, kept, source, view }: Fused, variable: Variable): Code[] {
  const views: View[] = [];
  const keys = new Map<string, number>();
  const viewFor = (tensor: Tensor, consumer: Node | undefined): number => {
    const found = view(tensor, consumer);
    const key = `${found.address} ${found.strides.join()}`;
    const known = keys.get(key);
    if (known !== undefined) return known;
    keys.set(key, views.push(found) - 1);
    return views.length - 1;
  };
  const holder = (dtype: DType): Local => variable(dtype === 'int64' ? 'i64' : 'v128');
  const results = new Map(nodes.map(node => [node.outputs[0], holder(node.outputs[0].dtype)]));
  const loaded = new Map<number, Local>();
  const before: Code[] = [];
  // All views are made before anything is written: where they lie decides how many values a step takes.
  const operands = nodes.map(node =>
    node.inputs.map(tensor => {
      const value = onlyValue(tensor);
      if (value !== undefined) return { code: constantCode(value, tensor.dtype) };
      const inside = source(tensor);
      if (inside) return { code: results.get(inside)!.get };
      const k = viewFor(tensor, node);
      if (!loaded.has(k)) {
        loaded.set(k, holder(tensor.dtype));
        if (views[k].strides.every(stride => stride === 0)) {
          const { address, dtype } = views[k];
          const zero = i32.constant(0);
          before.push(
            loaded.get(k)!.set(dtype === 'int64' ? i64.load(zero, address) : v128.loadSplat(zero, address)),
          );
        }
      }
      return { k };
    }),
  );
  const stores = kept.map(tensor => viewFor(tensor, undefined));
  const dtypes = [...nodes.flatMap(node => [...node.inputs, ...node.outputs]), ...kept].map(t => t.dtype);
  const divides = nodes.some(node => node.op === (ops.divOp as Operator) && isWhole(node.inputs[0].dtype));
  const lanes: Lanes = dtypes.includes('int64') || divides ? 1 : 4;
  const loop = walk(shape, views, { lanes, variable }, (_, place: Place) => {
    const statements: Code[] = [];
    const fresh = new Set<number>();
    nodes.forEach((node, i) => {
      const codes = operands[i].map(operand => {
        if (operand.k === undefined) return operand.code;
        const { k } = operand;
        const held = loaded.get(k)!;
        if (!fresh.has(k) && !views[k].strides.every(stride => stride === 0)) {
          fresh.add(k);
          statements.push(held.set(place.load(k)));
        }
        return held.get;
      });
      const written = table.get(node.op)!(codes, node, variable);
      const { before: first, value } = 'value' in written ? written : { before: [], value: written };
      statements.push(first, results.get(node.outputs[0])!.set(value));
    });
    kept.forEach((tensor, i) => {
      statements.push(place.store(stores[i], results.get(tensor)!.get));
    });
    return statements;
  });
  return [...before, loop];
}
