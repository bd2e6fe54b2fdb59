/**
 * Pictures of a recorded robot without a graphics card: triangles into a depth buffer, one light with a shadow, a
 * checkered floor without end, mist before the horizon.
 */
import { groundOf, type Motion, reachOf, writePoseAt } from '../motion.ts';
import {
  cellOf,
  fieldOfViewDegrees,
  firstOrbit,
  lightFrom,
  lookAtHeight,
  type Orbit,
  offsetOf,
} from '../orbit.ts';
import { FINE, type Look, type Rgb, shadePicture, type V3 } from './shade.ts';
import { type Mesh, meshOf } from './tessellate.ts';
import { fillShadow, fillTriangle, type ShadowMap, type Surface } from './triangles.ts';

export interface PainterOptions {
  readonly width: number;
  readonly height: number;
  readonly dark?: boolean;
  /** Where the camera is, around the robot; from the side unless given. */
  readonly orbit?: Orbit;
}

export interface Painter {
  /** Paints a moment; the array, (height, width, 3), is used again for the next. */
  paint(frame: number, part: number): Uint8Array;
}

const SHADOW_EDGE = 512;
/** How far around the robot shadows are, in its radii. */
const SHADOW_RADII = 1.6;
/** What lets more light through than this is not drawn. */
const LEAST_OPACITY = 0.2;

/** sRGB to linear. */
const linear = (part: number): number => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
const hex = (text: string): Rgb => {
  const n = Number.parseInt(text.slice(1), 16);
  return [linear((n >> 16) / 255), linear(((n >> 8) & 255) / 255), linear((n & 255) / 255)];
};

const looks: Readonly<Record<'light' | 'dark', Look>> = {
  light: {
    horizon: hex('#e9edf1'),
    zenith: hex('#a9c6e4'),
    cells: [hex('#e4e9ee'), hex('#c3ced9')],
    sun: 0.78,
    fill: 0.36,
  },
  dark: {
    horizon: hex('#1a2027'),
    zenith: hex('#0c1015'),
    cells: [hex('#333c46'), hex('#272f38')],
    sun: 0.85,
    fill: 0.28,
  },
};

/** A shape with its triangles, and where their corners and normals are in the world now. */
interface Part {
  readonly body: number;
  readonly mesh: Mesh;
  readonly position: V3;
  readonly rotation: Float64Array;
  readonly world: Float32Array;
  readonly turned: Float32Array;
}

export function createPainter(
  motion: Motion,
  { width, height, dark = false, orbit }: PainterOptions,
): Painter {
  const { radius } = reachOf(motion);
  const ground = groundOf(motion);
  const drawn = motion.scene.shapes.filter(
    ({ kind, colour }) => kind !== 'plane' && colour[3] >= LEAST_OPACITY,
  );
  const parts = drawn.map(
    (shape): Part => ({
      body: shape.body,
      mesh: meshOf(shape),
      position: shape.position,
      rotation: writeMatrix(shape.rotation, 0, new Float64Array(9)),
      world: new Float32Array(meshOf(shape).vertices.length),
      turned: new Float32Array(meshOf(shape).vertices.length),
    }),
  );
  const place = {
    radius,
    ground,
    cell: cellOf(radius),
    colours: Float64Array.from(drawn.flatMap(({ colour }) => colour.slice(0, 3).map(linear))),
  };
  const samples = FINE * FINE * width * height;
  const surface: Surface = {
    width: FINE * width,
    height: FINE * height,
    nearness: new Float32Array(samples),
    normals: new Float32Array(3 * samples),
    shapes: new Int16Array(samples),
  };
  const shadow: ShadowMap = { edge: SHADOW_EDGE, heights: new Float32Array(SHADOW_EDGE * SHADOW_EDGE) };
  const from = unit(lightFrom);
  const [lightX, lightY] = across(from);
  const light = {
    from,
    x: lightX,
    y: lightY,
    scale: SHADOW_EDGE / (2 * SHADOW_RADII * radius),
    bounds: new Float64Array(4),
  };
  const offset = offsetOf(orbit ?? firstOrbit(radius));
  // The camera keeps its direction: only what it looks at moves.
  const back = unit(offset);
  const right = unit([-back[1], back[0], 0]);
  const target: [number, number, number] = [0, 0, 0];
  const eye: [number, number, number] = [0, 0, 0];
  const focal = surface.height / 2 / Math.tan((fieldOfViewDegrees * Math.PI) / 360);
  const view = { eye, target, right, up: cross(back, right), back, focal };
  const pose = new Float64Array(7);
  const out = new Uint8Array(3 * width * height);

  return {
    paint(frame, part) {
      writePoseAt(motion, motion.scene.root, frame, part, pose);
      target[0] = pose[0];
      target[1] = pose[1];
      target[2] = lookAtHeight(pose[2], ground, radius);
      for (let k = 0; k < 3; k++) eye[k] = target[k] + offset[k];
      eye[2] = Math.max(eye[2], ground + 0.02 * radius);
      surface.nearness.fill(0);
      shadow.heights.fill(Number.NEGATIVE_INFINITY);
      light.bounds.set([SHADOW_EDGE, SHADOW_EDGE, 0, 0]);
      for (let i = 0; i < parts.length; i++) {
        const shape = parts[i];
        if (shape.body >= 0) writePoseAt(motion, shape.body, frame, part, pose);
        else pose.fill(0).fill(1, 3, 4);
        moveTo(shape, pose);
        castShadow(shape, shadow, light, target);
        project(shape, surface, view, i, radius / 50);
      }
      shadePicture(out, surface, shadow, view, light, place, looks[dark ? 'dark' : 'light']);
      return out;
    },
  };
}

const corners = [new Float64Array(6), new Float64Array(6), new Float64Array(6)] as const;

/** Fills a shape's triangles into the shadow map, and makes its bounds reach around them. */
function castShadow(
  { mesh: { triangles }, world }: Part,
  shadow: ShadowMap,
  light: { from: V3; x: V3; y: V3; scale: number; bounds: Float64Array },
  target: V3,
): void {
  const { from, x: lightX, y: lightY, scale, bounds } = light;
  const middle = shadow.edge / 2;
  for (let t = 0; t < triangles.length; t += 3) {
    for (let k = 0; k < 3; k++) {
      const at = 3 * triangles[t + k];
      const x = world[at] - target[0];
      const y = world[at + 1] - target[1];
      const z = world[at + 2] - target[2];
      const corner = corners[k];
      corner[0] = (x * lightX[0] + y * lightX[1] + z * lightX[2]) * scale + middle;
      corner[1] = (x * lightY[0] + y * lightY[1] + z * lightY[2]) * scale + middle;
      corner[2] = x * from[0] + y * from[1] + z * from[2];
      for (let axis = 0; axis < 2; axis++) {
        if (corner[axis] < bounds[axis]) bounds[axis] = corner[axis];
        if (corner[axis] > bounds[2 + axis]) bounds[2 + axis] = corner[axis];
      }
    }
    fillShadow(shadow, corners[0], corners[1], corners[2]);
  }
}

/** Fills a shape's triangles, but those that reach behind the eye, into what is seen. */
function project(
  { mesh: { triangles }, world, turned }: Part,
  surface: Surface,
  { eye, right, up, back, focal }: { eye: V3; right: V3; up: V3; back: V3; focal: number },
  index: number,
  nearest: number,
): void {
  for (let t = 0; t < triangles.length; t += 3) {
    let inFront = true;
    for (let k = 0; k < 3; k++) {
      const at = 3 * triangles[t + k];
      const x = world[at] - eye[0];
      const y = world[at + 1] - eye[1];
      const z = world[at + 2] - eye[2];
      const far = -(x * back[0] + y * back[1] + z * back[2]);
      if (far < nearest) inFront = false;
      const corner = corners[k];
      corner[0] = surface.width / 2 + ((x * right[0] + y * right[1] + z * right[2]) / far) * focal;
      corner[1] = surface.height / 2 - ((x * up[0] + y * up[1] + z * up[2]) / far) * focal;
      corner[2] = 1 / far;
      corner[3] = turned[at];
      corner[4] = turned[at + 1];
      corner[5] = turned[at + 2];
    }
    if (inFront) fillTriangle(surface, corners[0], corners[1], corners[2], index);
  }
}

const bodyTurn = new Float64Array(9);
const wholeTurn = new Float64Array(9);

/** Puts a shape's corners and normals where its body is: `pose` is position and quaternion. */
function moveTo({ mesh, position, rotation, world, turned }: Part, pose: Float64Array): void {
  writeMatrix(pose, 3, bodyTurn);
  const { vertices, normals } = mesh;
  for (let row = 0; row < 3; row++) {
    const [a, b, c] = [bodyTurn[3 * row], bodyTurn[3 * row + 1], bodyTurn[3 * row + 2]];
    for (let column = 0; column < 3; column++)
      wholeTurn[3 * row + column] =
        a * rotation[column] + b * rotation[3 + column] + c * rotation[6 + column];
    const place = pose[row] + a * position[0] + b * position[1] + c * position[2];
    const [p, q, r] = [wholeTurn[3 * row], wholeTurn[3 * row + 1], wholeTurn[3 * row + 2]];
    for (let i = 0; i < vertices.length; i += 3) {
      world[i + row] = place + p * vertices[i] + q * vertices[i + 1] + r * vertices[i + 2];
      turned[i + row] = p * normals[i] + q * normals[i + 1] + r * normals[i + 2];
    }
  }
}

/** The rotation matrix, row by row, of a quaternion (w, x, y, z) that begins at `at`. */
function writeMatrix(turn: ArrayLike<number>, at: number, out: Float64Array): Float64Array {
  const w = turn[at];
  const x = turn[at + 1];
  const y = turn[at + 2];
  const z = turn[at + 3];
  out[0] = 1 - 2 * (y * y + z * z);
  out[1] = 2 * (x * y - w * z);
  out[2] = 2 * (x * z + w * y);
  out[3] = 2 * (x * y + w * z);
  out[4] = 1 - 2 * (x * x + z * z);
  out[5] = 2 * (y * z - w * x);
  out[6] = 2 * (x * z - w * y);
  out[7] = 2 * (y * z + w * x);
  out[8] = 1 - 2 * (x * x + y * y);
  return out;
}

function unit([x, y, z]: V3): V3 {
  const length = Math.hypot(x, y, z) || 1;
  return [x / length, y / length, z / length];
}

function cross(a: V3, b: V3): V3 {
  return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
}

/** Two directions across one, at right angles. */
function across(direction: V3): [V3, V3] {
  const first = unit(cross([0, 0, 1], direction));
  return [first, cross(direction, first)];
}
