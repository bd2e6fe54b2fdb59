/** The reward over an episode as the paths of a small picture. */
export interface RewardPath {
  readonly line: string;
  /** Filled down (or up) to 0, or to the edge where 0 is not in sight. */
  readonly area: string;
  /** Where 0 is; null if it is not in sight. */
  readonly zero: number | null;
}

/** At most one point for each unit of width. `rewards` begins with the start, which has none. */
export function rewardPath(rewards: ArrayLike<number>, width: number, height: number): RewardPath {
  const count = rewards.length;
  if (count < 2) return { line: '', area: '', zero: null };
  let [low, high] = [Infinity, -Infinity];
  for (let i = 1; i < count; i++) {
    low = Math.min(low, rewards[i]);
    high = Math.max(high, rewards[i]);
  }
  const room = high - low || 1;
  const y = (value: number): number => height - 2 - ((value - low) / room) * (height - 4);
  const step = Math.max(1, Math.ceil((count - 1) / width));
  const points: string[] = [];
  for (let i = 1; i < count; i += step) {
    let sum = 0;
    const end = Math.min(count, i + step);
    for (let j = i; j < end; j++) sum += rewards[j];
    const middle = (i + end - 1) / 2;
    points.push(`${((middle / (count - 1)) * width).toFixed(1)} ${y(sum / (end - i)).toFixed(1)}`);
  }
  const zero = low <= 0 && high >= 0 ? y(0) : null;
  const base = zero ?? (low > 0 ? height : 0);
  const x = (text: string): string => text.split(' ')[0];
  const line = `M${points.join('L')}`;
  return { line, area: `${line}L${x(points.at(-1)!)} ${base}L${x(points[0])} ${base}Z`, zero };
}
