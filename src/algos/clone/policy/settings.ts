/** Every setting of cloning an environment's demonstrators into a policy. */
import * as z from 'zod/mini';
import * as shared from '../../../settings/shared.ts';
import {
  type ConfigOf,
  fixed,
  type SettingsOf,
  setting,
  table,
  type Values,
} from '../../../settings/spec.ts';
import { count } from '../../../settings/values.ts';
import { ppoSettings } from '../../ppo/settings.ts';

/** Demonstrations are recorded again when a run goes on: what decides which there are, and their returns, stays. */
const never = { change: 'never' } as const;

const own = {
  steps: {
    ...shared.steps(100_000, 'Demonstrations of the run, over all demonstrators and environments.'),
    ...never,
  },
  epochs: setting(count, 8, 'Passes over the demonstrations.', { aliases: 'nepochs numepochs' }),
  batchSize: setting(count, 512, 'Demonstrations a gradient step.', { aliases: 'minibatchsize minibatch' }),
  // Falls to nothing: which of two near-ties is more likely is settled by the last, smallest steps.
  learningRate: shared.learningRate(1e-3, "Adam's step size.", { change: 'resume' }),
  learningRateSchedule: shared.learningRateSchedule('linear'),
  learningRateEnd: shared.learningRateEnd(0, { change: 'resume' }),
};

/** The network and how it is fitted, which a preset for training says too. */
const learnt = {
  adamEpsilon: shared.adamEpsilon(1e-5),
  gradientClip: shared.gradientClip(0.5),
  gamma: { ...shared.gamma, ...never },
  valueCoef: shared.valueCoef,
  ...shared.logStdKeys,
  ...shared.networkKeys,
};

export const clonePolicySettings = table(
  {
    ...own,
    demonstrators: fixed(
      z.nullable(z.array(z.string())),
      null,
      "Which of the environment's demonstrators play, each its share of the steps; null is all but those that must be named.",
      { example: '[least-finish]' },
    ),
    ...learnt,
    ...shared.environmentKeys({ ownReturns: false }),
    rewardScale: { ...shared.envKeys.rewardScale, ...never },
    ...shared.logKeys,
  },
  {
    name: 'clone',
    title: 'Keel config of cloning into a policy',
    schemaFile: 'schema-clone-policy.json',
    listedBy: 'config --clone',
    of: 'env',
    length: 'epochs',
    contradictions: shared.networkContradictions,
    ofTraining: Object.keys({ ...learnt, ...shared.envKeys }),
    upgrade: (saved, run) => (Object.hasOwn(saved, 'clipRange') ? ofTraining(saved, run) : saved),
  },
);

/** A whole config of cloning a policy. */
export type ClonePolicyConfig = ConfigOf<typeof clonePolicySettings>;
/** What a user may set. */
export type ClonePolicySettings = SettingsOf<typeof clonePolicySettings>;

/**
 * Runs used to be saved with all settings of PPO. Those of the network and of the environments held, as did `steps`, which
 * were demonstrations; its epochs and its learning rate did not. How many epochs there were to be was not saved: a run that
 * has finished has done them.
 */
function ofTraining(
  saved: Values,
  { status, iteration }: { readonly status: string; readonly iteration: number },
): Values {
  const ignored = (key: string): boolean =>
    key !== 'steps' &&
    Object.hasOwn(ppoSettings.keys, key) &&
    (Object.hasOwn(own, key) || !Object.hasOwn(clonePolicySettings.keys, key));
  return {
    ...Object.fromEntries(Object.entries(saved).filter(([key]) => !ignored(key))),
    ...(status === 'finished' ? { epochs: iteration } : {}),
  };
}
