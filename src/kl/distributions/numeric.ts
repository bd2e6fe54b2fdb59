/**
 * e^x - 1 - x without cancellation: it is x²/2 near 0, where the plain expression has lost all its digits (and may be
 * negative). Relative error below 1e-14 everywhere.
 */
export function expm1MinusX(x: number): number {
  if (Math.abs(x) < 1 / 32) {
    // Taylor; the next term is below 2e-16 of the sum.
    return (
      x *
      x *
      (1 / 2 + x * (1 / 6 + x * (1 / 24 + x * (1 / 120 + x * (1 / 720 + x * (1 / 5040 + x / 40320))))))
    );
  }
  return Math.expm1(x) - x;
}

/**
 * One term of KL(p ‖ q) in its Bregman form, q - p + p log(p/q), with d = log q - log p given separately. Summed over
 * outcomes, q - p adds 0 and makes every term non-negative: no cancellation between terms, so a tiny KL keeps its digits.
 */
export function bregmanTerm(p: number, q: number, d: number): number {
  if (Math.abs(d) < 1) return p * expm1MinusX(d); // q = p e^d
  const term = q - p - p * d;
  // At least p/3 in exact arithmetic; only subnormal p and q can round to less than 0. NaN passes.
  return Math.max(term, 0);
}

/** log(1 + e^x) for any x. */
export function softplus(x: number): number {
  return Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)));
}

/** 1 / (1 + e^-x) with full relative precision on both sides. */
export function sigmoid(x: number): number {
  const e = Math.exp(-Math.abs(x));
  return (x < 0 ? e : 1) / (1 + e);
}
