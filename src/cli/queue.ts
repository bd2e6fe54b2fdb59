/** `--queue` of commands that train one run: its shards are collected by the workers of a queue. */
import type { OpenShardPlace } from '../algos/ppo/shards/place.ts';
import { typed } from '../base/typed.ts';
import { redisAddress, shownAddress } from '../sweep/redis/address.ts';

export const queueFlag = [
  '--queue <address>',
  'with --set shards: the steps are played by keel worker on other machines: redis://…',
] as const;

/** What a run is told of it, and its user; an address that cannot be is refused here. */
export function shardsOn(queue: string | undefined): { shardPlace?: OpenShardPlace; remark?: string } {
  if (queue === undefined) return {};
  const address = redisAddress(queue);
  return {
    async shardPlace() {
      const { shardQueue } = await import('../sweep/shard-queue.ts');
      return shardQueue({ url: queue });
    },
    remark: `shards are collected by ${typed('worker', '--queue', shownAddress(address))}, on any machine; without one it waits`,
  };
}
