/** How a model of Stable-Baselines3 was trained, in Keel's settings. */
import { show } from '../../base/errors.ts';
import { attributesOf, type PickleValue } from '../../pickle/values.ts';
import type { Settings } from '../algorithm.ts';

/** The fields of `data`. */
export interface ModelData {
  has(name: string): boolean;
  /** As JSON says it. */
  json(name: string): unknown;
  /** The same, or what its pickle holds. */
  value(name: string): PickleValue | undefined;
}

type Check = (value: number) => boolean;
const positive: Check = value => value > 0;
const fromZero: Check = value => value >= 0;
const share: Check = value => value >= 0 && value <= 1;
const count: Check = value => Number.isSafeInteger(value) && value >= 1;

/** What can be taken over of how it was trained; of A2C the parts that PPO has as well. */
export function trainingSettings(
  data: ModelData,
  { algorithm, rate }: { readonly algorithm: 'PPO' | 'A2C'; readonly rate: number | undefined },
): { readonly settings: Settings; readonly steps: number; readonly notes: readonly string[] } {
  const notes: string[] = [];
  const settings: Record<string, unknown> = {};
  const take = (key: string, field: string, check: Check): number | undefined => {
    const value = data.json(field);
    if (typeof value === 'number' && Number.isFinite(value) && check(value)) {
      settings[key] = value;
      return value;
    }
    if (value !== undefined && value !== null) notes.push(`${field} ${show(value)} is left at Keel's ${key}`);
    return undefined;
  };
  take('gamma', 'gamma', share);
  take('gaeLambda', 'gae_lambda', share);
  take('entropyCoef', 'ent_coef', fromZero);
  take('valueCoef', 'vf_coef', fromZero);
  take('gradientClip', 'max_grad_norm', positive);
  const seed = data.json('seed');
  if (typeof seed === 'number' && Number.isSafeInteger(seed) && seed >= 0) settings.seed = seed;
  const done = data.json('num_timesteps');
  const steps = typeof done === 'number' && Number.isSafeInteger(done) && done >= 0 ? done : 0;
  if (steps > 0) settings.steps = steps;
  if (algorithm === 'A2C') {
    notes.push(
      "it was trained with A2C: Keel goes on with PPO, with the environment's preset for rollouts, epochs and rates",
    );
    return { settings, steps, notes };
  }

  const scheduled = (field: string): number | undefined => constantOf(data, field);
  const learningRate = scheduled('learning_rate') ?? rate;
  if (learningRate !== undefined && learningRate > 0) settings.learningRate = learningRate;
  if (scheduled('learning_rate') === undefined)
    notes.push(
      learningRate === undefined
        ? "learning_rate is a function, which is not run, and the last rate is no number above 0: it is Keel's, unless you set learningRate"
        : `learning_rate is a function, which is not run: the rate is ${learningRate}, the last one that was used`,
    );
  const clip = scheduled('clip_range');
  if (clip !== undefined && clip > 0) settings.clipRange = clip;
  else notes.push('clip_range is a function, which is not run: it is 0.2, unless you set clipRange');
  const valueClip = data.json('clip_range_vf');
  if (valueClip !== null && valueClip !== undefined) {
    const value = scheduled('clip_range_vf');
    if (value !== undefined && value > 0) settings.valueClip = value;
    else
      notes.push(
        'clip_range_vf is a function, which is not run: values are not clipped, unless you set valueClip',
      );
  }
  take('epochs', 'n_epochs', count);
  take('targetKl', 'target_kl', positive);
  const normalise = data.json('normalize_advantage');
  if (typeof normalise === 'boolean') settings.normaliseAdvantages = normalise;
  const envs = take('envs', 'n_envs', count) ?? 1;
  settings.envs = envs;
  const stepsPerRollout = take('stepsPerRollout', 'n_steps', count);
  const batch = data.json('batch_size');
  if (stepsPerRollout !== undefined && typeof batch === 'number' && count(batch)) {
    const samples = envs * stepsPerRollout;
    const size = divisorUpTo(samples, batch);
    settings.minibatchSize = size;
    if (size !== batch)
      notes.push(`batch_size ${batch} does not divide a rollout of ${samples}: minibatchSize is ${size}`);
    if (size === 1) settings.normaliseAdvantages = false;
  }
  return { settings, steps, notes };
}

/** A number, or a schedule that says its own: `FloatSchedule(ConstantSchedule(0.2))` of 2.6 and newer. */
function constantOf(data: ModelData, field: string): number | undefined {
  let value = data.value(field);
  for (let depth = 0; depth < 4 && typeof value === 'object'; depth++) {
    const attributes = attributesOf(value);
    value = attributes?.get('value_schedule') ?? attributes?.get('val');
  }
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}

function divisorUpTo(whole: number, most: number): number {
  for (let size = Math.min(whole, most); size > 1; size--) if (whole % size === 0) return size;
  return 1;
}
