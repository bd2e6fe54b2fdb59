/** The loss of cloning as a graph. */
import { Graph } from '../../../engine/graph.ts';
import { mul, neg } from '../../../engine/ops/elementwise.ts';
import { reduceSum } from '../../../engine/ops/reduce.ts';
import { type BatchShape, batchInputs, completionLogProbs } from '../../../lm/scorer.ts';
import { outputGradients, type TextNetwork } from '../../text/graphs.ts';

/** Gradients `g.<name>` of the cross-entropy of a microbatch, and its sum. */
export function gradientGraph(network: TextNetwork, shape: BatchShape): Graph {
  const g = new Graph();
  const scored = completionLogProbs(network, batchInputs(g, shape));
  const weights = g.input('weights', [shape.rows * shape.newTokens]);
  const loss = neg(reduceSum(mul(weights, scored.taken)));
  outputGradients(g, network, loss, scored.weights);
  g.output('loss', loss);
  return g;
}
