/**
 * Networks over a set of items: the same weights for every item, whatever their number and order.
 *
 * A layer maps each item by one matrix and the mean and the maximum over all items by another (Zaheer et al. 2017, Deep
 * Sets); after the last, the actor scores each item, one action for each, and the critic looks at mean and maximum. So a
 * policy that learnt on four items acts on sixteen.
 */

import type { Tensor } from '../../../engine/graph.ts';
import { add, gelu, relu, tanh } from '../../../engine/ops/elementwise.ts';
import { matmul } from '../../../engine/ops/matmul.ts';
import { reduceMax, reduceMean } from '../../../engine/ops/reduce.ts';
import { concat, reshape, split } from '../../../engine/ops/shape.ts';
import type { Space } from '../../../envs/spaces.ts';
import type { Distribution } from '../../../kl/distributions/distribution.ts';
import * as initialisers from '../../../nn/initialise.ts';
import type { Activation } from '../../../nn/mlp.ts';
import { type ParameterSpec, parameterNamed, parameters } from '../../../nn/parameters.ts';
import type { ActorCritic } from './actor-critic.ts';

/** How an observation is laid out: items one after the other, then what belongs to all of them. */
export interface SetLayout {
  readonly items: number;
  readonly itemFeatures: number;
  readonly sharedFeatures: number;
}

/** The layout of spaces that a set network fits; undefined for others. */
export function setLayoutOf(observationSpace: Space, actionSpace: Space): SetLayout | undefined {
  if (observationSpace.kind !== 'dict' || actionSpace.kind !== 'discrete') return undefined;
  const [items, shared, ...more] = Object.values(observationSpace.spaces);
  if (items?.kind !== 'box' || shared?.kind !== 'box' || more.length > 0) return undefined;
  const [count, itemFeatures, ...axes] = items.shape;
  if (count !== actionSpace.n || itemFeatures === undefined || axes.length > 0) return undefined;
  return { items: count, itemFeatures, sharedFeatures: shared.flatSize };
}

const activations = { tanh, relu, gelu } as const;

export interface SetActorCriticOptions {
  readonly layout: SetLayout;
  readonly distribution: Distribution;
  readonly hidden: readonly number[];
  readonly activation: Activation;
}

/** A policy that scores items, and a value function over all of them. */
export function setActorCritic(options: SetActorCriticOptions): ActorCritic {
  const { layout, distribution, hidden, activation } = options;
  const { items, itemFeatures, sharedFeatures } = layout;
  const last = hidden.length;
  const lastWidth = hidden[last - 1];
  const activate = activations[activation];

  /** What is left of each item before the last layer: (rows, observation) to (rows * items, width). */
  function trunk(name: string, weights: Record<string, Tensor>, obs: Tensor): Tensor {
    const rows = obs.shape[0];
    const [flat, shared] = split(obs, [items * itemFeatures, sharedFeatures], 1);
    let own = reshape(flat, [rows * items, itemFeatures]);
    let context = shared;
    for (const [i, width] of hidden.entries()) {
      const mine = linearOf(`${name}.${i}`, weights, own);
      const all = matmul(context, parameterNamed(weights, `${name}.${i}.context`)); // (rows, width)
      const sum = add(reshape(mine, [rows, items, width]), reshape(all, [rows, 1, width]));
      own = activate(reshape(sum, [rows * items, width]));
      if (i < last - 1) context = pooled(own, rows, items);
    }
    return own;
  }

  return {
    layout: parameters([
      ...trunkSpecs('actor', options),
      ...linearSpecs('actor', last, [lastWidth, 1], 0.01),
      ...trunkSpecs('critic', options),
      ...linearSpecs('critic', last, [2 * lastWidth, 1], 1),
    ]),
    distribution,
    observationSize: items * itemFeatures + sharedFeatures,
    valueHead: `critic.${last}`,
    policy(weights, obs) {
      const scores = linearOf(`actor.${last}`, weights, trunk('actor', weights, obs));
      return reshape(scores, [obs.shape[0], items]);
    },
    value: (weights, obs) =>
      linearOf(`critic.${last}`, weights, pooled(trunk('critic', weights, obs), obs.shape[0], items)),
  };
}

/** Parameters of the layers before the last: of the items, and of what belongs to all of them. */
function trunkSpecs(group: string, { layout, hidden }: SetActorCriticOptions): ParameterSpec[] {
  return hidden.flatMap((width, i) => {
    const own = i === 0 ? layout.itemFeatures : hidden[i - 1];
    const context = i === 0 ? layout.sharedFeatures : 2 * hidden[i - 1];
    const init = initialisers.orthogonal(i === 0 ? Math.SQRT2 : 0.5);
    return [
      ...linearSpecs(group, i, [own, width], Math.SQRT2),
      { name: `${group}.${i}.context`, shape: [context, width], init, group },
    ];
  });
}

function linearSpecs(group: string, i: number, shape: [number, number], gain: number): ParameterSpec[] {
  return [
    { name: `${group}.${i}.weight`, shape, init: initialisers.orthogonal(gain), group },
    { name: `${group}.${i}.bias`, shape: [shape[1]], init: initialisers.zeros, group },
  ];
}

function linearOf(name: string, weights: Record<string, Tensor>, x: Tensor): Tensor {
  const product = matmul(x, parameterNamed(weights, `${name}.weight`));
  return add(product, parameterNamed(weights, `${name}.bias`));
}

/** Mean and maximum over the items, (rows, 2 * width). */
function pooled(own: Tensor, rows: number, items: number): Tensor {
  const each = reshape(own, [rows, items, own.shape[1]]);
  return concat([reduceMean(each, { axes: [1] }), reduceMax(each, { axes: [1] })], 1);
}
