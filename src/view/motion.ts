/** Where a recorded robot is at a moment, how fast it goes, how large it is. Runs in a browser. */
import type { Drawing } from './drawing.ts';
import type { Pictures } from './pictures.ts';
import type { Scene, SceneShape, Vector3 } from './scene.ts';

/** What of a replay moves; a `Replay` is one. */
export interface Motion {
  readonly scene: Scene;
  readonly frames: number;
  readonly frameSeconds: number;
  readonly positions: Float32Array; // (frames, bodies, 3)
  readonly rotations: Int16Array; // (frames, bodies, 4)
  /** Of what is drawn in two dimensions, and has no bodies: one a frame. */
  readonly drawings?: readonly Drawing[] | undefined;
  /** Of what draws itself, and has no bodies either. */
  readonly pictures?: Pictures | undefined;
}

/** Whether it is seen from one side alone: it has no bodies that a camera could go around. */
export const isFlat = ({ drawings, pictures }: Pick<Motion, 'drawings' | 'pictures'>): boolean =>
  drawings !== undefined || pictures !== undefined;

const TURN = 32_767;
/** Speed is taken over so long a stretch: a stride's shaking is not shown as speed. */
const SPEED_SECONDS = 0.25;

/** Seconds from the first frame to the last. */
export const secondsOf = ({ frames, frameSeconds }: Motion): number => (frames - 1) * frameSeconds;

/** The frame at or before a moment, and how much of the way to the next one is gone. */
export function momentOf(motion: Motion, seconds: number): { frame: number; part: number } {
  const at = Math.min(motion.frames - 1, Math.max(0, seconds / motion.frameSeconds));
  const frame = Math.min(Math.floor(at + 1e-9), motion.frames - 1);
  return { frame, part: frame === motion.frames - 1 ? 0 : Math.min(1, Math.max(0, at - frame)) };
}

/** Writes position (x, y, z) and quaternion (w, x, y, z) of a body into `out`, between two frames on the shortest way. */
export function writePoseAt(
  motion: Motion,
  body: number,
  frame: number,
  part: number,
  out: Float64Array,
): void {
  const { positions, rotations, scene, frames } = motion;
  const count = scene.bodies.length;
  const next = Math.min(frame + 1, frames - 1);
  const [a, b] = [frame * count + body, next * count + body];
  for (let k = 0; k < 3; k++) {
    const from = positions[3 * a + k];
    out[k] = from + part * (positions[3 * b + k] - from);
  }
  let along = 0;
  for (let k = 0; k < 4; k++) along += rotations[4 * a + k] * rotations[4 * b + k];
  const sign = along < 0 ? -1 : 1;
  let length = 0;
  for (let k = 0; k < 4; k++) {
    const from = rotations[4 * a + k] / TURN;
    const turn = from + part * ((sign * rotations[4 * b + k]) / TURN - from);
    out[3 + k] = turn;
    length += turn * turn;
  }
  // All zeros is no turn; a damaged file may hold it.
  if (length === 0) out[3] = length = 1;
  for (let k = 3; k < 7; k++) out[k] /= Math.sqrt(length);
}

/** Metres a second over the ground of the body that counts, around a frame. */
export function speedAt(motion: Motion, frame: number): number {
  const { scene, frames, frameSeconds, positions } = motion;
  const reach = Math.max(1, Math.round(SPEED_SECONDS / frameSeconds / 2));
  const [from, to] = [Math.max(0, frame - reach), Math.min(frames - 1, frame + reach)];
  if (from === to) return 0;
  const at = (f: number, k: number): number => positions[3 * (f * scene.bodies.length + scene.root) + k];
  return Math.hypot(at(to, 0) - at(from, 0), at(to, 1) - at(from, 1)) / ((to - from) * frameSeconds);
}

/** Metres over the ground from the start to a frame, as the crow flies. */
export function distanceAt(motion: Motion, frame: number): number {
  const { scene, positions } = motion;
  const at = (f: number, k: number): number => positions[3 * (f * scene.bodies.length + scene.root) + k];
  return Math.hypot(at(frame, 0) - at(0, 0), at(frame, 1) - at(0, 1));
}

/** How far a shape reaches along each axis of the world from its own middle, when `turn` (w, x, y, z) is its rotation there. */
function halfExtents({ size: [a, b, c], kind }: SceneShape, turn: ArrayLike<number>): Vector3 {
  const [w, x, y, z] = [turn[0], turn[1], turn[2], turn[3]];
  // Columns of the rotation: where the shape's own axes point.
  const axes: readonly Vector3[] = [
    [1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)],
    [2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x)],
    [2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)],
  ];
  const along = (k: number): number => {
    const [p, q, r] = axes.map(axis => axis[k]) as unknown as Vector3;
    switch (kind) {
      case 'sphere':
        return a;
      case 'capsule':
        return a + b * Math.abs(r);
      case 'cylinder':
        return a * Math.sqrt(Math.max(0, 1 - r * r)) + b * Math.abs(r);
      case 'ellipsoid':
        return Math.hypot(a * p, b * q, c * r);
      case 'box':
        return a * Math.abs(p) + b * Math.abs(q) + c * Math.abs(r);
      case 'plane':
        return 0;
      default:
        return kind satisfies never;
    }
  };
  return [along(0), along(1), along(2)];
}

/** What is between the robot's ends in its first frame: its middle and half its diagonal in metres, at least a centimetre. */
export function reachOf(motion: Motion): { readonly centre: Vector3; readonly radius: number } {
  const low = [Infinity, Infinity, Infinity];
  const high = [-Infinity, -Infinity, -Infinity];
  const pose = new Float64Array(7);
  for (const shape of motion.scene.shapes) {
    if (shape.body < 0 || shape.kind === 'plane') continue;
    writePoseAt(motion, shape.body, 0, 0, pose);
    const body = pose.subarray(3);
    const middle = turned(body, shape.position);
    const half = halfExtents(shape, multiplied(body, shape.rotation));
    for (let k = 0; k < 3; k++) {
      low[k] = Math.min(low[k], pose[k] + middle[k] - half[k]);
      high[k] = Math.max(high[k], pose[k] + middle[k] + half[k]);
    }
  }
  if (!(low[0] <= high[0])) return { centre: [0, 0, 0], radius: 1 };
  const centre = low.map((value, k) => (value + high[k]) / 2) as unknown as Vector3;
  return { centre, radius: Math.max(0.01, Math.hypot(...low.map((value, k) => high[k] - value)) / 2) };
}

/** Two rotations (w, x, y, z), the second first. */
function multiplied(a: ArrayLike<number>, b: ArrayLike<number>): number[] {
  const [w, x, y, z] = [a[0], a[1], a[2], a[3]];
  const [p, q, r, s] = [b[0], b[1], b[2], b[3]];
  return [
    w * p - x * q - y * r - z * s,
    w * q + x * p + y * s - z * r,
    w * r - x * s + y * p + z * q,
    w * s + x * r - y * q + z * p,
  ];
}

/** A vector after a rotation. */
function turned(turn: ArrayLike<number>, [x, y, z]: Vector3): number[] {
  const back = [turn[0], -turn[1], -turn[2], -turn[3]];
  return multiplied(multiplied(turn, [0, x, y, z]), back).slice(1);
}

/** The height of the ground: the world's level floor, else a little below the lowest that is seen. */
export function groundOf(motion: Motion): number {
  const { scene, positions } = motion;
  const floor = scene.shapes.find(shape => isFloor(shape));
  if (floor !== undefined) return floor.position[2];
  const { radius } = reachOf(motion);
  let lowest = Infinity;
  for (let i = 2; i < positions.length; i += 3) lowest = Math.min(lowest, positions[i]);
  return lowest - 0.75 * radius;
}

/** Whether a shape is level ground that stands still. */
export function isFloor({ kind, body, rotation: [, x, y] }: SceneShape): boolean {
  return kind === 'plane' && body === -1 && Math.hypot(x, y) < 1e-3;
}
