import { createEnv, defineEnv, type MadeEnv, type MakeOptions } from '../../definition.ts';
import { NAMED_CONTACTS_ONLY, namedContacts, type Surface } from '../contacts.ts';
import { loadEngine } from '../engine.ts';
import { type Element, element, toXml } from '../mjcf.ts';
import type { PhysicsArrays } from '../physics.ts';
import { type PhysicsTask, physicsEnv } from '../task.ts';
import {
  addNormal,
  addUniform,
  COLOURS,
  clamp,
  drive,
  EXCLUDE_POSITIONS,
  floor,
  type HealthyOptions,
  motors,
  noiseScale,
  observeState,
  type RunnerOptions,
  squareSum,
  TERMINATE_WHEN_UNHEALTHY,
  weight,
} from './shared.ts';

const FRAME_SKIP = 5;
const MIN_HEIGHT_M = 0.2;
const MAX_HEIGHT_M = 1;
const MAX_FORCE = 1; // N, N m
const POSITIONS = 15;
const VELOCITIES = 14;
/** Six numbers for each body but the world. */
const FORCES = 6 * 13;
/** The trunk is the first body after the world; its x in `xpos`. */
const TRUNK_X = 3;
const GEAR = 150; // N m
/** Of a leg, from the trunk outwards. */
const PARTS = ['fixed', 'upper', 'lower'] as const;
const MARGIN_M = 0.01;
const SURFACE = { condim: 3, friction: [1, 0.5, 0.5] } as const satisfies Surface;

/** The leg of a quadrant: from the trunk's middle outwards a fixed part, one that turns about z, and one that goes up and down. */
function leg(number: number, name: string, x: 1 | -1, y: 1 | -1): Element {
  const rgba = x === 1 ? COLOURS.limb : COLOURS.otherLimb;
  const rod = (part: (typeof PARTS)[number], reach: number): Element =>
    element('geom', {
      name: `${part}_${number}`,
      type: 'capsule',
      fromto: [0, 0, 0, x * reach, y * reach, 0],
      size: 0.08,
      rgba,
    });
  const joint = (kind: string, axis: readonly number[], range: readonly number[]): Element =>
    element('joint', { name: `${kind}_${number}`, type: 'hinge', axis, range });
  return element('body', { name }, [
    rod('fixed', 0.2),
    element('body', { name: `aux_${number}`, pos: [x * 0.2, y * 0.2, 0] }, [
      joint('hip', [0, 0, 1], [-30, 30]),
      rod('upper', 0.2),
      element('body', { name: `foot_${number}`, pos: [x * 0.2, y * 0.2, 0] }, [
        joint('ankle', [-x * y, 1, 0], x === 1 ? [30, 70] : [-70, -30]),
        rod('lower', 0.4),
      ]),
    ]),
  ]);
}

/** The body as MJCF. */
export const antModel = toXml(
  element('mujoco', { model: 'ant' }, [
    element('compiler', { angle: 'degree', inertiafromgeom: true }),
    element('option', { integrator: 'RK4', timestep: 0.01 }),
    element('default', {}, [
      element('joint', { limited: true, armature: 1, damping: 1 }),
      element('geom', { ...NAMED_CONTACTS_ONLY, ...SURFACE, density: 5, margin: MARGIN_M }),
    ]),
    element('worldbody', {}, [
      floor(0, 0),
      element('body', { name: 'torso', pos: [0, 0, 0.75] }, [
        element('geom', { name: 'torso', type: 'sphere', size: 0.25, rgba: COLOURS.trunk }),
        element('joint', { name: 'root', type: 'free', limited: false, armature: 0, damping: 0 }),
        leg(1, 'front_left_leg', 1, 1),
        leg(2, 'front_right_leg', -1, 1),
        leg(3, 'back_leg', -1, -1),
        leg(4, 'right_back_leg', 1, -1),
      ]),
    ]),
    namedContacts(
      ['torso', ...[1, 2, 3, 4].flatMap(number => PARTS.map(part => `${part}_${number}`))].map(
        name => ['floor', name, { ...SURFACE, margin: 2 * MARGIN_M }] as const, // those of the two add up
      ),
    ),
    motors([4, 1, 2, 3].flatMap(number => [`hip_${number}`, `ankle_${number}`].map(joint => [joint, GEAR]))),
  ]),
);

/** Options of Ant-v5, Gymnasium's under the same names. */
export type AntOptions = RunnerOptions &
  HealthyOptions & {
    readonly contactCostWeight: number;
    readonly includeCfrcExtInObservation: boolean;
  };

/**
 * Ant-v5: a ball on four legs walks along x.
 *
 * **Actions** `Box(8)` in ±1: torques on hip and ankle of leg 4 (x > 0, y < 0), then of legs 1 (+, +), 2 (-, +) and
 * 3 (-, -), as parts of 150 N m.
 *
 * **Observations** `Box(105)`; 2 more with `excludeCurrentPositionsFromObservation: false`, which puts x and y first, and 27
 * in all with `includeCfrcExtInObservation: false`:
 *
 * | # | what | unit |
 * |---|---|---|
 * | 0 | height of the trunk | m |
 * | 1-4 | its orientation, a quaternion, w first | 1 |
 * | 5-12 | angles of hip and ankle of legs 1 to 4 | rad |
 * | 13-18 | velocity of the trunk, then its angular velocity | m/s, rad/s |
 * | 19-26 | velocities of the joints | rad/s |
 * | 27-104 | contact torque and force on each of the 13 bodies, clipped to ±1 | N m, N |
 *
 * **Reward** `forward`, the trunk's speed along x in m/s over the step, plus `survive`, 1 where it has not fallen, plus
 * `control`, -0.5 ‖action‖², plus `contact`, -0.0005 ‖contact‖² of the clipped contact forces and torques.
 *
 * **Start** the initial pose with uniform noise of ±0.1 in all positions and normal noise of deviation 0.1 in all velocities.
 *
 * **End** terminated by a fall or a leap: the trunk's height outside 0.2 to 1 m. Truncated at 1,000 steps.
 *
 * **Dynamics** 5 substeps of 0.01 s an action (0.05 s), fourth-order Runge-Kutta. As in Gymnasium the trunk's place is that of
 * the last of the substep's four stages, which is close to where it ends.
 *
 * **Versions** v5 is Gymnasium's v5: from the same state and actions the same trajectory. After J. Schulman et al.,
 * "High-Dimensional Continuous Control Using Generalized Advantage Estimation" (2015).
 */
export const antDefinition = defineEnv<AntOptions>({
  id: 'Ant-v5',
  description: 'A ball on four legs walks along x.',
  options: {
    forwardRewardWeight: weight(1, 'reward for a speed of 1 m/s'),
    ctrlCostWeight: weight(0.5, 'cost of the squared action'),
    contactCostWeight: weight(5e-4, 'cost of the squared contact forces'),
    healthyReward: weight(1, 'reward of a step without a fall'),
    terminateWhenUnhealthy: TERMINATE_WHEN_UNHEALTHY,
    resetNoiseScale: noiseScale(0.1, 'noise of the start, in m, rad, m/s and rad/s'),
    excludeCurrentPositionsFromObservation: EXCLUDE_POSITIONS,
    includeCfrcExtInObservation: { default: true, doc: 'whether contact forces are observed' },
  },
  maxEpisodeSteps: 1_000,
  rewardThreshold: 6_000,
  prepare: loadEngine,
  slow: true,
  make: options => physicsEnv(antTask(options)),
});

/** {@link antDefinition} */
export function ant(options: MakeOptions<AntOptions> = {}): MadeEnv {
  return createEnv(antDefinition, options);
}

function antTask(options: AntOptions): PhysicsTask<{ x: number }> {
  const skip = options.excludeCurrentPositionsFromObservation ? 2 : 0;
  const seesForces = options.includeCfrcExtInObservation;
  return {
    model: antModel,
    frameSkip: FRAME_SKIP,
    observationSize: POSITIONS + VELOCITIES - skip + (seesForces ? FORCES : 0),
    rewardTerms: ['forward', 'control', 'survive', 'contact'],
    start({ arrays }, rng) {
      addUniform(arrays.qpos, rng, options.resetNoiseScale);
      addNormal(arrays.qvel, rng, options.resetNoiseScale);
      return { x: 0 };
    },
    control(physics, action, memory) {
      memory.x = physics.arrays.xpos[TRUNK_X];
      drive(physics, action);
    },
    score(physics, action, memory, result) {
      physics.contactForces();
      const { arrays } = physics;
      const stepSeconds = physics.substepSeconds * FRAME_SKIP;
      const isHealthy = arrays.qpos[2] >= MIN_HEIGHT_M && arrays.qpos[2] <= MAX_HEIGHT_M;
      result.rewardTerms[0] = (options.forwardRewardWeight * (arrays.xpos[TRUNK_X] - memory.x)) / stepSeconds;
      result.rewardTerms[1] = -options.ctrlCostWeight * squareSum(action);
      result.rewardTerms[2] = isHealthy ? options.healthyReward : 0;
      result.rewardTerms[3] = -options.contactCostWeight * clippedSquareSum(arrays);
      result.terminated = !isHealthy && options.terminateWhenUnhealthy;
    },
    observe({ arrays }, _memory, obs) {
      let at = observeState(arrays, obs, skip);
      if (!seesForces) return;
      const { cfrc_ext } = arrays;
      for (let i = 6; i < cfrc_ext.length; i++) obs[at++] = clamp(cfrc_ext[i], MAX_FORCE);
    },
  };
}

/** Of all bodies' contact forces; those of the world are 0. */
function clippedSquareSum({ cfrc_ext }: PhysicsArrays): number {
  let sum = 0;
  for (let i = 0; i < cfrc_ext.length; i++) sum += clamp(cfrc_ext[i], MAX_FORCE) ** 2;
  return sum;
}
