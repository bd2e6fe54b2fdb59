/** Advantages of completions from the rewards of their groups (Shao et al. 2024, arXiv 2402.03300). */

export type AdvantageKind = 'group' | 'mean' | 'leave-one-out';

export interface GroupStats {
  /** Mean over groups of the std of their rewards. */
  readonly groupStd: number;
  /** Share of groups whose rewards are all the same. */
  readonly zeroStdGroups: number;
}

/**
 * Writes the advantages of groups of `size` rewards each, one after another. What is NaN (a completion that could not be
 * graded) takes no part: its advantage is 0, and its group is compared without it.
 *
 * - `group`: (reward - mean) / max(std, floor); the std is the population's, so that none exceeds √(size - 1)
 * - `mean`: reward - mean (Liu et al. 2025, arXiv 2503.20783)
 * - `leave-one-out`: reward - mean of the others (Ahmadian et al. 2024, arXiv 2402.14740)
 */
export function groupAdvantages(
  rewards: Float64Array,
  size: number,
  kind: AdvantageKind,
  stdFloor: number,
  out: Float64Array,
): GroupStats {
  let [stds, zeros, groups] = [0, 0, 0];
  for (let start = 0; start < rewards.length; start += size) {
    let [n, sum] = [0, 0];
    for (let i = start; i < start + size; i++) {
      if (Number.isNaN(rewards[i])) continue;
      n++;
      sum += rewards[i];
    }
    const mean = sum / n;
    let [squares, spread] = [0, false];
    let first = Number.NaN;
    for (let i = start; i < start + size; i++) {
      if (Number.isNaN(rewards[i])) continue;
      squares += (rewards[i] - mean) ** 2;
      // By the rewards themselves: a mean of equal ones may differ from them by rounding.
      if (Number.isNaN(first)) first = rewards[i];
      else if (rewards[i] !== first) spread = true;
    }
    const std = spread ? Math.sqrt(squares / n) : 0;
    const scale =
      kind === 'group' ? 1 / Math.max(std, stdFloor) : kind === 'mean' ? 1 : n > 1 ? n / (n - 1) : 0;
    for (let i = start; i < start + size; i++)
      out[i] = spread && !Number.isNaN(rewards[i]) ? (rewards[i] - mean) * scale : 0;
    if (n === 0) continue;
    groups++;
    stds += std;
    if (!spread) zeros++;
  }
  return {
    groupStd: groups === 0 ? Number.NaN : stds / groups,
    zeroStdGroups: groups === 0 ? Number.NaN : zeros / groups,
  };
}

export type Aggregation = 'token' | 'sequence' | 'constant';

/** Which completions of a minibatch a mean over them is divided by: all, or those that count. */
export type Denominator = 'all' | 'counted';

/**
 * The weight of each completion's tokens in a minibatch's loss; completions that do not count have length 0. As TRL has it:
 *
 * - `token`: 1 / tokens that count (its `dapo`, and `bnpo` of one microbatch)
 * - `sequence`: 1 / (completions · the completion's tokens) (its `grpo`)
 * - `constant`: 1 / (completions · `maxNewTokens`) (its `dr_grpo`)
 *
 * A completion that does not count is one of the `completions` all the same, so that the pull of the others does not grow
 * with those that are left out; with `counted` it is not.
 */
export function tokenWeights(
  lengths: ArrayLike<number>,
  aggregation: Aggregation,
  maxNewTokens: number,
  denominator: Denominator = 'all',
): Float64Array {
  let [tokens, counted] = [0, 0];
  for (let i = 0; i < lengths.length; i++) {
    tokens += lengths[i];
    if (lengths[i] > 0) counted++;
  }
  const completions = denominator === 'all' ? lengths.length : counted;
  return Float64Array.from({ length: lengths.length }, (_, i) => {
    if (lengths[i] === 0) return 0;
    switch (aggregation) {
      case 'token':
        return 1 / tokens;
      case 'sequence':
        return 1 / (completions * lengths[i]);
      case 'constant':
        return 1 / (completions * maxNewTokens);
      default:
        return aggregation satisfies never;
    }
  });
}
