/** `train`, `resume` and `fork` with the doctor at hand, for runs that have an autopilot. It is loaded when one asks. */
import type { Advisor } from '../algos/autopilot/advice.ts';
import type { TrainResult } from '../algos/hooks.ts';
import * as runs from '../algos/runs.ts';

const advisor: Advisor = async look => (await import('./advisor.ts')).advisor(look);

/** Trains from the beginning in a new run: a policy with PPO, or a language model with GRPO. */
export function train(options: runs.TrainOptions): Promise<TrainResult> {
  return runs.train({ advisor, ...options });
}

/** Resumes a run (its id, its directory, or `last`): stopped, killed, or finished with more to do. */
export function resume(reference: string, options: runs.ResumeOptions = {}): Promise<TrainResult> {
  return runs.resume(reference, { advisor, ...options });
}

/**
 * Starts a new run from a checkpoint of another, with other settings. The other run is not touched; the new one names it
 * as its parent. Steps go on from the checkpoint's, iterations begin at 1.
 */
export function fork(reference: string, options: runs.ForkOptions = {}): Promise<TrainResult> {
  return runs.fork(reference, { advisor, ...options });
}
