/**
 * A policy and a value function for one task: two networks over the same observations, and the distribution that fits
 * the actions. All parameters are one flat vector: the actor's group first, then the critic's.
 */

import type { Tensor } from '../../../engine/graph.ts';
import { add, clip, expand, stopGradient, sub } from '../../../engine/ops/elementwise.ts';
import { concat, split } from '../../../engine/ops/shape.ts';
import type { Distribution } from '../../../kl/distributions/distribution.ts';
import * as initialisers from '../../../nn/initialise.ts';
import { type Activation, mlp } from '../../../nn/mlp.ts';
import { type ParameterSpec, type Parameters, parameters } from '../../../nn/parameters.ts';

/** One factor of the policy: the distribution, and how many of its parameters the network gives. */
export interface Head {
  readonly distribution: Distribution;
  /** A Gaussian's log-stds are parameters of their own, the same in every state; the network gives its means only. */
  readonly logStds: number;
}

export interface ActorCriticOptions {
  observationSize: number;
  /** The policy's factors, in the order of the action's parts; `distribution` is all of them together. */
  heads: readonly Head[];
  distribution: Distribution;
  hidden: readonly number[];
  /** Of the critic; those of the actor unless told. */
  criticHidden?: readonly number[] | null;
  activation: Activation;
  logStdInitial: number;
  logStdMin: number;
  logStdMax: number;
}

export interface ActorCritic {
  readonly layout: Parameters;
  readonly distribution: Distribution;
  readonly observationSize: number;
  /** Name of the critic's last layer, which is linear: its parameters are `<name>.weight` and `<name>.bias`. */
  readonly valueHead: string;
  /** The policy's distribution parameters (rows, paramSize) for observations (rows, observationSize). */
  policy(weights: Record<string, Tensor>, obs: Tensor): Tensor;
  /** (rows, 1) */
  value(weights: Record<string, Tensor>, obs: Tensor): Tensor;
}

/** Builds both networks. */
export function actorCritic(options: ActorCriticOptions): ActorCritic {
  const { observationSize, heads, distribution, hidden, activation } = options;
  const criticHidden = options.criticHidden ?? hidden;
  const outputs = heads.map(head => head.distribution.paramSize - head.logStds);
  const logStds = heads.reduce((sum, head) => sum + head.logStds, 0);
  const actor = mlp({
    name: 'actor',
    sizes: [observationSize, ...hidden, outputs.reduce((a, b) => a + b, 0)],
    activation,
    outputGain: 0.01,
  });
  const critic = mlp({ name: 'critic', sizes: [observationSize, ...criticHidden, 1], activation });
  const spread: ParameterSpec = {
    name: 'actor.logStd',
    shape: [logStds],
    init: initialisers.constant(options.logStdInitial),
    group: 'actor',
  };
  const layout = parameters([...actor.specs, ...(logStds > 0 ? [spread] : []), ...critic.specs]);
  return {
    layout,
    distribution,
    observationSize,
    valueHead: `critic.${criticHidden.length}`,
    policy(weights, obs) {
      const pieces = split(actor.forward(weights, obs), outputs, 1);
      if (logStds === 0) return concat(pieces, 1);
      // Within its bounds by value; the derivative passes everywhere, or one step too far would leave it there for good.
      const raw = weights['actor.logStd'];
      const logStd = add(raw, stopGradient(sub(clip(raw, options.logStdMin, options.logStdMax), raw)));
      const widths = heads.map(head => head.logStds).filter(n => n > 0);
      const spreads = split(logStd, widths, 0).values();
      const parts = pieces.map((piece, i) =>
        heads[i].logStds === 0 ? piece : concat([piece, expand(spreads.next().value!, piece.shape)], 1),
      );
      return concat(parts, 1);
    },
    value: (weights, obs) => critic.forward(weights, obs),
  };
}
