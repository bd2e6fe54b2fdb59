/** Running normalisation of observations and rewards. Its state is part of a checkpoint: a policy is nothing without it. */

export interface MomentsState {
  readonly count: number;
  readonly mean: readonly number[];
  /** Sum of squared deviations from the mean. */
  readonly m2: readonly number[];
}

/** Mean and variance of a stream of vectors (Chan et al.'s parallel update; exact whatever the batches are). */
export class RunningMoments {
  readonly size: number;
  count = 0;
  readonly mean: Float64Array;
  readonly #m2: Float64Array;

  constructor(size: number) {
    this.size = size;
    this.mean = new Float64Array(size);
    this.#m2 = new Float64Array(size);
  }

  /** Takes in rows of `size` values; one with a value that is not finite would spoil the rest, and is passed over. */
  update(rows: Float32Array | Float64Array): void {
    const { size, mean } = this;
    const m2 = this.#m2;
    if (rows.length % size !== 0)
      throw new RangeError(`normaliser: ${rows.length} values are no whole rows of ${size}`);
    for (let offset = 0; offset < rows.length; offset += size) {
      if (!isFiniteRow(rows, offset, size)) continue;
      this.count++;
      for (let i = 0; i < size; i++) {
        const delta = rows[offset + i] - mean[i];
        mean[i] += delta / this.count;
        m2[i] += delta * (rows[offset + i] - mean[i]);
      }
    }
  }

  /** Takes in what another has seen, as if it had seen it itself (Chan et al. 1979): the sums are others in their last digits. */
  merge({ count, mean, m2 }: MomentsState): void {
    this.#checkSize({ mean, m2 });
    if (count === 0) return;
    const total = this.count + count;
    for (let i = 0; i < this.size; i++) {
      const delta = mean[i] - this.mean[i];
      this.mean[i] += (delta * count) / total;
      this.#m2[i] += m2[i] + (delta * delta * this.count * count) / total;
    }
    this.count = total;
  }

  /** Population variance; 1 before anything was seen, so that normalising changes nothing. */
  variance(i: number): number {
    return this.count > 0 ? this.#m2[i] / this.count : 1;
  }

  state(): MomentsState {
    return { count: this.count, mean: [...this.mean], m2: [...this.#m2] };
  }

  restore({ count, mean, m2 }: MomentsState): void {
    this.#checkSize({ mean, m2 });
    this.count = count;
    this.mean.set(mean);
    this.#m2.set(m2);
  }

  #checkSize({ mean, m2 }: Omit<MomentsState, 'count'>): void {
    if (mean.length !== this.size || m2.length !== this.size) {
      throw new RangeError(`normaliser: the state is for ${mean.length} values, this one has ${this.size}`);
    }
  }
}

function isFiniteRow(rows: Float32Array | Float64Array, offset: number, size: number): boolean {
  for (let i = 0; i < size; i++) if (!Number.isFinite(rows[offset + i])) return false;
  return true;
}

const EPSILON = 1e-8;

/** What was seen up to a moment, as moments that nothing adds to. */
function frozenMoments(state: MomentsState): RunningMoments {
  const moments = new RunningMoments(state.mean.length);
  moments.restore(state);
  return moments;
}

/** Observations to mean 0 and variance 1, held within ±clip. */
export class ObservationNormaliser {
  /** Of what it has seen. */
  readonly moments: RunningMoments;
  readonly clip: number;
  /** What it normalises by: the same, unless that is frozen. */
  readonly #by: RunningMoments;

  /** Frozen, it normalises by what was seen before, and its moments are of what it sees from now on alone. */
  constructor(size: number, clip = 10, frozen?: MomentsState) {
    this.moments = new RunningMoments(size);
    this.clip = clip;
    this.#by = frozen ? frozenMoments(frozen) : this.moments;
  }

  /** What normalising multiplies by after it has subtracted the mean. */
  scales(): Float64Array {
    return Float64Array.from(this.#by.mean, (_, i) => 1 / Math.sqrt(this.#by.variance(i) + EPSILON));
  }

  /** Normalises rows from `raw` into `out`. */
  apply(raw: Float32Array, out: Float32Array): void {
    const { size, mean } = this.#by;
    if (raw.length % size !== 0 || raw.length !== out.length) {
      throw new RangeError(
        `normaliser: ${raw.length} values into ${out.length}: give whole rows of ${size} to both`,
      );
    }
    for (let i = 0; i < size; i++) {
      const scale = 1 / Math.sqrt(this.#by.variance(i) + EPSILON);
      for (let at = i; at < raw.length; at += size) {
        out[at] = Math.min(this.clip, Math.max(-this.clip, (raw[at] - mean[i]) * scale));
      }
    }
  }
}

export interface RewardNormaliserState {
  readonly moments: MomentsState;
  readonly returns: readonly number[];
}

/** Rewards divided by the running std of the discounted return, held within ±clip; the mean stays, as it has meaning. */
export class RewardNormaliser {
  readonly #moments = new RunningMoments(1);
  readonly #returns: Float64Array;
  /** The discount of the returns whose spread is measured; may change in mid-run. */
  gamma: number;
  readonly #clip: number;
  /** What it normalises by: its own moments, unless that is frozen. */
  readonly #by: RunningMoments;

  /** Frozen, it normalises by what was seen before, and its moments are of what it sees from now on alone. */
  constructor(envs: number, gamma: number, clip = 10, frozen?: MomentsState) {
    this.#returns = new Float64Array(envs);
    this.gamma = gamma;
    this.#clip = clip;
    this.#by = frozen ? frozenMoments(frozen) : this.#moments;
  }

  /** Takes in one reward of each environment and normalises them into `out`; `done` starts a new episode. */
  apply(rewards: Float32Array | Float64Array, done: Uint8Array, out: Float32Array): void {
    const returns = this.#returns;
    if (rewards.length !== returns.length || out.length !== returns.length) {
      throw new RangeError(
        `reward normaliser: ${rewards.length} rewards into ${out.length}, but there are ${returns.length} environments`,
      );
    }
    for (let n = 0; n < returns.length; n++) returns[n] = returns[n] * this.gamma + rewards[n];
    this.#moments.update(returns);
    const scale = 1 / Math.sqrt(this.#by.variance(0) + EPSILON);
    for (let n = 0; n < returns.length; n++) {
      out[n] = Math.min(this.#clip, Math.max(-this.#clip, rewards[n] * scale));
      if (done[n] || !Number.isFinite(returns[n])) returns[n] = 0;
    }
  }

  state(): RewardNormaliserState {
    return { moments: this.#moments.state(), returns: [...this.#returns] };
  }

  restore({ moments, returns }: RewardNormaliserState): void {
    if (returns.length !== this.#returns.length) {
      throw new RangeError(
        `reward normaliser: the state is for ${returns.length} environments, this one has ${this.#returns.length}`,
      );
    }
    this.#moments.restore(moments);
    this.#returns.set(returns);
  }
}
