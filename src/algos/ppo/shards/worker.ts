/** A worker of shards, wherever it is: takes a job's bytes, gives the result's. */
import { TrainError } from '../../../base/errors.ts';
import type { AnyMakeOptions } from '../../../envs/definition.ts';
import { makeVectorEnv } from '../../../envs/vector/make.ts';
import type { VectorEnv } from '../../../envs/vector/vector.ts';
import { decodeShardJob, encodeShardResult } from './message.ts';
import { openShardCollector, type ShardCollector, type ShardTask } from './shard.ts';

export interface ShardWorker {
  /** One job at a time. */
  work(job: Uint8Array): Promise<Uint8Array>;
  close(): Promise<void>;
}

/** Keeps the environments and networks of the last task, which the next job is most likely of. */
export function shardWorker(): ShardWorker {
  let open:
    | { readonly key: string; readonly envs: VectorEnv; readonly collector: ShardCollector }
    | undefined;

  async function close(): Promise<void> {
    const closing = open;
    open = undefined;
    closing?.collector.dispose();
    await closing?.envs.close();
  }

  async function opened(task: ShardTask): Promise<ShardCollector> {
    const key = JSON.stringify(task);
    if (open?.key === key) return open.collector;
    await close();
    if (task.env === null)
      throw new TrainError(
        'the environments were made in code, which no other process runs: export them from a file and load that, or use collectors 0',
      );
    const envs = await makeVectorEnv(task.env, {
      envCount: task.envs,
      workers: 0,
      options: task.options as AnyMakeOptions,
    });
    try {
      open = { key, envs, collector: await openShardCollector(task, envs) };
      return open.collector;
    } catch (error) {
      await envs.close();
      throw error;
    }
  }

  return {
    async work(bytes) {
      const job = decodeShardJob(bytes);
      const collector = await opened(job.task);
      try {
        return encodeShardResult(await collector.collect(job));
      } catch (error) {
        // Environments that failed are of no more use.
        await close().catch(() => {});
        throw error;
      }
    },
    close,
  };
}
