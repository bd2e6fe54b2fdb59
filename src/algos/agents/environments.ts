/** The environments that policies are trained in, as a run opens them. */
import { makeVectorEnv } from '../../envs/vector/make.ts';
import type { VectorEnv } from '../../envs/vector/vector.ts';
import type { EnvironmentSpec } from '../../runs/schema.ts';
import type { Subject } from '../subject.ts';

/** What a config says of them. */
export interface EnvironmentConfig {
  readonly envs: number;
  readonly workers: number | 'auto';
  readonly rewardScale: number;
  /** Parts that a rollout is collected in: then one of them is opened, in this thread. */
  readonly shards?: number;
}

/** As many as the config asks for, or those of one shard. Whoever opened them closes them. */
export function openEnvironments(subject: Subject, config: EnvironmentConfig): Promise<VectorEnv> {
  const { envs, shards = 1 } = config;
  return makeVectorEnv(subject.id, {
    envCount: envs / shards,
    workers: shards > 1 ? 0 : config.workers,
    options: subject.options,
  });
}

/** What a manifest says of them: all that resuming must agree with. */
export function environmentSpec(
  { id, options }: Subject,
  { spec }: VectorEnv,
  { rewardScale, normaliseRewards }: { readonly rewardScale: number; readonly normaliseRewards: boolean },
): EnvironmentSpec {
  return {
    id: spec?.id ?? id,
    version: String(spec?.version ?? 0),
    options: {
      ...(spec?.options ?? options),
      // Not among the environment's own options, and part of the task.
      ...('maxEpisodeSteps' in options && spec ? { maxEpisodeSteps: spec.maxEpisodeSteps } : {}),
    },
    reward: { scale: rewardScale, normalised: normaliseRewards },
  };
}
