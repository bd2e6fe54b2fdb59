import { createEnv, defineEnv, type MadeEnv, type MakeOptions } from '../../definition.ts';
import { loadEngine } from '../engine.ts';
import { type Element, element, toXml } from '../mjcf.ts';
import { physicsEnv } from '../task.ts';
import {
  addUniform,
  COLOURS,
  EXCLUDE_POSITIONS,
  floor,
  motors,
  noiseScale,
  type RunnerOptions,
  runnerTask,
  weight,
} from './shared.ts';

/** A rod of 1 m that reaches back from `from` on the x axis. */
function rod(from: number, rgba: readonly number[]): Element {
  return element('geom', { type: 'capsule', fromto: [from, 0, 0, from - 1, 0, 0], size: 0.1, rgba });
}

function bend(name: string): Element {
  return element('joint', { name, type: 'hinge', axis: [0, 0, 1], limited: true, range: [-100, 100] });
}

/** The body as MJCF. */
export const swimmerModel = toXml(
  element('mujoco', { model: 'swimmer' }, [
    element('compiler', { angle: 'degree', inertiafromgeom: true }),
    // The fluid all around: its density in kg/m³ and its viscosity in Pa s.
    element('option', { integrator: 'RK4', timestep: 0.01, density: 4000, viscosity: 0.1 }),
    element('default', {}, [
      element('joint', { armature: 0.1 }),
      element('geom', { contype: 0, conaffinity: 0, condim: 1, density: 1000 }),
    ]),
    element('worldbody', {}, [
      floor(-0.1, 0),
      element('body', { name: 'torso' }, [
        rod(1.5, COLOURS.trunk),
        element('joint', { name: 'slider1', type: 'slide', axis: [1, 0, 0] }),
        element('joint', { name: 'slider2', type: 'slide', axis: [0, 1, 0] }),
        element('joint', { name: 'free_body_rot', type: 'hinge', axis: [0, 0, 1] }),
        element('body', { name: 'mid', pos: [0.5, 0, 0] }, [
          rod(0, COLOURS.limb),
          bend('motor1_rot'),
          element('body', { name: 'back', pos: [-1, 0, 0] }, [rod(0, COLOURS.otherLimb), bend('motor2_rot')]),
        ]),
      ]),
    ]),
    motors([
      ['motor1_rot', 150],
      ['motor2_rot', 150],
    ]),
  ]),
);

/** Options of Swimmer-v5, Gymnasium's under the same names. */
export type SwimmerOptions = RunnerOptions;

/**
 * Swimmer-v5: three rods in a row, in a thick fluid, swim to the right by bending at their two joints.
 *
 * **Actions** `Box(2)` in ±1: torques on the front joint and on the back one, as parts of 150 N m.
 *
 * **Observations** `Box(8)`, or 10 with `excludeCurrentPositionsFromObservation: false`, which puts x and y first:
 *
 * | # | what | unit |
 * |---|---|---|
 * | 0 | angle of the front rod | rad |
 * | 1, 2 | angles of the joints | rad |
 * | 3, 4 | velocities along x and y of the front rod's tip | m/s |
 * | 5-7 | velocities of the three angles | rad/s |
 *
 * **Reward** `forward`, the speed along x in m/s over the step, plus `control`, -0.0001 ‖action‖².
 *
 * **Start** straight and at rest, with uniform noise of ±0.1 in all positions and velocities.
 *
 * **End** never terminated; truncated at 1,000 steps. What a stroke earns shows late: look far ahead (gamma .9999).
 *
 * **Dynamics** 4 substeps of 0.01 s an action (0.04 s), fourth-order Runge-Kutta; no gravity acts in the plane.
 *
 * **Versions** v5 is Gymnasium's v5: from the same state and actions the same trajectory. After R. Coulom, "Reinforcement
 * Learning Using Neural Networks, with Applications to Motor Control" (2002).
 */
export const swimmerDefinition = defineEnv<SwimmerOptions>({
  id: 'Swimmer-v5',
  description: 'Three rods in a thick fluid swim forward.',
  options: {
    forwardRewardWeight: weight(1, 'reward for a speed of 1 m/s'),
    ctrlCostWeight: weight(1e-4, 'cost of the squared action'),
    resetNoiseScale: noiseScale(0.1, 'noise of the start, in m, rad, m/s and rad/s'),
    excludeCurrentPositionsFromObservation: EXCLUDE_POSITIONS,
  },
  maxEpisodeSteps: 1_000,
  rewardThreshold: 360,
  prepare: loadEngine,
  slow: true,
  make: options =>
    physicsEnv(
      runnerTask(
        {
          model: swimmerModel,
          frameSkip: 4,
          joints: 5,
          travelled: 2,
          start({ arrays }, rng) {
            addUniform(arrays.qpos, rng, options.resetNoiseScale);
            addUniform(arrays.qvel, rng, options.resetNoiseScale);
          },
        },
        options,
      ),
    ),
});

/** {@link swimmerDefinition} */
export function swimmer(options: MakeOptions<SwimmerOptions> = {}): MadeEnv {
  return createEnv(swimmerDefinition, options);
}
