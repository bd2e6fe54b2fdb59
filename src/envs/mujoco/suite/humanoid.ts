import { createEnv, defineEnv, type MadeEnv, type MakeOptions } from '../../definition.ts';
import { geomsOf, NAMED_CONTACTS_ONLY, namedContacts, ownContacts, type Surface } from '../contacts.ts';
import { loadEngine } from '../engine.ts';
import { type Element, element, toXml } from '../mjcf.ts';
import type { MoreArrays, Physics } from '../physics.ts';
import { type PhysicsTask, physicsEnv } from '../task.ts';
import {
  addUniform,
  COLOURS,
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
const MIN_HEIGHT_M = 1;
const MAX_HEIGHT_M = 2;
const MAX_CONTACT_COST = 10;
const MAX_CONTROL = 0.4;
const POSITIONS = 24;
const VELOCITIES = 23;
/** Bodies but the world, and joints but the free one of the trunk: neither the world nor a free joint has anything to show. */
const BODIES = 13;
const JOINTS = 17;

/** Right is at negative y. */
type Side = 'right' | 'left';
const SIDES = ['right', 'left'] as const satisfies readonly Side[];
const signOf = (side: Side): 1 | -1 => (side === 'left' ? 1 : -1);
const colourOf = (side: Side): readonly number[] => (side === 'left' ? COLOURS.otherLimb : COLOURS.limb);

/** A hinge; angles in degrees, stiffness in N m/rad, damping in N m s/rad. */
interface Hinge {
  readonly axis: readonly number[];
  readonly range: readonly [number, number];
  readonly armature: number;
  readonly stiffness: number;
  readonly damping: number;
  /** Where it is in the body, if not in its origin. */
  readonly pos?: readonly number[];
}

const hinge = (name: string, figures: Hinge): Element =>
  element('joint', { name, type: 'hinge', ...figures });

function rod(
  name: string,
  from: readonly number[],
  to: readonly number[],
  radius: number,
  rgba: readonly number[],
): Element {
  return element('geom', { name, type: 'capsule', fromto: [...from, ...to], size: radius, rgba });
}

/** A rod across the body, of the same reach to both sides. */
const crossbar = (name: string, [x, z]: readonly [number, number], reach: number, radius: number): Element =>
  rod(name, [x, -reach, z], [x, reach, z], radius, COLOURS.trunk);

const ball = (name: string, pos: readonly number[], radius: number, rgba: readonly number[]): Element =>
  element('geom', { name, type: 'sphere', pos, size: radius, rgba });

/** Thigh, shin and foot. The sides differ in two figures, as published. */
function leg(side: Side): Element {
  const y = signOf(side);
  const rgba = colourOf(side);
  const hip = { armature: 0.01, stiffness: 10, damping: 5 };
  return element('body', { name: `${side}_thigh`, pos: [0, y * 0.1, -0.04] }, [
    hinge(`${side}_hip_x`, { axis: [-y, 0, 0], range: [-25, 5], ...hip }),
    hinge(`${side}_hip_z`, { axis: [0, 0, -y], range: [-60, 35], ...hip }),
    hinge(`${side}_hip_y`, {
      axis: [0, 1, 0],
      range: [-110, 20],
      ...hip,
      armature: side === 'left' ? 0.01 : 0.008,
      stiffness: 20,
    }),
    rod(`${side}_thigh`, [0, 0, 0], [0, -y * 0.01, -0.34], 0.06, rgba),
    element('body', { name: `${side}_shin`, pos: [0, -y * 0.01, -0.403] }, [
      hinge(`${side}_knee`, {
        axis: [0, -1, 0],
        range: [-160, -2],
        armature: 0.006,
        stiffness: side === 'left' ? 1 : 0,
        damping: 1,
        pos: [0, 0, 0.02],
      }),
      rod(`${side}_shin`, [0, 0, 0], [0, 0, -0.3], 0.049, rgba),
      element('body', { name: `${side}_foot`, pos: [0, 0, -0.45] }, [
        ball(`${side}_foot`, [0, 0, 0.1], 0.075, rgba),
      ]),
    ]),
  ]);
}

/** Upper arm, forearm and hand, which reach forward. */
function arm(side: Side): Element {
  const y = signOf(side);
  const rgba = colourOf(side);
  const shoulder: Pick<Hinge, 'range' | 'stiffness' | 'damping'> = {
    range: side === 'left' ? [-60, 85] : [-85, 60],
    stiffness: 1,
    damping: 1,
  };
  return element('body', { name: `${side}_upper_arm`, pos: [0, y * 0.17, 0.06] }, [
    hinge(`${side}_shoulder1`, { axis: [2, -y, 1], armature: 0.0068, ...shoulder }),
    hinge(`${side}_shoulder2`, { axis: [0, y, 1], armature: 0.0051, ...shoulder }),
    rod(`${side}_upper_arm`, [0, 0, 0], [0.16, y * 0.16, -0.16], 0.04, rgba),
    element('body', { name: `${side}_lower_arm`, pos: [0.18, y * 0.18, -0.18] }, [
      hinge(`${side}_elbow`, {
        axis: [0, -1, -y],
        range: [-90, 50],
        armature: 0.0028,
        stiffness: 0,
        damping: 1,
      }),
      rod(`${side}_lower_arm`, [0.01, -y * 0.01, 0.01], [0.17, -y * 0.17, 0.17], 0.031, rgba),
      ball(`${side}_hand`, [0.18, -y * 0.18, 0.18], 0.04, rgba),
    ]),
  ]);
}

/** Waist and pelvis, each a little tilted, with the legs. */
function lowerBody(): Element {
  const quat = [1, 0, -0.002, 0];
  const abdomen = { armature: 0.02, stiffness: 10, damping: 5 };
  return element('body', { name: 'lwaist', pos: [-0.01, 0, -0.26], quat }, [
    crossbar('lwaist', [0, 0], 0.06, 0.06),
    hinge('abdomen_z', { axis: [0, 0, 1], range: [-45, 45], ...abdomen, stiffness: 20, pos: [0, 0, 0.065] }),
    hinge('abdomen_y', { axis: [0, 1, 0], range: [-75, 30], ...abdomen, pos: [0, 0, 0.065] }),
    element('body', { name: 'pelvis', pos: [0, 0, -0.165], quat }, [
      hinge('abdomen_x', { axis: [1, 0, 0], range: [-35, 35], ...abdomen, pos: [0, 0, 0.1] }),
      crossbar('pelvis', [-0.02, 0], 0.07, 0.09),
      ...SIDES.map(leg),
    ]),
  ]);
}

const MARGIN_M = 0.001;
const FRICTION = [1, 0.1, 0.1] as const;
/** Of two geoms, whose margins add up. Parts of the body meet without friction (condim 1). */
const surface = (condim: 1 | 3): Surface => ({ condim, friction: FRICTION, margin: 2 * MARGIN_M });

const body = element('body', { name: 'torso', pos: [0, 0, 1.4] }, [
  element('joint', { name: 'root', type: 'free', limited: false }),
  crossbar('torso', [0, 0], 0.07, 0.07),
  ball('head', [0, 0, 0.19], 0.09, COLOURS.trunk),
  crossbar('uwaist', [-0.01, -0.12], 0.06, 0.06),
  lowerBody(),
  ...SIDES.map(arm),
]);
const geoms = geomsOf(body);

/** The body as MJCF. The published model's two tendons from hip to knee only measure, and are left out. */
export const humanoidModel = toXml(
  element('mujoco', { model: 'humanoid' }, [
    element('compiler', { angle: 'degree', inertiafromgeom: true }),
    element('option', { integrator: 'RK4', solver: 'PGS', iterations: 50, timestep: 0.003 }),
    element('default', {}, [
      element('joint', { limited: true }),
      element('geom', { ...NAMED_CONTACTS_ONLY, condim: 1, friction: FRICTION, margin: MARGIN_M }),
    ]),
    element('worldbody', {}, [floor(0, 0), body]),
    namedContacts([
      ...geoms.map(({ name }) => ['floor', name, surface(3)] as const),
      ...ownContacts(geoms).map(([one, other]) => [one, other, surface(1)] as const),
    ]),
    motors(
      [
        ['abdomen_y', 100],
        ['abdomen_z', 100],
        ['abdomen_x', 100],
        ...SIDES.flatMap(side => [
          [`${side}_hip_x`, 100] as const,
          [`${side}_hip_z`, 100] as const,
          [`${side}_hip_y`, 300] as const,
          [`${side}_knee`, 200] as const,
        ]),
        ...SIDES.flatMap(side =>
          ['shoulder1', 'shoulder2', 'elbow'].map(joint => [`${side}_${joint}`, 25] as const),
        ),
      ],
      MAX_CONTROL,
    ),
  ]),
);

/** Options of Humanoid-v5, Gymnasium's under the same names. */
export type HumanoidOptions = RunnerOptions &
  HealthyOptions & {
    readonly contactCostWeight: number;
    readonly includeCinertInObservation: boolean;
    readonly includeCvelInObservation: boolean;
    readonly includeQfrcActuatorInObservation: boolean;
    readonly includeCfrcExtInObservation: boolean;
  };

/**
 * Humanoid-v5: a body with two legs and two arms walks along x without falling.
 *
 * **Actions** `Box(17)` in ±0.4: torques on the abdomen about y, z and x, on the right hip about x, z and y and the right
 * knee, the same of the left leg, on the right shoulder's two hinges and elbow, and the same of the left arm, as parts of
 * 100 N m for abdomen and hips (300 for a hip about y), 200 for knees, 25 for arms.
 *
 * **Observations** `Box(348)`; 2 more with `excludeCurrentPositionsFromObservation: false`, which puts x and y first, and
 * fewer where one of the last four parts is left out (`includeCinertInObservation`, `includeCvelInObservation`,
 * `includeQfrcActuatorInObservation`, `includeCfrcExtInObservation`). Joints are in the order abdomen z, y, x; right hip x,
 * z, y, right knee; left hip and knee; right shoulder and elbow; left shoulder and elbow. The 13 bodies are trunk, waist,
 * pelvis; right thigh, shin, foot; left thigh, shin, foot; right upper arm, forearm; left upper arm, forearm:
 *
 * | # | what | unit |
 * |---|---|---|
 * | 0 | height of the trunk | m |
 * | 1-4 | its orientation, a quaternion, w first | 1 |
 * | 5-21 | angles of the joints | rad |
 * | 22-27 | velocity of the trunk, then its angular velocity | m/s, rad/s |
 * | 28-44 | velocities of the joints | rad/s |
 * | 45-174 | of each body 10 numbers about the whole's centre of mass: inertia (xx, yy, zz, xy, xz, yz), mass times offset, mass | kg m², kg m, kg |
 * | 175-252 | angular velocity of each body, and its velocity as felt at the whole's centre of mass | rad/s, m/s |
 * | 253-269 | torques of the motors on the joints | N m |
 * | 270-347 | contact torque and force on each body | N m, N |
 *
 * **Reward** `forward`, 1.25 times the speed of the centre of mass along x in m/s over the step, plus `survive`, 5 where it
 * has not fallen, plus `control`, -0.1 ‖action‖², plus `contact`, -5e-7 ‖contact‖² of the contact forces and torques, at
 * least -10.
 *
 * **Start** the upright pose, feet 11 cm above the floor, with uniform noise of ±0.01 in all positions and velocities.
 *
 * **End** terminated by a fall or a leap: the trunk's height not between 1 and 2 m. Truncated at 1,000 steps.
 *
 * **Dynamics** 5 substeps of 0.003 s an action (0.015 s), fourth-order Runge-Kutta. Parts of the body that no joint connects
 * meet each other, without friction. As in Gymnasium all but positions and velocities (the centre of mass, and the last four
 * parts of the observation) is of the last of the substep's four stages.
 *
 * **Versions** v5 is Gymnasium's v5: from the same state and actions the same trajectory. After Y. Tassa, T. Erez and
 * E. Todorov, "Synthesis and Stabilization of Complex Behaviors through Online Trajectory Optimization" (2012).
 */
export const humanoidDefinition = defineEnv<HumanoidOptions>({
  id: 'Humanoid-v5',
  description: 'A body with two legs and two arms walks without falling.',
  options: {
    forwardRewardWeight: weight(1.25, 'reward for a speed of 1 m/s'),
    ctrlCostWeight: weight(0.1, 'cost of the squared action'),
    contactCostWeight: weight(5e-7, 'cost of the squared contact forces, which costs 10 at most'),
    healthyReward: weight(5, 'reward of a step without a fall'),
    terminateWhenUnhealthy: TERMINATE_WHEN_UNHEALTHY,
    resetNoiseScale: noiseScale(0.01, 'noise of the start, in m, rad, m/s and rad/s'),
    excludeCurrentPositionsFromObservation: EXCLUDE_POSITIONS,
    includeCinertInObservation: {
      default: true,
      doc: "whether the bodies' masses and inertias are observed",
    },
    includeCvelInObservation: { default: true, doc: "whether the bodies' velocities are observed" },
    includeQfrcActuatorInObservation: { default: true, doc: "whether the motors' torques are observed" },
    includeCfrcExtInObservation: { default: true, doc: 'whether contact forces are observed' },
  },
  maxEpisodeSteps: 1_000,
  prepare: loadEngine,
  slow: true,
  make: options => physicsEnv(humanoidTask(options)),
});

/** {@link humanoidDefinition} */
export function humanoid(options: MakeOptions<HumanoidOptions> = {}): MadeEnv {
  return createEnv(humanoidDefinition, options);
}

/** A part of the observation: an array of the physics without its first row, of the world, or without the free joint. */
interface Part {
  readonly array: MoreArrays[number] | 'cfrc_ext';
  readonly skip: number;
  readonly size: number;
}

function partsOf(options: HumanoidOptions): Part[] {
  const parts: Part[] = [];
  if (options.includeCinertInObservation) parts.push({ array: 'cinert', skip: 10, size: 10 * BODIES });
  if (options.includeCvelInObservation) parts.push({ array: 'cvel', skip: 6, size: 6 * BODIES });
  if (options.includeQfrcActuatorInObservation) parts.push({ array: 'qfrc_actuator', skip: 6, size: JOINTS });
  if (options.includeCfrcExtInObservation) parts.push({ array: 'cfrc_ext', skip: 6, size: 6 * BODIES });
  return parts;
}

function humanoidTask(options: HumanoidOptions): PhysicsTask<{ x: number }> {
  const skip = options.excludeCurrentPositionsFromObservation ? 2 : 0;
  const parts = partsOf(options);
  return {
    model: humanoidModel,
    frameSkip: FRAME_SKIP,
    alsoSaved: parts.flatMap(({ array }) => (array === 'cfrc_ext' ? [] : [array])),
    observationSize: parts.reduce((sum, { size }) => sum + size, POSITIONS + VELOCITIES - skip),
    rewardTerms: ['forward', 'control', 'survive', 'contact'],
    start({ arrays }, rng) {
      addUniform(arrays.qpos, rng, options.resetNoiseScale);
      addUniform(arrays.qvel, rng, options.resetNoiseScale);
      return { x: 0 };
    },
    control(physics, action, memory) {
      memory.x = massCentreX(physics);
      drive(physics, action);
    },
    score(physics, action, memory, result) {
      physics.contactForces();
      const { qpos, cfrc_ext } = physics.arrays;
      const stepSeconds = physics.substepSeconds * FRAME_SKIP;
      const isHealthy = qpos[2] > MIN_HEIGHT_M && qpos[2] < MAX_HEIGHT_M;
      result.rewardTerms[0] = (options.forwardRewardWeight * (massCentreX(physics) - memory.x)) / stepSeconds;
      result.rewardTerms[1] = -options.ctrlCostWeight * squareSum(action);
      result.rewardTerms[2] = isHealthy ? options.healthyReward : 0;
      result.rewardTerms[3] = -Math.min(options.contactCostWeight * squareSum(cfrc_ext), MAX_CONTACT_COST);
      result.terminated = !isHealthy && options.terminateWhenUnhealthy;
    },
    observe({ arrays }, _memory, obs) {
      let at = observeState(arrays, obs, skip);
      for (const { array, skip: first, size } of parts) {
        const values = arrays[array];
        for (let i = first; i < first + size; i++) obs[at++] = values[i];
      }
    },
  };
}

/** Of the whole body. */
function massCentreX({ arrays: { xipos }, bodyMass }: Physics): number {
  let [moment, mass] = [0, 0];
  for (let i = 0; i < bodyMass.length; i++) {
    moment += bodyMass[i] * xipos[3 * i];
    mass += bodyMass[i];
  }
  return moment / mass;
}
