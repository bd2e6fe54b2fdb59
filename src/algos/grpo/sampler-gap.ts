/** Whether the program that scores agrees with the one that sampled, at the same weights. */
import { k3, LOG_RATIO_LIMIT } from '../../kl/index.ts';
import { TrainError } from '../ppo-trainer.ts';
import type { TextBatch } from './collect.ts';

/** How far they may be apart by rounding; beyond it they compute different things. */
const SAMPLER_KL_LIMIT = 1e-5;
const SAMPLER_LOG_PROB_LIMIT = 1e-2;

export interface SamplerGap {
  kl: number;
  logProbDiff: number;
  logProbDiffMax: number;
  ratioMean: number;
}

/** How the scorer's log-probabilities differ from the sampler's, with the same truncation. */
export function compareSampler(
  { completions }: TextBatch,
  scored: Float32Array,
  newTokens: number,
): SamplerGap {
  const gap = { kl: 0, logProbDiff: 0, logProbDiffMax: 0, ratioMean: 0 };
  let tokens = 0;
  completions.forEach(({ logProbs, logKept }, row) => {
    logProbs.forEach((logProb, i) => {
      const logRatio = scored[row * newTokens + i] - logKept[i] - logProb;
      gap.kl += k3(logRatio);
      gap.logProbDiff += Math.abs(logRatio);
      gap.logProbDiffMax = Math.max(gap.logProbDiffMax, Math.abs(logRatio));
      gap.ratioMean += Math.exp(Math.max(-LOG_RATIO_LIMIT, Math.min(LOG_RATIO_LIMIT, logRatio)));
      tokens++;
    });
  });
  return {
    ...gap,
    kl: gap.kl / tokens,
    logProbDiff: gap.logProbDiff / tokens,
    ratioMean: gap.ratioMean / tokens,
  };
}

/** With the weights that sampled, the scorer must give what the sampler gave: ratio 1, KL 0. */
export function refuseMismatch({ kl, logProbDiffMax }: SamplerGap): void {
  if (kl < SAMPLER_KL_LIMIT && logProbDiffMax < SAMPLER_LOG_PROB_LIMIT) return;
  throw new TrainError(
    `before the first step sampler and scorer differ by a KL of ${kl.toExponential(1)} and a log-probability of ${logProbDiffMax.toExponential(1)}, which must be 0: another temperature, precision, dropout or re-tokenised text in one of them could be why`,
  );
}
