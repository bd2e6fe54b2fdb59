import { createEnv, defineEnv, type MadeEnv, type MakeOptions } from '../definition.ts';
import { simulation } from '../simulation.ts';
import { box, discrete } from '../spaces.ts';
import { uniformIn } from './draw.ts';
import { checkFinite } from './finite.ts';

const GRAVITY = 9.8; // m/s²
const POLE_MASS = 0.1; // kg
const TOTAL_MASS = POLE_MASS + 1; // kg, with the cart's
const HALF_LENGTH = 0.5; // m
const POLE_MOMENT = POLE_MASS * HALF_LENGTH; // kg m
const FORCE = 10; // N
const STEP_SECONDS = 0.02;
const MAX_ANGLE = (12 * 2 * Math.PI) / 360; // rad
const MAX_POSITION = 2.4; // m

/** Options of CartPole-v1. */
export type CartPoleOptions = {
  readonly suttonBartoReward: boolean;
};

/**
 * CartPole-v1: keep a pole upright on a cart by pushing the cart left or right (Barto, Sutton & Anderson 1983,
 * "Neuronlike adaptive elements that can solve difficult learning control problems").
 *
 * **Actions** `Discrete(2)`: 0 pushes left with 10 N, 1 pushes right.
 *
 * **Observations** `Box(4)`:
 *
 * | # | what | limits of the space | episode ends beyond |
 * |---|---|---|---|
 * | 0 | cart position, m | ±4.8 | ±2.4 |
 * | 1 | cart velocity, m/s | none | |
 * | 2 | pole angle, rad; 0 is upright | ±0.419 (24°) | ±0.209 (12°) |
 * | 3 | pole angular velocity, rad/s | none | |
 *
 * **Reward** 1 for every step, the last included. With `suttonBartoReward`: -1 for the step that ends, else 0.
 *
 * **Start** all four uniform in ±0.05.
 *
 * **End** terminated when position or angle leaves its limits; truncated at 500 steps. Solved at 475.
 *
 * **Dynamics** explicit Euler at 0.02 s: positions move by the velocities of before the step.
 *
 * **Versions** v1 is Gymnasium's v1 (500 steps), equal to 1e-6 a step; v0, 200 steps, is `maxEpisodeSteps: 200`.
 */
export const cartPoleDefinition = defineEnv<CartPoleOptions>({
  id: 'CartPole-v1',
  description: 'Balance a pole on a cart by pushing left or right.',
  options: {
    suttonBartoReward: {
      default: false,
      doc: '-1 for the step that ends the episode and 0 for others, instead of 1 for all',
    },
  },
  maxEpisodeSteps: 500,
  rewardThreshold: 475,
  make: ({ suttonBartoReward }) =>
    simulation({
      observationSpace: box({
        shape: [4],
        low: [-2 * MAX_POSITION, Number.NEGATIVE_INFINITY, -2 * MAX_ANGLE, Number.NEGATIVE_INFINITY],
        high: [2 * MAX_POSITION, Number.POSITIVE_INFINITY, 2 * MAX_ANGLE, Number.POSITIVE_INFINITY],
      }),
      actionSpace: discrete(2),
      start: rng => ({
        position: uniformIn(rng, -0.05, 0.05),
        velocity: uniformIn(rng, -0.05, 0.05),
        angle: uniformIn(rng, -0.05, 0.05),
        spin: uniformIn(rng, -0.05, 0.05),
      }),
      observe(state, obs) {
        obs[0] = state.position;
        obs[1] = state.velocity;
        obs[2] = state.angle;
        obs[3] = state.spin;
      },
      step(state, action, result) {
        const { velocity, angle, spin } = state;
        const cos = Math.cos(angle);
        const sin = Math.sin(angle);
        // Florian (2007), "Correct equations for the dynamics of the cart-pole system", without friction.
        const push = ((action[0] === 1 ? FORCE : -FORCE) + POLE_MOMENT * (spin * spin) * sin) / TOTAL_MASS;
        const spinRate =
          (GRAVITY * sin - cos * push) / (HALF_LENGTH * (4 / 3 - (POLE_MASS * (cos * cos)) / TOTAL_MASS));
        const acceleration = push - (POLE_MOMENT * spinRate * cos) / TOTAL_MASS;
        state.position += STEP_SECONDS * velocity;
        state.velocity += STEP_SECONDS * acceleration;
        state.angle += STEP_SECONDS * spin;
        state.spin += STEP_SECONDS * spinRate;
        result.terminated = Math.abs(state.position) > MAX_POSITION || Math.abs(state.angle) > MAX_ANGLE;
        if (suttonBartoReward) result.reward = result.terminated ? -1 : 0;
        else result.reward = 1;
      },
      check: checkFinite,
    }),
});

/** {@link cartPoleDefinition} */
export function cartPole(options: MakeOptions<CartPoleOptions> = {}): MadeEnv {
  return createEnv(cartPoleDefinition, options);
}
