/** The leg of Hopper and of Walker2d: thigh, shin and foot of capsules, from the heights of its joints when it stands. */
import { type Element, element } from '../mjcf.ts';

/** Heights above the ground of the standing body, in m. */
export const STANDING = { top: 1.45, trunk: 1.25, hip: 1.05, knee: 0.6, ankle: 0.1 } as const;

const { top, trunk, hip, knee, ankle } = STANDING;
const LIMB_RADIUS_M = 0.05;
const SHIN_RADIUS_M = 0.04;
const FOOT_RADIUS_M = 0.06;
/** Of all but the feet. */
export const LIMB_FRICTION = 0.9;
/** A quarter of a turn about y, rounded as in the published model: with it trajectories agree to the last bit. */
const LEVEL = [Math.SQRT1_2, 0, Number.EPSILON / 2 - Math.SQRT1_2, 0];

export interface LegFigures {
  /** Added to the names of bodies and joints: `thigh_left`. */
  readonly suffix?: string;
  /** Where the foot's capsule begins and ends, from the ankle along x, in m. */
  readonly heel: number;
  readonly toe: number;
  /** Where the foot's frame is, from the ankle. */
  readonly frame: number;
  readonly footFriction: number;
  readonly rgba: readonly number[];
}

/** The upright capsule of the trunk. */
export function trunkGeom(rgba: readonly number[]): Element {
  return upright('torso', top, hip, trunk, LIMB_RADIUS_M, rgba);
}

/** The leg, in the trunk's frame. Knees and hips bend one way, by up to 150 degrees; ankles by 45 both ways. */
export function leg({ suffix = '', heel, toe, frame, footFriction, rgba }: LegFigures): Element {
  const shin = (knee + ankle) / 2;
  const foot = element('geom', {
    name: `foot${suffix}`,
    type: 'capsule',
    pos: [(heel + toe) / 2 - frame, 0, ankle],
    quat: LEVEL,
    size: [FOOT_RADIUS_M, (toe - heel) / 2],
    friction: footFriction,
    rgba,
  });
  return element('body', { name: `thigh${suffix}`, pos: [0, 0, hip - trunk] }, [
    hinge(`thigh${suffix}_joint`, [0, 0, 0], [-150, 0]),
    upright(`thigh${suffix}`, hip, knee, hip, LIMB_RADIUS_M, rgba),
    element('body', { name: `leg${suffix}`, pos: [0, 0, shin - hip] }, [
      hinge(`leg${suffix}_joint`, [0, 0, knee - shin], [-150, 0]),
      upright(`leg${suffix}`, knee, ankle, shin, SHIN_RADIUS_M, rgba),
      element('body', { name: `foot${suffix}`, pos: [frame, 0, -shin] }, [
        hinge(`foot${suffix}_joint`, [-frame, 0, ankle], [-45, 45]),
        foot,
      ]),
    ]),
  ]);
}

function hinge(name: string, pos: readonly number[], range: readonly number[]): Element {
  return element('joint', { name, type: 'hinge', axis: [0, -1, 0], pos, range });
}

/** A capsule from one height down to another, in a frame at a third. */
function upright(
  name: string,
  from: number,
  to: number,
  frame: number,
  radius: number,
  rgba: readonly number[],
): Element {
  return element('geom', {
    name,
    type: 'capsule',
    pos: [0, 0, (from + to) / 2 - frame],
    size: [radius, (from - to) / 2],
    friction: LIMB_FRICTION,
    rgba,
  });
}
