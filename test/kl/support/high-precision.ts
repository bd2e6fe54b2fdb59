/**
 * exp and log with about 90 decimal digits, in fixed point on BigInt: an independent truth for tiny KLs, which float64
 * formulas can only reach by the very tricks that are under test.
 */
export type Big = bigint;

const BITS = 320n;
const ONE: Big = 1n << BITS;

/** A float64 exactly. */
function big(x: number): Big {
  if (x === 0) return 0n;
  const exponent = Math.max(Math.floor(Math.log2(Math.abs(x))) - 54, -1074);
  const mantissa = BigInt(x / 2 ** exponent); // an integer: throws otherwise
  const shift = BITS + BigInt(exponent);
  return shift >= 0n ? mantissa << shift : mantissa >> -shift;
}

function toNumber(x: Big): number {
  return Number(x) / 2 ** Number(BITS);
}

function times(a: Big, b: Big): Big {
  return (a * b) >> BITS;
}

function over(a: Big, b: Big): Big {
  return (a << BITS) / b;
}

function expBig(x: Big): Big {
  // e^x = (e^(x / 2^k))^(2^k), with a Taylor series for the small power.
  const halvings = 16n;
  const small = x >> halvings;
  let term = ONE;
  let sum = ONE;
  for (let i = 1n; term !== 0n && term !== -1n; i++) {
    term = times(term, small) / i;
    sum += term;
  }
  for (let i = 0n; i < halvings; i++) sum = times(sum, sum);
  return sum;
}

function logBig(x: Big): Big {
  let y = big(Math.log(toNumber(x)));
  // Newton on e^y = x doubles the digits each time.
  for (let i = 0; i < 4; i++) y += times(x, expBig(-y)) - ONE;
  return y;
}

export function klOfLogits(p: readonly number[], q: readonly number[]): number {
  const [logP, logQ] = [p, q].map(logits => {
    const values = logits.map(big);
    const logSum = logBig(values.map(expBig).reduce((a, b) => a + b));
    return values.map(v => v - logSum);
  }) as [Big[], Big[]];
  return toNumber(logP.reduce((sum, lp, i) => sum + times(expBig(lp), lp - logQ[i]), 0n));
}

export function klOfNormals(meanP: number, logStdP: number, meanQ: number, logStdQ: number): number {
  const [ls, lt] = [big(logStdP), big(logStdQ)];
  const distance = big(meanP) - big(meanQ);
  const twiceVariance = 2n * expBig(2n * lt);
  return toNumber(lt - ls + over(expBig(2n * ls) + times(distance, distance), twiceVariance) - ONE / 2n);
}
