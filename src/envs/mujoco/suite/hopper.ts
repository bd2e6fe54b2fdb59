import { createEnv, defineEnv, type MadeEnv, type MakeOptions } from '../../definition.ts';
import { loadEngine } from '../engine.ts';
import { element, toXml } from '../mjcf.ts';
import type { PhysicsArrays } from '../physics.ts';
import { physicsEnv } from '../task.ts';
import { leg, STANDING, trunkGeom } from './leg.ts';
import {
  addUniform,
  COLOURS,
  EXCLUDE_POSITIONS,
  floor,
  type HealthyOptions,
  motors,
  noiseScale,
  planarRoot,
  type RunnerOptions,
  runnerTask,
  TERMINATE_WHEN_UNHEALTHY,
  weight,
} from './shared.ts';

const MIN_HEIGHT_M = 0.7;
const MAX_PITCH = 0.2; // rad
const MAX_STATE = 100;

/** The body as MJCF. */
export const hopperModel = toXml(
  element('mujoco', { model: 'hopper' }, [
    element('compiler', { angle: 'degree', inertiafromgeom: true }),
    element('option', { integrator: 'RK4', timestep: 0.002 }),
    element('default', {}, [
      element('joint', { limited: true, armature: 1, damping: 1 }),
      element('geom', { condim: 1, margin: 0.001, solimp: [0.8, 0.8, 0.01], solref: [0.02, 1] }),
    ]),
    element('worldbody', {}, [
      floor(),
      element('body', { name: 'torso', pos: [0, 0, STANDING.trunk] }, [
        ...planarRoot(STANDING.trunk),
        trunkGeom(COLOURS.trunk),
        leg({ heel: -0.13, toe: 0.26, frame: 0.13, footFriction: 2, rgba: COLOURS.limb }),
      ]),
    ]),
    motors([
      ['thigh_joint', 200],
      ['leg_joint', 200],
      ['foot_joint', 200],
    ]),
  ]),
);

/** Options of Hopper-v5, Gymnasium's under the same names. */
export type HopperOptions = RunnerOptions & HealthyOptions;

/**
 * Hopper-v5: a flat body on one leg hops to the right without falling.
 *
 * **Actions** `Box(3)` in ±1: torques on hip, knee and ankle, as parts of 200 N m.
 *
 * **Observations** `Box(11)`, or 12 with `excludeCurrentPositionsFromObservation: false`, which puts x first:
 *
 * | # | what | unit |
 * |---|---|---|
 * | 0, 1 | height of the trunk, its pitch | m, rad |
 * | 2-4 | angles of hip, knee and ankle | rad |
 * | 5-7 | velocities of x, height and pitch, clipped to ±10 | m/s, rad/s |
 * | 8-10 | velocities of the joints, clipped to ±10 | rad/s |
 *
 * **Reward** `forward`, the speed along x in m/s over the step, plus `survive`, 1 where it has not fallen, plus `control`,
 * -0.001 ‖action‖².
 *
 * **Start** the standing pose with uniform noise of ±0.005 in all positions and velocities.
 *
 * **End** terminated by a fall: the height not above 0.7 m, the pitch not within ±0.2 rad, or any other number of the state
 * (joint angles, velocities) not within ±100. Truncated at 1,000 steps.
 *
 * **Dynamics** 4 substeps of 0.002 s an action (0.008 s), fourth-order Runge-Kutta.
 *
 * **Versions** v5 is Gymnasium's v5: from the same state and actions the same trajectory. After T. Erez, Y. Tassa and
 * E. Todorov, "Infinite-Horizon Model Predictive Control for Periodic Tasks with Contacts" (2011).
 */
export const hopperDefinition = defineEnv<HopperOptions>({
  id: 'Hopper-v5',
  description: 'A one-legged body hops forward without falling.',
  options: {
    forwardRewardWeight: weight(1, 'reward for a speed of 1 m/s'),
    ctrlCostWeight: weight(1e-3, 'cost of the squared action'),
    healthyReward: weight(1, 'reward of a step without a fall'),
    terminateWhenUnhealthy: TERMINATE_WHEN_UNHEALTHY,
    resetNoiseScale: noiseScale(5e-3, 'noise of the start, in m, rad, m/s and rad/s'),
    excludeCurrentPositionsFromObservation: EXCLUDE_POSITIONS,
  },
  maxEpisodeSteps: 1_000,
  rewardThreshold: 3_800,
  prepare: loadEngine,
  slow: true,
  make: options =>
    physicsEnv(
      runnerTask(
        {
          model: hopperModel,
          frameSkip: 4,
          joints: 6,
          travelled: 1,
          velocityLimit: 10,
          start({ arrays }, rng) {
            addUniform(arrays.qpos, rng, options.resetNoiseScale);
            addUniform(arrays.qvel, rng, options.resetNoiseScale);
          },
          health: { ...options, isHealthy },
        },
        options,
      ),
    ),
});

/** {@link hopperDefinition} */
export function hopper(options: MakeOptions<HopperOptions> = {}): MadeEnv {
  return createEnv(hopperDefinition, options);
}

function isHealthy({ qpos, qvel }: PhysicsArrays): boolean {
  for (let i = 2; i < qpos.length; i++) if (!(Math.abs(qpos[i]) < MAX_STATE)) return false;
  for (let i = 0; i < qvel.length; i++) if (!(Math.abs(qvel[i]) < MAX_STATE)) return false;
  return qpos[1] > MIN_HEIGHT_M && Math.abs(qpos[2]) < MAX_PITCH;
}
