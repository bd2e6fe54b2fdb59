/** The reward of a legged robot, term by term. */

export type RewardWeights = {
  readonly velocityWeight: number;
  readonly yawWeight: number;
  readonly heightWeight: number;
  readonly postureWeight: number;
  readonly smoothnessWeight: number;
  readonly bounceWeight: number;
  readonly uprightWeight: number;
  readonly survivalReward: number;
  readonly fallPenalty: number;
};

export const REWARD_TERMS = [
  'velocity',
  'yaw',
  'height',
  'posture',
  'smoothness',
  'bounce',
  'upright',
  'survival',
  'fall',
] as const;

/** What a step is judged by. */
export interface Posture {
  /** ‖v̄ - v*‖²: the smoothed velocity's distance from the one asked for. */
  readonly velocityError2: number;
  /** ‖ω - ω*‖² */
  readonly turnError2: number;
  /** z - z0 */
  readonly heightError: number;
  /** ‖q - home‖² */
  readonly posture2: number;
  /** ‖a - a before‖² */
  readonly actionChange2: number;
  readonly verticalSpeed: number;
  /** Vertical part of the body's up axis: 1 upright, -1 on its back. */
  readonly upZ: number;
  readonly fell: boolean;
}

/** Writes the terms in the order of `REWARD_TERMS`: the first two and survival pay, the others cost. */
export function writeReward(seen: Posture, weights: RewardWeights, terms: Float64Array): void {
  terms[0] = weights.velocityWeight * Math.exp(-2 * seen.velocityError2);
  terms[1] = weights.yawWeight * Math.exp(-0.01 * seen.turnError2);
  terms[2] = -weights.heightWeight * seen.heightError ** 2;
  terms[3] = -weights.postureWeight * seen.posture2;
  terms[4] = -weights.smoothnessWeight * seen.actionChange2;
  terms[5] = -weights.bounceWeight * seen.verticalSpeed ** 2;
  terms[6] = -weights.uprightWeight * (1 - seen.upZ);
  terms[7] = weights.survivalReward;
  terms[8] = seen.fell ? -weights.fallPenalty : 0;
}
