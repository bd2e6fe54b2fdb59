/**
 * Which settings mattered: a random forest learns the value of a trial from its settings, and the settings of one axis are
 * exchanged between trials that a tree has not seen (L. Breiman, "Random Forests", 2001). How much worse the forest gets is
 * what the axis was worth. Squared errors, so that shares are of variance: in 3 a + b, a has nine times as much as b.
 */
import { Rng } from '../random/rng.ts';
import type { Space, Trial } from './schema.ts';
import { isActive, toUnit } from './space.ts';

/** Trials below which nothing can be said, and as many again for each axis. */
const leastTrials = 10;
const perAxis = 2;
/** More are thinned out: it must not keep a page waiting. */
const mostTrials = 1000;
const leafRows = 3;
const maxDepth = 12;

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
  if (space.length === 0 || used.length < leastTrials + perAxis * space.length) return undefined;
  const values = used.map(({ value }) => value!);
  const spread = varianceOf(values);
  // Values so far apart that their squares are no numbers say nothing either.
  if (!(spread > 0 && spread < Number.POSITIVE_INFINITY)) return undefined;
  const columns = space.map((axis): Column => {
    const at = used.map(({ params }) =>
      isActive(axis, params) && Object.hasOwn(params, axis.key)
        ? toUnit(axis.domain, params[axis.key])
        : Number.NaN,
    );
    return {
      at: Float64Array.from(at, one => (Number.isFinite(one) ? one : absent)),
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

/** An axis over all rows: where each is, and whether the axis counts there. */
interface Column {
  readonly at: Float64Array;
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
    columns.forEach(({ at, counts }, axis) => {
      // Rows at which the axis does not count stay as they are.
      const places = out.filter(row => counts[row]);
      const exchanged = Float64Array.from(places, row => at[row]);
      own.shuffle(exchanged);
      const other = new Map(places.map((row, i) => [row, exchanged[i]]));
      for (const row of out) {
        const moved = other.get(row);
        sums[axis] += squared(predict(tree, columns, row, axis, moved ?? at[row]) - values[row]);
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
      rows.filter(row => columns[axis].at[row] < threshold === wanted),
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
  for (const axis of someAxes(columns.length, rng)) {
    const column = columns[axis].at;
    const sorted = [...rows].sort((a, b) => column[a] - column[b]);
    let left = 0;
    for (let i = 1; i < sorted.length; i++) {
      left += values[sorted[i - 1]];
      const [before, after] = [column[sorted[i - 1]], column[sorted[i]]];
      if (i < leafRows || sorted.length - i < leafRows || before === after) continue;
      const squares = (left * left) / i + (total - left) ** 2 / (sorted.length - i);
      if (squares <= most + slack) continue;
      most = squares;
      best = { axis, threshold: (before + after) / 2 };
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
    at = (at.axis === axis ? value : columns[at.axis].at[row]) < at.threshold ? at.below : at.above;
  return at.mean;
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
