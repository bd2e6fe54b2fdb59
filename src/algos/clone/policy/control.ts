/** The learning rates of an epoch, and that nothing bounds its updates. */
import type { GuardedSettings } from '../../update/guarded.ts';
import { rateFactor } from '../../update/schedule.ts';
import type { ClonePolicyConfig } from './settings.ts';

/** The rate when this share of the run is done. */
export const rateAt = (config: ClonePolicyConfig, progress: number): number =>
  config.learningRate * rateFactor(config, progress);

/** The rate of each minibatch of an epoch, after so many; in single precision throughout, as the program computes. */
export function ratesOfEpoch(
  config: ClonePolicyConfig,
  minibatchesBefore: number,
  trips: number,
): Float32Array {
  const { fround } = Math;
  const share = fround(1 / (config.epochs * trips));
  return Float32Array.from({ length: trips }, (_, i) => {
    const progress = fround((minibatchesBefore + i + 0.5) * share);
    return fround(rateFactor(config, progress)) * fround(config.learningRate);
  });
}

/** There is no policy before to stay near, and an epoch that is not finite would not be again: it ends the run. */
export const unguarded: GuardedSettings = { recoveries: 0, recoveryFactor: 1 };
