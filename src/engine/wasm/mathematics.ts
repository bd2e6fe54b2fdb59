/**
 * exp, log, tanh, erf and what is made of them, four values at a time, to about the precision of float32.
 *
 * Every lane is computed by itself with the same instructions, so that a value's result never depends on its neighbours.
 * What is not a number stays so; infinities give their limits.
 */
import { type Code, f32x4, i32x4, type Local, multiplyAdd, type ValueType, v128 } from './module.ts';

/** Makes a local variable of the function that is being written. */
export type Variable = (type: ValueType) => Local;

/** Statements that are to come first, and the value. */
export interface Computed {
  readonly before: Code;
  readonly value: Code;
}

const { add, div, greaterOr, lesserOr, mul, sub } = f32x4;
const number = v128.floats;

/** A polynomial by Horner's rule, the highest power first. */
function polynomial(x: Code, coefficients: readonly number[]): Code {
  return coefficients.slice(1).reduce((sum, c) => multiplyAdd(sum, x, number(c)), number(coefficients[0]));
}

/** Holds values within bounds; NaN stays. */
const within = (x: Code, least: number, most: number): Code =>
  lesserOr(greaterOr(x, number(least)), number(most));

/**
 * e^x as 2^n e^r with |r| ≤ ln 2 / 2 (Moshier's Cephes, expf). 2^n is multiplied with in two halves, so that numbers near
 * both ends of float32's range come out right.
 */
export function exp(x: Code, variable: Variable): Computed {
  const [r, n, k] = [variable('v128'), variable('v128'), variable('v128')];
  const power = (of: Code): Code => i32x4.shiftLeft(i32x4.add(of, v128.ints(127)), 23);
  const half = i32x4.shiftRight(k.get, 1);
  const tail = polynomial(
    r.get,
    [1.98756915e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1],
  );
  return {
    before: [
      ...r.set(within(x, -104, 89)),
      ...n.set(f32x4.nearest(mul(r.get, number(Math.LOG2E)))),
      ...r.set(multiplyAdd(n.get, number(-0.693359375), r.get)),
      ...r.set(multiplyAdd(n.get, number(2.1219444e-4), r.get)),
      ...k.set(i32x4.fromFloats(n.get)),
      ...n.set(add(multiplyAdd(tail, mul(r.get, r.get), r.get), number(1))),
      ...n.set(mul(n.get, power(half))),
    ],
    value: mul(n.get, power(i32x4.sub(k.get, half))),
  };
}

/** The natural logarithm (Cephes, logf). */
export function log(x: Code, variable: Variable): Computed {
  const [given, m, e, f, y] = Array.from({ length: 5 }, () => variable('v128'));
  const tiny = f32x4.lessThan(given.get, number(2 ** -126));
  const large = f32x4.greater(m.get, number(Math.SQRT2));
  const p = polynomial(
    f.get,
    [
      7.0376836292e-2, -1.151461031e-1, 1.167699874e-1, -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1,
      2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
    ],
  );
  return {
    before: [
      ...given.set(x),
      // Below the normal numbers, a number is first made larger.
      ...m.set(v128.choose(tiny, mul(given.get, number(2 ** 24)), given.get)),
      ...e.set(i32x4.sub(i32x4.shiftRight(m.get, 23), v128.ints(127))),
      ...e.set(sub(f32x4.fromInts(e.get), v128.and(tiny, number(24)))),
      ...m.set(v128.or(v128.and(m.get, v128.ints(0x7fffff)), number(1))),
      ...e.set(add(e.get, v128.and(large, number(1)))),
      ...f.set(sub(v128.choose(large, mul(m.get, number(0.5)), m.get), number(1))),
      ...y.set(mul(mul(p, mul(f.get, f.get)), f.get)),
      ...y.set(multiplyAdd(e.get, number(-2.1219444e-4), y.get)),
      ...y.set(add(f.get, multiplyAdd(mul(f.get, f.get), number(-0.5), y.get))),
      ...y.set(multiplyAdd(e.get, number(0.693359375), y.get)),
      ...y.set(v128.choose(f32x4.equal(given.get, number(0)), number(-Infinity), y.get)),
      // NaN for what is negative or NaN itself; infinity stays.
      ...y.set(v128.choose(f32x4.greaterEqual(given.get, number(0)), y.get, number(Number.NaN))),
    ],
    value: v128.choose(f32x4.equal(given.get, number(Infinity)), given.get, y.get),
  };
}

/** The hyperbolic tangent as an odd polynomial over an even one (the fit that Eigen and XLA use), within some units of the last place. */
export function tanh(x: Code, variable: Variable): Computed {
  const [v, s] = [variable('v128'), variable('v128')];
  const odd = polynomial(
    s.get,
    [
      -2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-8,
      1.48572235717979e-5, 6.37261928875436e-4, 4.89352455891786e-3,
    ],
  );
  const even = polynomial(
    s.get,
    [1.19825839466702e-6, 1.18534705686654e-4, 2.268434632439e-3, 4.89352518554385e-3],
  );
  return {
    before: [...v.set(within(x, -7.905311107635498, 7.905311107635498)), ...s.set(mul(v.get, v.get))],
    value: div(mul(v.get, odd), even),
  };
}

/** 1 / (1 + e^-x). */
export function sigmoid(x: Code, variable: Variable): Computed {
  const { before, value } = exp(f32x4.neg(x), variable);
  return { before, value: div(number(1), add(value, number(1))) };
}

/** The error function: an odd polynomial up to 1 (Cephes, erff), and beyond 1 - erfc (Abramowitz & Stegun 7.1.26). */
export function erf(x: Code, variable: Variable): Computed {
  const [v, size, near, t] = Array.from({ length: 4 }, () => variable('v128'));
  const square = mul(v.get, v.get);
  const small = polynomial(
    square,
    [
      7.853861353153693e-5, -8.010193625184903e-4, 5.188327685732524e-3, -2.685381193529856e-2,
      1.128358514861418e-1, -3.7612625824233e-1, 1.12837916572671,
    ],
  );
  const decay = exp(f32x4.neg(mul(size.get, size.get)), variable);
  const complement = mul(
    t.get,
    polynomial(t.get, [1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592]),
  );
  const sign = v128.and(v.get, v128.floats(-0));
  return {
    before: [
      ...v.set(x),
      ...size.set(f32x4.abs(v.get)),
      ...near.set(mul(v.get, small)),
      ...decay.before,
      ...t.set(div(number(1), multiplyAdd(size.get, number(0.3275911), number(1)))),
      ...t.set(sub(number(1), mul(complement, decay.value))),
    ],
    value: v128.choose(
      f32x4.lessThan(size.get, number(1)),
      near.get,
      // NaN is not less than 1 and comes out of the far branch as NaN; its sign does not matter.
      v128.or(t.get, sign),
    ),
  };
}
