/**
 * The law that measurements follow: a sum of known shapes of n, such as `a + b·n`, with coefficients of at least 0, by least
 * squares of relative errors, because times and sizes span orders of magnitude. Where no law fits all points, the longest row
 * of neighbours that one does fit, and how far off it is at the others.
 */

/** One measurement: what was asked for, and what it took. */
export interface Point {
  readonly n: number;
  readonly value: number;
}

/** A shape that a law may have a share of. */
export interface Term {
  /** As it stands in a law: `n`, `n²`; empty for what does not depend on n. */
  readonly name: string;
  at(n: number): number;
}

export const constant: Term = { name: '', at: () => 1 };
export const linear: Term = { name: 'n', at: n => n };
export const quadratic: Term = { name: 'n²', at: n => n * n };
export const inverse: Term = { name: '1/n', at: n => 1 / n };

/** Points that are further from a law than this do not follow it. */
const TOLERANCE = 0.15;
/** So many more points than coefficients a law must fit: two coefficients go through any two points. */
const SPARE = 1;

export interface Law {
  readonly terms: readonly Term[];
  /** Of each term, in the unit of the values. */
  readonly coefficients: readonly number[];
  /** The points that it was fitted to: from this n to that one. */
  readonly from: number;
  readonly to: number;
  /** Of those points, the largest |measured / law - 1|. */
  readonly largestDeviation: number;
  /** Points that do not follow it, with measured / law there. */
  readonly breaks: readonly { readonly n: number; readonly ratio: number }[];
}

/** What a law says of n. */
export const valueAt = ({ terms, coefficients }: Pick<Law, 'terms' | 'coefficients'>, n: number): number =>
  terms.reduce((sum, term, i) => sum + coefficients[i] * term.at(n), 0);

/**
 * The law of these points: of all, if it is within the tolerance of each, else of as many neighbours as possible, the first
 * such if there are several. Undefined if there is none, or if the points are too few to tell.
 */
export function lawOf(
  points: readonly Point[],
  terms: readonly Term[],
  tolerance: number = TOLERANCE,
): Law | undefined {
  const sorted = [...points].sort((a, b) => a.n - b.n);
  const fewest = terms.length + SPARE;
  for (let count = sorted.length; count >= fewest; count--) {
    for (let start = 0; start + count <= sorted.length; start++) {
      const fitted = sorted.slice(start, start + count);
      const coefficients = leastSquares(fitted, terms);
      const ratio = ({ n, value }: Point): number => value / valueAt({ terms, coefficients }, n);
      const largestDeviation = Math.max(...fitted.map(point => Math.abs(ratio(point) - 1)));
      if (!(largestDeviation <= tolerance)) continue;
      const breaks = sorted
        .filter(point => !fitted.includes(point) && Math.abs(ratio(point) - 1) > tolerance)
        .map(point => ({ n: point.n, ratio: ratio(point) }));
      return { terms, coefficients, from: fitted[0].n, to: fitted.at(-1)!.n, largestDeviation, breaks };
    }
  }
  return undefined;
}

/**
 * Coefficients of at least 0 with the least sum of squared relative errors. There are few terms, so every choice of those that
 * are not 0 is tried.
 */
export function leastSquares(points: readonly Point[], terms: readonly Term[]): number[] {
  let best: { coefficients: number[]; error: number } | undefined;
  for (let choice = 1; choice < 2 ** terms.length; choice++) {
    const used = terms.map((_, i) => (choice >> i) % 2 === 1);
    const chosen = terms.filter((_, i) => used[i]);
    // Each row divided by its value: errors are relative then, and the right-hand side is 1.
    const rows = points.map(({ n, value }) => chosen.map(term => term.at(n) / value));
    const solved = solve(
      chosen.map((_, i) => chosen.map((_, k) => rows.reduce((sum, row) => sum + row[i] * row[k], 0))),
      chosen.map((_, i) => rows.reduce((sum, row) => sum + row[i], 0)),
    );
    if (solved === undefined || solved.some(value => value < 0)) continue;
    const error = rows.reduce(
      (sum, row) => sum + (row.reduce((a, x, i) => a + x * solved[i], 0) - 1) ** 2,
      0,
    );
    if (best !== undefined && error >= best.error) continue;
    let next = 0;
    best = { coefficients: used.map(isUsed => (isUsed ? solved[next++] : 0)), error };
  }
  if (best === undefined) throw new Error(`no law fits ${points.length} points: give some above 0`);
  return best.coefficients;
}

/** Solves a small symmetric system by elimination; undefined where it has no single answer. */
function solve(matrix: readonly (readonly number[])[], right: readonly number[]): number[] | undefined {
  // Scaled to a diagonal of 1, so that "nearly 0" means the same whatever the units are.
  const scale = matrix.map((row, i) => 1 / Math.sqrt(row[i]));
  const rows = matrix.map((row, i) => [
    ...row.map((value, k) => value * scale[i] * scale[k]),
    right[i] * scale[i],
  ]);
  for (let i = 0; i < rows.length; i++) {
    if (!(rows[i][i] > 1e-10)) return undefined;
    for (let k = i + 1; k < rows.length; k++) {
      const share = rows[k][i] / rows[i][i];
      rows[k] = rows[k].map((value, j) => value - share * rows[i][j]);
    }
  }
  const solution = new Array<number>(rows.length).fill(0);
  for (let i = rows.length - 1; i >= 0; i--) {
    const known = solution.reduce((sum, value, k) => (k > i ? sum + rows[i][k] * value : sum), 0);
    solution[i] = (rows[i][rows.length] - known) / rows[i][i];
  }
  return solution.map((value, i) => value * scale[i]);
}

const digits = (value: number): string => String(Number(value.toPrecision(2)));

/** `41 + 2.1·n`, or what it comes to where a term has no share. */
export function formula({ terms, coefficients }: Pick<Law, 'terms' | 'coefficients'>): string {
  const parts = terms.flatMap(({ name }, i) => {
    if (coefficients[i] === 0) return [];
    return name === '' ? digits(coefficients[i]) : `${digits(coefficients[i])}·${name}`;
  });
  return parts.join(' + ') || '0';
}
