/**
 * From what is seen at each sample to the picture: light, shadow, floor, mist, sky. This runs some hundred thousand times a
 * picture, so it is written in plain numbers: no arrays are made, no functions called that would not be inlined.
 */
import type { ShadowMap, Surface } from './triangles.ts';

/** Linear light, 0..1. */
export type Rgb = readonly [number, number, number];
export type V3 = readonly [number, number, number];

export interface Look {
  readonly horizon: Rgb;
  readonly zenith: Rgb;
  readonly cells: readonly [Rgb, Rgb];
  readonly sun: number;
  readonly fill: number;
}

/** Samples a pixel along each axis, where the robot is; the rest is smooth by itself. */
export const FINE = 2;
/** Where mist begins and where it hides all, in the robot's radii. */
const MIST_FROM = 8;
const MIST_TO = 30;

export interface View {
  readonly eye: V3;
  /** What the camera looks at, which is also the middle of the shadow map. */
  readonly target: V3;
  readonly right: V3;
  readonly up: V3;
  /** From what is looked at to the eye. */
  readonly back: V3;
  /** Samples to one metre at a distance of one. */
  readonly focal: number;
}

export interface Light {
  readonly from: V3;
  /** The axes of the shadow map, and its cells to a metre. */
  readonly x: V3;
  readonly y: V3;
  readonly scale: number;
  /** The part of the map with something in it, in cells. */
  readonly bounds: Float64Array; // left, top, right, bottom
}

export interface Place {
  readonly radius: number;
  readonly ground: number;
  readonly cell: number;
  /** (shapes, 3) */
  readonly colours: Float64Array;
}

/** Linear light to a byte of sRGB; finer than a byte, so that dark tones stay apart. */
const TONES = 4096;
const bytesOfLight = Uint8Array.from({ length: TONES + 1 }, (_, i) => {
  const light = i / TONES;
  return Math.round(255 * (light <= 0.0031308 ? 12.92 * light : 1.055 * light ** (1 / 2.4) - 0.055));
});

const toByte = (light: number): number => bytesOfLight[light >= 1 ? TONES : (light * TONES + 0.5) | 0];

/** Fills `out`, (height, width, 3), whose size is that of the surface divided by {@link FINE}. */
export function shadePicture(
  out: Uint8Array,
  surface: Surface,
  shadow: ShadowMap,
  view: View,
  light: Light,
  place: Place,
  look: Look,
): void {
  const { nearness, normals, shapes, width: fineWidth, height: fineHeight } = surface;
  const [width, height] = [fineWidth / FINE, fineHeight / FINE];
  const [ex, ey, ez] = view.eye;
  const [tx, ty, tz] = view.target;
  const [rx, ry, rz] = view.right;
  const [ux, uy, uz] = view.up;
  const [bx, by, bz] = view.back;
  const { focal } = view;
  const [lx, ly, lz] = light.from;
  const [lxx, lxy, lxz] = light.x;
  const [lyx, lyy, lyz] = light.y;
  const { radius, ground, cell, colours } = place;
  const { edge, heights } = shadow;
  const { sun, fill } = look;
  const [horizonR, horizonG, horizonB] = look.horizon;
  const [zenithR, zenithG, zenithB] = look.zenith;
  const [[lightR, lightG, lightB], [darkR, darkG, darkB]] = look.cells;
  const bias = 0.012 * radius;
  const left = Math.max(2, light.bounds[0] - 2);
  const top = Math.max(2, light.bounds[1] - 2);
  const rightmost = Math.min(edge - 4, light.bounds[2] + 2);
  const bottom = Math.min(edge - 4, light.bounds[3] + 2);
  const farthest = MIST_TO * radius;
  let red = 0;
  let green = 0;
  let blue = 0;

  /** How much of the light reaches a point: 0 to 1, soft over a few cells of the map. */
  const lit = (x: number, y: number, z: number): number => {
    const dx = x - tx;
    const dy = y - ty;
    const dz = z - tz;
    const u = (dx * lxx + dy * lxy + dz * lxz) * light.scale + edge / 2 - 0.5;
    const v = (dx * lyx + dy * lyy + dz * lyz) * light.scale + edge / 2 - 0.5;
    if (u < left || v < top || u > rightmost || v > bottom) return 1;
    const cu = Math.floor(u);
    const cv = Math.floor(v);
    const fu = u - cu;
    const fv = v - cv;
    const own = dx * lx + dy * ly + dz * lz + bias;
    // Four by four cells, the outer ones by how much of them a window of three covers.
    let sum = 0;
    for (let j = -1; j < 3; j++) {
      const at = (cv + j) * edge + cu;
      let line = 0;
      if (heights[at - 1] <= own) line += 1 - fu;
      if (heights[at] <= own) line += 1;
      if (heights[at + 1] <= own) line += 1;
      if (heights[at + 2] <= own) line += fu;
      sum += (j === -1 ? 1 - fv : j === 2 ? fv : 1) * line;
    }
    return sum / 9;
  };

  /** Adds floor or sky along a line of sight. */
  const background = (dx: number, dy: number, dz: number, weight: number): void => {
    const length = Math.sqrt(dx * dx + dy * dy + dz * dz);
    const far = dz < 0 ? ((ground - ez) / dz) * length : Number.POSITIVE_INFINITY;
    if (far < farthest) {
      const x = ex + (far / length) * dx;
      const y = ey + (far / length) * dy;
      const mist = Math.max(0, (far / radius - MIST_FROM) / (MIST_TO - MIST_FROM));
      // How much floor one pixel covers, in cells: the flatter the view, the more.
      const window = ((FINE * far) / (focal * cell)) * (1 + length / (-3 * dz));
      const share = 0.5 - 0.5 * stripe(x / cell, window) * stripe(y / cell, window);
      const power = (fill + sun * lz * lit(x, y, ground)) * (1 - mist) * weight;
      red += (lightR + share * (darkR - lightR)) * power + mist * horizonR * weight;
      green += (lightG + share * (darkG - lightG)) * power + mist * horizonG * weight;
      blue += (lightB + share * (darkB - lightB)) * power + mist * horizonB * weight;
      return;
    }
    const high = dz > 0 ? Math.sqrt(dz / length) : 0;
    red += (horizonR + high * (zenithR - horizonR)) * weight;
    green += (horizonG + high * (zenithG - horizonG)) * weight;
    blue += (horizonB + high * (zenithB - horizonB)) * weight;
  };

  /** Adds a sample of the robot. */
  const robot = (at: number, dx: number, dy: number, dz: number, weight: number): void => {
    const far = 1 / nearness[at];
    let nx = normals[3 * at];
    let ny = normals[3 * at + 1];
    let nz = normals[3 * at + 2];
    const scale = 1 / Math.sqrt(nx * nx + ny * ny + nz * nz);
    nx *= scale;
    ny *= scale;
    nz *= scale;
    const facing = nx * lx + ny * ly + nz * lz;
    const reached = facing > 0 ? lit(ex + far * dx, ey + far * dy, ez + far * dz) : 0;
    // The sky lights from above, the ground a little from below.
    const power = fill * (0.78 + 0.22 * nz) + sun * Math.max(0, facing) * reached;
    // A gloss where light and eye are on either side of the normal.
    const away = 1 / Math.sqrt(dx * dx + dy * dy + dz * dz);
    const hx = lx - dx * away;
    const hy = ly - dy * away;
    const hz = lz - dz * away;
    const gloss = Math.max(0, (nx * hx + ny * hy + nz * hz) / Math.sqrt(hx * hx + hy * hy + hz * hz));
    const gloss8 = gloss * gloss * gloss * gloss * gloss * gloss * gloss * gloss;
    const shine = 0.16 * reached * gloss8 * gloss8 * gloss8;
    const shape = 3 * shapes[at];
    red += (colours[shape] * power + shine) * weight;
    green += (colours[shape + 1] * power + shine) * weight;
    blue += (colours[shape + 2] * power + shine) * weight;
  };

  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      red = 0;
      green = 0;
      blue = 0;
      const first = FINE * (y * fineWidth + x);
      const empty =
        nearness[first] === 0 &&
        nearness[first + 1] === 0 &&
        nearness[first + fineWidth] === 0 &&
        nearness[first + fineWidth + 1] === 0;
      const samples = empty ? 1 : FINE;
      for (let j = 0; j < samples; j++) {
        for (let i = 0; i < samples; i++) {
          const a = (FINE * x + (empty ? FINE / 2 : i + 0.5) - fineWidth / 2) / focal;
          const b = (fineHeight / 2 - FINE * y - (empty ? FINE / 2 : j + 0.5)) / focal;
          const dx = a * rx + b * ux - bx;
          const dy = a * ry + b * uy - by;
          const dz = a * rz + b * uz - bz;
          const at = first + j * fineWidth + i;
          const near = nearness[at];
          // What sinks into the floor is under it.
          const hidden = dz < 0 && near * (ground - ez) > dz * (1 - 1e-4);
          if (near > 0 && !hidden) robot(at, dx, dy, dz, 1 / (samples * samples));
          else background(dx, dy, dz, 1 / (samples * samples));
        }
      }
      const at = 3 * (y * width + x);
      out[at] = toByte(red);
      out[at + 1] = toByte(green);
      out[at + 2] = toByte(blue);
    }
  }
}

/**
 * One or minus one in turns, averaged over a window: far off, where several cells share a pixel, it fades to 0 instead of
 * flickering (the integral of a square wave is a triangle wave).
 */
export function stripe(x: number, window: number): number {
  const w = Math.max(1e-4, window);
  const a = (x - w / 2) / 2;
  const b = (x + w / 2) / 2;
  return (2 / w) * (Math.abs(a - Math.floor(a) - 0.5) - Math.abs(b - Math.floor(b) - 0.5));
}
