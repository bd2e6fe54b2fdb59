import { createEnv, defineEnv, type MadeEnv, type MakeOptions } from '../definition.ts';
import { simulation } from '../simulation.ts';
import { box } from '../spaces.ts';
import { uniformIn } from './draw.ts';
import { checkFinite } from './finite.ts';

const MAX_SPEED = 8; // rad/s
const MAX_TORQUE = 2; // N m
const STEP_SECONDS = 0.05;
// The action is float32, and so, in numpy, are its products with Python's numbers; all else is float64.
const { fround } = Math;
const TORQUE_COST = fround(0.001);
const TWO_PI = 2 * Math.PI;

/** Options of Pendulum-v1. */
export type PendulumOptions = {
  readonly gravity: number;
};

/**
 * Pendulum-v1: swing a pendulum up and hold it upright, with a motor too weak to lift it at once.
 *
 * **Actions** `Box(1)` in ±2: the torque in N m, counter-clockwise positive.
 *
 * **Observations** `Box(3)`:
 *
 * | # | what | limits |
 * |---|---|---|
 * | 0 | cosine of the angle; 1 is upright | ±1 |
 * | 1 | sine of the angle | ±1 |
 * | 2 | angular velocity, rad/s | ±8 |
 *
 * **Reward** -(angle² + 0.1 velocity² + 0.001 torque²), of the state before the step, with the angle in ±π: from -16.27 to 0.
 *
 * **Start** angle uniform in ±π, velocity in ±1.
 *
 * **End** never terminated; truncated at 200 steps. A good policy reaches about -150, a random one -1,200.
 *
 * **Dynamics** a rod of 1 m and 1 kg, semi-implicit Euler at 0.05 s: the velocity moves first, is clipped to ±8, then
 * moves the angle. `gravity` is 10 m/s² unless told.
 *
 * **Versions** v1 is Gymnasium's v1, equal to 1e-6 a step.
 */
export const pendulumDefinition = defineEnv<PendulumOptions>({
  id: 'Pendulum-v1',
  description: 'Swing a pendulum up and hold it there, with a weak motor.',
  options: {
    gravity: { default: 10, doc: 'acceleration of gravity, m/s²', min: -100, max: 100 },
  },
  maxEpisodeSteps: 200,
  make: ({ gravity }) =>
    simulation({
      observationSpace: box({ shape: [3], low: [-1, -1, -MAX_SPEED], high: [1, 1, MAX_SPEED] }),
      actionSpace: box({ shape: [1], low: -MAX_TORQUE, high: MAX_TORQUE }),
      start: rng => ({ angle: uniformIn(rng, -Math.PI, Math.PI), speed: uniformIn(rng, -1, 1) }),
      observe(state, obs) {
        obs[0] = Math.cos(state.angle);
        obs[1] = Math.sin(state.angle);
        obs[2] = state.speed;
      },
      step(state, action, result) {
        const torque = action[0];
        const off = fromUpright(state.angle);
        const cost = fround(TORQUE_COST * fround(torque * torque));
        result.reward = -(off * off + 0.1 * (state.speed * state.speed) + cost);
        const speed =
          state.speed + (1.5 * gravity * Math.sin(state.angle) + fround(3 * torque)) * STEP_SECONDS;
        state.speed = Math.min(Math.max(speed, -MAX_SPEED), MAX_SPEED);
        state.angle += state.speed * STEP_SECONDS;
      },
      check: checkFinite,
    }),
});

/** {@link pendulumDefinition} */
export function pendulum(options: MakeOptions<PendulumOptions> = {}): MadeEnv {
  return createEnv(pendulumDefinition, options);
}

/** The angle in [-π, π). JavaScript's remainder has the sign of the dividend; this one must not be negative. */
function fromUpright(angle: number): number {
  const turned = (angle + Math.PI) % TWO_PI;
  return (turned < 0 ? turned + TWO_PI : turned) - Math.PI;
}
