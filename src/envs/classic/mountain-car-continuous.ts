import { createEnv, defineEnv, type MadeEnv, type MakeOptions } from '../definition.ts';
import { simulation } from '../simulation.ts';
import { box } from '../spaces.ts';
import { uniformIn } from './draw.ts';
import { checkFinite } from './finite.ts';

// Gymnasium keeps this state in float32 and computes on it in float32, where Python's own numbers are rounded to it.
const { fround } = Math;
const MIN_POSITION = fround(-1.2);
const MAX_POSITION = fround(0.6);
const MAX_SPEED = fround(0.07);
const GOAL_POSITION = fround(0.45);
const POWER = fround(0.0015);

/** Options of MountainCarContinuous-v0. */
export type MountainCarContinuousOptions = {
  readonly goalVelocity: number;
};

/**
 * MountainCarContinuous-v0: drive a weak car out of a valley by swinging back and forth (Moore 1990, "Efficient
 * memory-based learning for robot control").
 *
 * **Actions** `Box(1)` in ±1: the force, right positive.
 *
 * **Observations** `Box(2)`:
 *
 * | # | what | limits |
 * |---|---|---|
 * | 0 | position; the valley's bottom is -π/6, the goal 0.45 | -1.2..0.6 |
 * | 1 | velocity per step | ±0.07 |
 *
 * **Reward** -0.1 force² a step, and 100 for reaching the goal. Doing nothing pays 0: the well-known trap.
 *
 * **Start** position uniform in -0.6..-0.4, velocity 0.
 *
 * **End** terminated at the goal with at least `goalVelocity` (0 unless told); truncated at 999 steps. Solved at 90.
 *
 * **Dynamics** velocity += 0.0015 force - 0.0025 cos(3 position), clipped; then position += velocity, clipped; the left
 * wall stops the car.
 *
 * **Versions** v0 is Gymnasium's v0, equal to 1e-6 a step.
 */
export const mountainCarContinuousDefinition = defineEnv<MountainCarContinuousOptions>({
  id: 'MountainCarContinuous-v0',
  description: 'Drive a weak car out of a valley by swinging back and forth.',
  options: {
    goalVelocity: { default: 0, doc: 'least velocity at the goal', min: -0.07, max: 0.07 },
  },
  maxEpisodeSteps: 999,
  rewardThreshold: 90,
  make({ goalVelocity }) {
    const leastVelocity = fround(goalVelocity);
    return simulation({
      observationSpace: box({ shape: [2], low: [MIN_POSITION, -MAX_SPEED], high: [MAX_POSITION, MAX_SPEED] }),
      actionSpace: box({ shape: [1], low: -1, high: 1 }),
      start: rng => ({ position: fround(uniformIn(rng, -0.6, -0.4)), velocity: 0 }),
      observe(state, obs) {
        obs[0] = state.position;
        obs[1] = state.velocity;
      },
      step(state, action, result) {
        const force = action[0];
        const slope = fround(0.0025 * Math.cos(fround(3 * state.position)));
        const faster = fround(state.velocity + fround(fround(force * POWER) - slope));
        const velocity = Math.min(Math.max(faster, -MAX_SPEED), MAX_SPEED);
        const moved = fround(state.position + velocity);
        state.position = Math.min(Math.max(moved, MIN_POSITION), MAX_POSITION);
        state.velocity = state.position === MIN_POSITION && velocity < 0 ? 0 : velocity;
        result.terminated = state.position >= GOAL_POSITION && state.velocity >= leastVelocity;
        result.reward = (result.terminated ? 100 : 0) - force * force * 0.1;
      },
      check: checkFinite,
    });
  },
});

/** {@link mountainCarContinuousDefinition} */
export function mountainCarContinuous(options: MakeOptions<MountainCarContinuousOptions> = {}): MadeEnv {
  return createEnv(mountainCarContinuousDefinition, options);
}
