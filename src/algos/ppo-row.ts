/** The row of a PPO iteration. */
import type { VectorEnv } from '../envs/index.ts';
import { explainedVariance } from '../metrics/index.ts';
import type { Rollout } from '../rollout/buffer.ts';
import type { CollectStats } from '../rollout/collect.ts';
import type { ActorCritic } from './actor-critic.ts';
import { moments } from './moments.ts';
import type { learn, measure, PpoKnobs } from './ppo.ts';
import type { PpoConfig } from './ppo-config.ts';
import { referenceCoefAt, type TrainerCounters } from './ppo-control.ts';

/** An iteration's values by registry name. */
export function rowOf(parts: {
  rollout: Rollout;
  collected: CollectStats;
  stats: ReturnType<typeof learn>['stats'];
  seen: ReturnType<typeof measure>['stats'];
  klRaw: number;
  retries: number;
  knobs: PpoKnobs;
  config: PpoConfig;
  counters: TrainerCounters;
  minibatches: number;
  model: ActorCritic;
  params: Float32Array;
  envs: VectorEnv;
}): Record<string, number> {
  const { rollout, collected, stats, seen, klRaw, retries, knobs, config, counters, minibatches } = parts;
  const { model, params } = parts;
  const { mean: advMean, std: advStd } = moments(rollout.advantages);
  const { mean: returnMean } = moments(rollout.returns);
  const { mean: valueMean } = moments(rollout.values);
  const row: Record<string, number> = {
    'train/iteration': counters.iteration,
    'train/step': counters.envSteps,
    'kl/step': seen.kl,
    'kl/step_raw': klRaw,
    'kl/step_k1': seen.k1,
    'kl/step_k3': seen.k3,
    'loss/policy': stats.policyLoss,
    'loss/value': stats.valueLoss,
    'loss/total': stats.loss,
    'policy/entropy': seen.entropy,
    'policy/ratio_mean': seen.ratioMean,
    'policy/clip_fraction': stats.clipFraction,
    'value/explained_variance': explainedVariance(rollout.values, rollout.returns),
    'value/mean': valueMean,
    'adv/mean': advMean,
    'adv/std': advStd,
    'reward/mean': collected.rewardMean,
    'reward/std': collected.rewardStd,
    'return/mean': returnMean,
    'episode/count': collected.episodeReturns.length,
    'grad/norm': stats.gradNorm,
    'train/lr': knobs.actorRate,
    'train/clip_range': knobs.clipRange,
    'train/epochs_run': stats.taken / minibatches,
    'train/minibatches_run': stats.taken,
    'train/early_stop': stats.stopped === 'kl' ? 1 : 0,
    'train/skipped': stats.skipped,
    'guard/retries': retries,
    'guard/backtracks': seen.backtracks,
    'guard/scale': seen.scale,
  };
  if (config.criticLearningRate !== null) row['train/lr_critic'] = knobs.criticRate;
  if (config.klCoef > 0 || config.klCoefRule !== 'fixed') row['kl/coef'] = knobs.klCoef;
  if (config.reference !== 'none') {
    row['kl/ref'] = stats.klRef;
    row['kl/ref_coef'] = referenceCoefAt(config, knobs.stepsDone);
  }
  const { maxEntropy } = model.distribution;
  if (Number.isFinite(maxEntropy)) row['policy/entropy_relative'] = seen.entropy / maxEntropy;
  const logStd = model.layout.views(params)['actor.logStd'];
  if (logStd) {
    const held = Array.from(logStd, v => Math.exp(Math.min(config.logStdMax, Math.max(config.logStdMin, v))));
    row['policy/std'] = held.reduce((a, b) => a + b, 0) / held.length;
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
