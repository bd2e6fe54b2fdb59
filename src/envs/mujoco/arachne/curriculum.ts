/** What an episode asks for, by how far training is: a third each of standing under growing pushes, turning, and walking. */

export type Stage = 'stand' | 'turn' | 'walk';

export interface Goal {
  readonly stage: Stage;
  readonly speedMs: number;
  readonly yawRateRadS: number;
  /** Largest force of a push; 0 for none. */
  readonly pushN: number;
}

/** What the last push of standing reaches: over its .25 s it gives a robot of 2.4 kg about .8 m/s. */
export const MAX_PUSH_N = 8;
/** What turning reaches where the task itself asks for none. */
export const TURN_RAD_S = 0.5;
/** Where the walking third starts. */
const FIRST_SPEED = 0.2;

/** The goal at `progress` of training, 0 to 1; at 1 it is the task itself. */
export function goalAt(progress: number, task: { speedMs: number; yawRateRadS: number }): Goal {
  const third = Math.min(2, Math.floor(progress * 3));
  const grown = progress * 3 - third;
  if (third === 0) return { stage: 'stand', speedMs: 0, yawRateRadS: 0, pushN: MAX_PUSH_N * grown };
  if (third === 1) {
    const yawRateRadS = (task.yawRateRadS === 0 ? TURN_RAD_S : task.yawRateRadS) * grown;
    return { stage: 'turn', speedMs: 0, yawRateRadS, pushN: 0 };
  }
  const share = FIRST_SPEED + (1 - FIRST_SPEED) * grown;
  return {
    stage: 'walk',
    speedMs: progress === 1 ? task.speedMs : task.speedMs * share,
    yawRateRadS: task.yawRateRadS,
    pushN: 0,
  };
}
