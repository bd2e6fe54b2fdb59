import { createEnv, defineEnv, type MadeEnv, type MakeOptions } from '../../definition.ts';
import { loadEngine } from '../engine.ts';
import { type Element, element, toXml } from '../mjcf.ts';
import { physicsEnv } from '../task.ts';
import { addUniform, COLOURS, motors, noiseScale, observeState } from './shared.ts';

const MAX_ANGLE = 0.2; // rad

/** A capsule along x: a quarter of a turn about y. */
export function alongRail(name: string, size: readonly number[], rgba: readonly number[]): Element {
  return element('geom', { name, type: 'capsule', quat: [1, 0, 1, 0], size, rgba });
}

/** The body as MJCF. */
export const invertedPendulumModel = toXml(
  element('mujoco', { model: 'inverted-pendulum' }, [
    element('compiler', { inertiafromgeom: true }),
    element('option', { integrator: 'RK4', timestep: 0.02 }),
    element('default', {}, [
      element('joint', { limited: true, armature: 0, damping: 1 }),
      element('geom', { contype: 0, friction: [1, 0.1, 0.1] }),
    ]),
    element('worldbody', {}, [
      alongRail('rail', [0.02, 1], COLOURS.ground),
      element('body', { name: 'cart' }, [
        element('joint', { name: 'slider', type: 'slide', axis: [1, 0, 0], range: [-1, 1] }),
        alongRail('cart', [0.1, 0.1], COLOURS.trunk),
        element('body', { name: 'pole' }, [
          element('joint', { name: 'hinge', type: 'hinge', axis: [0, 1, 0], range: [-90, 90] }),
          // The tip is a millimetre off, so that upright is not at rest.
          element('geom', {
            name: 'pole',
            type: 'capsule',
            fromto: [0, 0, 0, 0.001, 0, 0.6],
            size: 0.049,
            rgba: COLOURS.limb,
          }),
        ]),
      ]),
    ]),
    motors([['slider', 100]], 3),
  ]),
);

/** Options of InvertedPendulum-v5, Gymnasium's under the same names. */
export type InvertedPendulumOptions = {
  readonly resetNoiseScale: number;
};

/**
 * InvertedPendulum-v5: balance a pole on a cart that a motor pushes along a rail.
 *
 * **Actions** `Box(1)` in ±3: the force on the cart, in 100 N.
 *
 * **Observations** `Box(4)`: the cart's position in m, the pole's angle in rad (0 is upright), and their velocities.
 *
 * **Reward** `survive`, 1 a step, and 0 at the one that ends the episode.
 *
 * **Start** upright in the middle, with uniform noise of ±0.01 in all positions and velocities.
 *
 * **End** terminated when the pole is beyond ±0.2 rad; truncated at 1,000 steps.
 *
 * **Dynamics** 2 substeps of 0.02 s an action (0.04 s), fourth-order Runge-Kutta; the rail ends at ±1 m.
 *
 * **Versions** v5 is Gymnasium's v5: from the same state and actions the same trajectory. After A. Barto, R. Sutton and
 * C. Anderson (1983), as CartPole.
 */
export const invertedPendulumDefinition = defineEnv<InvertedPendulumOptions>({
  id: 'InvertedPendulum-v5',
  description: 'Balance a pole on a cart, in MuJoCo.',
  options: {
    resetNoiseScale: noiseScale(0.01, 'noise of the start, in m, rad, m/s and rad/s'),
  },
  maxEpisodeSteps: 1_000,
  rewardThreshold: 950,
  prepare: loadEngine,
  slow: true,
  make: ({ resetNoiseScale }) =>
    physicsEnv({
      model: invertedPendulumModel,
      frameSkip: 2,
      observationSize: 4,
      rewardTerms: ['survive'],
      start({ arrays }, rng) {
        addUniform(arrays.qpos, rng, resetNoiseScale);
        addUniform(arrays.qvel, rng, resetNoiseScale);
        return {};
      },
      score({ arrays }, _action, _memory, result) {
        result.terminated = Math.abs(arrays.qpos[1]) > MAX_ANGLE;
        result.rewardTerms[0] = result.terminated ? 0 : 1;
      },
      observe({ arrays }, _memory, obs) {
        observeState(arrays, obs, 0);
      },
    }),
});

/** {@link invertedPendulumDefinition} */
export function invertedPendulum(options: MakeOptions<InvertedPendulumOptions> = {}): MadeEnv {
  return createEnv(invertedPendulumDefinition, options);
}
