import { createEnv, defineEnv, type MadeEnv, type MakeOptions } from '../../definition.ts';
import { NAMED_CONTACTS_ONLY, namedContacts, type Surface } from '../contacts.ts';
import { loadEngine } from '../engine.ts';
import { element, toXml } from '../mjcf.ts';
import type { PhysicsArrays } from '../physics.ts';
import { physicsEnv } from '../task.ts';
import { type LegFigures, LIMB_FRICTION, leg, STANDING, trunkGeom } from './leg.ts';
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

const MIN_HEIGHT_M = 0.8;
const MAX_HEIGHT_M = 2;
const MAX_PITCH = 1; // rad
const GEAR = 100; // N m

const figures: LegFigures = { heel: 0, toe: 0.2, frame: 0.2, footFriction: 1.9, rgba: COLOURS.limb };

/** Of a body with the floor, which slides more easily than any of them. */
const surface = (slide: number): Surface => ({ condim: 3, friction: [slide, 0.1, 0.1] });

/** The body as MJCF. */
export const walker2dModel = toXml(
  element('mujoco', { model: 'walker2d' }, [
    element('compiler', { angle: 'degree', inertiafromgeom: true }),
    element('option', { integrator: 'RK4', timestep: 0.002 }),
    element('default', {}, [
      element('joint', { limited: true, armature: 0.01, damping: 0.1 }),
      element('geom', { ...NAMED_CONTACTS_ONLY, condim: 3, density: 1000, friction: [0.7, 0.1, 0.1] }),
    ]),
    element('worldbody', {}, [
      floor(0, 0),
      element('body', { name: 'torso', pos: [0, 0, STANDING.trunk] }, [
        ...planarRoot(STANDING.trunk),
        trunkGeom(COLOURS.trunk),
        leg(figures),
        leg({ ...figures, suffix: '_left', rgba: COLOURS.otherLimb }),
      ]),
    ]),
    namedContacts([
      ['floor', 'torso', surface(LIMB_FRICTION)],
      ...['', '_left'].flatMap(side => [
        ['floor', `thigh${side}`, surface(LIMB_FRICTION)] as const,
        ['floor', `leg${side}`, surface(LIMB_FRICTION)] as const,
        ['floor', `foot${side}`, surface(figures.footFriction)] as const,
      ]),
    ]),
    motors(
      ['', '_left'].flatMap(side => ['thigh', 'leg', 'foot'].map(part => [`${part}${side}_joint`, GEAR])),
    ),
  ]),
);

/** Options of Walker2d-v5, Gymnasium's under the same names. */
export type Walker2dOptions = RunnerOptions & HealthyOptions;

/**
 * Walker2d-v5: a flat body on two legs walks to the right without falling.
 *
 * **Actions** `Box(6)` in ±1: torques on hip, knee and ankle of the right leg, then of the left, as parts of 100 N m.
 *
 * **Observations** `Box(17)`, or 18 with `excludeCurrentPositionsFromObservation: false`, which puts x first:
 *
 * | # | what | unit |
 * |---|---|---|
 * | 0, 1 | height of the trunk, its pitch | m, rad |
 * | 2-7 | angles of the joints, in the actions' order | rad |
 * | 8-10 | velocities of x, height and pitch, clipped to ±10 | m/s, rad/s |
 * | 11-16 | velocities of the joints, clipped to ±10 | rad/s |
 *
 * **Reward** `forward`, the speed along x in m/s over the step, plus `survive`, 1 where it has not fallen, plus `control`,
 * -0.001 ‖action‖².
 *
 * **Start** the standing pose with uniform noise of ±0.005 in all positions and velocities.
 *
 * **End** terminated by a fall: the height not between 0.8 and 2 m, or the pitch not within ±1 rad. Truncated at 1,000 steps.
 *
 * **Dynamics** 4 substeps of 0.002 s an action (0.008 s), fourth-order Runge-Kutta.
 *
 * **Versions** v5 is Gymnasium's v5, where both feet have the same friction: from the same state and actions the same
 * trajectory. After T. Erez, Y. Tassa and E. Todorov (2011), see Hopper.
 */
export const walker2dDefinition = defineEnv<Walker2dOptions>({
  id: 'Walker2d-v5',
  description: 'A two-legged body walks forward without falling.',
  options: {
    forwardRewardWeight: weight(1, 'reward for a speed of 1 m/s'),
    ctrlCostWeight: weight(1e-3, 'cost of the squared action'),
    healthyReward: weight(1, 'reward of a step without a fall'),
    terminateWhenUnhealthy: TERMINATE_WHEN_UNHEALTHY,
    resetNoiseScale: noiseScale(5e-3, 'noise of the start, in m, rad, m/s and rad/s'),
    excludeCurrentPositionsFromObservation: EXCLUDE_POSITIONS,
  },
  maxEpisodeSteps: 1_000,
  prepare: loadEngine,
  slow: true,
  make: options =>
    physicsEnv(
      runnerTask(
        {
          model: walker2dModel,
          frameSkip: 4,
          joints: 9,
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

/** {@link walker2dDefinition} */
export function walker2d(options: MakeOptions<Walker2dOptions> = {}): MadeEnv {
  return createEnv(walker2dDefinition, options);
}

function isHealthy({ qpos }: PhysicsArrays): boolean {
  const heightM = qpos[1];
  return heightM > MIN_HEIGHT_M && heightM < MAX_HEIGHT_M && Math.abs(qpos[2]) < MAX_PITCH;
}
