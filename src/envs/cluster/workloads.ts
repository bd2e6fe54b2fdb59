/** Workloads by name, and those that a user describes: arrivals, lengths, and what the router is told of them. */
import type { Rng } from '../../random/rng.ts';
import { type Arrivals, fillArrivals } from './arrivals.ts';
import { type Lengths, lengthSampler } from './lengths.ts';
import { emptyWorkload, type Workload } from './requests.ts';

/** What arrives, without how often. */
export interface WorkloadSpec {
  readonly name: string;
  readonly arrivals: Arrivals;
  readonly prompt: Lengths;
  readonly decode: Lengths;
}

/** Shares at which the two traces' quantiles were taken. */
const shares = [0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.999, 1];

/**
 * Fitted to statistics of the Azure LLM inference traces of 2023 (Microsoft, CC-BY 4.0): quantiles of both lengths, which
 * hardly depend on one another (rank correlations .07 and -.02), and the shape of the arrivals. Conversations come
 * almost as a Poisson process (gaps have a coefficient of variation of 1.09). Code comes in bursts: 57 silences of more
 * than 5 s, 43 s on average, take 72 % of its hour, with 17 s of requests between two of them.
 */
export const workloads: Readonly<Record<'conversation' | 'code', WorkloadSpec>> = {
  conversation: {
    name: 'conversation',
    arrivals: { kind: 'gamma', cv: 1.09 },
    prompt: {
      kind: 'quantiles',
      shares,
      tokens: [2, 29, 181, 207, 387, 403, 703, 1020, 1071, 1130, 1315, 2734, 4083, 4098, 4142, 6179, 14_050],
    },
    decode: {
      kind: 'quantiles',
      shares,
      tokens: [7, 16, 41, 54, 77, 91, 103, 129, 177, 384, 400, 424, 451, 540, 601, 954, 1000],
    },
  },
  code: {
    name: 'code',
    arrivals: { kind: 'bursts', onS: 17, offS: 43, cv: 2 },
    prompt: {
      kind: 'quantiles',
      shares,
      tokens: [3, 17, 75, 147, 386, 770, 1075, 1469, 1909, 2433, 3192, 5188, 7303, 7436, 7436, 7437, 7437],
    },
    decode: {
      kind: 'quantiles',
      shares,
      tokens: [6, 6, 6, 7, 8, 9, 11, 13, 16, 20, 29, 55, 90, 171, 251, 825, 1899],
    },
  },
};

/** How far off the router's estimates of answers' lengths are: the std of their logarithm. */
export const DEFAULT_LENGTH_ERROR = 0.3;

/** Draws requests. Lengths, estimates and arrivals have streams of their own, so that none moves the others. */
export function drawWorkload(
  spec: WorkloadSpec,
  {
    count,
    ratePerS,
    lengthError = DEFAULT_LENGTH_ERROR,
  }: { count: number; ratePerS: number; lengthError?: number },
  rng: Rng,
): Workload {
  const [arrivalRng, lengthRng, estimateRng] = rng.split(3);
  const workload = emptyWorkload(count);
  fillArrivals(spec.arrivals, ratePerS, arrivalRng, workload.arrivalS);
  const prompt = lengthSampler(spec.prompt);
  const decode = lengthSampler(spec.decode);
  for (let i = 0; i < count; i++) {
    workload.promptTokens[i] = prompt(lengthRng);
    workload.decodeTokens[i] = decode(lengthRng);
  }
  estimate(workload, lengthError, estimateRng);
  return workload;
}

/** Fills what the router is told: the true length times a log-normal error. */
export function estimate(workload: Workload, lengthError: number, rng: Rng): void {
  for (let i = 0; i < workload.count; i++) {
    const guess = workload.decodeTokens[i] * Math.exp(lengthError * rng.normal());
    workload.estimatedTokens[i] = Math.max(1, Math.round(guess));
  }
}
