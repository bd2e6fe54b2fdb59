/** A palette for many pictures: colours counted in small cubes, then split where they spread most (median cut). */

/** Bits of each channel that are told apart. */
const BITS = 5;
const SIDE = 1 << BITS;
const CUBES = SIDE ** 3;

export interface Palette {
  readonly colours: Uint8Array; // (count, 3)
  /** The nearest colour of each cube, by {@link cubeOf}. */
  readonly nearest: Uint8Array; // (CUBES)
}

/** The cube that a colour lies in. */
export const cubeOf = (r: number, g: number, b: number): number =>
  ((r >> (8 - BITS)) << (2 * BITS)) | ((g >> (8 - BITS)) << BITS) | (b >> (8 - BITS));

/** Collects colours of pictures, (…, 3) bytes. */
export function createHistogram() {
  const counts = new Uint32Array(CUBES);
  const sums = new Float64Array(3 * CUBES);
  return {
    add(pixels: Uint8Array): void {
      for (let i = 0; i < pixels.length; i += 3) {
        const cube = cubeOf(pixels[i], pixels[i + 1], pixels[i + 2]);
        counts[cube]++;
        for (let k = 0; k < 3; k++) sums[3 * cube + k] += pixels[i + k];
      }
    },
    /** At most `most` colours that stand for all. */
    palette: (most: number): Palette => paletteOf(counts, sums, most),
  };
}

interface Box {
  readonly cubes: number[];
  /** The channel along which it is widest, and how much would be gained by splitting it. */
  readonly channel: number;
  readonly gain: number;
}

function paletteOf(counts: Uint32Array, sums: Float64Array, most: number): Palette {
  const used = Array.from(counts.keys()).filter(cube => counts[cube] > 0);
  const mean = (cube: number, k: number): number => sums[3 * cube + k] / counts[cube];
  const boxOf = (cubes: number[]): Box => {
    let [channel, gain] = [0, -1];
    for (let k = 0; k < 3; k++) {
      let [weight, first, second] = [0, 0, 0];
      for (const cube of cubes) {
        // By the square root: the sky must not take all colours from a small robot.
        const w = Math.sqrt(counts[cube]);
        weight += w;
        first += w * mean(cube, k);
        second += w * mean(cube, k) ** 2;
      }
      const spread = second - first ** 2 / weight;
      if (spread > gain) [channel, gain] = [k, spread];
    }
    return { cubes, channel, gain: cubes.length > 1 ? gain : -1 };
  };
  let boxes = used.length === 0 ? [] : [boxOf(used)];
  while (boxes.length < most) {
    const widest = boxes.reduce(
      (a, b) => (b.gain > a.gain ? b : a),
      boxes[0] ?? { cubes: [], channel: 0, gain: -1 },
    );
    if (widest.gain <= 0) break;
    const { channel } = widest;
    const sorted = [...widest.cubes].sort((a, b) => mean(a, channel) - mean(b, channel));
    const total = sorted.reduce((sum, cube) => sum + Math.sqrt(counts[cube]), 0);
    let [at, half] = [0, 0];
    while (at < sorted.length - 1 && half < total / 2) half += Math.sqrt(counts[sorted[at++]]);
    at = Math.min(sorted.length - 1, Math.max(1, at));
    boxes = [...boxes.filter(box => box !== widest), boxOf(sorted.slice(0, at)), boxOf(sorted.slice(at))];
  }
  const colours = new Uint8Array(3 * Math.max(1, boxes.length));
  boxes.forEach(({ cubes }, i) => {
    const count = cubes.reduce((sum, cube) => sum + counts[cube], 0);
    for (let k = 0; k < 3; k++)
      colours[3 * i + k] = Math.round(cubes.reduce((sum, cube) => sum + sums[3 * cube + k], 0) / count);
  });
  return { colours, nearest: nearestOf(colours) };
}

function nearestOf(colours: Uint8Array): Uint8Array {
  const nearest = new Uint8Array(CUBES);
  const middle = (part: number): number => (part + 0.5) * (256 / SIDE);
  for (let cube = 0; cube < CUBES; cube++) {
    const [r, g, b] = [
      middle(cube >> (2 * BITS)),
      middle((cube >> BITS) & (SIDE - 1)),
      middle(cube & (SIDE - 1)),
    ];
    let least = Number.POSITIVE_INFINITY;
    for (let i = 0; i < colours.length; i += 3) {
      // The eye is keenest on green.
      const away = 2 * (r - colours[i]) ** 2 + 4 * (g - colours[i + 1]) ** 2 + 3 * (b - colours[i + 2]) ** 2;
      if (away < least) [least, nearest[cube]] = [away, i / 3];
    }
  }
  return nearest;
}
