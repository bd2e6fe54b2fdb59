/**
 * The loss of GRPO as a graph: gradients of a microbatch, and its diagnostics.
 *
 * Per token, with r the ratio of its probability now to that when it was drawn, A its completion's advantage and w its
 * weight in the minibatch:
 *
 *   w · ( -min(r A, clip(r, 1 - low, 1 + high) A) + klRefCoef · KL(policy ‖ reference) - entropyCoef · entropy )
 *
 * reference-kl.ts has what the KL is; r is e^± LOG_RATIO_LIMIT at most.
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
import { LOG_RATIO_LIMIT } from '../../kl/estimators.ts';
import { type BatchShape, batchInputs, completionLogProbs } from '../../lm/scorer.ts';
import { outputGradients, type TextNetwork } from '../text/graphs.ts';
import { outputAll } from '../update/state.ts';
import { isExact, type RefKl, referenceKl } from './reference-kl.ts';

export interface LossOptions {
  readonly refKl: RefKl;
  readonly entropy: boolean;
}

/** Gradients `g.<name>` of the loss of a microbatch, and its diagnostics, all sums over its tokens. */
export function gradientGraph(network: TextNetwork, shape: BatchShape, options: LossOptions): Graph {
  const g = new Graph();
  const scored = completionLogProbs(network, batchInputs(g, shape));
  const { loss, info } = tokenLoss(scored, shape.newTokens, options);
  outputGradients(g, network, loss, scored.weights);
  outputAll(g, { ...info, loss });
  return g;
}

/**
 * The loss from log-probabilities, whatever network they are of: `all` (rows · newTokens, vocabulary), those of the tokens
 * drawn and entropies (rows · newTokens). What else it needs are inputs of the graph.
 */
export function tokenLoss(
  { all, taken, entropy: entropies }: Readonly<Record<'all' | 'taken' | 'entropy', Tensor>>,
  newTokens: number,
  { refKl, entropy }: LossOptions,
): { loss: Tensor; info: Record<string, Tensor> } {
  const g = all.node.graph;
  const [tokens, vocabulary] = all.shape;
  const column = (name: string): Tensor => g.input(name, [tokens]);
  const scalar = (name: string): Tensor => g.input(name, []);
  // The weight of each token in the minibatch is 0, and its mask not 1, where there is none that counts.
  const [weights, mask, given] = ['weights', 'mask', 'advantages'].map(column);
  const oldLogProbs = column('oldLogProbs');
  const ratio = exp(clip(sub(taken, oldLogProbs), -LOG_RATIO_LIMIT, LOG_RATIO_LIMIT));
  const reference =
    refKl === 'none'
      ? undefined
      : referenceKl(refKl, {
          ...{ all, taken, oldLogProbs, ratio, mask, newTokens },
          reference: g.input('reference', isExact(refKl) ? [tokens, vocabulary] : [tokens]),
        });
  const klRefCoef = reference && scalar('klRefCoef');
  const { inAdvantage, inLoss } = reference ?? {};
  const advantages = inAdvantage ? sub(given, mul(inAdvantage, klRefCoef!)) : given;
  const [lowest, highest] = [sub(1, scalar('clipLow')), add(1, scalar('clipHigh'))];
  const clipped = clip(ratio, lowest, highest);
  // Where the clipped side is smaller, it is constant.
  const gain = min(mul(ratio, advantages), stopGradient(mul(clipped, advantages)));
  const policyLoss = neg(reduceSum(mul(weights, gain)));
  let loss = policyLoss;
  if (inLoss) loss = add(loss, mul(reduceSum(mul(weights, inLoss)), klRefCoef!));
  if (entropy) loss = sub(loss, mul(reduceSum(mul(weights, entropies)), scalar('entropyCoef')));
  return {
    loss,
    info: {
      policyLoss,
      clippedLow: reduceSum(mul(mask, cast(less(ratio, lowest), 'float32'))),
      clippedHigh: reduceSum(mul(mask, cast(greater(ratio, highest), 'float32'))),
      ...(reference ? { klRef: reduceSum(mul(mask, reference.kl)) } : {}),
    },
  };
}
