import { createEnv, defineEnv, type MadeEnv, type MakeOptions } from '../definition.ts';
import { simulation } from '../simulation.ts';
import { box, discrete } from '../spaces.ts';
import { uniformIn } from './draw.ts';
import { checkFinite } from './finite.ts';

// Both links are 1 m, 1 kg, with the centre of mass in the middle and a moment of inertia of 1 kg m².
const GRAVITY = 9.8; // m/s²
const CENTRE = 0.5; // m
const STEP_SECONDS = 0.2;
const MAX_SPEED_1 = 4 * Math.PI; // rad/s
const MAX_SPEED_2 = 9 * Math.PI; // rad/s
const HALF_PI = Math.PI / 2;
const TWO_PI = 2 * Math.PI;

/** Options of Acrobot-v1. */
export type AcrobotOptions = {
  readonly dynamics: 'book' | 'nips';
};

/**
 * Acrobot-v1: swing the free end of a two-link chain above a line, with a motor at the joint between the links only
 * (Sutton 1996, "Generalization in reinforcement learning: successful examples using sparse coarse coding").
 *
 * **Actions** `Discrete(3)`: torque of -1, 0 or 1 N m at the joint between the links.
 *
 * **Observations** `Box(6)`:
 *
 * | # | what | limits |
 * |---|---|---|
 * | 0, 1 | cosine and sine of the first link's angle; 0 hangs straight down | ±1 |
 * | 2, 3 | cosine and sine of the second link's angle, relative to the first's | ±1 |
 * | 4 | the first link's angular velocity, rad/s | ±4π |
 * | 5 | the second link's angular velocity, rad/s | ±9π |
 *
 * **Reward** -1 a step, 0 for the step that reaches the line.
 *
 * **Start** both angles and velocities uniform in ±0.1.
 *
 * **End** terminated when the free end is more than 1 m above the fixed one (-cos a₁ - cos(a₁ + a₂) > 1); truncated at
 * 500 steps. Solved at -100.
 *
 * **Dynamics** one Runge-Kutta step of order 4 over 0.2 s, then angles wrapped to ±π and velocities clipped. `dynamics:
 * 'nips'` uses the paper's equations, which lack a term of the book's (Sutton & Barto).
 *
 * **Versions** v1 is Gymnasium's v1, equal to 1e-6 a step.
 */
export const acrobotDefinition = defineEnv<AcrobotOptions>({
  id: 'Acrobot-v1',
  description: 'Swing the end of a two-link chain above a line, with a motor at the middle joint.',
  options: {
    dynamics: {
      default: 'book',
      oneOf: ['book', 'nips'],
      doc: "equations of Sutton & Barto's book, or of the 1996 paper",
    },
  },
  maxEpisodeSteps: 500,
  rewardThreshold: -100,
  make({ dynamics }) {
    const centrifugal = dynamics === 'book' ? CENTRE : 0;
    // Derivatives of the four state variables at the four points of a Runge-Kutta step.
    const k1 = new Float64Array(4);
    const k2 = new Float64Array(4);
    const k3 = new Float64Array(4);
    const k4 = new Float64Array(4);

    /** Writes the derivatives of (angle1, angle2, speed1, speed2). */
    function derive(
      angle1: number,
      angle2: number,
      speed1: number,
      speed2: number,
      torque: number,
      out: Float64Array,
    ): void {
      const cos2 = Math.cos(angle2);
      const sin2 = Math.sin(angle2);
      const d1 = CENTRE * CENTRE + (1 + CENTRE * CENTRE + 2 * CENTRE * cos2) + 2;
      const d2 = CENTRE * CENTRE + CENTRE * cos2 + 1;
      const phi2 = CENTRE * GRAVITY * Math.cos(angle1 + angle2 - HALF_PI);
      const phi1 =
        -CENTRE * (speed2 * speed2) * sin2 -
        2 * CENTRE * speed2 * speed1 * sin2 +
        (CENTRE + 1) * GRAVITY * Math.cos(angle1 - HALF_PI) +
        phi2;
      const rate2 =
        (torque + (d2 / d1) * phi1 - centrifugal * (speed1 * speed1) * sin2 - phi2) /
        (CENTRE * CENTRE + 1 - (d2 * d2) / d1);
      out[0] = speed1;
      out[1] = speed2;
      out[2] = -(d2 * rate2 + phi1) / d1;
      out[3] = rate2;
    }

    return simulation({
      observationSpace: box({
        shape: [6],
        low: [-1, -1, -1, -1, -MAX_SPEED_1, -MAX_SPEED_2],
        high: [1, 1, 1, 1, MAX_SPEED_1, MAX_SPEED_2],
      }),
      actionSpace: discrete(3),
      // Gymnasium rounds the start, and only the start, to float32.
      start: rng => ({
        angle1: Math.fround(uniformIn(rng, -0.1, 0.1)),
        angle2: Math.fround(uniformIn(rng, -0.1, 0.1)),
        speed1: Math.fround(uniformIn(rng, -0.1, 0.1)),
        speed2: Math.fround(uniformIn(rng, -0.1, 0.1)),
      }),
      observe(state, obs) {
        obs[0] = Math.cos(state.angle1);
        obs[1] = Math.sin(state.angle1);
        obs[2] = Math.cos(state.angle2);
        obs[3] = Math.sin(state.angle2);
        obs[4] = state.speed1;
        obs[5] = state.speed2;
      },
      step(state, action, result) {
        const { angle1, angle2, speed1, speed2 } = state;
        const torque = action[0] - 1;
        const h = STEP_SECONDS / 2;
        derive(angle1, angle2, speed1, speed2, torque, k1);
        derive(angle1 + h * k1[0], angle2 + h * k1[1], speed1 + h * k1[2], speed2 + h * k1[3], torque, k2);
        derive(angle1 + h * k2[0], angle2 + h * k2[1], speed1 + h * k2[2], speed2 + h * k2[3], torque, k3);
        const t = STEP_SECONDS;
        derive(angle1 + t * k3[0], angle2 + t * k3[1], speed1 + t * k3[2], speed2 + t * k3[3], torque, k4);
        const move = (i: number): number => (t / 6) * (k1[i] + 2 * k2[i] + 2 * k3[i] + k4[i]);
        state.angle1 = wrap(angle1 + move(0));
        state.angle2 = wrap(angle2 + move(1));
        state.speed1 = Math.min(Math.max(speed1 + move(2), -MAX_SPEED_1), MAX_SPEED_1);
        state.speed2 = Math.min(Math.max(speed2 + move(3), -MAX_SPEED_2), MAX_SPEED_2);
        result.terminated = -Math.cos(state.angle1) - Math.cos(state.angle2 + state.angle1) > 1;
        result.reward = result.terminated ? 0 : -1;
      },
      check: checkFinite,
    });
  },
});

/** {@link acrobotDefinition} */
export function acrobot(options: MakeOptions<AcrobotOptions> = {}): MadeEnv {
  return createEnv(acrobotDefinition, options);
}

/** The angle in [-π, π]. One step turns it by less than ten turns, so whole turns are taken off one by one, exactly. */
function wrap(angle: number): number {
  let wrapped = angle;
  while (wrapped > Math.PI) wrapped -= TWO_PI;
  while (wrapped < -Math.PI) wrapped += TWO_PI;
  return wrapped;
}
