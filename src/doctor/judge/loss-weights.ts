/** The weights of the parts of a loss, where the log has the parts and their sum but not the weights. */
import { limitsOf } from '../rules/limits.ts';
import type { Signals } from '../rules/signals.ts';
import { median } from '../statistics/order.ts';

/** Weights by least squares, each with its standard error. */
export interface LossWeights {
  readonly value: number;
  readonly entropy: number;
  readonly entropyError: number;
}

/** Rows whose error is beyond so many median errors are left out, so often: some trainers log one minibatch's total. */
const OUTLIER = 5;
const ROUNDS = 3;

const limits = limitsOf('loss-weights', {
  rows: 12,
  /** What is left over, against the part that the entropy has in the sum: more, and the log has something else. */
  rest: 0.25,
  /** Value losses have weights up to this. */
  valueWeight: 2,
  /** Standard errors beyond which a weight is surely not 0. */
  errors: 3,
});

/** The weights, and how far off the sum is that they give: the median over the rows, in the unit of the loss. */
export interface LossFit extends LossWeights {
  readonly rest: number;
}

/**
 * total = policy + value weight x value loss - entropy weight x entropy, in every row. Undefined where a part is not
 * logged in the same rows, or where value loss and entropy go together so that nobody can tell their weights apart.
 */
export function lossFit(signals: Signals): LossFit | undefined {
  const total = signals.get('loss/total');
  const policy = signals.get('loss/policy');
  const { loss } = signals.critic;
  const entropy = signals.get('policy/entropy');
  if (total === undefined || policy === undefined || loss === undefined || entropy === undefined)
    return undefined;
  const n = total.n;
  if (n < limits.rows || policy.n !== n || loss.n !== n || entropy.n !== n) return undefined;
  let rows = Array.from({ length: n }, (_, i) => i);
  for (let round = 0; ; round++) {
    const found = fit(rows, i => [total.v[i] - policy.v[i], loss.v[i], -entropy.v[i]]);
    if (found === undefined || rows.length < limits.rows) return undefined;
    const errors = rows.map(i =>
      Math.abs(total.v[i] - policy.v[i] - found.value * loss.v[i] + found.entropy * entropy.v[i]),
    );
    const most = OUTLIER * median(errors);
    const kept = rows.filter((_, k) => errors[k] <= most);
    if (round === ROUNDS || kept.length === rows.length) {
      return found.value >= 0 && found.value <= limits.valueWeight
        ? { ...found, rest: median(errors) }
        : undefined;
    }
    rows = kept;
  }
}

/**
 * The entropy coefficient that the losses imply, where it is surely not 0 and the log has nothing but the parts: what is
 * left over is little beside the part of the entropy.
 */
export function entropyWeightOf(signals: Signals): number | undefined {
  const found = lossFit(signals);
  const entropy = signals.get('policy/entropy');
  if (found === undefined || entropy === undefined) return undefined;
  const part = Math.abs(found.entropy) * median(entropy.v.map(Math.abs));
  const sure = found.rest <= limits.rest * part && found.entropy > limits.errors * found.entropyError;
  return sure ? found.entropy : undefined;
}

/** y = a u + b v, without a constant. */
function fit(
  rows: readonly number[],
  at: (i: number) => readonly [y: number, u: number, v: number],
): LossWeights | undefined {
  let [uu, uv, vv, uy, vy] = [0, 0, 0, 0, 0];
  for (const i of rows) {
    const [y, u, v] = at(i);
    uu += u * u;
    uv += u * v;
    vv += v * v;
    uy += u * y;
    vy += v * y;
  }
  const det = uu * vv - uv * uv;
  if (!(det > 1e-9 * uu * vv) || !Number.isFinite(det)) return undefined;
  const value = (uy * vv - vy * uv) / det;
  const entropy = (vy * uu - uy * uv) / det;
  const squares = rows.reduce((sum, i) => {
    const [y, u, v] = at(i);
    return sum + (y - value * u - entropy * v) ** 2;
  }, 0);
  const entropyError = Math.sqrt((squares / Math.max(1, rows.length - 2)) * (uu / det));
  return { value, entropy, entropyError };
}
