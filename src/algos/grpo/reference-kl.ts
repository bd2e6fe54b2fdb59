/**
 * The KL to the reference in GRPO's loss: what is differentiated, and what that is the gradient of.
 *
 * With p the policy, q the reference, k1 = log p - log q and k3 = q/p - 1 - log q/p of the token drawn, and tokens drawn
 * from the policy as it is (the first gradient step of an iteration):
 *
 * | | in the loss | mean gradient |
 * |---|---|---|
 * | `exact` | KL(p ‖ q) over the vocabulary | of each token's KL(p ‖ q), contexts as given |
 * | `exact-sequence` | the same, and ratio · the exact KLs of later tokens, held constant | of the sequence's KL(p ‖ q) |
 * | `ratio-k3` | ratio · k3, both with gradient | of each token's KL(p ‖ q), also where the sampler is older |
 * | `k2` | k1² / 2 | of each token's KL(p ‖ q) |
 * | `k1-advantage` | advantage less the k1 of this and later tokens, as they were when drawn | of the sequence's KL(p ‖ q) |
 * | `k3` | k3 | of each token's KL(q ‖ p): not of what is meant; for runs made before |
 *
 * The sequence term: a token leads to contexts in which policy and reference differ more or less (Tang & Munos 2025, arXiv
 * 2506.09477). Ratio · k3: DeepSeek-V3.2 (arXiv 2512.02556). k1 in the advantage: "A comedy of estimators" (arXiv
 * 2512.21852). docs/kl.md has each of them measured against the exact gradient.
 */

import { TrainError } from '../../base/errors.ts';
import type { Tensor } from '../../engine/graph.ts';
import { add, mul, stopGradient, sub } from '../../engine/ops/elementwise.ts';
import { matmul } from '../../engine/ops/matmul.ts';
import { reshape } from '../../engine/ops/shape.ts';
import { klFromLogProbs } from '../../kl/distributions/categorical.ts';
import { k1Graph, k2Graph, k3Graph } from '../../kl/estimators.ts';
import { flat } from '../../lm/scorer.ts';
import type { GrpoConfig } from './settings.ts';

/** How the KL to the reference comes into the loss; `none` without a reference. */
export type RefKl = 'none' | 'exact' | 'exact-sequence' | 'ratio-k3' | 'k2' | 'k1-advantage' | 'k3';

/** Numbers that are kept for each batch, old and reference log-probabilities of the whole vocabulary each: 256 MB. */
export const MAX_KEPT = 64_000_000;

/** What the setting comes to; `keptSize` is how many log-probabilities the whole vocabulary of a batch has. */
export function refKlOf(
  { reference, klRefEstimator }: Pick<GrpoConfig, 'reference' | 'klRefEstimator'>,
  keptSize: number,
): RefKl {
  if (reference === 'none') return 'none';
  const fits = keptSize <= MAX_KEPT;
  if (klRefEstimator === 'auto') return fits ? 'exact' : 'ratio-k3';
  if (klRefEstimator === 'exact-or-k3') return fits ? 'exact' : 'k3';
  if (isExact(klRefEstimator) && !fits) {
    const instead = klRefEstimator === 'exact' ? 'ratio-k3' : 'k1-advantage';
    throw new TrainError(
      `klRefEstimator ${klRefEstimator} keeps ${keptSize} numbers a batch, at most ${MAX_KEPT}: use ${instead}, or fewer or shorter completions`,
    );
  }
  return klRefEstimator;
}

/** Whether the reference's log-probabilities of the whole vocabulary are needed, and not of the tokens drawn alone. */
export const isExact = (refKl: RefKl): refKl is 'exact' | 'exact-sequence' =>
  refKl === 'exact' || refKl === 'exact-sequence';

/** What is known of the tokens of a microbatch, (rows · newTokens) each; `mask` is 1 where there is one that counts. */
interface Tokens {
  /** Log-probabilities now: of the whole vocabulary (rows · newTokens, vocabulary), and of the tokens drawn. */
  readonly all: Tensor;
  readonly taken: Tensor;
  readonly oldLogProbs: Tensor;
  /** Of now to when they were drawn, with gradient. */
  readonly ratio: Tensor;
  /** Of the reference: shaped as `all` where it is exact, else as `taken`. */
  readonly reference: Tensor;
  readonly mask: Tensor;
  readonly newTokens: number;
}

/**
 * The KL to the reference of each token: `kl` is what is logged, exact or k3; `inLoss` is what the loss has, times its weight;
 * `inAdvantage` what the advantage loses, times its weight.
 */
export function referenceKl(
  refKl: Exclude<RefKl, 'none'>,
  { all, taken, oldLogProbs, ratio, reference, mask, newTokens }: Tokens,
): { readonly kl: Tensor; readonly inLoss?: Tensor; readonly inAdvantage?: Tensor } {
  if (isExact(refKl)) {
    const kl = flat(klFromLogProbs(all, reference));
    if (refKl === 'exact') return { kl, inLoss: kl };
    const later = stopGradient(sub(toTheEnd(mul(kl, mask), newTokens), mul(kl, mask)));
    // Of the value 0, so that the loss stays the KL that it tells: only the ratio's derivative counts.
    return { kl, inLoss: add(kl, mul(sub(ratio, stopGradient(ratio)), later)) };
  }
  const logRatio = sub(reference, taken);
  const kl = k3Graph(logRatio);
  switch (refKl) {
    case 'ratio-k3':
      return { kl, inLoss: mul(ratio, kl) };
    case 'k2':
      return { kl, inLoss: k2Graph(logRatio) };
    case 'k1-advantage':
      return { kl, inAdvantage: toTheEnd(mul(k1Graph(sub(reference, oldLogProbs)), mask), newTokens) };
    case 'k3':
      return { kl, inLoss: kl };
    default:
      return refKl satisfies never;
  }
}

/** The sum of each token's value and those after it in its completion: (rows · newTokens) to the same. */
function toTheEnd(values: Tensor, newTokens: number): Tensor {
  const fromHere = Float64Array.from({ length: newTokens * newTokens }, (_, i) =>
    Math.floor(i / newTokens) >= i % newTokens ? 1 : 0,
  );
  const ofRows = reshape(values, [values.shape[0] / newTokens, newTokens]);
  const sums = matmul(ofRows, values.node.graph.constant(fromHere, [newTokens, newTokens]));
  return reshape(sums, values.shape);
}
