import { createEnv, defineEnv, type MadeEnv, type MakeOptions } from '../../definition.ts';
import { NAMED_CONTACTS_ONLY, namedContacts, type Surface } from '../contacts.ts';
import { loadEngine } from '../engine.ts';
import { type Element, element, toXml } from '../mjcf.ts';
import { physicsEnv } from '../task.ts';
import {
  addNormal,
  addUniform,
  COLOURS,
  EXCLUDE_POSITIONS,
  floor,
  motors,
  noiseScale,
  planarRoot,
  type RunnerOptions,
  runnerTask,
  weight,
} from './shared.ts';

/** One of six: a capsule, tilted about y, that hangs from a sprung hinge. Lengths in m, angles in rad. */
interface Limb {
  readonly name: string;
  /** Where the hinge is in the parent. */
  readonly hinge: readonly [x: number, z: number];
  readonly range: readonly [number, number];
  /** N m/rad and N m s/rad. */
  readonly stiffness: number;
  readonly damping: number;
  /** The capsule's middle, from the hinge. */
  readonly middle: readonly [x: number, z: number];
  readonly tilt: number;
  readonly halfLength: number;
  readonly colour: readonly number[];
}

const { trunk, limb: lower } = COLOURS;

// From thigh to foot.
const BACK_LEG: readonly Limb[] = [
  {
    name: 'bthigh',
    hinge: [-0.5, 0],
    range: [-0.52, 1.05],
    stiffness: 240,
    damping: 6,
    middle: [0.1, -0.13],
    tilt: -3.8,
    halfLength: 0.145,
    colour: trunk,
  },
  {
    name: 'bshin',
    hinge: [0.16, -0.25],
    range: [-0.785, 0.785],
    stiffness: 180,
    damping: 4.5,
    middle: [-0.14, -0.07],
    tilt: -2.03,
    halfLength: 0.15,
    colour: lower,
  },
  {
    name: 'bfoot',
    hinge: [-0.28, -0.14],
    range: [-0.4, 0.785],
    stiffness: 120,
    damping: 3,
    middle: [0.03, -0.097],
    tilt: -0.27,
    halfLength: 0.094,
    colour: lower,
  },
];
const FRONT_LEG: readonly Limb[] = [
  {
    name: 'fthigh',
    hinge: [0.5, 0],
    range: [-1, 0.7],
    stiffness: 180,
    damping: 4.5,
    middle: [-0.07, -0.12],
    tilt: 0.52,
    halfLength: 0.133,
    colour: trunk,
  },
  {
    name: 'fshin',
    hinge: [-0.14, -0.24],
    range: [-1.2, 0.87],
    stiffness: 120,
    damping: 3,
    middle: [0.065, -0.09],
    tilt: -0.6,
    halfLength: 0.106,
    colour: lower,
  },
  {
    name: 'ffoot',
    hinge: [0.13, -0.18],
    range: [-0.5, 0.5],
    stiffness: 60,
    damping: 1.5,
    middle: [0.045, -0.07],
    tilt: -0.6,
    halfLength: 0.07,
    colour: lower,
  },
];
const RADIUS_M = 0.046;
const SURFACE = {
  condim: 3,
  friction: [0.4, 0.1, 0.1],
  solimp: [0, 0.8, 0.01],
  solref: [0.02, 1],
} as const satisfies Surface;

function capsule(
  name: string,
  [x, z]: readonly [number, number],
  tilt: number,
  halfLength: number,
  rgba: readonly number[],
): Element {
  return element('geom', {
    name,
    type: 'capsule',
    pos: [x, 0, z],
    axisangle: [0, 1, 0, tilt],
    size: [RADIUS_M, halfLength],
    rgba,
  });
}

/** A limb with the rest of the leg hanging from it. */
function leg([limb, ...rest]: readonly Limb[]): Element[] {
  if (limb === undefined) return [];
  const { name, hinge, range, stiffness, damping } = limb;
  return [
    element('body', { name, pos: [hinge[0], 0, hinge[1]] }, [
      element('joint', { name, type: 'hinge', axis: [0, 1, 0], range, stiffness, damping }),
      capsule(name, limb.middle, limb.tilt, limb.halfLength, limb.colour),
      ...leg(rest),
    ]),
  ];
}

/** The body as MJCF. */
export const halfCheetahModel = toXml(
  element('mujoco', { model: 'half-cheetah' }, [
    element('compiler', { angle: 'radian', inertiafromgeom: true, settotalmass: 14 }),
    element('option', { timestep: 0.01 }),
    element('default', {}, [
      element('joint', {
        limited: true,
        armature: 0.1,
        damping: 0.01,
        stiffness: 8,
        solimplimit: [0, 0.8, 0.03],
        solreflimit: [0.02, 1],
      }),
      element('geom', {
        ...NAMED_CONTACTS_ONLY,
        ...SURFACE,
      }),
    ]),
    element('worldbody', {}, [
      floor(0, 0),
      element('body', { name: 'torso', pos: [0, 0, 0.7] }, [
        ...planarRoot(0),
        element('geom', {
          name: 'torso',
          type: 'capsule',
          fromto: [-0.5, 0, 0, 0.5, 0, 0],
          size: RADIUS_M,
          rgba: trunk,
        }),
        capsule('head', [0.6, 0.1], 0.87, 0.15, trunk),
        ...leg(BACK_LEG),
        ...leg(FRONT_LEG),
      ]),
    ]),
    namedContacts(
      ['torso', 'head', ...[...BACK_LEG, ...FRONT_LEG].map(limb => limb.name)].map(
        name => ['floor', name, SURFACE] as const,
      ),
    ),
    motors([
      ['bthigh', 120],
      ['bshin', 90],
      ['bfoot', 60],
      ['fthigh', 120],
      ['fshin', 60],
      ['ffoot', 30],
    ]),
  ]),
);

/** Options of HalfCheetah-v5, Gymnasium's under the same names. */
export type HalfCheetahOptions = RunnerOptions;

/**
 * HalfCheetah-v5: a flat cheetah of a trunk and two legs runs to the right as fast as it can.
 *
 * **Actions** `Box(6)` in ±1: torques on back thigh, shin and foot, then front thigh, shin and foot, as parts of 120, 90,
 * 60, 120, 60 and 30 N m.
 *
 * **Observations** `Box(17)`, or 18 with `excludeCurrentPositionsFromObservation: false`, which puts x first:
 *
 * | # | what | unit |
 * |---|---|---|
 * | 0, 1 | height above the start's, pitch of the trunk | m, rad |
 * | 2-7 | angles of the joints, in the actions' order | rad |
 * | 8-10 | velocities of x, height and pitch | m/s, rad/s |
 * | 11-16 | velocities of the joints | rad/s |
 *
 * **Reward** `forward`, the speed along x in m/s over the step, plus `control`, -0.1 ‖action‖².
 *
 * **Start** the initial pose with uniform noise of ±0.1 in all positions and normal noise of deviation 0.1 in all velocities.
 *
 * **End** never terminated; truncated at 1,000 steps. Random actions earn about -280; running, several thousand.
 *
 * **Dynamics** 14 kg on flat ground; 5 substeps of 0.01 s an action (0.05 s), semi-implicit Euler.
 *
 * **Versions** v5 is Gymnasium's v5: from the same state and actions the same trajectory. After P. Wawrzyński, "A
 * Cat-Like Robot Real-Time Learning to Run" (2009).
 */
export const halfCheetahDefinition = defineEnv<HalfCheetahOptions>({
  id: 'HalfCheetah-v5',
  description: 'A flat cheetah runs as fast as it can.',
  options: {
    forwardRewardWeight: weight(1, 'reward for a speed of 1 m/s'),
    ctrlCostWeight: weight(0.1, 'cost of the squared action'),
    resetNoiseScale: noiseScale(0.1, 'noise of the start, in m, rad, m/s and rad/s'),
    excludeCurrentPositionsFromObservation: EXCLUDE_POSITIONS,
  },
  maxEpisodeSteps: 1_000,
  rewardThreshold: 4_800,
  prepare: loadEngine,
  slow: true,
  make: options =>
    physicsEnv(
      runnerTask(
        {
          model: halfCheetahModel,
          frameSkip: 5,
          joints: 9,
          travelled: 1,
          start({ arrays }, rng) {
            addUniform(arrays.qpos, rng, options.resetNoiseScale);
            addNormal(arrays.qvel, rng, options.resetNoiseScale);
          },
        },
        options,
      ),
    ),
});

/** {@link halfCheetahDefinition} */
export function halfCheetah(options: MakeOptions<HalfCheetahOptions> = {}): MadeEnv {
  return createEnv(halfCheetahDefinition, options);
}
