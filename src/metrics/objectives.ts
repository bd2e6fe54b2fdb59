/** Metrics that say how well the task is done, the first that a run has. Runs in a browser. */
export const objectives: readonly string[] = ['episode/return', 'reward/mean', 'eval/return', 'return/mean'];
