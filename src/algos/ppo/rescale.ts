/**
 * Going on under another reward scale with what was learnt under the old one: the policy stays, and everything that is
 * measured in rewards is multiplied.
 */
import type { RewardNormaliserState } from '../../rollout/normalise.ts';
import type { ActorCritic } from '../agents/networks/actor-critic.ts';
import type { PpoSnapshot } from './checkpoint.ts';

/** The snapshot as if all rewards so far had been `factor` times what they were. */
export function rescaled(snapshot: PpoSnapshot, model: ActorCritic, factor: number): PpoSnapshot {
  // Normalised rewards do not depend on the scale, so neither does the value function: only the normaliser does.
  if (snapshot.rewardNormaliser !== null) {
    return { ...snapshot, rewardNormaliser: scaledNormaliser(snapshot.rewardNormaliser, factor) };
  }
  const { weights, m, v } = snapshot;
  return {
    ...snapshot,
    // Its last layer is linear: the layers below may stay.
    weights: scaledCritic(model, weights, { last: factor, below: 1 }),
    // Errors are `factor` times larger, and reach the layers below through weights that are as well.
    m: scaledCritic(model, m, { last: factor, below: factor ** 2 }),
    v: scaledCritic(model, v, { last: factor ** 2, below: factor ** 4 }),
  };
}

function scaledCritic(
  { layout, valueHead }: ActorCritic,
  flat: Float32Array,
  by: { last: number; below: number },
): Float32Array {
  const out = flat.slice();
  for (const [name, view] of Object.entries(layout.views(out))) {
    if (!name.startsWith('critic.')) continue;
    const factor = name.startsWith(`${valueHead}.`) ? by.last : by.below;
    view.forEach((value, i) => {
      view[i] = value * factor;
    });
  }
  return out;
}

function scaledNormaliser(
  { moments, returns }: RewardNormaliserState,
  factor: number,
): RewardNormaliserState {
  const times = (values: readonly number[], by: number): number[] => values.map(value => value * by);
  return {
    moments: {
      count: moments.count,
      mean: times(moments.mean, factor),
      m2: times(moments.m2, factor ** 2),
    },
    returns: times(returns, factor),
  };
}
