/** What a run looks at while it trains: evaluations on episodes of their own, and the return that it stops at. */
import { MAX_SEED } from '../random/rng.ts';
import { recentEpisodes } from '../runs/score.ts';
import { STOP_EPISODES } from '../settings/shared.ts';
import type { RunConfig } from '../settings/spec.ts';
import type { TrainEvent } from './events.ts';
import { moments, summaryOf } from './update/moments.ts';

/** What a policy, or a model, came to on episodes that training never sees. */
export interface LearnerEvaluation {
  /** Of each episode or completion, as the environment or the task gave it. */
  readonly returns: readonly number[];
  /** Steps, or tokens, of each. */
  readonly lengths: readonly number[];
  readonly events?: readonly TrainEvent[];
}

/**
 * The seed of a round of episodes, or of prompts, in evaluations of a run: counted from that end of all seeds which its
 * own is further from, so that it is never the run's own. Runs whose seeds people write have the same ones, and compare.
 */
export const roundSeed = (runSeed: number, round: number): number =>
  runSeed < MAX_SEED / 2 ? MAX_SEED - round : round;

/** Whether to evaluate after an iteration: each so many, and after the last. */
export function isEvaluated(
  { evaluateEvery = 0 }: Pick<RunConfig, 'evaluateEvery'>,
  { iteration, steps }: { readonly iteration: number; readonly steps: number },
  totalSteps: number,
): boolean {
  return evaluateEvery > 0 && (iteration % evaluateEvery === 0 || steps >= totalSteps);
}

/** What of it a row says, by registry name. Where nothing could be graded there is no return, and of one no error. */
export function evaluationRow({ returns, lengths }: LearnerEvaluation): Record<string, number> {
  const row: Record<string, number> = { 'eval/episodes': returns.length };
  if (returns.length === 0) return row;
  const { mean, std, standardError } = summaryOf(returns);
  row['eval/return'] = mean;
  row['eval/return_std'] = std;
  if (returns.length > 1) row['eval/return_se'] = standardError;
  row['eval/length'] = moments(lengths).mean;
  return row;
}

/** That a run has reached the return it was to stop at, as its event says it. */
export type Reached = Omit<Extract<TrainEvent, { type: 'reached' }>, 'type'>;

/** Whether the rows of a run, oldest first, end with the return to stop at: in an evaluation, or of training where there are none. */
export function reachedIn(
  { stopAt = null, evaluateEvery = 0 }: Pick<RunConfig, 'stopAt' | 'evaluateEvery'>,
  rows: readonly Readonly<Record<string, number>>[],
): Reached | undefined {
  if (stopAt === null) return undefined;
  if (evaluateEvery > 0) {
    const { 'eval/return': mean, 'eval/episodes': episodes } = rows.at(-1) ?? {};
    return mean >= stopAt ? { return: mean, stopAt, episodes, of: 'evaluation' } : undefined;
  }
  const { mean, episodes } = recentEpisodes(rows);
  return episodes >= STOP_EPISODES && mean >= stopAt
    ? { return: mean, stopAt, episodes, of: 'training' }
    : undefined;
}
