/** When requests arrive. */
import type { Rng } from '../../random/rng.ts';
import { fail } from '../errors.ts';

/** How gaps between arrivals are drawn. */
export type Arrivals =
  /** Independent: exponential gaps. */
  | { readonly kind: 'poisson' }
  /** Gamma gaps of this coefficient of variation: below 1 more regular than Poisson, above it burstier. */
  | { readonly kind: 'gamma'; readonly cv: number }
  /** Bursts and silences of exponential lengths; within a burst, gamma gaps. */
  | { readonly kind: 'bursts'; readonly onS: number; readonly offS: number; readonly cv: number }
  /** All alike. */
  | { readonly kind: 'static' };

export const exponential = (rng: Rng): number => -Math.log(1 - rng.uniform());

/** A gamma variate of mean 1 and this shape (Marsaglia and Tsang 2000); below 1 by their power of a uniform. */
export function gammaOfMeanOne(rng: Rng, shape: number): number {
  const boosted = shape < 1 ? shape + 1 : shape;
  const d = boosted - 1 / 3;
  const c = 1 / Math.sqrt(9 * d);
  for (;;) {
    const x = rng.normal();
    const v = (1 + c * x) ** 3;
    if (v <= 0) continue;
    const u = 1 - rng.uniform();
    if (Math.log(u) >= 0.5 * x * x + d - d * v + d * Math.log(v)) continue;
    const lift = shape < 1 ? (1 - rng.uniform()) ** (1 / shape) : 1;
    return (d * v * lift) / shape;
  }
}

/** Fills arrival times of this mean rate a second. */
export function fillArrivals(arrivals: Arrivals, ratePerS: number, rng: Rng, out: Float64Array): void {
  if (!(ratePerS > 0 && ratePerS < Number.POSITIVE_INFINITY))
    fail('option-invalid', `${ratePerS} requests a second cannot be: use a rate above 0`);
  checkArrivals(arrivals);
  const gap = gapOf(arrivals, rng);
  if (arrivals.kind !== 'bursts') {
    let atS = 0;
    for (let i = 0; i < out.length; i++) {
      atS += gap() / ratePerS;
      out[i] = atS;
    }
    return;
  }
  const { onS, offS } = arrivals;
  const burstRate = (ratePerS * (onS + offS)) / onS;
  // The time within bursts, and the silences that have passed besides.
  let [insideS, silenceS] = [0, 0];
  let burstEndS = exponential(rng) * onS;
  for (let i = 0; i < out.length; i++) {
    insideS += gap() / burstRate;
    while (insideS > burstEndS) {
      silenceS += exponential(rng) * offS;
      burstEndS += exponential(rng) * onS;
    }
    out[i] = insideS + silenceS;
  }
}

/** Draws gaps of mean 1. */
function gapOf(arrivals: Arrivals, rng: Rng): () => number {
  switch (arrivals.kind) {
    case 'poisson':
      return () => exponential(rng);
    case 'static':
      return () => 1;
    case 'gamma':
    case 'bursts': {
      const shape = 1 / arrivals.cv ** 2;
      return () => gammaOfMeanOne(rng, shape);
    }
    default:
      return arrivals satisfies never;
  }
}

function checkArrivals(arrivals: Arrivals): void {
  const positive = (name: string, value: number): void => {
    if (!(value > 0 && value < Number.POSITIVE_INFINITY))
      fail('option-invalid', `${arrivals.kind} arrivals: ${name} is ${value}: use a number above 0`);
  };
  if (arrivals.kind === 'gamma' || arrivals.kind === 'bursts') positive('cv', arrivals.cv);
  if (arrivals.kind === 'bursts') {
    positive('onS', arrivals.onS);
    positive('offS', arrivals.offS);
  }
}

/** When each replica is down, for as long as a simulation may take: exponential times up and down. */
export function drawOutages(
  replicas: number,
  { meanUpS, meanDownS }: { readonly meanUpS: number; readonly meanDownS: number },
  horizonS: number,
  rng: Rng,
): Float64Array[] {
  for (const [name, value] of Object.entries({ meanUpS, meanDownS })) {
    if (!(value > 0 && value < Number.POSITIVE_INFINITY))
      fail('option-invalid', `failures: ${name} is ${value}: use a number of seconds above 0`);
  }
  return Array.from({ length: replicas }, () => {
    const times: number[] = [];
    for (let atS = exponential(rng) * meanUpS; atS < horizonS; atS += exponential(rng) * meanUpS) {
      times.push(atS);
      atS += exponential(rng) * meanDownS;
      times.push(atS);
    }
    return Float64Array.from(times);
  });
}
