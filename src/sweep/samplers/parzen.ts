/**
 * A Parzen estimator over a space with conditions: a density that is a weighted mean of kernels around points and of the uniform
 * density. A kernel is a product over the axes:
 *
 * - ranges without steps, or with many: a normal distribution, cut off at the ends of the range, and a share that is uniform;
 * - ranges with few steps: the same normal's mass in each step's cell;
 * - choices: the point's value, with a share for the others (Aitchison & Aitken 1976).
 *
 * An axis that a point lacks, because its condition did not hold there, is uniform in that point's kernel.
 */
import type { Rng } from '../../random/rng.ts';
import type { Domain, Params, ParamValue, Space } from '../../studies/schema.ts';
import { countOf, isActive, valueAt } from '../../studies/space.ts';
import { cellOf, fromUnit, indexOf, toUnit } from '../../studies/unit.ts';

/** Up to so many values an axis has a table of probabilities; with more it is as good as continuous. */
const MOST_IN_TABLE = 64;
/** Tries to draw a normal inside of the range; the kernel's centre is in it, so each has a good chance. */
const DRAWS = 100;
/**
 * Share of the uniform density in each axis' normal. With it, a point that is as a good one on all axes but one is not far from
 * good: one axis can be searched while the others stay.
 */
const UNIFORM_SHARE = 0.1;

/** A place in a space: on an axis with a table the index of the value, else in 0..1; NaN where there is none. */
export type Point = Float64Array; // (axes)

export interface Parzen {
  /** The density's logarithm. */
  logDensity(point: Point): number;
  /** `jointly`: all axes around one of the points; otherwise each axis around one of its own. */
  draw(rng: Rng, jointly: boolean): Point;
}

export interface Smoothing {
  /** Of the points; the uniform density has 1. */
  readonly weights: readonly number[];
  /** Least width of a normal, as a share of the range. */
  readonly minWidth: number;
  /** Of the width that Scott's rule gives. */
  readonly scale: number;
}

const hasTable = (domain: Domain): boolean => countOf(domain) <= MOST_IN_TABLE;

export const pointOf = (space: Space, params: Params): Point =>
  Float64Array.from(space, ({ key, domain }) => {
    if (!hasTable(domain)) return toUnit(domain, params[key]) ?? NaN;
    const index = indexOf(domain, params[key]);
    return index < 0 ? NaN : index;
  });

const valueFrom = (domain: Domain, coordinate: number): ParamValue =>
  hasTable(domain) ? valueAt(domain, coordinate) : fromUnit(domain, coordinate);

export const paramsOf = (space: Space, point: Point): Params =>
  Object.fromEntries(
    space.flatMap(({ key, domain }, d) =>
      Number.isNaN(point[d]) ? [] : [[key, valueFrom(domain, point[d])] as const],
    ),
  );

/** One axis' factor of the kernels: a normal whose logarithm is `offset(centre) - ((x - centre) / width)^2 / 2`, or a table. */
interface AxisKernel {
  readonly width: number;
  readonly offset: (centre: number) => number;
  /** Logarithms of probabilities, by centre and value; undefined for a normal. */
  readonly table: Float64Array | undefined; // (count, count)
  readonly count: number;
  readonly logUniform: (x: number) => number;
  readonly drawUniform: (rng: Rng) => number;
  readonly draw: (centre: number, rng: Rng) => number;
}

export function parzen(space: Space, points: readonly Point[], smoothing: Smoothing): Parzen {
  const [n, axes] = [points.length, space.length];
  const { weights } = smoothing;
  const kernels = space.map(({ domain }, d) =>
    axisKernel(
      domain,
      points.flatMap(point => (Number.isNaN(point[d]) ? [] : [point[d]])),
      axes,
      smoothing,
    ),
  );
  const total = weights.reduce((a, b) => a + b, 1);
  const logWeights = Float64Array.from(weights, weight => Math.log(weight / total));
  const logPrior = -Math.log(total);
  // Flat, because this is where all the time goes: candidates x points x axes.
  const centres = new Float64Array(n * axes);
  const offsets = new Float64Array(n * axes);
  points.forEach((point, i) => {
    centres.set(point, i * axes);
    for (let d = 0; d < axes; d++) offsets[i * axes + d] = kernels[d].offset(point[d]);
  });
  const active = new Int32Array(axes);
  const terms = new Float64Array(n);

  return {
    logDensity(x) {
      let actives = 0;
      let prior = logPrior;
      for (let d = 0; d < axes; d++) {
        if (Number.isNaN(x[d])) continue;
        active[actives++] = d;
        prior += kernels[d].logUniform(x[d]);
      }
      let largest = prior;
      for (let i = 0; i < n; i++) {
        let sum = logWeights[i];
        for (let a = 0; a < actives; a++) {
          const d = active[a];
          const centre = centres[i * axes + d];
          const { table, count, width } = kernels[d];
          if (Number.isNaN(centre)) sum += kernels[d].logUniform(x[d]);
          else if (table !== undefined) sum += table[centre * count + x[d]];
          else {
            const z = (x[d] - centre) / width;
            const normal = Math.exp(offsets[i * axes + d] - 0.5 * z * z);
            sum += Math.log(UNIFORM_SHARE + (1 - UNIFORM_SHARE) * normal);
          }
        }
        terms[i] = sum;
        if (sum > largest) largest = sum;
      }
      let density = Math.exp(prior - largest);
      for (let i = 0; i < n; i++) density += Math.exp(terms[i] - largest);
      return largest + Math.log(density);
    },

    draw(rng, jointly) {
      // Past the last point is the uniform density.
      const pick = (): number => {
        let rest = rng.uniform() * total;
        for (let i = 0; i < n; i++) {
          if (rest < weights[i]) return i;
          rest -= weights[i];
        }
        return n;
      };
      const shared = pick();
      const x = new Float64Array(axes).fill(NaN);
      const params: Record<string, ParamValue> = {};
      space.forEach((axis, d) => {
        if (!isActive(axis, params)) return;
        const i = jointly ? shared : pick();
        const centre = i < n ? points[i][d] : NaN;
        x[d] =
          Number.isNaN(centre) || rng.uniform() < UNIFORM_SHARE
            ? kernels[d].drawUniform(rng)
            : kernels[d].draw(centre, rng);
        params[axis.key] = valueFrom(axis.domain, x[d]);
      });
      return x;
    },
  };
}

/** `known` are the axis' coordinates in the points that have it. */
function axisKernel(
  domain: Domain,
  known: readonly number[],
  axes: number,
  smoothing: Smoothing,
): AxisKernel {
  if (domain.kind === 'choice') {
    const count = domain.values.length;
    const share = 1 / (1 + known.length) / count;
    const uniform = new Array<number>(count).fill(1 / count);
    return tableKernel(
      uniform.map((_, centre) => uniform.map((_, x) => share + (x === centre ? 1 - share * count : 0))),
      uniform,
    );
  }
  if (!hasTable(domain)) return normalKernel(widthOf(known, axes, smoothing));
  const cells = Array.from({ length: countOf(domain) }, (_, index) => cellOf(domain, index));
  const sizes = cells.map(([low, high]) => high - low);
  const middles = cells.map(([low, high]) => (low + high) / 2);
  const width = widthOf(
    known.map(index => middles[index]),
    axes,
    smoothing,
  );
  const rows = middles.map(centre => {
    const masses = cells.map(([low, high]) => phi((high - centre) / width) - phi((low - centre) / width));
    const sum = masses.reduce((a, b) => a + b, 0);
    return masses.map((mass, i) => UNIFORM_SHARE * sizes[i] + ((1 - UNIFORM_SHARE) * mass) / sum);
  });
  return tableKernel(rows, sizes);
}

/**
 * Scott's rule: the points' standard deviation times n^(-1 / (axes + 4)). The uniform's variance counts as one point more, so
 * that a few points that happen to be close do not end the search.
 */
function widthOf(places: readonly number[], axes: number, { minWidth, scale }: Smoothing): number {
  const n = places.length;
  if (n === 0) return 1;
  const mean = places.reduce((a, b) => a + b, 0) / n;
  const squares = places.reduce((sum, place) => sum + (place - mean) ** 2, 0);
  const deviation = Math.sqrt((squares + 1 / 12) / (n + 1));
  return Math.max(minWidth, scale * deviation * n ** (-1 / (axes + 4)));
}

function normalKernel(width: number): AxisKernel {
  const offset = -Math.log(width) - 0.5 * Math.log(2 * Math.PI);
  return {
    width,
    offset: centre => offset - Math.log(phi((1 - centre) / width) - phi(-centre / width)),
    table: undefined,
    count: 0,
    logUniform: () => 0,
    drawUniform: rng => rng.uniform(),
    draw(centre, rng) {
      for (let i = 0; i < DRAWS; i++) {
        const x = centre + width * rng.normal();
        if (x >= 0 && x <= 1) return x;
      }
      return centre;
    },
  };
}

function tableKernel(rows: readonly (readonly number[])[], uniform: readonly number[]): AxisKernel {
  const logs = uniform.map(Math.log);
  return {
    width: 1,
    offset: () => 0,
    table: Float64Array.from(rows.flatMap(row => row.map(Math.log))),
    count: rows.length,
    logUniform: x => logs[x],
    drawUniform: rng => rng.categorical(uniform),
    draw: (centre, rng) => rng.categorical(rows[centre]),
  };
}

/** The standard normal's distribution function (Abramowitz & Stegun 1964, 7.1.26), within 1e-7. */
function phi(z: number): number {
  const x = Math.abs(z) * Math.SQRT1_2;
  const t = 1 / (1 + 0.3275911 * x);
  const series =
    t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
  const tail = 0.5 * series * Math.exp(-x * x);
  return z > 0 ? 1 - tail : tail;
}
