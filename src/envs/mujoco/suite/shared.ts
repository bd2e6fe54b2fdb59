/** What the tasks of the suite share: parts of bodies, noise at the start, and the tasks that pay for running along x. */
import type { Rng } from '../../../random/rng.ts';
import type { OptionSchema } from '../../options.ts';
import { type Element, element } from '../mjcf.ts';
import type { Physics, PhysicsArrays } from '../physics.ts';
import type { PhysicsTask } from '../task.ts';

/** Colours of the drawn bodies, RGBA: the trunk, the limbs of one side, those of the other, and the ground. */
export const COLOURS = {
  trunk: [0.25, 0.45, 0.7, 1],
  limb: [0.85, 0.55, 0.3, 1],
  otherLimb: [0.6, 0.4, 0.65, 1],
  ground: [0.85, 0.87, 0.88, 1],
} as const;

/** The ground to run on: a plane without end; `size` is what is drawn of it. Bodies find it unless `conaffinity` says otherwise. */
export function floor(heightM = 0, conaffinity: 0 | 1 = 1): Element {
  return element('geom', {
    name: 'floor',
    type: 'plane',
    pos: [0, 0, heightM],
    size: [40, 40, 1],
    condim: 3,
    conaffinity,
    rgba: COLOURS.ground,
  });
}

/**
 * The three joints that let a body move in the plane of x and z and turn in it, without resistance. `heightM` is what the
 * height reads in the model's initial state.
 */
export function planarRoot(heightM: number): Element[] {
  const free = { limited: false, armature: 0, damping: 0, stiffness: 0 };
  return [
    element('joint', { name: 'rootx', type: 'slide', axis: [1, 0, 0], ...free }),
    element('joint', { name: 'rootz', type: 'slide', axis: [0, 0, 1], ref: heightM, ...free }),
    element('joint', { name: 'rooty', type: 'hinge', axis: [0, 1, 0], ...free }),
  ];
}

/** One motor a joint, in this order; `gear` is the torque in N m (force in N) of a control of 1. */
export function motors(gears: readonly (readonly [joint: string, gear: number])[], limit = 1): Element {
  const ctrlrange = [-limit, limit];
  return element(
    'actuator',
    {},
    gears.map(([joint, gear]) => element('motor', { joint, gear, ctrllimited: true, ctrlrange })),
  );
}

/** Adds noise to each number, uniform in ±scale. */
export function addUniform(values: Float64Array, rng: Rng, scale: number): void {
  for (let i = 0; i < values.length; i++) values[i] += scale * (2 * rng.uniform() - 1);
}

/** Adds normal noise to each number, of standard deviation `scale`. */
export function addNormal(values: Float64Array, rng: Rng, scale: number): void {
  for (let i = 0; i < values.length; i++) values[i] += scale * rng.normal();
}

export function clamp(value: number, limit: number): number {
  return Math.min(Math.max(value, -limit), limit);
}

/** ‖values‖² */
export function squareSum(values: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += values[i] * values[i];
  return sum;
}

/** Writes positions from number `skip` on, then velocities clipped to ±velocityLimit; returns how many. */
export function observeState(
  { qpos, qvel }: PhysicsArrays,
  obs: Float32Array,
  skip: number,
  velocityLimit = Number.POSITIVE_INFINITY,
): number {
  let at = 0;
  for (let i = skip; i < qpos.length; i++) obs[at++] = qpos[i];
  for (let i = 0; i < qvel.length; i++) obs[at++] = clamp(qvel[i], velocityLimit);
  return at;
}

/** Passes the action on to the motors, as tasks do that give a `control` of their own. */
export function drive(physics: Physics, action: Float32Array): void {
  physics.arrays.ctrl.set(action);
}

/** A factor of a part of the reward. */
export const weight = (value: number, doc: string): OptionSchema<number> => ({
  default: value,
  doc,
  min: 0,
  max: 1_000,
});

/** How far from its initial state an episode starts. */
export const noiseScale = (value: number, doc: string): OptionSchema<number> => ({
  default: value,
  doc,
  min: 0,
  max: 10,
});

export const EXCLUDE_POSITIONS: OptionSchema<boolean> = {
  default: true,
  doc: 'whether the observation leaves out how far the body has come',
};

export const TERMINATE_WHEN_UNHEALTHY: OptionSchema<boolean> = {
  default: true,
  doc: 'whether a fall ends the episode; without it, it only earns no healthyReward',
};

export type RunnerOptions = {
  readonly forwardRewardWeight: number;
  readonly ctrlCostWeight: number;
  readonly resetNoiseScale: number;
  readonly excludeCurrentPositionsFromObservation: boolean;
};

export type HealthyOptions = {
  readonly healthyReward: number;
  readonly terminateWhenUnhealthy: boolean;
};

/** A body whose first position is x and that is paid for its speed along it. */
export interface Runner {
  readonly model: string;
  readonly frameSkip: number;
  /** Positions, and as many velocities. */
  readonly joints: number;
  /** Leading positions that `excludeCurrentPositionsFromObservation` leaves out. */
  readonly travelled: number;
  /** Observed velocities are clipped to ± this. */
  readonly velocityLimit?: number;
  start(physics: Physics, rng: Rng): void;
  /** Where there is such a state, it earns `healthyReward` a step, and leaving it ends the episode. */
  readonly health?: HealthyOptions & { isHealthy(arrays: PhysicsArrays): boolean };
}

/** The task of such a body: reward terms `forward`, `control`, and `survive` where health matters. */
export function runnerTask(runner: Runner, options: RunnerOptions): PhysicsTask<{ x: number }> {
  const { model, frameSkip, joints, velocityLimit, health } = runner;
  const { forwardRewardWeight, ctrlCostWeight, excludeCurrentPositionsFromObservation } = options;
  const skip = excludeCurrentPositionsFromObservation ? runner.travelled : 0;
  return {
    model,
    frameSkip,
    observationSize: 2 * joints - skip,
    rewardTerms: ['forward', 'control', ...(health ? ['survive'] : [])],
    start(physics, rng) {
      runner.start(physics, rng);
      return { x: 0 };
    },
    control(physics, action, memory) {
      memory.x = physics.arrays.qpos[0];
      drive(physics, action);
    },
    score(physics, action, memory, result) {
      const { arrays } = physics;
      const stepSeconds = physics.substepSeconds * frameSkip;
      result.rewardTerms[0] = (forwardRewardWeight * (arrays.qpos[0] - memory.x)) / stepSeconds;
      result.rewardTerms[1] = -ctrlCostWeight * squareSum(action);
      if (!health) return;
      const isHealthy = health.isHealthy(arrays);
      result.rewardTerms[2] = isHealthy ? health.healthyReward : 0;
      result.terminated = !isHealthy && health.terminateWhenUnhealthy;
    },
    observe({ arrays }, _memory, obs) {
      observeState(arrays, obs, skip, velocityLimit);
    },
  };
}
