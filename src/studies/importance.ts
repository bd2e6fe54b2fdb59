/**
 * Which settings mattered: a random forest learns the value of a trial from its settings, and the settings of one axis are
 * exchanged between trials that a tree has not seen (L. Breiman, "Random Forests", 2001). How much worse the forest gets is
 * what the axis was worth. Squared errors, so that shares are of variance: in 3 a + b, a has nine times as much as b.
 */
import { Rng } from '../random/rng.ts';
import type { Space, Trial } from './schema.ts';
import { isActive } from './space.ts';
import { toUnit } from './unit.ts';

/** Trials below which nothing can be said, and as many again for each axis. */
const leastTrials = 10;
const perAxis = 2;
/** More are thinned out: it must not keep a page waiting. */
const mostTrials = 1000;
const leafRows = 3;
const maxDepth = 12;
/** Places of an axis that are told apart, where it has more. */
const maxBins = 64;

/** Complete trials below which nothing is said. */
export const trialsNeeded = (space: Space): number => leastTrials + perAxis * space.length;

export interface Importance {
  /** In the order of the space; together 1, or all 0 where nothing that the forest learnt holds for trials it had not seen. */
  readonly axes: readonly { readonly key: string; readonly share: number }[];
  /** Of the variance of trials that a tree had not seen, the share that the forest explains: at 0 the shares say nothing. */
  readonly explained: number;
  /** Complete trials that it is made of. */
  readonly trials: number;
}

/**
 * The importance of each axis over complete trials; undefined where they are too few to say. An axis with a condition is judged
 * by the trials in which it holds. The same trials give the same numbers.
 */
export function importanceOf(
  space: Space,
  trials: readonly Pick<Trial, 'state' | 'value' | 'params' | 'purpose'>[],
  rng: Rng = new Rng(0),
): Importance | undefined {
  const complete = trials.filter(
    ({ state, value, purpose }) => state === 'complete' && purpose === 'search' && Number.isFinite(value),
  );
  const used = thinned(complete, mostTrials);
  if (space.length === 0 || used.length < trialsNeeded(space)) return undefined;
  const values = used.map(({ value }) => value!);
  const spread = varianceOf(values);
  // Values so far apart that their squares are no numbers say nothing either.
  if (!(spread > 0 && spread < Number.POSITIVE_INFINITY)) return undefined;
  const columns = space.map((axis): Column => {
    const at = used.map(({ params }) =>
      isActive(axis, params) && Object.hasOwn(params, axis.key)
        ? (toUnit(axis.domain, params[axis.key]) ?? Number.NaN)
        : Number.NaN,
    );
    return {
      bin: binned(at.map(one => (Number.isFinite(one) ? one : absent))),
      counts: at.map(Number.isFinite),
    };
  });
  const { errors, error } = forestErrors(columns, values, rng);
  const gains = errors.map(worse => Math.max(0, worse - error));
  const total = gains.reduce((a, b) => a + b, 0);
  return {
    axes: space.map(({ key }, i) => ({ key, share: total > 0 ? gains[i] / total : 0 })),
    explained: Math.max(0, 1 - error / spread),
    trials: used.length,
  };
}

/**
 * Where an axis does not count. In the middle, and not outside: outside it would tell the forest of the condition, whose
 * worth belongs to the axis that it is on.
 */
const absent = 0.5;

/** An axis over all rows: in which bin each is, and whether the axis counts there. */
interface Column {
  readonly bin: Uint8Array;
  readonly counts: readonly boolean[];
}
type Columns = readonly Column[];

/** The mean squared error on rows that a tree has not seen: as they are, and with each column exchanged among them. */
function forestErrors(
  columns: Columns,
  values: readonly number[],
  rng: Rng,
): { error: number; errors: number[] } {
  const rows = values.length;
  const count = Math.max(16, Math.min(64, Math.floor(3200 / columns.length)));
  let [seen, sum] = [0, 0];
  const sums = columns.map(() => 0);
  for (const own of rng.split(count)) {
    const bag = Int32Array.from({ length: rows }, () => own.integer(rows));
    const inBag = new Set(bag);
    const out = Array.from({ length: rows }, (_, row) => row).filter(row => !inBag.has(row));
    if (out.length < 2) continue;
    const tree = grow(columns, values, [...bag], own, 0);
    for (const row of out) sum += squared(predict(tree, columns, row) - values[row]);
    seen += out.length;
    columns.forEach(({ bin, counts }, axis) => {
      // Rows at which the axis does not count stay as they are.
      const places = out.filter(row => counts[row]);
      const exchanged = Uint8Array.from(places, row => bin[row]);
      own.shuffle(exchanged);
      const other = new Map(places.map((row, i) => [row, exchanged[i]]));
      for (const row of out) {
        const moved = other.get(row);
        sums[axis] += squared(predict(tree, columns, row, axis, moved ?? bin[row]) - values[row]);
      }
    });
  }
  return { error: sum / seen, errors: sums.map(one => one / seen) };
}

type Tree =
  | { readonly mean: number }
  | { readonly axis: number; readonly threshold: number; readonly below: Tree; readonly above: Tree };

function grow(
  columns: Columns,
  values: readonly number[],
  rows: readonly number[],
  rng: Rng,
  depth: number,
): Tree {
  const mean = rows.reduce((sum, row) => sum + values[row], 0) / rows.length;
  if (depth >= maxDepth || rows.length < 2 * leafRows) return { mean };
  const split = bestSplit(columns, values, rows, rng);
  if (split === undefined) return { mean };
  const { axis, threshold } = split;
  const [below, above] = [true, false].map(wanted =>
    grow(
      columns,
      values,
      rows.filter(row => columns[axis].bin[row] < threshold === wanted),
      rng,
      depth + 1,
    ),
  );
  return { axis, threshold, below, above };
}

/** The split after which the squares of both sides are least, over some axes; undefined where none makes them less. */
function bestSplit(columns: Columns, values: readonly number[], rows: readonly number[], rng: Rng) {
  const total = rows.reduce((sum, row) => sum + values[row], 0);
  let best: { axis: number; threshold: number } | undefined;
  // Squares of what is left are those of all less these, which are therefore to be large.
  let most = (total * total) / rows.length;
  const slack = 1e-12 * Math.abs(most);
  const [sums, counts] = [new Float64Array(maxBins), new Int32Array(maxBins)];
  for (const axis of someAxes(columns.length, rng)) {
    const { bin } = columns[axis];
    sums.fill(0);
    counts.fill(0);
    for (const row of rows) {
      sums[bin[row]] += values[row];
      counts[bin[row]]++;
    }
    let [left, below] = [0, 0];
    for (let threshold = 1; threshold < maxBins; threshold++) {
      left += sums[threshold - 1];
      below += counts[threshold - 1];
      const above = rows.length - below;
      if (counts[threshold - 1] === 0 || below < leafRows || above < leafRows) continue;
      const squares = (left * left) / below + (total - left) ** 2 / above;
      if (squares <= most + slack) continue;
      most = squares;
      best = { axis, threshold };
    }
  }
  return best;
}

/** All of a few; a third of many, which keeps trees apart. */
function someAxes(count: number, rng: Rng): readonly number[] {
  const wanted = Math.max(Math.ceil(count / 3), Math.min(count, 8));
  return [...rng.permutation(count)].slice(0, wanted);
}

/** What a tree says of a row; `axis` at another value where one is given. */
function predict(tree: Tree, columns: Columns, row: number, axis = -1, value = 0): number {
  let at = tree;
  while (!('mean' in at))
    at = (at.axis === axis ? value : columns[at.axis].bin[row]) < at.threshold ? at.below : at.above;
  return at.mean;
}

/** The values of an axis in order, as many of them in each bin as in others. */
function binned(at: readonly number[]): Uint8Array {
  const distinct = [...new Set(at)].sort((a, b) => a - b);
  const bins = Math.min(distinct.length, maxBins);
  const places = new Map(distinct.map((one, rank) => [one, Math.floor((rank * bins) / distinct.length)]));
  return Uint8Array.from(at, one => places.get(one)!);
}

const squared = (x: number): number => x * x;

function varianceOf(values: readonly number[]): number {
  const mean = values.reduce((a, b) => a + b, 0) / values.length;
  return values.reduce((sum, value) => sum + squared(value - mean), 0) / values.length;
}

/** At most so many, evenly from all. */
function thinned<T>(all: readonly T[], most: number): readonly T[] {
  if (all.length <= most) return all;
  return Array.from({ length: most }, (_, i) => all[Math.floor((i * all.length) / most)]);
}
