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

/** How the KL to the reference comes about; `none` without a reference. */
export type RefKl = 'none' | 'exact' | 'k3';

export interface LossOptions {
  readonly refKl: RefKl;
  readonly entropy: boolean;
}

/** The loss of a microbatch and its diagnostics, all sums over its tokens. */
function grpoLoss(
  scored: { all: Tensor; taken: Tensor; entropy: Tensor },
  fed: {
    /** Weight of each token in the minibatch, 0 where there is none. */
    weights: Tensor;
    /** 1 where there is a token that counts. */
    mask: Tensor;
    advantages: Tensor;
    oldLogProbs: Tensor;
    clipLow: Tensor;
    clipHigh: Tensor;
    reference?: Tensor | undefined;
    klRefCoef?: Tensor | undefined;
    entropyCoef?: Tensor | undefined;
  },
  refKl: RefKl,
): { loss: Tensor; info: Record<string, Tensor> } {
  const { weights, mask, advantages } = fed;
  const logRatio = sub(scored.taken, fed.oldLogProbs);
  const ratio = exp(clip(logRatio, -LOG_RATIO_LIMIT, LOG_RATIO_LIMIT));
  const [lowest, highest] = [sub(1, fed.clipLow), add(1, fed.clipHigh)];
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
  if (refKl !== 'none' && fed.reference && fed.klRefCoef) {
    const kl =
      refKl === 'exact'
        ? flat(klFromLogProbs(scored.all, fed.reference))
        : k3Graph(sub(fed.reference, scored.taken));
    loss = add(loss, mul(reduceSum(mul(weights, kl)), fed.klRefCoef));
    info.klRef = reduceSum(mul(mask, kl));
  }
  if (fed.entropyCoef) loss = sub(loss, mul(reduceSum(mul(weights, scored.entropy)), fed.entropyCoef));
  return { loss, info: { ...info, loss } };
}

/** Gradients `g.<name>` of the loss of a microbatch, and the sums of its diagnostics. */
export function gradientGraph(
  network: TextNetwork,
  shape: BatchShape,
  { refKl, entropy }: LossOptions,
): Graph {
  const g = new Graph();
  const tokens = shape.rows * shape.newTokens;
  const inputs = batchInputs(g, shape);
  const scored = completionLogProbs(network, inputs);
  const column = (name: string): Tensor => g.input(name, [tokens]);
  const { loss, info } = grpoLoss(
    scored,
    {
      weights: column('weights'),
      mask: column('mask'),
      advantages: column('advantages'),
      oldLogProbs: column('oldLogProbs'),
      clipLow: g.input('clipLow', []),
      clipHigh: g.input('clipHigh', []),
      ...(refKl === 'none'
        ? {}
        : { reference: referenceInput(g, network, refKl, tokens), klRefCoef: g.input('klRefCoef', []) }),
      ...(entropy ? { entropyCoef: g.input('entropyCoef', []) } : {}),
    },
    refKl,
  );
  outputGradients(g, network, loss, scored.weights);
  for (const [name, tensor] of Object.entries(info)) g.output(name, tensor);
  return g;
}

function referenceInput(g: Graph, { options }: TextNetwork, refKl: RefKl, tokens: number): Tensor {
  return g.input('reference', refKl === 'exact' ? [tokens, options.vocabulary] : [tokens]);
}
