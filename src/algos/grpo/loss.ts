/**
 * The programs of an update: gradients of a microbatch, and what it scores.
 *
 * Per token, with r the ratio of its probability now to that when it was drawn, A its completion's advantage and w its
 * weight in the minibatch:
 *
 *   w · ( -min(r A, clip(r, 1 - low, 1 + high) A) + klRefCoef · KL(policy ‖ reference) - entropyCoef · entropy )
 *
 * The KL is exact over the vocabulary where the reference's log-probabilities are fed whole, else k3 of the token drawn
 * (with r = log reference - log policy, which is ± LOG_RATIO_LIMIT at most).
 */
import {
  add,
  cast,
  clip,
  exp,
  Graph,
  grad,
  greater,
  less,
  min,
  mul,
  neg,
  reduceSum,
  stopGradient,
  sub,
  type Tensor,
} from '../../engine/index.ts';
import { klFromLogProbs } from '../../kl/distributions/categorical.ts';
import { k3Graph, LOG_RATIO_LIMIT } from '../../kl/index.ts';
import {
  type BatchInputs,
  type BatchShape,
  batchInputs,
  completionLogProbs,
  flat,
  type LanguageModel,
} from '../../lm/index.ts';

export type Network = Pick<LanguageModel, 'gpt' | 'layout' | 'options'>;

/** How the KL to the reference comes about; `none` without a reference. */
export type RefKl = 'none' | 'exact' | 'k3';

export interface LossOptions {
  readonly refKl: RefKl;
  readonly entropy: boolean;
}

/** The loss of a microbatch and its diagnostics, all sums over its tokens. */
export function grpoLoss(
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
export function gradientGraph(network: Network, shape: BatchShape, { refKl, entropy }: LossOptions): Graph {
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

function referenceInput(g: Graph, { options }: Network, refKl: RefKl, tokens: number): Tensor {
  return g.input('reference', refKl === 'exact' ? [tokens, options.vocabulary] : [tokens]);
}

/** Gradients of cross-entropy, and the sums of loss and of tokens that would have been guessed. */
export function cloneGraph(network: Network, shape: BatchShape): Graph {
  const g = new Graph();
  const scored = completionLogProbs(network, batchInputs(g, shape));
  const weights = g.input('weights', [shape.rows * shape.newTokens]);
  const loss = neg(reduceSum(mul(weights, scored.taken)));
  outputGradients(g, network, loss, scored.weights);
  g.output('loss', loss);
  return g;
}

function outputGradients(g: Graph, { layout }: Network, loss: Tensor, weights: Record<string, Tensor>): void {
  const names = layout.specs.map(({ name }) => name);
  grad(
    loss,
    names.map(name => weights[name]),
  ).forEach((gradient, i) => {
    g.output(`g.${names[i]}`, gradient);
  });
}

/** Log-probability and entropy of each token, and all log-probabilities where they are to be kept. */
export function scoreGraph(network: Network, shape: BatchShape, keepAll: boolean): Graph {
  const g = new Graph();
  const { all, taken, entropy } = completionLogProbs(network, batchInputs(g, shape));
  g.output('logProbs', taken);
  g.output('entropy', entropy);
  if (keepAll) g.output('all', all);
  return g;
}

/** The same after an update, with the exact KL(old ‖ new) of each token: old as it was kept, or from the old weights. */
export function measureGraph(network: Network, shape: BatchShape, old: 'kept' | 'weights'): Graph {
  const g = new Graph();
  const inputs: BatchInputs = batchInputs(g, shape);
  const { all, taken, entropy } = completionLogProbs(network, inputs);
  const before =
    old === 'kept'
      ? g.input('before', [shape.rows * shape.newTokens, network.options.vocabulary])
      : completionLogProbs(network, inputs, 'b.').all;
  g.output('kl', flat(klFromLogProbs(before, all)));
  g.output('logProbs', taken);
  g.output('entropy', entropy);
  return g;
}
