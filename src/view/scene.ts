/**
 * What a robot looks like, as plain data: rigid bodies and the shapes on them. A replay holds one, the page and the
 * renderer draw it; neither needs the physics. Runs in a browser: nothing here may import a Node module.
 *
 * Lengths are metres, z is up, quaternions are (w, x, y, z), colours (red, green, blue, opacity) in 0..1.
 */
import { fail, show } from '../base/errors.ts';

/** Shapes, with what their three `size` numbers mean; along the shape's own z where one axis counts. */
export const shapeKinds = {
  /** A floor; size unused. It faces its own +z and has no end. */
  plane: 0,
  /** Radius. */
  sphere: 1,
  /** Radius, half the length of the straight part. */
  capsule: 2,
  /** The three half axes. */
  ellipsoid: 3,
  /** Radius, half the length. */
  cylinder: 2,
  /** The three half edges. */
  box: 3,
} as const;
export type ShapeKind = keyof typeof shapeKinds;

export type Vector3 = readonly [number, number, number];
/** (w, x, y, z), of length 1. */
export type Quaternion = readonly [number, number, number, number];

export interface SceneBody {
  readonly name: string;
}

export interface SceneShape {
  readonly kind: ShapeKind;
  /** Index of the body that it belongs to; -1 stands still in the world. */
  readonly body: number;
  readonly size: Vector3;
  /** Place and turn in the body's frame. */
  readonly position: Vector3;
  readonly rotation: Quaternion;
  readonly colour: Quaternion;
}

export interface SceneJoint {
  readonly name: string;
  /** A hinge's position is in radians, a slide's in metres. */
  readonly kind: 'hinge' | 'slide';
  readonly range: readonly [low: number, high: number] | null;
}

export interface Scene {
  readonly bodies: readonly SceneBody[];
  readonly shapes: readonly SceneShape[];
  /** Joints with one number; how a free body moves is in its pose. */
  readonly joints: readonly SceneJoint[];
  /** The body that a camera follows, and whose speed is shown. */
  readonly root: number;
}

/** Of what has no body, as what is drawn in two dimensions. */
export const emptyScene: Scene = { bodies: [], shapes: [], joints: [], root: 0 };

/** No robot here comes near these; a file that does is damaged or hostile. */
export const sceneLimits = { bodies: 256, shapes: 1024, joints: 256, nameLength: 80, metres: 1e5 } as const;

type Fields = Readonly<Record<string, unknown>>;

/** A checked scene from plain data; `source` names it in errors. */
export function parseScene(value: unknown, source = 'scene'): Scene {
  const fields = fieldsOf(value, source);
  const bodies = listOf(fields.bodies, sceneLimits.bodies, `${source}.bodies`).map((item, i) => {
    const where = `${source}.bodies[${i}]`;
    return { name: nameOf(fieldsOf(item, where).name, `${where}.name`) };
  });
  if (bodies.length === 0) fail(`${source} has no bodies: there is nothing to draw`, 'invalid');
  const shapes = listOf(fields.shapes, sceneLimits.shapes, `${source}.shapes`).map((item, i) =>
    shapeOf(item, bodies.length, `${source}.shapes[${i}]`),
  );
  const joints = listOf(fields.joints, sceneLimits.joints, `${source}.joints`).map((item, i) =>
    jointOf(item, `${source}.joints[${i}]`),
  );
  const root = indexOf(fields.root, 0, bodies.length - 1, `${source}.root`);
  return { bodies, shapes, joints, root };
}

function shapeOf(value: unknown, bodies: number, where: string): SceneShape {
  const { kind, body, size, position, rotation, colour } = fieldsOf(value, where);
  if (typeof kind !== 'string' || !Object.hasOwn(shapeKinds, kind))
    fail(`${where}.kind is ${show(kind)}: it can be ${Object.keys(shapeKinds).join(', ')}`, 'invalid');
  const sizes = vectorOf(size, 3, `${where}.size`) as unknown as Vector3;
  const used = shapeKinds[kind as ShapeKind];
  if (sizes.slice(0, used).some(length => length <= 0))
    fail(`${where}.size is ${show(sizes)}: a ${kind} needs ${used} above 0`, 'invalid');
  const colours = vectorOf(colour, 4, `${where}.colour`);
  if (colours.some(part => part < 0 || part > 1))
    fail(`${where}.colour is ${show(colours)}, outside of 0..1`, 'invalid');
  return {
    kind: kind as ShapeKind,
    body: indexOf(body, -1, bodies - 1, `${where}.body`),
    size: sizes,
    position: vectorOf(position, 3, `${where}.position`) as unknown as Vector3,
    rotation: rotationOf(rotation, `${where}.rotation`),
    colour: colours as unknown as Quaternion,
  };
}

function jointOf(value: unknown, where: string): SceneJoint {
  const { name, kind, range } = fieldsOf(value, where);
  if (kind !== 'hinge' && kind !== 'slide')
    fail(`${where}.kind is ${show(kind)}: it can be hinge or slide`, 'invalid');
  const limits =
    range === null ? null : (vectorOf(range, 2, `${where}.range`) as unknown as [number, number]);
  if (limits !== null && !(limits[0] < limits[1]))
    fail(`${where}.range is ${show(limits)}: the first must be below the second`, 'invalid');
  return { name: nameOf(name, `${where}.name`), kind, range: limits };
}

function rotationOf(value: unknown, where: string): Quaternion {
  const turn = vectorOf(value, 4, where);
  const length = Math.hypot(...turn);
  if (Math.abs(length - 1) > 1e-3) fail(`${where} is ${show(turn)}, not of length 1`, 'invalid');
  return turn as unknown as Quaternion;
}

function fieldsOf(value: unknown, where: string): Fields {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Fields;
  return fail(`${where} is ${show(value)}, not an object`, 'invalid');
}

function listOf(value: unknown, most: number, where: string): readonly unknown[] {
  if (!Array.isArray(value)) fail(`${where} is ${show(value)}, not a list`, 'invalid');
  if (value.length > most) fail(`${where} has ${value.length} parts: at most ${most}`, 'invalid');
  return value;
}

function vectorOf(value: unknown, length: number, where: string): readonly number[] {
  const list = listOf(value, length, where);
  if (list.length !== length) fail(`${where} has ${list.length} numbers, not ${length}`, 'invalid');
  return list.map((item, i) => numberOf(item, `${where}[${i}]`));
}

function numberOf(value: unknown, where: string): number {
  if (typeof value === 'number' && Math.abs(value) <= sceneLimits.metres) return value;
  return fail(`${where} is ${show(value)}, not a number of at most ${sceneLimits.metres} in size`, 'invalid');
}

function indexOf(value: unknown, low: number, high: number, where: string): number {
  if (Number.isSafeInteger(value) && (value as number) >= low && (value as number) <= high)
    return value as number;
  return fail(`${where} is ${show(value)}, not a whole number in ${low}..${high}`, 'invalid');
}

function nameOf(value: unknown, where: string): string {
  if (typeof value === 'string' && value.length <= sceneLimits.nameLength) return value;
  return fail(
    `${where} is ${show(value)}, not text of at most ${sceneLimits.nameLength} characters`,
    'invalid',
  );
}
