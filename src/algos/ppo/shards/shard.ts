/**
 * Collecting one shard of a rollout: some of the run's environments, with random streams of their own.
 *
 * What comes out depends on the job alone: the policy and what its observations are normalised by, where the environments
 * and their generators stand. Whoever does it, wherever, and however often it had to be begun, gives the same bits. So
 * nothing that a collector keeps between jobs may be more than a place to compute in.
 */
import { TrainError } from '../../../base/errors.ts';
import type { VectorEnv, VectorState } from '../../../envs/vector/vector.ts';
import { Rng, type RngState } from '../../../random/rng.ts';
import { createRollout, type Rollout } from '../../../rollout/buffer.ts';
import { type CollectStats, collect } from '../../../rollout/collect.ts';
import { ActionNoise } from '../../../rollout/noise.ts';
import { type MomentsState, ObservationNormaliser, RewardNormaliser } from '../../../rollout/normalise.ts';
import { compileNetwork } from '../../agents/actor.ts';
import { networkFor } from '../../agents/networks/network.ts';
import { runtimeOf } from '../../agents/runtime.ts';
import type { PpoConfig } from '../settings.ts';

/** The settings that decide how a shard is collected, and what its arrays are. */
export const shardSettings = [
  'stepsPerRollout',
  'network',
  'hidden',
  'criticHidden',
  'activation',
  'logStdInitial',
  'logStdMin',
  'logStdMax',
  'normaliseObservations',
  'normaliseRewards',
  'noiseCorrelation',
  'device',
  'threads',
] as const satisfies readonly (keyof PpoConfig)[];

/** What all shards of a run have in common, in every rollout. */
export interface ShardTask {
  /** An id, or a file and an id in it; null for environments that no other process can make. */
  readonly env: string | null;
  readonly options: Readonly<Record<string, unknown>>;
  /** Environments of one shard. */
  readonly envs: number;
  readonly config: Pick<PpoConfig, (typeof shardSettings)[number]>;
}

/** Where a shard stands between two rollouts. */
export interface ShardState {
  readonly envs: VectorState;
  readonly rng: RngState;
  readonly noise: readonly number[] | null;
  /** (envs of the shard) Discounted returns so far, where rewards are normalised. */
  readonly returns: readonly number[] | null;
}

/** One shard of one rollout. */
export interface ShardJob {
  readonly task: ShardTask;
  /** Which of them, from 0 on. */
  readonly shard: number;
  /** Names the policy that is to act; a result of another one is refused. */
  readonly policy: string;
  /** How far training is, from 0 to 1. */
  readonly progress: number;
  readonly gamma: number;
  readonly rewardScale: number;
  /** Of both networks, flat. */
  readonly weights: Float32Array;
  /** What was seen up to this rollout, which is normalised by it throughout. */
  readonly observationMoments: MomentsState | null;
  readonly rewardMoments: MomentsState | null;
  readonly state: ShardState;
}

/** The arrays of a rollout that collecting fills. */
export const partArrays = [
  'observations',
  'actions',
  'params',
  'logProbs',
  'values',
  'rewards',
  'terminated',
  'truncated',
  'finalValues',
  'lastValues',
] as const satisfies readonly (keyof Rollout)[];

export type RolloutPart = Pick<Rollout, (typeof partArrays)[number]>;

/** What a shard came to. */
export interface ShardResult {
  readonly shard: number;
  readonly policy: string;
  /** (T, envs of the shard, …) */
  readonly part: RolloutPart;
  readonly stats: CollectStats;
  /** Of what was seen in this rollout alone. */
  readonly observationMoments: MomentsState | null;
  readonly rewardMoments: MomentsState | null;
  readonly state: ShardState;
}

/** Collects shards of one task, one after the other. */
export interface ShardCollector {
  collect(job: ShardJob): Promise<ShardResult>;
  dispose(): void;
}

/** Observations that the value function looks at in one go: more would leave the processor's caches. */
export const MOST_ROWS = 256;

/** Compiles the networks for environments of one shard. Whoever opened those closes them. */
export async function openShardCollector(
  { config, envs: envCount }: ShardTask,
  envs: VectorEnv,
): Promise<ShardCollector> {
  const { stepsPerRollout: steps } = config;
  const model = networkFor(config, envs.observationSpace, envs.actionSpace);
  const { layout, distribution } = model;
  const runtime = runtimeOf(config);
  const [acting, valuing, valuingMany] = await Promise.all([
    compileNetwork(model, 'actor', envCount, runtime),
    compileNetwork(model, 'critic', envCount, runtime),
    compileNetwork(model, 'critic', Math.min(steps * envCount, MOST_ROWS), runtime),
  ]);
  const networks = [acting, valuing, valuingMany];
  const sizes = {
    observationSize: envs.obsSize,
    actionSize: envs.actionSize,
    paramSize: distribution.paramSize,
  };
  return {
    async collect({ shard, policy, progress, gamma, rewardScale, weights, state, ...seenBefore }) {
      if (weights.length !== layout.size)
        throw new TrainError(
          `shard ${shard}: the policy has ${weights.length} weights, this network ${layout.size}: use the config of the run`,
        );
      for (const network of networks) network.setWeights(weights);
      const observationNormaliser =
        seenBefore.observationMoments === null
          ? undefined
          : new ObservationNormaliser(envs.obsSize, undefined, seenBefore.observationMoments);
      let rewardNormaliser: RewardNormaliser | undefined;
      if (seenBefore.rewardMoments !== null && state.returns !== null) {
        rewardNormaliser = new RewardNormaliser(envCount, gamma, undefined, seenBefore.rewardMoments);
        rewardNormaliser.restore({ moments: { count: 0, mean: [0], m2: [0] }, returns: state.returns });
      }
      const rng = Rng.fromState(state.rng);
      const actionNoise = new ActionNoise(distribution, envCount, config.noiseCorrelation);
      actionNoise.restore(state.noise);
      await envs.restore(state.envs);
      envs.setProgress(progress);

      const rollout = createRollout(steps, envCount, sizes);
      const stats = await collect(rollout, {
        envs,
        ...{ acting, valuing, valuingMany, distribution },
        ...{ rng, actionNoise, observationNormaliser, rewardNormaliser, rewardScale },
      });
      // Beside those that were cut off stand values of whatever the environments did before this job.
      rollout.truncated.forEach((truncated, i) => {
        if (!truncated) rollout.finalValues[i] = 0;
      });
      const rewards = rewardNormaliser?.state();
      return {
        shard,
        policy,
        part: rollout,
        stats,
        observationMoments: observationNormaliser?.moments.state() ?? null,
        rewardMoments: rewards?.moments ?? null,
        state: {
          envs: await envs.state(),
          rng: rng.state(),
          noise: actionNoise.state(),
          returns: rewards?.returns ?? null,
        },
      };
    },
    dispose() {
      for (const network of networks) network.dispose();
    },
  };
}

/** Where the shards of a run stand before its first rollout: environments and actions have random streams of their own. */
export async function firstShardStates(
  envs: VectorEnv,
  shards: number,
  rng: Rng,
  { normaliseRewards }: { readonly normaliseRewards: boolean },
): Promise<ShardState[]> {
  const states: ShardState[] = [];
  for (const own of rng.split(shards)) {
    const [envRng, actRng] = own.split(2);
    await envs.reset({ seed: envRng.uniform() * 2 ** 53 });
    states.push({
      envs: await envs.state(),
      rng: actRng.state(),
      noise: null,
      returns: normaliseRewards ? new Array<number>(envs.envCount).fill(0) : null,
    });
  }
  return states;
}
