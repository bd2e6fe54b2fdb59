/** Settings that mean nothing for some actions, which is known only when the environment is. */
import type { Space } from '../envs/index.ts';
import { headsFor } from './policy-heads.ts';
import { ConfigError, type TrainConfig, type TrainSettings, trainSchema } from './train-schema.ts';

/** Keys that do nothing for these actions, each with why. */
export function inertForActions(space: Space): Map<keyof TrainConfig, string> {
  const heads = headsFor(space);
  const inert = new Map<keyof TrainConfig, string>();
  if (heads.every(head => head.logStds === 0)) {
    for (const key of ['logStdInitial', 'logStdMin', 'logStdMax', 'logStdEnd'] as const)
      inert.set(key, 'only continuous actions have a std');
  }
  if (heads.length !== 1 || heads[0]!.logStds === 0)
    inert.set('noiseCorrelation', 'only actions that are all in one box remember their noise');
  return inert;
}

/**
 * Refuses what a user wrote that would change nothing. Defaults may stay: a file with all keys (`keel config`) is for every
 * environment.
 */
export function refuseInertForActions(written: TrainSettings, space: Space): void {
  const defaults = trainSchema.parse({});
  const problems = [...inertForActions(space)]
    .filter(([key]) => written[key] !== undefined && written[key] !== defaults[key])
    .map(([key, why]) => `${key} has no effect on the actions ${space.describe()}: ${why}; remove ${key}`);
  if (problems.length > 0) throw new ConfigError(problems.join('\n'));
}

/** A config as these actions can use it: a preset, which is for every use of it, may hold what they cannot. */
export function fittingActions(config: TrainConfig, space: Space): TrainConfig {
  return inertForActions(space).has('noiseCorrelation') ? { ...config, noiseCorrelation: 0 } : config;
}
