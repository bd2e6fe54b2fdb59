/** An iteration's row, by registry name. */

import type { KlOverStates } from '../../kl/over-states.ts';
import type { groupAdvantages } from '../../rollout/group-advantages.ts';
import type { TextTask } from '../../tasks/text-task.ts';
import { wasTruncated } from '../text/graded.ts';
import { type Attempt, type GuardedUpdate, guardedRow } from '../update/guarded.ts';
import { moments } from '../update/moments.ts';
import type { HeldStates } from '../update/step-back.ts';
import type { TextBatch } from './collect.ts';
import type { GrpoCounters, Knobs } from './control.ts';
import { isExact, type RefKl } from './reference-kl.ts';
import type { SamplerGap } from './sampler-gap.ts';
import type { GrpoConfig } from './settings.ts';

/** What the whole batch says of weights, per token. */
export interface TokenMeans extends KlOverStates {
  readonly k1: number;
  readonly k3: number;
  readonly entropy: number;
  readonly ratio: number;
}

/** An attempt at an update with all that a row tells of it. */
export interface GrpoAttempt extends Attempt {
  readonly knobs: Knobs;
  readonly gradNorm: number;
  /** Over gradient steps, or over tokens; undefined where there is nothing to be a mean of. */
  readonly means: Readonly<Record<string, number | undefined>>;
  readonly seen: TokenMeans;
}

export function rowOf(parts: {
  batch: TextBatch;
  task: TextTask;
  config: GrpoConfig;
  counters: GrpoCounters;
  groups: ReturnType<typeof groupAdvantages>;
  rewards: Float64Array;
  advantages: Float64Array;
  sampler: SamplerGap;
  update: GuardedUpdate<GrpoAttempt, HeldStates<TokenMeans>>;
  refKl: RefKl;
  minibatches: number;
  times: Readonly<Record<string, number>>;
}): Record<string, number> {
  const { batch, task, config, counters, groups, rewards, advantages, sampler, update } = parts;
  const { seen } = update.held;
  const { knobs, means, taken, skipped, gradNorm } = update.done;
  const { completions } = batch;
  const graded = completions.filter(({ problem }) => problem === undefined);
  const reward = moments(graded.map(completion => completion.reward));
  const adv = moments(advantages);
  const lengths = completions.map(({ tokens }) => tokens.length);
  const shareOf = (holds: (completion: (typeof completions)[number]) => boolean): number =>
    completions.filter(holds).length / completions.length;
  // Where nothing counted, nothing was computed: absent is not NaN.
  const learnt = (values: Record<string, number | undefined>) =>
    taken === 0 && skipped === 0
      ? {}
      : Object.fromEntries(Object.entries(values).map(([id, value]) => [id, value ?? Number.NaN]));
  const row: Record<string, number> = {
    ...guardedRow(counters, update),
    'kl/step_k1': seen.k1,
    'kl/step_k3': seen.k3,
    'kl/sampler': sampler.kl,
    ...learnt({ 'loss/policy': means.policyLoss, 'loss/total': means.loss }),
    'policy/entropy': seen.entropy,
    'policy/ratio_mean': seen.ratio,
    ...learnt({
      'policy/clip_fraction': (means.clippedLow ?? Number.NaN) + (means.clippedHigh ?? Number.NaN),
      'policy/clip_fraction_low': means.clippedLow,
      'policy/clip_fraction_high': means.clippedHigh,
    }),
    'adv/mean': adv.mean,
    'adv/std': adv.std,
    'adv/max': advantages.reduce((a, b) => Math.max(a, b)),
    'adv/min': advantages.reduce((a, b) => Math.min(a, b)),
    'reward/ungraded': completions.length - graded.length,
    ...learnt({ 'grad/norm': gradNorm }),
    'train/epochs_run': taken / parts.minibatches,
    'completion/length': moments(lengths).mean,
    'completion/length_min': lengths.reduce((a, b) => Math.min(a, b)),
    'completion/length_max': lengths.reduce((a, b) => Math.max(a, b)),
    'completion/truncated': shareOf(wasTruncated),
    'completion/prompt_length': moments(batch.prompts.map(({ tokens }) => tokens.length)).mean,
    'completion/prompts_skipped': batch.promptsSkipped,
    'sampler/logp_diff': sampler.logProbDiff,
    'sampler/logp_diff_max': sampler.logProbDiffMax,
    'sampler/ratio_mean': sampler.ratioMean,
    ...parts.times,
  };
  if (means.klRef !== undefined) {
    row[isExact(parts.refKl) ? 'kl/ref' : 'kl/ref_k3'] = means.klRef;
    row['kl/ref_coef'] = knobs.klRefCoef;
  }
  if (config.klCap !== null) row['completion/kl_capped'] = shareOf(({ end }) => end === 'kl');
  if (config.entropyCoef > 0) row['train/entropy_coef'] = config.entropyCoef;
  if (config.rewardWarmup > 0) row['train/reward_factor'] = knobs.rewardFactor;
  if (graded.length === 0) return row;
  counters.bestReward = Math.max(
    counters.bestReward ?? Number.NEGATIVE_INFINITY,
    ...graded.map(c => c.reward),
  );
  row['reward/mean'] = reward.mean;
  row['reward/std'] = reward.std;
  row['reward/group_std'] = groups.groupStd;
  row['reward/zero_std_groups'] = groups.zeroStdGroups;
  if (config.lengthPenalty > 0 || config.truncated === 'penalise')
    row['reward/penalised'] = moments(rewards.filter(value => !Number.isNaN(value))).mean;
  row['episode/return'] = reward.mean;
  row['episode/return_best'] = counters.bestReward;
  row['episode/count'] = graded.length;
  row['completion/parse_rate'] = graded.filter(({ parsed }) => parsed).length / graded.length;
  task.rewardParts.forEach((name, i) => {
    row[`reward/part/${name}`] = moments(graded.map(completion => completion.parts[i])).mean;
  });
  task.metricNames.forEach((name, i) => {
    const known = graded.map(completion => completion.metrics[i]).filter(value => !Number.isNaN(value));
    if (known.length > 0) row[`env/${name}`] = moments(known).mean;
  });
  return row;
}
