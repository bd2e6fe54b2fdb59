/** What turns many measurements into the one number of a row. Everything that lives longer than a row can be saved. */
import { fail, show } from '../base/errors.ts';
import { requireMetric } from './registry.ts';

/**
 * Sum that does not lose small terms (Neumaier 1974): the mean of a million float32 rewards is right to the last digits.
 * A NaN or infinity in it stays visible.
 */
class Sum {
  #sum = 0;
  #lost = 0;

  add(value: number): void {
    const next = this.#sum + value;
    if (Number.isFinite(next)) {
      this.#lost +=
        Math.abs(this.#sum) >= Math.abs(value) ? this.#sum - next + value : value - next + this.#sum;
    }
    this.#sum = next;
  }

  get total(): number {
    return this.#sum + this.#lost;
  }
}

/**
 * Means over the minibatches of an update, each metric weighted by the samples it came from. A metric may be missing
 * from some minibatches: its mean is over those that had it. Weight 0 counts nothing, not even a NaN, so a skipped
 * minibatch does not spoil the row; with any other weight a NaN makes the mean NaN, because that is the truth.
 */
export class MeanAccumulator {
  readonly #sums = new Map<string, { readonly value: Sum; readonly weight: Sum }>();

  add(values: Readonly<Record<string, number>>, weight = 1): void {
    if (!(weight >= 0) || weight === Number.POSITIVE_INFINITY) {
      fail(`weight ${weight} of a minibatch must be a number from 0: use its number of samples`);
    }
    for (const [id, value] of Object.entries(values)) {
      if (typeof value !== 'number') fail(`${id} is ${show(value)}, must be a number`);
      let sums = this.#sums.get(id);
      if (sums === undefined) {
        requireMetric(id);
        sums = { value: new Sum(), weight: new Sum() };
        this.#sums.set(id, sums);
      }
      if (weight === 0) continue;
      sums.value.add(value * weight);
      sums.weight.add(weight);
    }
  }

  /** The means so far; metrics that never had any weight are left out. */
  means(): Record<string, number> {
    const means: Record<string, number> = {};
    for (const [id, { value, weight }] of this.#sums) {
      if (weight.total > 0) means[id] = value.total / weight.total;
    }
    return means;
  }

  reset(): void {
    this.#sums.clear();
  }
}

/** Weighted mean of plain numbers; NaN if there is no weight. */
export function weightedMean(values: ArrayLike<number>, weights: ArrayLike<number>): number {
  if (values.length !== weights.length) {
    fail(`${values.length} values and ${weights.length} weights: give one weight for each value`);
  }
  const [sum, total] = [new Sum(), new Sum()];
  for (let i = 0; i < values.length; i++) {
    if (weights[i] === 0) continue;
    sum.add(values[i] * weights[i]);
    total.add(weights[i]);
  }
  return total.total > 0 ? sum.total / total.total : Number.NaN;
}

/** {@link RunningStats} as plain JSON; an empty one has no extremes. */
export interface RunningStatsState {
  readonly count: number;
  readonly mean: number;
  readonly m2: number;
  readonly min: number | null;
  readonly max: number | null;
}

/** Mean, spread and extremes of a stream, in one pass (Welford 1962) and mergeable (Chan et al. 1979). */
export class RunningStats {
  count = 0;
  mean = 0;
  min = Number.POSITIVE_INFINITY;
  max = Number.NEGATIVE_INFINITY;
  #m2 = 0;

  add(value: number): this {
    this.count++;
    const delta = value - this.mean;
    this.mean += delta / this.count;
    this.#m2 += delta * (value - this.mean);
    // Written so that NaN goes through: Math.min(Infinity, NaN) is NaN.
    this.min = Math.min(this.min, value);
    this.max = Math.max(this.max, value);
    return this;
  }

  addAll(values: ArrayLike<number>): this {
    for (let i = 0; i < values.length; i++) this.add(values[i]);
    return this;
  }

  merge(other: RunningStats): this {
    if (other.count === 0) return this;
    const count = this.count + other.count;
    const delta = other.mean - this.mean;
    this.#m2 += other.#m2 + (delta * delta * this.count * other.count) / count;
    this.mean += (delta * other.count) / count;
    this.count = count;
    this.min = Math.min(this.min, other.min);
    this.max = Math.max(this.max, other.max);
    return this;
  }

  /** Of the population (divided by n); NaN when empty. */
  get variance(): number {
    return this.count === 0 ? Number.NaN : this.#m2 / this.count;
  }

  get std(): number {
    return Math.sqrt(this.variance);
  }

  state(): RunningStatsState {
    const empty = this.count === 0;
    return {
      count: this.count,
      mean: this.mean,
      m2: this.#m2,
      min: empty ? null : this.min,
      max: empty ? null : this.max,
    };
  }

  /** Restores bit for bit what {@link RunningStats.state} gave; checks it, because it comes from a file. */
  static fromState(state: unknown): RunningStats {
    const { count, mean, m2, min, max } = (state ?? {}) as Record<string, unknown>;
    const empty = count === 0;
    const ok =
      Number.isSafeInteger(count) &&
      (count as number) >= 0 &&
      typeof mean === 'number' &&
      typeof m2 === 'number' &&
      (empty ? min === null && max === null : typeof min === 'number' && typeof max === 'number');
    if (!ok) fail(`saved statistics are ${show(state)}, expected { count, mean, m2, min, max }`);
    const stats = new RunningStats();
    stats.count = count as number;
    stats.mean = mean as number;
    stats.#m2 = m2 as number;
    if (!empty) {
      stats.min = min as number;
      stats.max = max as number;
    }
    return stats;
  }
}

/**
 * How much of the targets' variance the predictions explain: 1 - Var(target - prediction) / Var(target). Like everyone's,
 * it forgives a constant offset. NaN when the targets do not vary.
 */
export function explainedVariance(predictions: ArrayLike<number>, targets: ArrayLike<number>): number {
  if (predictions.length !== targets.length) {
    fail(`${predictions.length} predictions and ${targets.length} targets: give as many of each`);
  }
  const [target, error] = [new RunningStats(), new RunningStats()];
  for (let i = 0; i < targets.length; i++) {
    target.add(targets[i]);
    error.add(targets[i] - predictions[i]);
  }
  return target.variance > 0 ? 1 - error.variance / target.variance : Number.NaN;
}

/** {@link EpisodeStats} as plain JSON. */
export interface EpisodeStatsState {
  readonly best: number | null;
}

/**
 * The `episode/*` metrics: means over the episodes that end in an iteration, and the best of the run. What is saved is
 * the best only: a checkpoint is written between iterations, after `take`.
 */
export class EpisodeStats {
  #returns = new RunningStats();
  #lengths = new RunningStats();
  #best: number | undefined;

  constructor(state?: EpisodeStatsState) {
    this.#best = state?.best ?? undefined;
  }

  add(episodeReturn: number, length: number): void {
    this.#returns.add(episodeReturn);
    this.#lengths.add(length);
    // A NaN return must not become, or hide, the best.
    if (!(this.#best !== undefined && this.#best >= episodeReturn) && !Number.isNaN(episodeReturn)) {
      this.#best = episodeReturn;
    }
  }

  /** The metrics of the iteration, and begins the next one. Without an ended episode there is no return to report. */
  take(): Record<string, number> {
    const count = this.#returns.count;
    const row: Record<string, number> = { 'episode/count': count };
    if (count > 0) {
      row['episode/return'] = this.#returns.mean;
      row['episode/length'] = this.#lengths.mean;
    }
    if (this.#best !== undefined) row['episode/return_best'] = this.#best;
    this.#returns = new RunningStats();
    this.#lengths = new RunningStats();
    return row;
  }

  state(): EpisodeStatsState {
    return { best: this.#best ?? null };
  }
}
