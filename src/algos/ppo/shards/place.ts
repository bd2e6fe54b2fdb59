/** Where shards are collected: here, in processes of this machine (processes.ts), or by workers on a queue. */

import { knownEnv } from '../../../envs/registry.ts';
import type { VectorEnv } from '../../../envs/vector/vector.ts';
import { canRunInWorkers } from '../../../envs/vector/workers.ts';
import type { PpoConfig } from '../settings.ts';
import {
  openShardCollector,
  type ShardCollector,
  type ShardJob,
  type ShardResult,
  type ShardTask,
  shardSettings,
} from './shard.ts';

/** What a place tells while it works. */
export interface ShardEvents {
  /** A worker died, and what it was at is collected again. */
  readonly onLost?: (shard: number, why: string) => void;
}

export interface ShardPlace {
  /** How many shards it collects at the same time, at the most. */
  readonly slots: number;
  /**
   * Does all jobs, however often each must be begun, and gives their results in the order of the jobs. Rejects where a
   * shard cannot be collected: its environment failed, or takes every worker down.
   */
  collect(jobs: readonly ShardJob[], events?: ShardEvents): Promise<ShardResult[]>;
  close(): Promise<void>;
}

/** Opens a place when all else is known to be right. */
export type OpenShardPlace = () => Promise<ShardPlace>;

/** What all shards of a run have in common, for environments that are those of one shard. */
export function shardTask(config: PpoConfig, envs: Pick<VectorEnv, 'spec' | 'envCount'>): ShardTask {
  const { spec, envCount } = envs;
  const known = spec && knownEnv(spec.id);
  return {
    env: known && canRunInWorkers(known) ? (spec.file ? `${spec.file}#${spec.id}` : spec.id) : null,
    options: spec ? { ...spec.options, maxEpisodeSteps: spec.maxEpisodeSteps } : {},
    envs: envCount,
    config: Object.fromEntries(shardSettings.map(key => [key, config[key]])) as ShardTask['config'],
  };
}

/** Collects in this thread, one shard after the other, in environments that are those of one. Whoever opened those closes them. */
export function shardsHere(envs: VectorEnv): ShardPlace {
  let collector: ShardCollector | undefined;
  return {
    slots: 1,
    async collect(jobs) {
      const results: ShardResult[] = [];
      for (const job of jobs) {
        collector ??= await openShardCollector(job.task, envs);
        results.push(await collector.collect(job));
      }
      return results;
    },
    async close() {
      collector?.dispose();
    },
  };
}
