/** The shards of a rollout as one, in their order: what comes out does not depend on when each came in. */
import { TrainError } from '../../../base/errors.ts';
import type { VectorState } from '../../../envs/vector/vector.ts';
import type { Rollout } from '../../../rollout/buffer.ts';
import type { CollectStats } from '../../../rollout/collect.ts';
import { partArrays, type ShardJob, type ShardResult, type ShardState } from './shard.ts';

/** Refuses results that are not those of these jobs: of another policy, of another shard, or too few. */
export function refuseOthers(jobs: readonly ShardJob[], results: readonly ShardResult[]): void {
  if (results.length !== jobs.length)
    throw new TrainError(`${results.length} results for ${jobs.length} shards: each is collected once`);
  jobs.forEach((job, i) => {
    refuseOther(job, results[i]);
  });
}

/** The same of one. */
export function refuseOther(job: ShardJob, { shard, policy }: Pick<ShardResult, 'shard' | 'policy'>): void {
  if (shard !== job.shard)
    throw new TrainError(`a result of shard ${shard} where that of shard ${job.shard} was asked for`);
  if (policy !== job.policy)
    throw new TrainError(
      `shard ${shard} was collected by policy ${policy}, this is ${job.policy}: it is collected again`,
    );
}

/** Puts the parts side by side: environment n of shard s is the rollout's s·(envs of a shard) + n. */
export function mergeParts(rollout: Rollout, results: readonly ShardResult[]): void {
  const { steps, envs } = rollout;
  const own = envs / results.length;
  for (const name of partArrays) {
    const rows = name === 'lastValues' ? 1 : steps;
    const whole = rollout[name];
    const width = whole.length / (rows * envs);
    results.forEach(({ part }, s) => {
      const piece = part[name];
      const length = own * width;
      if (piece.length !== rows * length)
        throw new TrainError(
          `shard ${s}: ${name} has ${piece.length} numbers, ${rows * length} are needed: use the config of the run`,
        );
      for (let t = 0; t < rows; t++)
        whole.set(piece.subarray(t * length, (t + 1) * length), (t * envs + s * own) * width);
    });
  }
}

/** What happened in all shards; `sideBySide` of them were collected at the same time. */
export function mergeStats(all: readonly CollectStats[], sideBySide: number): CollectStats {
  const mean = (of: (stats: CollectStats) => number): number =>
    all.reduce((sum, stats) => sum + of(stats), 0) / all.length;
  const ended = all.map(({ episodeLengths }) => episodeLengths.reduce((a, b) => a + b, 0));
  const endedSteps = ended.reduce((a, b) => a + b, 0);
  // Of a shard in which no episode ended the means are 0 / 0.
  const overEnded = (of: (stats: CollectStats) => Float64Array): Float64Array =>
    of(all[0]).map(
      (_, k) =>
        all.reduce((sum, stats, s) => sum + (ended[s] > 0 ? of(stats)[k] * ended[s] : 0), 0) / endedSteps,
    );
  // Shards have as many samples each.
  const rewardMean = mean(stats => stats.rewardMean);
  const square = mean(stats => stats.rewardStd ** 2 + stats.rewardMean ** 2);
  return {
    episodeReturns: all.flatMap(stats => stats.episodeReturns),
    episodeLengths: all.flatMap(stats => stats.episodeLengths),
    rewardMean,
    rewardStd: Math.sqrt(Math.max(0, square - rewardMean ** 2)),
    termMeans: overEnded(stats => stats.termMeans),
    measureMeans: overEnded(stats => stats.measureMeans),
    blowUps: all.reduce((sum, stats) => sum + stats.blowUps, 0),
    envSeconds: (mean(stats => stats.envSeconds) * all.length) / sideBySide,
  };
}

/** The shards' states as those of one vector, one noise and one normaliser: what a checkpoint holds of a run without shards. */
export interface MergedState {
  readonly envs: VectorState;
  readonly actionNoise: readonly number[] | null;
  readonly returns: readonly number[] | null;
}

/** All environments in the order of their shards. */
export function mergeStates(states: readonly ShardState[]): MergedState {
  const joined = (of: (state: ShardState) => readonly number[] | null): number[] | null =>
    of(states[0]) === null ? null : states.flatMap(state => [...(of(state) ?? [])]);
  const [{ envs }] = states;
  return {
    envs: { ...envs, envs: states.flatMap(state => [...state.envs.envs]) },
    actionNoise: joined(({ noise }) => noise),
    returns: joined(({ returns }) => returns),
  };
}

/** What {@link mergeStates} gave, apart again. */
export function splitStates(
  { envs, actionNoise, returns }: MergedState,
  rngs: readonly ShardState['rng'][],
): ShardState[] {
  const share = <T>(all: readonly T[], s: number): T[] =>
    all.slice((s * all.length) / rngs.length, ((s + 1) * all.length) / rngs.length);
  return rngs.map((rng, s) => ({
    envs: { ...envs, envs: share(envs.envs, s) },
    rng,
    noise: actionNoise && share(actionNoise, s),
    returns: returns && share(returns, s),
  }));
}
