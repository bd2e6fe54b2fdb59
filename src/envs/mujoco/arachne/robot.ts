/**
 * Generates legged robots: a body with pairs of legs, each leg with three hinges (hip, femur, tibia), as MJCF. The left side
 * is the right one mirrored.
 *
 * Frames: x forward, y left, z up. At joint angles of 0 a leg's coxa and femur point straight out and its tibia straight
 * down. A hip turns about z; femur and tibia turn about x, so that on the right a negative angle lifts the femur and swings
 * the foot outwards, and on the left a positive one does.
 */
import { NAMED_CONTACTS_ONLY, namedContacts, type Surface } from '../contacts.ts';
import { type Element, element, toXml } from '../mjcf.ts';

/** A pair of legs, left and right. */
export interface LegPair {
  readonly name: string;
  /** Where its hips are on the body, in metres: forward of the middle, and out from it. */
  readonly forwardM: number;
  readonly outM: number;
  /** How far its legs point forward of straight out, in radians. */
  readonly fanRad: number;
}

/** One part of a leg, of the right side. */
export interface LegPart {
  readonly lengthM: number;
  readonly radiusM: number;
  readonly massKg: number;
  /** Lowest and highest angle of the joint at its inner end, in radians. */
  readonly limitsRad: readonly [low: number, high: number];
  /** The angle in which the robot stands. */
  readonly homeRad: number;
}

/** All figures of a robot. */
export interface RobotPlan {
  readonly name: string;
  readonly base: {
    readonly massKg: number;
    /** Half its length, width and height, in metres. */
    readonly halfSizeM: readonly [number, number, number];
  };
  readonly pairs: readonly LegPair[];
  readonly hip: LegPart;
  readonly femur: LegPart;
  readonly tibia: LegPart;
  readonly footRadiusM: number;
  readonly motor: {
    /** Largest torque. */
    readonly effortNm: number;
    /** The speed at which the largest torque is used up by damping: no joint is driven faster. */
    readonly velocityRadS: number;
    /** Torque for each radian between the target and the angle. */
    readonly stiffnessNmRad: number;
  };
  readonly footFriction: number;
  readonly substepSeconds: number;
}

/** One hinge with its motor, in the order of the model's joints and of actions. */
export interface Joint {
  readonly name: string;
  readonly leg: string;
  readonly part: 'hip' | 'femur' | 'tibia';
  readonly side: 'left' | 'right';
  readonly limitsRad: readonly [low: number, high: number];
  readonly homeRad: number;
}

/** What the generator makes of a plan. */
export interface Robot {
  readonly name: string;
  /** MJCF. */
  readonly model: string;
  readonly joints: readonly Joint[];
  /** Height of the body's middle with all joints at home and the feet on the floor. */
  readonly standingHeightM: number;
  readonly totalMassKg: number;
}

const PARTS = ['hip', 'femur', 'tibia'] as const;
const SIDES = ['left', 'right'] as const;
type Side = (typeof SIDES)[number];

const COLOURS = {
  base: [0.3, 0.38, 0.5, 1],
  hip: [0.32, 0.35, 0.4, 1],
  femur: [0.85, 0.45, 0.15, 1],
  tibia: [0.45, 0.5, 0.56, 1],
  foot: [0.1, 0.1, 0.1, 1],
  floor: [0.75, 0.77, 0.8, 1],
} as const;

/** The robot of a plan. */
export function generateRobot(plan: RobotPlan): Robot {
  const joints = plan.pairs.flatMap(pair => SIDES.flatMap(side => jointsOf(plan, pair, side)));
  const { femur, tibia, base, pairs } = plan;
  const legMassKg = plan.hip.massKg + femur.massKg + tibia.massKg;
  return {
    name: plan.name,
    model: toXml(modelOf(plan, joints)),
    joints,
    standingHeightM:
      tibia.lengthM * Math.cos(femur.homeRad + tibia.homeRad) +
      femur.lengthM * Math.sin(femur.homeRad) +
      plan.footRadiusM,
    totalMassKg: base.massKg + 2 * pairs.length * legMassKg,
  };
}

function jointsOf(plan: RobotPlan, pair: LegPair, side: Side): Joint[] {
  const leg = `${side}_${pair.name}`;
  return PARTS.map(part => {
    const { limitsRad, homeRad } = plan[part];
    // Hips turn about z on both sides alike; what turns about x is mirrored.
    const mirrored = side === 'left' && part !== 'hip';
    return {
      name: `${leg}_${part}`,
      leg,
      part,
      side,
      limitsRad: mirrored ? [-limitsRad[1], -limitsRad[0]] : limitsRad,
      homeRad: mirrored ? -homeRad : homeRad,
    };
  });
}

function modelOf(plan: RobotPlan, joints: readonly Joint[]): Element {
  const { base, motor } = plan;
  return element('mujoco', { model: plan.name }, [
    element('compiler', { angle: 'radian', autolimits: true }),
    // Euler treats joint damping implicitly; the solver's default tolerance of 1e-8 takes a third longer for the same walk.
    element('option', { timestep: plan.substepSeconds, integrator: 'Euler', tolerance: 1e-6 }),
    // The default of 14 MB is for models with many contacts; these have at most a dozen.
    element('size', { memory: '1M' }),
    element('default', {}, [
      element('geom', NAMED_CONTACTS_ONLY),
      // At full torque this damping leaves nothing to accelerate with once the joint has its highest speed.
      element('joint', { type: 'hinge', damping: motor.effortNm / motor.velocityRadS }),
      element('position', { kp: motor.stiffnessNmRad, forcerange: [-motor.effortNm, motor.effortNm] }),
    ]),
    element('worldbody', {}, [
      element('light', { pos: [0, 0, 4], dir: [0, 0, -1], directional: true }),
      element('geom', {
        name: 'floor',
        type: 'plane',
        size: [20, 20, 1],
        rgba: COLOURS.floor,
      }),
      element('body', { name: 'base', pos: [0, 0, 1] }, [
        element('freejoint', { name: 'base' }),
        element('geom', {
          name: 'base',
          type: 'box',
          size: base.halfSizeM,
          mass: base.massKg,
          rgba: COLOURS.base,
        }),
        ...plan.pairs.flatMap(pair => SIDES.map(side => legOf(plan, pair, side, joints))),
      ]),
    ]),
    contactsOf(plan),
    element(
      'actuator',
      {},
      joints.map(({ name, limitsRad }) => element('position', { name, joint: name, ctrlrange: limitsRad })),
    ),
  ]);
}

/** Body and feet meet the floor, and each other; the rest of the legs meets nothing. */
function contactsOf(plan: RobotPlan): Element {
  const feet = plan.pairs.flatMap(pair => SIDES.map(side => `${side}_${pair.name}_foot`));
  const meeting = ['floor', 'base', ...feet];
  const surface: Surface = { friction: [plan.footFriction, 0.005, 0.0001] };
  return namedContacts(
    meeting.flatMap((one, i) => meeting.slice(i + 1).map(other => [one, other, surface] as const)),
  );
}

function legOf(plan: RobotPlan, pair: LegPair, side: Side, joints: readonly Joint[]): Element {
  const leg = `${side}_${pair.name}`;
  const out = side === 'left' ? 1 : -1;
  const { hip, femur, tibia, footRadiusM } = plan;
  const part = (
    which: (typeof PARTS)[number],
    pos: readonly number[],
    end: readonly number[],
    children: readonly Element[],
    turned: { euler?: readonly number[] } = {},
  ): Element => {
    const name = `${leg}_${which}`;
    const { limitsRad } = joints.find(joint => joint.name === name)!;
    const { radiusM, massKg } = plan[which];
    return element('body', { name, pos, ...turned }, [
      element('joint', { name, axis: which === 'hip' ? [0, 0, 1] : [1, 0, 0], range: limitsRad }),
      element('geom', {
        name,
        type: 'capsule',
        fromto: [0, 0, 0, ...end],
        size: radiusM,
        mass: massKg,
        rgba: COLOURS[which],
      }),
      ...children,
    ]);
  };
  const foot = element('geom', {
    name: `${leg}_foot`,
    type: 'sphere',
    pos: [0, 0, -tibia.lengthM],
    size: footRadiusM,
    mass: 0, // in the tibia's
    rgba: COLOURS.foot,
  });
  const shin = part('tibia', [0, out * femur.lengthM, 0], [0, 0, -tibia.lengthM], [foot]);
  const thigh = part('femur', [0, out * hip.lengthM, 0], [0, out * femur.lengthM, 0], [shin]);
  return part('hip', [pair.forwardM, out * pair.outM, 0], [0, out * hip.lengthM, 0], [thigh], {
    euler: [0, 0, -out * pair.fanRad],
  });
}
