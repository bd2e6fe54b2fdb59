/** Metrics that other metrics are seen by. Runs in a browser. */

/** Those that say how well the task is done, the first that a run has. */
export const objectives: readonly string[] = ['episode/return', 'reward/mean', 'eval/return', 'return/mean'];

/** The axes of all other plots: nobody asks how they go themselves. */
export const axisMetrics: readonly string[] = ['train/step', 'train/iteration', 'time/unix_s'];
