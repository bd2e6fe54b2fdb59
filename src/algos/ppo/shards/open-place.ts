/** The place that a config asks for. */
import { availableParallelism } from 'node:os';
import { ConfigError } from '../../../base/errors.ts';
import { knownEnv } from '../../../envs/registry.ts';
import type { VectorEnv } from '../../../envs/vector/vector.ts';
import { wrong } from '../../../settings/spec.ts';
import type { PpoConfig } from '../settings.ts';
import { type ShardPlace, shardTask } from './place.ts';
import { shardProcesses } from './processes.ts';

/** Processes for the shards of these environments; undefined where they are collected in this thread. */
export function openShardPlace(config: PpoConfig, envs: VectorEnv): ShardPlace | undefined {
  const { shards, collectors } = config;
  if (shards === 1 || collectors === 0) return undefined;
  const canLeave = shardTask(config, envs).env !== null;
  if (collectors === 'auto') {
    const isSlow = envs.spec !== undefined && knownEnv(envs.spec.id)?.definition.slow === true;
    const count = Math.min(shards, availableParallelism());
    return isSlow && canLeave && count > 1 ? shardProcesses({ count }) : undefined;
  }
  if (!canLeave)
    throw new ConfigError([
      wrong(
        'collectors',
        `${collectors} cannot collect in ${envs.spec?.id ?? 'these environments'}, which ${envs.spec ? 'was' : 'were'} registered in code that other processes do not run: export it from a file and load that, or use collectors 0`,
      ),
    ]);
  return shardProcesses({ count: collectors });
}
