/**
 * Who fills a trainer's rollouts, and all state that doing so needs: its environments as a whole, or shards of them, which
 * others may collect.
 */
import { createHash } from 'node:crypto';
import { TrainError } from '../../base/errors.ts';
import { envStatesOf, type VectorEnv, type VectorState } from '../../envs/vector/vector.ts';
import type { Rng, RngState } from '../../random/rng.ts';
import type { Rollout } from '../../rollout/buffer.ts';
import { type CollectStats, collect } from '../../rollout/collect.ts';
import { ActionNoise } from '../../rollout/noise.ts';
import {
  type MomentsState,
  type ObservationNormaliser,
  RewardNormaliser,
  type RewardNormaliserState,
  RunningMoments,
} from '../../rollout/normalise.ts';
import { compileNetwork } from '../agents/actor.ts';
import type { ActorCritic } from '../agents/networks/actor-critic.ts';
import { runtimeOf } from '../agents/runtime.ts';
import type { PpoConfig } from './settings.ts';
import { mergeParts, mergeStates, mergeStats, refuseOthers, splitStates } from './shards/merge.ts';
import { type ShardEvents, type ShardPlace, shardsHere, shardTask } from './shards/place.ts';
import { firstShardStates, MOST_ROWS, type ShardState } from './shards/shard.ts';

/** All that the next rollout depends on beside the policy. */
export interface CollectorState {
  readonly observationNormaliser: MomentsState | null;
  readonly rewardNormaliser: RewardNormaliserState | null;
  readonly actionNoise: readonly number[] | null;
  readonly envs: VectorState;
  /** Of each shard; null without shards. */
  readonly shardRngs: readonly RngState[] | null;
}

/** What a rollout is collected by. */
export interface Acting {
  readonly config: PpoConfig;
  readonly iteration: number;
  readonly weights: Float32Array;
  /** How far training is, from 0 to 1. */
  readonly progress: number;
  readonly events: ShardEvents;
}

export interface Collector {
  /** At the beginning of a run; a restored one does not need it. */
  start(): Promise<void>;
  collect(rollout: Rollout, acting: Acting): Promise<CollectStats>;
  state(): Promise<CollectorState>;
  restore(state: CollectorState): Promise<void>;
  dispose(): void;
}

export interface CollectorParts {
  readonly envs: VectorEnv;
  readonly model: ActorCritic;
  readonly config: PpoConfig;
  readonly observationNormaliser: ObservationNormaliser | undefined;
}

/** All environments together, in this process. `rngs` has the generator of actions as it is now. */
export async function wholeCollector(
  { envs, model, config, observationNormaliser }: CollectorParts,
  rngs: { readonly act: Rng },
): Promise<Collector> {
  const { envCount } = envs;
  const runtime = runtimeOf(config);
  const { distribution } = model;
  const [acting, valuing, valuingMany] = await Promise.all([
    compileNetwork(model, 'actor', envCount, runtime),
    compileNetwork(model, 'critic', envCount, runtime),
    compileNetwork(model, 'critic', Math.min(envCount * config.stepsPerRollout, MOST_ROWS), runtime),
  ]);
  const networks = [acting, valuing, valuingMany];
  const rewardNormaliser = config.normaliseRewards ? new RewardNormaliser(envCount, config.gamma) : undefined;
  const actionNoise = new ActionNoise(distribution, envCount, config.noiseCorrelation);
  return {
    start: () => envs.reset({ seed: config.seed }),
    collect(rollout, { config, weights, progress }) {
      envs.setProgress(progress);
      if (rewardNormaliser) rewardNormaliser.gamma = config.gamma;
      for (const network of networks) network.setWeights(weights);
      return collect(rollout, {
        envs,
        ...{ acting, valuing, valuingMany, distribution },
        rng: rngs.act,
        ...{ actionNoise, observationNormaliser, rewardNormaliser },
        rewardScale: config.rewardScale,
      });
    },
    async state() {
      return {
        observationNormaliser: observationNormaliser?.moments.state() ?? null,
        rewardNormaliser: rewardNormaliser?.state() ?? null,
        actionNoise: actionNoise.state(),
        envs: await envs.state(),
        shardRngs: null,
      };
    },
    async restore(state) {
      refuseOtherShards(1, state);
      if (state.observationNormaliser) observationNormaliser?.moments.restore(state.observationNormaliser);
      if (state.rewardNormaliser) rewardNormaliser?.restore(state.rewardNormaliser);
      actionNoise.restore(state.actionNoise);
      await envs.restore(state.envs);
    },
    dispose() {
      for (const network of networks) network.dispose();
    },
  };
}

/**
 * Shards of them, each with random streams of its own, collected at a place. `envs` are those of one shard. What
 * observations and rewards are normalised by stays the same within a rollout; what the shards have seen is added after it,
 * in their order.
 */
export function shardedCollector(
  { envs, config, observationNormaliser }: CollectorParts,
  rng: Rng,
  given?: ShardPlace,
): Collector {
  const place = given ?? shardsHere(envs);
  const { shards, normaliseRewards } = config;
  const task = shardTask(config, envs);
  const rewardMoments = normaliseRewards ? new RunningMoments(1) : undefined;
  let states: ShardState[] = [];
  return {
    async start() {
      states = await firstShardStates(envs, shards, rng, config);
    },
    async collect(rollout, { config, iteration, weights, progress, events }) {
      const { gamma, rewardScale } = config;
      const seen = {
        observationMoments: observationNormaliser?.moments.state() ?? null,
        rewardMoments: rewardMoments?.state() ?? null,
      };
      const digest = createHash('sha256').update(JSON.stringify([task, gamma, rewardScale, seen]));
      digest.update(new Uint8Array(weights.buffer, weights.byteOffset, weights.byteLength));
      const policy = `${iteration}-${digest.digest('hex').slice(0, 16)}`;
      const jobs = states.map((state, shard) => ({
        ...{ task, shard, policy, progress, gamma, rewardScale, weights, ...seen, state },
      }));
      const results = await place.collect(jobs, events);
      refuseOthers(jobs, results);
      mergeParts(rollout, results);
      for (const { observationMoments: ofObservations, rewardMoments: ofRewards } of results) {
        if (ofObservations) observationNormaliser?.moments.merge(ofObservations);
        if (ofRewards) rewardMoments?.merge(ofRewards);
      }
      states = results.map(({ state }) => state);
      const stats = results.map(result => result.stats);
      return mergeStats(stats, Math.min(place.slots, shards));
    },
    async state() {
      const { envs, actionNoise, returns } = mergeStates(states);
      return {
        observationNormaliser: observationNormaliser?.moments.state() ?? null,
        rewardNormaliser: rewardMoments && returns ? { moments: rewardMoments.state(), returns } : null,
        ...{ envs, actionNoise },
        shardRngs: states.map(({ rng }) => rng),
      };
    },
    async restore(state) {
      refuseOtherShards(shards, state);
      // Here they are only put together; each shard checks its own.
      envStatesOf(state.envs, envs.spec, envs.envCount * shards);
      if (state.observationNormaliser) observationNormaliser?.moments.restore(state.observationNormaliser);
      if (state.rewardNormaliser) rewardMoments?.restore(state.rewardNormaliser.moments);
      const { actionNoise, rewardNormaliser } = state;
      states = splitStates(
        { envs: state.envs, actionNoise, returns: rewardNormaliser?.returns ?? null },
        state.shardRngs!,
      );
    },
    dispose() {
      // Whoever opened another place closes it.
      if (!given) void place.close();
    },
  };
}

function refuseOtherShards(wanted: number, { shardRngs }: CollectorState): void {
  const saved = shardRngs?.length ?? 1;
  if (saved !== wanted)
    throw new TrainError(
      `the checkpoint is of a run with shards ${saved}, this config has ${wanted}: use the config it was trained with`,
    );
}
