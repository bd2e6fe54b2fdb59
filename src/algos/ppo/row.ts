/** The row of a PPO iteration. */
import type { VectorEnv } from '../../envs/vector/vector.ts';
import { explainedVariance } from '../../metrics/aggregate.ts';
import type { Rollout } from '../../rollout/buffer.ts';
import type { CollectStats } from '../../rollout/collect.ts';
import type { ActorCritic } from '../agents/networks/actor-critic.ts';
import { type Attempt, type GuardedUpdate, guardedRow } from '../update/guarded.ts';
import { moments } from '../update/moments.ts';
import type { HeldStates } from '../update/step-back.ts';
import { type PpoCounters, referenceCoefAt } from './control.ts';
import type { LearnStats, MeasureStats, PpoKnobs } from './programs.ts';
import type { PpoConfig } from './settings.ts';

/** An attempt at an update with all that a row tells of it. */
export interface PpoAttempt extends Attempt {
  readonly knobs: PpoKnobs;
  readonly stats: LearnStats;
  readonly seen: MeasureStats;
}

/** An iteration's values by registry name. */
export function rowOf(parts: {
  rollout: Rollout;
  collected: CollectStats;
  update: GuardedUpdate<PpoAttempt, HeldStates<MeasureStats>>;
  config: PpoConfig;
  counters: PpoCounters;
  minibatches: number;
  model: ActorCritic;
  weights: Float32Array;
  envs: VectorEnv;
  times: Readonly<Record<string, number>>;
}): Record<string, number> {
  const { rollout, collected, update, config, counters, minibatches, model, weights } = parts;
  const { knobs, stats } = update.done;
  const { seen } = update.held;
  const adv = moments(rollout.advantages);
  const row: Record<string, number> = {
    ...guardedRow(counters, update),
    'kl/step_k1': seen.k1,
    'kl/step_k3': seen.k3,
    'loss/policy': stats.policyLoss,
    'loss/value': stats.valueLoss,
    'loss/total': stats.loss,
    'policy/entropy': seen.entropy,
    'policy/ratio_mean': seen.ratioMean,
    'policy/clip_fraction': stats.clipFraction,
    'value/explained_variance': explainedVariance(rollout.values, rollout.returns),
    'value/mean': moments(rollout.values).mean,
    'adv/mean': adv.mean,
    'adv/std': adv.std,
    'reward/mean': collected.rewardMean,
    'reward/std': collected.rewardStd,
    'return/mean': moments(rollout.returns).mean,
    'episode/count': collected.episodeReturns.length,
    'grad/norm': stats.gradNorm,
    'train/clip_range': knobs.clipRange,
    'train/epochs_run': stats.taken / minibatches,
    'train/early_stop': stats.stopped === 'kl' ? 1 : 0,
    ...parts.times,
    'time/env_s': collected.envSeconds,
  };
  if (config.criticLearningRate !== null) row['train/lr_critic'] = knobs.criticRate;
  if (config.klCoef > 0 || config.klCoefRule !== 'fixed') row['kl/coef'] = knobs.klCoef;
  if (config.reference !== 'none') {
    row['kl/ref'] = stats.klRef;
    row['kl/ref_coef'] = referenceCoefAt(config, knobs.stepsDone);
  }
  const { maxEntropy } = model.distribution;
  if (Number.isFinite(maxEntropy)) row['policy/entropy_relative'] = seen.entropy / maxEntropy;
  const logStd = model.layout.views(weights)['actor.logStd'];
  if (logStd) {
    const held = Array.from(logStd, v => Math.exp(Math.min(config.logStdMax, Math.max(config.logStdMin, v))));
    row['policy/std'] = moments(held).mean;
  }
  if (parts.envs.mayBlowUp) row['episode/blow_ups'] = collected.blowUps;
  const { episodeReturns, episodeLengths } = collected;
  if (episodeReturns.length > 0) {
    const best = episodeReturns.reduce(
      (a, b) => Math.max(a, b),
      counters.bestReturn ?? Number.NEGATIVE_INFINITY,
    );
    counters.bestReturn = best;
    row['episode/return'] = moments(episodeReturns).mean;
    row['episode/return_best'] = best;
    row['episode/length'] = moments(episodeLengths).mean;
    parts.envs.rewardTerms.forEach((name, k) => {
      row[`reward/part/${name}`] = collected.termMeans[k];
    });
    parts.envs.measures.forEach((name, k) => {
      row[`env/${name}`] = collected.measureMeans[k];
    });
  }
  return row;
}
