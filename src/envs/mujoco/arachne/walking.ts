/** Whether an episode was a walk: at the speed asked for, to the end. */

export interface WalkJudgement {
  /** All actions were taken, without a fall. */
  readonly whole: boolean;
  /** Over the whole episode, the start from rest included. */
  readonly meanSpeedMs: number;
  /** Whole, and the mean speed within the tolerance. */
  readonly walked: boolean;
  /** Walked, and every second after the first was within the tolerance by itself. */
  readonly steady: boolean;
}

export interface WalkTask {
  /** Forward speed of each action of the episode, in m/s. */
  readonly speedsMs: ArrayLike<number>;
  readonly fell: boolean;
  readonly targetMs: number;
  readonly toleranceMs: number;
  /** Actions of a whole episode, and of a second. */
  readonly actions: number;
  readonly actionsPerSecond: number;
}

export function judgeWalk(task: WalkTask): WalkJudgement {
  const { speedsMs, fell, targetMs, toleranceMs, actions, actionsPerSecond } = task;
  const meanOf = (from: number, to: number): number => {
    let sum = 0;
    for (let i = from; i < to; i++) sum += speedsMs[i];
    return sum / (to - from);
  };
  const near = (speed: number): boolean => Math.abs(speed - targetMs) <= toleranceMs;
  const { length } = speedsMs;
  const whole = !fell && length === actions;
  const meanSpeedMs = length === 0 ? 0 : meanOf(0, length);
  const walked = whole && near(meanSpeedMs);
  let steady = walked;
  for (let from = actionsPerSecond; steady && from + actionsPerSecond <= length; from += actionsPerSecond)
    steady = near(meanOf(from, from + actionsPerSecond));
  return { whole, meanSpeedMs, walked, steady };
}
