/**
 * The loss of GRPO as a graph: gradients of a microbatch, and its diagnostics.
 *
 * Per token, with r the ratio of its probability now to that when it was drawn, A its completion's advantage and w its
 * weight in the minibatch:
 *
 *   w · ( -min(r A, clip(r, 1 - low, 1 + high) A) + klRefCoef · KL(policy ‖ reference) - entropyCoef · entropy )
 *
 * The KL is exact over the vocabulary where the reference's log-probabilities are fed whole, else k3 of the token drawn
 * (with r = log reference - log policy, which is ± LOG_RATIO_LIMIT at most).
 */

import { Graph, type Tensor } from '../../engine/graph.ts';
import {
  add,
  cast,
  clip,
  exp,
  greater,
  less,
  min,
  mul,
  neg,
  stopGradient,
  sub,
} from '../../engine/ops/elementwise.ts';
import { reduceSum } from '../../engine/ops/reduce.ts';
import { klFromLogProbs } from '../../kl/distributions/categorical.ts';
import { k3Graph, LOG_RATIO_LIMIT } from '../../kl/estimators.ts';
import { type BatchShape, batchInputs, completionLogProbs, flat } from '../../lm/scorer.ts';
import { outputGradients, type TextNetwork } from '../text/graphs.ts';
import { outputAll } from '../update/state.ts';

/** How the KL to the reference comes about; `none` without a reference. */
export type RefKl = 'none' | 'exact' | 'k3';

export interface LossOptions {
  readonly refKl: RefKl;
  readonly entropy: boolean;
}

/** Gradients `g.<name>` of the loss of a microbatch, and its diagnostics, all sums over its tokens. */
export function gradientGraph(
  network: TextNetwork,
  shape: BatchShape,
  { refKl, entropy }: LossOptions,
): Graph {
  const g = new Graph();
  const tokens = shape.rows * shape.newTokens;
  const scored = completionLogProbs(network, batchInputs(g, shape));
  const column = (name: string): Tensor => g.input(name, [tokens]);
  const scalar = (name: string): Tensor => g.input(name, []);
  // The weight of each token in the minibatch is 0, and its mask not 1, where there is none that counts.
  const [weights, mask, advantages] = ['weights', 'mask', 'advantages'].map(column);
  const logRatio = sub(scored.taken, column('oldLogProbs'));
  const ratio = exp(clip(logRatio, -LOG_RATIO_LIMIT, LOG_RATIO_LIMIT));
  const [lowest, highest] = [sub(1, scalar('clipLow')), add(1, scalar('clipHigh'))];
  const clipped = clip(ratio, lowest, highest);
  // Where the clipped side is smaller, it is constant.
  const gain = min(mul(ratio, advantages), stopGradient(mul(clipped, advantages)));
  const policyLoss = neg(reduceSum(mul(weights, gain)));
  const info: Record<string, Tensor> = {
    policyLoss,
    clippedLow: reduceSum(mul(mask, cast(less(ratio, lowest), 'float32'))),
    clippedHigh: reduceSum(mul(mask, cast(greater(ratio, highest), 'float32'))),
  };
  let loss = policyLoss;
  if (refKl !== 'none') {
    const kl =
      refKl === 'exact'
        ? flat(klFromLogProbs(scored.all, g.input('reference', [tokens, network.options.vocabulary])))
        : k3Graph(sub(column('reference'), scored.taken));
    loss = add(loss, mul(reduceSum(mul(weights, kl)), scalar('klRefCoef')));
    info.klRef = reduceSum(mul(mask, kl));
  }
  if (entropy) loss = sub(loss, mul(reduceSum(mul(weights, scored.entropy)), scalar('entropyCoef')));
  outputGradients(g, network, loss, scored.weights);
  outputAll(g, { ...info, loss });
  return g;
}
