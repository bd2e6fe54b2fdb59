/** An epoch of cloning as one program: every minibatch of it, actor and critic. */

import { grad } from '../../../engine/grad.ts';
import { Graph, type Tensor } from '../../../engine/graph.ts';
import { add, cast, equal, mul, neg, sub } from '../../../engine/ops/elementwise.ts';
import { gather } from '../../../engine/ops/gather.ts';
import { loop } from '../../../engine/ops/loop.ts';
import { reduceMean } from '../../../engine/ops/reduce.ts';
import { reshape } from '../../../engine/ops/shape.ts';
import { adam, adamCorrections, clipScale, correctionsAt } from '../../../nn/adam.ts';
import type { ActorCritic } from '../../agents/networks/actor-critic.ts';
import { outputState, stateInputs } from '../../update/state.ts';
import type { ClonePolicyConfig } from './settings.ts';

/** Sizes that the program is compiled for. */
export interface EpochSizes {
  /** Demonstrations. */
  readonly count: number;
  readonly batch: number;
  /** Minibatches. */
  readonly trips: number;
  readonly hasLogits: boolean;
}

/** The actor learns actions by cross-entropy, or their odds where those are known; the critic the returns. */
export function epochGraph(
  model: ActorCritic,
  config: ClonePolicyConfig,
  { count, batch, trips, hasLogits }: EpochSizes,
): Graph {
  const { layout, distribution, observationSize } = model;
  const g = new Graph();
  const columns = [
    g.input('observations', [count, observationSize]),
    g.input('actions', [count, distribution.actionSize]),
    g.input('returns', [count, 1]),
    ...(hasLogits ? [g.input('logits', [count, distribution.paramSize])] : []),
  ];
  const widths = columns.map(column => column.shape[1]);
  const order = g.input('order', [trips, batch], 'int64');
  const state = stateInputs(g, layout.size);
  const counts = add(
    g.constant(Float64Array.from({ length: trips }, (_, i) => i + 1)),
    g.input('stepsDone', []),
  );
  const corrections = adamCorrections(counts, { epsilon: config.adamEpsilon });
  const rates = g.input('rates', [trips]);
  const result = loop({
    trips,
    carry: { ...state },
    body({ iteration, carry }) {
      const rows = gather(order, iteration);
      const [obs, action, returns, logits] = columns.map((column, i) =>
        reshape(gather(column, rows), [batch, widths[i]]),
      );
      const tensors = layout.tensors(carry.weights);
      const policy = model.policy(tensors, obs);
      const { logProb, kl, entropy, mode } = distribution.graph;
      const policyLoss = logits
        ? reduceMean(add(kl(logits, policy), entropy(logits))) // cross-entropy
        : neg(reduceMean(logProb(policy, action)));
      const error = sub(model.value(tensors, obs), returns);
      const valueLoss = reduceMean(mul(error, error));
      const [gradient] = grad(add(policyLoss, mul(valueLoss, config.valueCoef)), [carry.weights]);
      const { scale } = clipScale(gradient, config.gradientClip ?? 1e30);
      const next = adam(carry, {
        gradient,
        gradientScale: scale,
        learningRate: gather(rates, iteration),
        corrections: correctionsAt(corrections, iteration),
      });
      const same = equal(cast(mode(policy), 'float32'), action);
      return { carry: next, scan: { policyLoss, valueLoss, accuracy: reduceMean(cast(same, 'float32')) } };
    },
  });
  outputState(g, result.carry, result.scan as Record<string, Tensor>);
  return g;
}
