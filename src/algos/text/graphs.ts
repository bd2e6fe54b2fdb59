/** Graphs over the tokens of completions that every trainer of text uses: scores, measures, gradients. */

import { grad } from '../../engine/grad.ts';
import { Graph, type Tensor } from '../../engine/graph.ts';
import { klFromLogProbs } from '../../kl/distributions/categorical.ts';
import type { LanguageModel } from '../../lm/model.ts';
import { type BatchShape, batchInputs, completionLogProbs, flat } from '../../lm/scorer.ts';
import { outputAll } from '../update/state.ts';

export type TextNetwork = Pick<LanguageModel, 'gpt' | 'layout' | 'options'>;

/** Gradients `g.<name>` of a loss in each of the model's tensors. */
export function outputGradients(
  g: Graph,
  { layout }: TextNetwork,
  loss: Tensor,
  weights: Record<string, Tensor>,
): void {
  const names = layout.specs.map(({ name }) => name);
  const tensors = names.map(name => weights[name]);
  grad(loss, tensors).forEach((gradient, i) => {
    g.output(`g.${names[i]}`, gradient);
  });
}

/** Log-probability and entropy of each token, and all log-probabilities where they are to be kept. */
export function scoreGraph(network: TextNetwork, shape: BatchShape, keepAll: boolean): Graph {
  const g = new Graph();
  const { all, taken, entropy } = completionLogProbs(network, batchInputs(g, shape));
  outputAll(g, { logProbs: taken, entropy, ...(keepAll ? { all } : {}) });
  return g;
}

/** The same after an update, with the exact KL(old ‖ new) of each token: old as it was kept, or from the old weights. */
export function measureGraph(network: TextNetwork, shape: BatchShape, old: 'kept' | 'weights'): Graph {
  const g = new Graph();
  const inputs = batchInputs(g, shape);
  const { all, taken, entropy } = completionLogProbs(network, inputs);
  const before =
    old === 'kept'
      ? g.input('before', [shape.rows * shape.newTokens, network.options.vocabulary])
      : completionLogProbs(network, inputs, 'b.').all;
  outputAll(g, { kl: flat(klFromLogProbs(before, all)), logProbs: taken, entropy });
  return g;
}
