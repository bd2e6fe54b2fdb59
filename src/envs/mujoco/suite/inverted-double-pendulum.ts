import { createEnv, defineEnv, type MadeEnv, type MakeOptions } from '../../definition.ts';
import { loadEngine } from '../engine.ts';
import { type Element, element, toXml } from '../mjcf.ts';
import { physicsEnv } from '../task.ts';
import { alongRail } from './inverted-pendulum.ts';
import { addNormal, addUniform, COLOURS, clamp, motors, noiseScale, weight } from './shared.ts';

const MIN_TIP_HEIGHT_M = 1;
const OBSERVED_LIMIT = 10;

function hinge(name: string): Element {
  return element('joint', { name, type: 'hinge', axis: [0, 1, 0] });
}

function rod(name: string, rgba: readonly number[]): Element {
  return element('geom', { name, type: 'capsule', fromto: [0, 0, 0, 0, 0, 0.6], size: 0.045, rgba });
}

/** The body as MJCF. */
export const invertedDoublePendulumModel = toXml(
  element('mujoco', { model: 'inverted-double-pendulum' }, [
    element('compiler', { inertiafromgeom: true }),
    // A breath of wind along x, so that upright is not at rest.
    element('option', { integrator: 'RK4', timestep: 0.01, gravity: [1e-5, 0, -9.81] }),
    element('default', {}, [
      element('joint', { damping: 0.05 }),
      element('geom', { contype: 0, friction: [1, 0.1, 0.1] }),
    ]),
    element('worldbody', {}, [
      alongRail('rail', [0.02, 1], COLOURS.ground),
      element('body', { name: 'cart' }, [
        element('joint', {
          name: 'slider',
          type: 'slide',
          axis: [1, 0, 0],
          limited: true,
          range: [-1, 1],
          margin: 0.01,
        }),
        alongRail('cart', [0.1, 0.1], COLOURS.trunk),
        element('body', { name: 'pole' }, [
          hinge('hinge'),
          rod('pole', COLOURS.limb),
          element('body', { name: 'pole2', pos: [0, 0, 0.6] }, [
            hinge('hinge2'),
            rod('pole2', COLOURS.otherLimb),
            element('site', { name: 'tip', pos: [0, 0, 0.6], size: 0.01 }),
          ]),
        ]),
      ]),
    ]),
    motors([['slider', 500]]),
  ]),
);

/** Options of InvertedDoublePendulum-v5, Gymnasium's under the same names. */
export type InvertedDoublePendulumOptions = {
  readonly healthyReward: number;
  readonly resetNoiseScale: number;
};

/**
 * InvertedDoublePendulum-v5: balance two poles, one on top of the other, on a cart that a motor pushes along a rail.
 *
 * **Actions** `Box(1)` in ±1: the force on the cart, in 500 N.
 *
 * **Observations** `Box(9)`:
 *
 * | # | what | unit |
 * |---|---|---|
 * | 0 | position of the cart | m |
 * | 1, 2 | sines of the angles: of the lower pole, and of the upper one to it | 1 |
 * | 3, 4 | their cosines | 1 |
 * | 5-7 | velocities of cart and angles, clipped to ±10 | m/s, rad/s |
 * | 8 | force of the rail's end on the cart, clipped to ±10 | N |
 *
 * **Reward** `survive`, 10 where the tip is up, plus `distance`, -(0.01 x² + (z - 2)²) of the tip, plus `velocity`,
 * -(0.001 ω₁² + 0.005 ω₂²). The tip reaches 1.2 m, so that the best step is worth 9.36.
 *
 * **Start** upright in the middle, with uniform noise of ±0.1 in all positions and normal noise of deviation 0.1 in all
 * velocities.
 *
 * **End** terminated when the tip is at 1 m or below; truncated at 1,000 steps.
 *
 * **Dynamics** 5 substeps of 0.01 s an action (0.05 s), fourth-order Runge-Kutta; the rail ends at ±1 m. As in Gymnasium the
 * tip's place and the rail's force are those of the last substep's start.
 *
 * **Versions** v5 is Gymnasium's v5: from the same state and actions the same trajectory.
 */
export const invertedDoublePendulumDefinition = defineEnv<InvertedDoublePendulumOptions>({
  id: 'InvertedDoublePendulum-v5',
  description: 'Balance two poles, one on the other, on a cart.',
  options: {
    healthyReward: weight(10, 'reward of a step with the tip up'),
    resetNoiseScale: noiseScale(0.1, 'noise of the start, in m, rad, m/s and rad/s'),
  },
  maxEpisodeSteps: 1_000,
  rewardThreshold: 9_100,
  prepare: loadEngine,
  slow: true,
  make: ({ healthyReward, resetNoiseScale }) =>
    physicsEnv({
      model: invertedDoublePendulumModel,
      frameSkip: 5,
      observationSize: 9,
      rewardTerms: ['survive', 'distance', 'velocity'],
      start({ arrays }, rng) {
        addUniform(arrays.qpos, rng, resetNoiseScale);
        addNormal(arrays.qvel, rng, resetNoiseScale);
        return {};
      },
      score({ arrays: { qvel, site_xpos } }, _action, _memory, result) {
        const [x, height] = [site_xpos[0], site_xpos[2]];
        result.terminated = height <= MIN_TIP_HEIGHT_M;
        result.rewardTerms[0] = result.terminated ? 0 : healthyReward;
        result.rewardTerms[1] = -(0.01 * x ** 2 + (height - 2) ** 2);
        result.rewardTerms[2] = -(1e-3 * qvel[1] ** 2 + 5e-3 * qvel[2] ** 2);
      },
      observe({ arrays: { qpos, qvel, qfrc_constraint } }, _memory, obs) {
        obs[0] = qpos[0];
        obs[1] = Math.sin(qpos[1]);
        obs[2] = Math.sin(qpos[2]);
        obs[3] = Math.cos(qpos[1]);
        obs[4] = Math.cos(qpos[2]);
        for (let i = 0; i < 3; i++) obs[5 + i] = clamp(qvel[i], OBSERVED_LIMIT);
        obs[8] = clamp(qfrc_constraint[0], OBSERVED_LIMIT);
      },
    }),
});

/** {@link invertedDoublePendulumDefinition} */
export function invertedDoublePendulum(options: MakeOptions<InvertedDoublePendulumOptions> = {}): MadeEnv {
  return createEnv(invertedDoublePendulumDefinition, options);
}
