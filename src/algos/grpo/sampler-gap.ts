/** Whether the program that scores agrees with the one that sampled, at the same weights. */

import { MismatchError } from '../../base/errors.ts';
import { k3, LOG_RATIO_LIMIT } from '../../kl/estimators.ts';
import { meansOf } from '../update/moments.ts';
import type { TextBatch } from './collect.ts';

/**
 * How far they may be apart by rounding; beyond it they compute different things. Single precision leaves a KL of about 1e-13
 * and log-probabilities apart by 1e-5, weights in bfloat16 1e-6 and more even in a tiny model. GPUs may multiply with the ten
 * bits of TF32, whatever the type.
 */
const LIMITS = {
  cpu: { kl: 1e-8, logProb: 1e-3 },
  gpu: { kl: 1e-5, logProb: 1e-2 },
} as const;

/** Below this a token's two log-probabilities are equal but for single precision's rounding. */
const SAME = 1e-4;
/** As far as half precision takes them apart. */
const HALF_PRECISION = 0.2;
/** A correlation that chance does not give. */
const CORRELATED = 0.7;

export interface SamplerGap {
  kl: number;
  logProbDiff: number;
  logProbDiffMax: number;
  ratioMean: number;
}

type Sampled = Pick<TextBatch['completions'][number], 'logProbs' | 'logKept'>;

/** How the scorer's log-probabilities differ from the sampler's, with the same truncation. */
export function compareSampler(
  { completions }: { readonly completions: readonly Sampled[] },
  scored: Float32Array,
  newTokens: number,
): SamplerGap {
  const gap = { kl: 0, logProbDiff: 0, logProbDiffMax: 0, ratioMean: 0 };
  let tokens = 0;
  completions.forEach((completion, row) => {
    for (const logRatio of logRatiosOf(completion, scored, row * newTokens)) {
      gap.kl += k3(logRatio);
      gap.logProbDiff += Math.abs(logRatio);
      gap.logProbDiffMax = Math.max(gap.logProbDiffMax, Math.abs(logRatio));
      gap.ratioMean += Math.exp(Math.max(-LOG_RATIO_LIMIT, Math.min(LOG_RATIO_LIMIT, logRatio)));
      tokens++;
    }
  });
  return { ...meansOf(gap, tokens), logProbDiffMax: gap.logProbDiffMax };
}

const logRatiosOf = ({ logProbs, logKept }: Sampled, scored: Float32Array, at: number): number[] =>
  logProbs.map((logProb, i) => scored[at + i] - logKept[i] - logProb);

/** With the weights that sampled, the scorer must give what the sampler gave: ratio 1, KL 0. */
export function refuseMismatch(
  { kl, logProbDiffMax }: SamplerGap,
  batch: { readonly completions: readonly Sampled[] },
  scored: Float32Array,
  newTokens: number,
  device: 'cpu' | 'webgpu' | 'cuda' = 'cpu',
): void {
  const limits = LIMITS[device === 'cpu' ? 'cpu' : 'gpu'];
  if (kl < limits.kl && logProbDiffMax < limits.logProb) return;
  throw new MismatchError(
    `before the first step sampler and scorer differ by a KL of ${kl.toExponential(1)} and a log-probability of ${logProbDiffMax.toExponential(1)}, which must be 0: of temperature, precision, dropout and re-tokenised text, ${likelyCause(batch, scored, newTokens)}`,
  );
}

/** Which of the four it looks like: each leaves a trace of its own in where, and at which tokens, the two differ. */
export function likelyCause(
  { completions }: { readonly completions: readonly Sampled[] },
  scored: Float32Array,
  newTokens: number,
): string {
  const ratios = completions.map((completion, row) => logRatiosOf(completion, scored, row * newTokens));
  const all = ratios.flat();
  if (all.some(Number.isNaN)) return 'none: some values are not numbers, so the weights are damaged';
  if (all.every(ratio => Math.abs(ratio) < HALF_PRECISION))
    return 'precision is the likeliest: the differences are small and at all tokens';
  const begunAlike = ratios.filter(own => Math.abs(own[0]) < SAME).length;
  if (begunAlike === ratios.length || all.filter(ratio => Math.abs(ratio) < SAME).length > all.length / 4)
    return 're-tokenised text is the likeliest: many tokens agree to the last digits, others not at all';
  const likelihood = completions.flatMap(({ logProbs, logKept }) => logProbs.map((p, i) => p + logKept[i]));
  if (Math.abs(correlation(all, likelihood)) > CORRELATED)
    return 'temperature is the likeliest: the less likely a token, the more they differ, and all to one side';
  return 'dropout is the likeliest: they differ at all tokens and to both sides';
}

function correlation(a: readonly number[], b: readonly number[]): number {
  const mean = (values: readonly number[]): number => values.reduce((x, y) => x + y, 0) / values.length;
  const [meanA, meanB] = [mean(a), mean(b)];
  let [both, squaresA, squaresB] = [0, 0, 0];
  a.forEach((value, i) => {
    both += (value - meanA) * (b[i] - meanB);
    squaresA += (value - meanA) ** 2;
    squaresB += (b[i] - meanB) ** 2;
  });
  return both / Math.sqrt(squaresA * squaresB);
}
