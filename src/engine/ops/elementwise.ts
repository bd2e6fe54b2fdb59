/**
 * Operators that work value by value, with NumPy's broadcasting, and `expand`, which is broadcasting by itself.
 *
 * Each function simplifies as it adds: neutral operands vanish, constant factors merge, and an `expand` is carried
 * outwards or dropped where the next operator broadcasts anyway. Derivatives rely on it: they are written plainly and
 * come out as few nodes.
 */
import { checkDType, type DType } from '../dtype.ts';
import { fail } from '../errors.ts';
import {
  apply1,
  constantScalar,
  type Dense,
  type Operand,
  type Operator,
  requireTensor,
  sameType,
  type Tensor,
  toTensors,
} from '../graph.ts';
import {
  broadcastShapes,
  checkShape,
  type Shape,
  sameShape,
  showShape,
  sizeOf,
  stridesOf,
  tryBroadcast,
} from '../shape.ts';

// ---- expand --------------------------------------------------------------------------------------------------------

export interface ExpandAttrs {
  readonly shape: Shape;
}

export const expandOp: Operator<ExpandAttrs> = {
  name: 'expand',
  folds: false,
  infer([x], { shape }) {
    checkShape('expand', shape);
    const joint = broadcastShapes('expand', x.shape, shape);
    if (!sameShape(joint, shape)) {
      fail(`expand: shape ${showShape(x.shape)} does not stretch to ${showShape(shape)}: only sizes of 1 do`);
    }
    return [{ shape, dtype: x.dtype }];
  },
  evaluate: ([x], _, [out]) => [mapBroadcast(out.shape, [x], a => a)],
  onnx: (b, [x], [y], { attrs }) => b.node('Expand', [x, b.ints(attrs.shape)], [y]),
};

/** Repeats along axes of size 1 (and new outer axes) until the tensor has `shape`. */
export function expand(x: Tensor, shape: Shape): Tensor {
  if (sameShape(x.shape, shape)) return x;
  const source = isExpand(x) ? x.node.inputs[0] : x;
  return apply1(expandOp, [source], { shape: [...shape] });
}

function isExpand(x: Tensor): boolean {
  return x.node.op === (expandOp as Operator);
}

/** What an expand repeats, or the tensor itself. */
export function unexpanded(x: Tensor): Tensor {
  return isExpand(x) ? x.node.inputs[0] : x;
}

/** Operands without the expands that broadcasting makes needless. */
function dropExpands(what: string, operands: readonly Tensor[]): readonly Tensor[] {
  const shape = jointShape(what, operands);
  const out = [...operands];
  for (let i = 0; i < out.length; i++) {
    const slim = out.with(i, unexpanded(out[i]));
    if (sameShape(jointShape(what, slim), shape)) out[i] = slim[i];
  }
  return out;
}

function jointShape(what: string, operands: readonly Tensor[]): Shape {
  return operands.reduce<Shape>((shape, t) => broadcastShapes(what, shape, t.shape), []);
}

// ---- unary ---------------------------------------------------------------------------------------------------------

type NoAttrs = Record<string, never>;
const none: NoAttrs = {};

function unaryOp(name: string, onnx: string, f: (a: number) => number): Operator<NoAttrs> {
  return {
    name,
    infer([x]) {
      requireFloat(name, x);
      return [{ shape: x.shape, dtype: x.dtype }];
    },
    evaluate: ([x]) => [x.data.map(f)],
    onnx: (b, inputs, outputs) => b.node(onnx, inputs, outputs),
  };
}

export const negOp = unaryOp('neg', 'Neg', a => -a);
export const expOp = unaryOp('exp', 'Exp', Math.exp);
export const logOp = unaryOp('log', 'Log', Math.log);
export const sqrtOp = unaryOp('sqrt', 'Sqrt', Math.sqrt);
export const tanhOp = unaryOp('tanh', 'Tanh', Math.tanh);
export const sigmoidOp = unaryOp('sigmoid', 'Sigmoid', a =>
  a >= 0 ? 1 / (1 + Math.exp(-a)) : Math.exp(a) / (1 + Math.exp(a)),
);
export const reluOp = unaryOp('relu', 'Relu', a => Math.max(a, 0));
export const erfOp = unaryOp('erf', 'Erf', erfFloat64);

/** gelu's approximation is x·sigmoid(z) with z = scale·x + cubic·x³. */
export const geluTanh = {
  scale: 2 * Math.sqrt(2 / Math.PI),
  cubic: 2 * Math.sqrt(2 / Math.PI) * 0.044715,
} as const;
export const geluTanhOp: Operator<NoAttrs> = {
  ...unaryOp('geluTanh', 'Gelu', a => a / (1 + Math.exp(-a * (geluTanh.scale + geluTanh.cubic * a * a)))),
  onnx: (b, inputs, outputs) => b.node('Gelu', inputs, outputs, { approximate: 'tanh' }),
};
/** The identity forwards, nothing backwards. Written as no node at all. */
export const stopGradientOp: Operator<NoAttrs> = {
  name: 'stopGradient',
  infer: ([x]) => [{ shape: x.shape, dtype: x.dtype }],
  evaluate: ([x]) => [x.data.slice()],
  onnx: (b, inputs, outputs) => b.node('Identity', inputs, outputs),
};

function unary(op: Operator<NoAttrs>, x: Tensor): Tensor {
  requireTensor(op.name, x);
  if (isExpand(x)) return expand(unary(op, x.node.inputs[0]), x.shape);
  return apply1(op, [x], none);
}

/** -x. */
export function neg(x: Tensor): Tensor {
  requireTensor('neg', x);
  const scaled = asScaled(x);
  return scaled ? mul(scaled.tensor, -scaled.factor) : unary(negOp, x);
}

/** e to the power of x. */
export const exp = (x: Tensor): Tensor => unary(expOp, x);
/** The natural logarithm. */
export const log = (x: Tensor): Tensor => unary(logOp, x);
/** The square root. */
export const sqrt = (x: Tensor): Tensor => unary(sqrtOp, x);
/** The hyperbolic tangent. */
export const tanh = (x: Tensor): Tensor => unary(tanhOp, x);
/** 1 / (1 + e^-x). */
export const sigmoid = (x: Tensor): Tensor => unary(sigmoidOp, x);
/** max(x, 0). */
export const relu = (x: Tensor): Tensor => unary(reluOp, x);
/** The error function. */
export const erf = (x: Tensor): Tensor => unary(erfOp, x);
/** The same values, through which no derivative flows. */
export const stopGradient = (x: Tensor): Tensor => unary(stopGradientOp, x);

/**
 * x·Φ(x) with the normal distribution's Φ, or, as `tanh`, the approximation that GPT-2 was trained with
 * (Hendrycks & Gimpel 2016, arXiv 1606.08415), here in its equal form x·sigmoid(2√(2/π)(x + .044715x³)).
 */
export function gelu(x: Tensor, options: { approximate?: 'none' | 'tanh' } = {}): Tensor {
  if (options.approximate === 'tanh') return unary(geluTanhOp, x);
  return mul(x, add(mul(erf(mul(x, Math.SQRT1_2)), 0.5), 0.5));
}

// ---- binary --------------------------------------------------------------------------------------------------------

/** Checks that two operands have one dtype, and gives the type they broadcast to. */
function inferBroadcast(
  name: string,
  operands: readonly Tensor[],
  dtype?: DType,
): [{ shape: Shape; dtype: DType }] {
  const [a, b] = operands;
  if (a.dtype !== b.dtype) fail(`${name}: operands are ${a.dtype} and ${b.dtype}: cast one of them`);
  return [{ shape: broadcastShapes(name, a.shape, b.shape), dtype: dtype ?? a.dtype }];
}

function binaryOp(name: string, onnx: string, f: (a: number, b: number) => number): Operator<NoAttrs> {
  return {
    name,
    infer(operands) {
      requireNumber(name, operands[0]);
      return inferBroadcast(name, operands);
    },
    evaluate: (operands, _, [out]) => [
      mapBroadcast(out.shape, operands, out.dtype === 'float32' ? f : (a, b) => Math.trunc(f(a, b))),
    ],
    onnx: (b, inputs, outputs) => b.node(onnx, inputs, outputs),
  };
}

export const addOp = binaryOp('add', 'Add', (a, b) => a + b);
export const subOp = binaryOp('sub', 'Sub', (a, b) => a - b);
export const mulOp = binaryOp('mul', 'Mul', (a, b) => a * b);
export const divOp = binaryOp('div', 'Div', (a, b) => a / b);
export const powOp = binaryOp('pow', 'Pow', (a, b) => a ** b);
export const minOp = binaryOp('min', 'Min', (a, b) => Math.min(a, b));
export const maxOp = binaryOp('max', 'Max', (a, b) => Math.max(a, b));

function binary(op: Operator<NoAttrs>, a: Tensor, b: Tensor): Tensor {
  return expandedBinary(op, [a, b]);
}

/** Applies an operator to operands without their expands; where all were expanded alike, expands the result. */
function expandedBinary(op: Operator<NoAttrs>, operands: readonly Tensor[]): Tensor {
  if (operands.every(t => isExpand(t) || sizeOf(t.shape) === 1) && operands.some(isExpand)) {
    const shape = jointShape(op.name, operands);
    return expand(apply1(op, operands.map(unexpanded), none), shape);
  }
  return apply1(op, dropExpands(op.name, operands), none);
}

/** The number that a tensor holds in every place, where that is known, also if an expand repeats it. */
function scalarOf(x: Tensor): number | undefined {
  return constantScalar(unexpanded(x));
}

/** Whether broadcasting against `other` leaves the shape of x as it is. */
function keepsShape(x: Tensor, other: Tensor): boolean {
  const joint = tryBroadcast(x.shape, other.shape);
  return joint !== undefined && sameShape(joint, x.shape);
}

/** x, if `other` would change neither its values (being `neutral`) nor its shape. */
function unchanged(x: Tensor, other: Tensor, neutral: number): boolean {
  return scalarOf(other) === neutral && x.dtype === other.dtype && keepsShape(x, other);
}

/** A float tensor that is another times a constant scalar, taken apart; also if an expand repeats it. */
export function asScaled(x: Tensor): { tensor: Tensor; factor: number } | undefined {
  if (x.dtype !== 'float32') return undefined;
  if (isExpand(x)) {
    const inner = asScaled(unexpanded(x));
    return inner && { tensor: expand(inner.tensor, x.shape), factor: inner.factor };
  }
  if (x.node.op === (negOp as Operator)) return { tensor: x.node.inputs[0], factor: -1 };
  if (x.node.op !== (mulOp as Operator)) return undefined;
  const [a, b] = x.node.inputs;
  const factor = scalarOf(b);
  return factor !== undefined && sameType(a, x) ? { tensor: a, factor } : undefined;
}

/** -x, if x is the negative of something. */
function negated(x: Tensor): Tensor | undefined {
  const scaled = asScaled(x);
  return scaled?.factor === -1 ? scaled.tensor : undefined;
}

/** a + b, broadcast. */
export function add(a: Operand, b: Operand): Tensor {
  const [x, y] = toTensors('add', a, b);
  requireNumber('add', x);
  inferBroadcast('add', [x, y]);
  if (unchanged(x, y, 0)) return x;
  if (unchanged(y, x, 0)) return y;
  const minusY = negated(y);
  if (minusY) return sub(x, minusY);
  const minusX = negated(x);
  if (minusX) return sub(y, minusX);
  return binary(addOp, x, y);
}

/** a - b, broadcast. */
export function sub(a: Operand, b: Operand): Tensor {
  const [x, y] = toTensors('sub', a, b);
  requireNumber('sub', x);
  inferBroadcast('sub', [x, y]);
  if (unchanged(x, y, 0)) return x;
  if (unchanged(y, x, 0) && y.dtype === 'float32') return neg(y);
  const minusY = negated(y);
  if (minusY) return add(x, minusY);
  return binary(subOp, x, y);
}

/** Whether float32 holds a number with all its digits: neither 0 nor infinite, nor below its smallest normal number. */
function isNormal(value: number): boolean {
  const size = Math.abs(value);
  return size >= 1.1754943508222875e-38 && size <= 3.4028234663852886e38;
}

/** Whether a factor can wait until after a product without changing where that overflows or vanishes. */
function isModerate(factor: number): boolean {
  return Math.abs(factor) > 1e-3 && Math.abs(factor) < 1e3;
}

/** Whether two factors may become one: where their product overflows or vanishes, one after the other may not. */
function merge(a: number, b: number): boolean {
  return isNormal(a) && isNormal(b) && isNormal(a * b);
}

/** a · b, broadcast. */
export function mul(a: Operand, b: Operand): Tensor {
  let [x, y] = toTensors('mul', a, b);
  requireNumber('mul', x);
  inferBroadcast('mul', [x, y]);
  // The constant stands second, so that factors meet.
  if (scalarOf(x) !== undefined && scalarOf(y) === undefined) [x, y] = [y, x];
  if (unchanged(x, y, 1)) return x;
  if (x.dtype === 'float32' && y.dtype === 'float32') {
    const factor = scalarOf(y);
    const scaledX = asScaled(x);
    if (factor !== undefined && keepsShape(x, y)) {
      if (factor === -1) return neg(x);
      if (scaledX && merge(scaledX.factor, factor)) return mul(scaledX.tensor, scaledX.factor * factor);
      if (isExpand(x)) return expand(mul(x.node.inputs[0], factor), x.shape);
    } else if (factor === undefined) {
      // Two factors become one, and a sign travels on to where it may meet another.
      const scaledY = asScaled(y);
      if (scaledX && scaledY && isModerate(scaledX.factor) && isModerate(scaledY.factor))
        return mul(mul(scaledX.tensor, scaledY.tensor), scaledX.factor * scaledY.factor);
      if (scaledX?.factor === -1) return neg(mul(scaledX.tensor, y));
      if (scaledY?.factor === -1) return neg(mul(x, scaledY.tensor));
    }
  }
  return binary(mulOp, x, y);
}

/** a / b, broadcast; towards zero for integers. */
export function div(a: Operand, b: Operand): Tensor {
  const [x, y] = toTensors('div', a, b);
  inferBroadcast('div', [x, y]);
  if (x.dtype === 'float32' && y.dtype === 'float32') {
    const divisor = scalarOf(y);
    if (divisor !== undefined && isNormal(divisor) && isNormal(1 / divisor) && keepsShape(x, y))
      return mul(x, 1 / divisor);
    const minusX = negated(x);
    if (minusX) return neg(div(minusX, y));
  }
  return binary(divOp, x, y);
}

/** a to the power of b, broadcast. */
export function pow(a: Operand, b: Operand): Tensor {
  const [x, y] = toTensors('pow', a, b);
  requireFloat('pow', x);
  const exponent = y.shape.length === 0 ? constantScalar(y) : undefined;
  if (exponent === 0) return expand(x.node.graph.constant(1), x.shape);
  if (exponent === 1) return x;
  if (exponent === 2) return mul(x, x);
  if (exponent === 0.5) return sqrt(x);
  return binary(powOp, x, y);
}

/** The smaller of two, value by value. At a tie the derivative goes to the first. */
export function min(a: Operand, b: Operand): Tensor {
  const [x, y] = toTensors('min', a, b);
  return binary(minOp, x, y);
}

/** The larger of two, value by value. At a tie the derivative goes to the first. */
export function max(a: Operand, b: Operand): Tensor {
  const [x, y] = toTensors('max', a, b);
  return binary(maxOp, x, y);
}

// ---- clip, comparisons, logic, where -------------------------------------------------------------------------------

export const clipOp: Operator<NoAttrs> = {
  name: 'clip',
  infer([x, lo, hi]) {
    requireFloat('clip', x);
    for (const bound of [lo, hi]) {
      if (bound.shape.length !== 0 || bound.dtype !== x.dtype) {
        fail(
          `clip: a bound is ${bound.dtype} ${showShape(bound.shape)}: bounds are ${x.dtype} scalars; use min and max`,
        );
      }
    }
    return [{ shape: x.shape, dtype: x.dtype }];
  },
  evaluate: ([x, lo, hi]) => [x.data.map(v => Math.min(hi.data[0], Math.max(lo.data[0], v)))],
  onnx: (b, inputs, outputs) => b.node('Clip', inputs, outputs),
};

/** Holds values between two bounds (numbers or scalar tensors); the derivative is 0 outside and 1 at the bounds. */
export function clip(x: Tensor, lo: Operand, hi: Operand): Tensor {
  const [, low, high] = toTensors('clip', x, lo, hi);
  const [least, most] = [constantScalar(low), constantScalar(high)];
  if (least !== undefined && most !== undefined && least > most) {
    fail(`clip: the lower bound ${least} is above the upper bound ${most}: swap them`);
  }
  if (isExpand(x)) return expand(clip(x.node.inputs[0], low, high), x.shape);
  return apply1(clipOp, [x, low, high], none);
}

function compareOp(name: string, onnx: string, f: (a: number, b: number) => boolean): Operator<NoAttrs> {
  return {
    name,
    infer(operands) {
      if (name !== 'equal') requireNumber(name, operands[0]);
      return inferBroadcast(name, operands, 'bool');
    },
    evaluate: (operands, _, [out]) => [mapBroadcast(out.shape, operands, (a, b) => (f(a, b) ? 1 : 0))],
    onnx: (b, inputs, outputs) => b.node(onnx, inputs, outputs),
  };
}

export const equalOp = compareOp('equal', 'Equal', (a, b) => a === b);
export const lessOp = compareOp('less', 'Less', (a, b) => a < b);
export const lessEqualOp = compareOp('lessEqual', 'LessOrEqual', (a, b) => a <= b);
export const greaterOp = compareOp('greater', 'Greater', (a, b) => a > b);
export const greaterEqualOp = compareOp('greaterEqual', 'GreaterOrEqual', (a, b) => a >= b);

function comparison(op: Operator<NoAttrs>): (a: Operand, b: Operand) => Tensor {
  return (a, b) => {
    const [x, y] = toTensors(op.name, a, b);
    return binary(op, x, y);
  };
}

/** Where a = b, as bool; broadcast. */
export const equal = comparison(equalOp);
/** Where a < b, as bool; broadcast. */
export const less = comparison(lessOp);
/** Where a ≤ b, as bool; broadcast. */
export const lessEqual = comparison(lessEqualOp);
/** Where a > b, as bool; broadcast. */
export const greater = comparison(greaterOp);
/** Where a ≥ b, as bool; broadcast. */
export const greaterEqual = comparison(greaterEqualOp);

function logicOp(name: string, onnx: string, f: (a: number, b: number) => boolean): Operator<NoAttrs> {
  return {
    name,
    infer(operands) {
      for (const t of operands) requireBool(name, t);
      return operands.length === 1
        ? [{ shape: operands[0].shape, dtype: 'bool' }]
        : inferBroadcast(name, operands, 'bool');
    },
    evaluate: (operands, _, [out]) => [mapBroadcast(out.shape, operands, (a, b) => (f(a, b) ? 1 : 0))],
    onnx: (b, inputs, outputs) => b.node(onnx, inputs, outputs),
  };
}

export const andOp = logicOp('and', 'And', (a, b) => a !== 0 && b !== 0);
export const orOp = logicOp('or', 'Or', (a, b) => a !== 0 || b !== 0);
export const notOp = logicOp('not', 'Not', a => a === 0);

/** Where both are true; broadcast. */
export const and = (a: Tensor, b: Tensor): Tensor => binary(andOp, a, b);
/** Where one or both are true; broadcast. */
export const or = (a: Tensor, b: Tensor): Tensor => binary(orOp, a, b);
/** Where it is false. */
export const not = (a: Tensor): Tensor => unary(notOp, a);

export const whereOp: Operator<NoAttrs> = {
  name: 'where',
  infer([condition, a, b]) {
    requireBool('where', condition);
    if (a.dtype !== b.dtype) fail(`where: the two sides are ${a.dtype} and ${b.dtype}: cast one of them`);
    const sides = broadcastShapes('where', a.shape, b.shape);
    return [{ shape: broadcastShapes('where', condition.shape, sides), dtype: a.dtype }];
  },
  evaluate: (operands, _, [out]) => [mapBroadcast(out.shape, operands, (c, a, b) => (c ? a : b))],
  onnx: (b, inputs, outputs) => b.node('Where', inputs, outputs),
};

/** `a` where the condition holds, `b` elsewhere. Numbers are taken as float32 where both sides are numbers. */
export function where(condition: Tensor, a: Operand, b: Operand): Tensor {
  requireBool('where', condition);
  const [x, y] =
    typeof a === 'number' && typeof b === 'number'
      ? [condition.node.graph.constant(a), condition.node.graph.constant(b)]
      : toTensors('where', a, b);
  const known = constantScalar(condition);
  const chosen = known === undefined ? undefined : known ? x : y;
  if (chosen && x.dtype === y.dtype) return expand(chosen, jointShape('where', [condition, x, y]));
  // ONNX Runtime chooses between numbers only.
  if (x.dtype === 'bool' && y.dtype === 'bool') return or(and(condition, x), and(not(condition), y));
  const yes = scalarOf(x);
  if (yes !== undefined && Number.isFinite(yes) && scalarOf(y) === 0 && x.dtype === 'float32') {
    // A mask: cast is a quarter of where's price, and the factor can meet others.
    return expand(mul(cast(condition, 'float32'), yes), jointShape('where', [condition, x, y]));
  }
  return expandedBinary(whereOp, [condition, x, y]);
}

// ---- cast ----------------------------------------------------------------------------------------------------------

export interface CastAttrs {
  readonly dtype: DType;
}

export const castOp: Operator<CastAttrs> = {
  name: 'cast',
  infer: ([x], { dtype }) => [{ shape: x.shape, dtype }],
  evaluate: ([x], { dtype }) => [
    x.data.map(v => (dtype === 'float32' ? v : dtype === 'bool' ? (v === 0 ? 0 : 1) : Math.trunc(v))),
  ],
  onnx: (b, inputs, outputs, { attrs }) =>
    b.node('Cast', inputs, outputs, { to: { float32: 1, int32: 6, int64: 7, bool: 9 }[attrs.dtype] }),
};

/** The same values in another dtype: floats are truncated to integers, nonzero is true. No derivative flows. */
export function cast(x: Tensor, dtype: DType): Tensor {
  checkDType('cast', dtype);
  return x.dtype === dtype ? x : apply1(castOp, [x], { dtype });
}

// ---- helpers -------------------------------------------------------------------------------------------------------

export function requireFloat(what: string, x: Tensor): void {
  if (x.dtype !== 'float32') fail(`${what}: takes float32, not ${x.dtype}: cast it first`);
}

function requireNumber(what: string, x: Tensor): void {
  if (x.dtype === 'bool') fail(`${what}: takes numbers, not bool: cast it first`);
}

function requireBool(what: string, x: Tensor): void {
  if (x.dtype !== 'bool') fail(`${what}: takes bool, not ${x.dtype}: compare it first`);
}

/** Calls `f` with the operands' values at every place of `shape`. */
export function mapBroadcast(
  shape: Shape,
  operands: readonly Dense[],
  f: (a: number, b: number, c: number) => number,
): Float64Array {
  const out = new Float64Array(sizeOf(shape));
  const rank = shape.length;
  const steps = operands.map(({ shape: own }) => {
    const strides = stridesOf(own);
    return shape.map((_, axis) => {
      const at = axis - (rank - own.length);
      return at < 0 || own[at] === 1 ? 0 : strides[at];
    });
  });
  const index = new Array(rank).fill(0);
  const at = [0, 0, 0];
  for (let i = 0; i < out.length; i++) {
    const [a, b, c] = operands;
    out[i] = f(a.data[at[0]], b ? b.data[at[1]] : 0, c ? c.data[at[2]] : 0);
    for (let axis = rank - 1; axis >= 0; axis--) {
      index[axis]++;
      const wrapped = index[axis] === shape[axis];
      for (let k = 0; k < operands.length; k++) at[k] += steps[k][axis] * (wrapped ? 1 - shape[axis] : 1);
      if (!wrapped) break;
      index[axis] = 0;
    }
  }
  return out;
}

/** erf to float64 precision: its Taylor series near 0, a continued fraction of erfc beyond (Abramowitz & Stegun 7.1). */
function erfFloat64(x: number): number {
  const a = Math.abs(x);
  if (!(a < 6)) return Math.sign(x);
  if (a < 2.5) {
    let term = x;
    let sum = x;
    for (let n = 1; n < 80; n++) {
      term *= (-x * x) / n;
      sum += term / (2 * n + 1);
    }
    return (2 / Math.sqrt(Math.PI)) * sum;
  }
  let fraction = 0;
  for (let k = 60; k >= 1; k--) fraction = k / 2 / (a + fraction);
  return Math.sign(x) * (1 - Math.exp(-a * a) / Math.sqrt(Math.PI) / (a + fraction));
}
