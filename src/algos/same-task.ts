/** Whether a policy may go on where it would go on: the same environment, and rewards of the scale that its critic knows. */

import { ConfigError } from '../base/errors.ts';
import type { EnvironmentSpec, Manifest } from '../runs/schema.ts';
import { wrong } from '../settings/spec.ts';

/** Rewards that change their scale, and what everything measured in them is multiplied by. */
export interface RewardRescale {
  readonly from: number;
  readonly to: number;
  readonly factor: number;
}

/**
 * Compares what a checkpoint was trained in with what it would go on in; gives what the critic needs, if anything.
 *
 * The manifest holds the scale that was accepted last, by the first session or by one that was told to rescale. A
 * checkpoint of another scale is then older than that, and is rescaled again without being told: a run that was killed
 * between its rescaling and its next checkpoint goes on as if it had not been.
 */
export function checkSameTask(
  manifest: Manifest,
  /** The checkpoint's; undefined where there is none, so that nothing was learnt yet. */
  trained: EnvironmentSpec | null | undefined,
  now: EnvironmentSpec,
  onRewardScale: 'refuse' | 'rescale' = 'refuse',
): RewardRescale | undefined {
  const before = trained ?? manifest.environment;
  if (before.id !== now.id || before.version !== now.version)
    throw new ConfigError(
      `this run was trained in ${before.id} version ${before.version}, here it would go on in ${now.id} version ${now.version}: start a new run`,
    );
  const [options, others] = [before, now].map(spec => JSON.stringify(spec.options));
  if (options !== others)
    throw new ConfigError(
      `this run was trained with the environment options ${options}, not ${others}: start a new run`,
    );
  const [from, to] = [Number(before.reward.scale), Number(now.reward.scale)];
  if (trained === undefined || from === to) {
    if (onRewardScale === 'refuse') return undefined;
    const without = 'leave out --rescale-critic (onRewardScale)';
    throw trained === undefined
      ? new ConfigError(`this run has no checkpoint, so there is no critic to rescale: ${without}`)
      : wrongScale(
          `was ${from} and stays ${to}, so there is nothing to rescale: set another rewardScale, or ${without}`,
        );
  }
  if (onRewardScale === 'refuse' && Number(manifest.environment.reward.scale) !== to)
    throw wrongScale(
      `was ${from} and would be ${to}: the value function has learnt returns of the old scale, its errors would look like huge advantages and the KL would spike; rescale the critic (--rescale-critic) or start a new run`,
    );
  return { from, to, factor: to / from };
}

const wrongScale = (text: string): ConfigError => new ConfigError([wrong('rewardScale', text)]);
