/** What Stable-Baselines3's `VecNormalize` saves, and any pickle of running moments (`mean`, `var`, `count`). */
import { existsSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { readBounded } from '../../base/files.ts';
import { type Moments, momentsOf, numberOf } from '../../pickle/numpy.ts';
import { readPickle } from '../../pickle/pickle.ts';
import {
  attributesOf,
  callOf,
  describe,
  dictOf,
  PickleError,
  type PickleValue,
} from '../../pickle/values.ts';
import type { MomentsState } from '../../rollout/normalise.ts';
import type { ImportedNormaliser } from './imported.ts';

/** Keel's own (src/rollout/normalise.ts). */
const EPSILON = 1e-8;
const CLIP = 10;

const maxBytes = 2 ** 26;

/** Reads what observations and rewards are normalised by. */
export function readNormaliser(path: string): ImportedNormaliser {
  const value = readPickle(readBounded(path, maxBytes), path);
  const attributes = attributesOf(value);
  if (attributes === undefined)
    throw new PickleError(`${path} is ${describe(value)}, a VecNormalize or running moments are needed`);
  if (attributes.has('mean'))
    return { file: path, observations: stateOf(momentsOf(value, path), EPSILON), rewards: null, notes: [] };
  if (!attributes.has('obs_rms') && !attributes.has('ret_rms'))
    throw new PickleError(
      `${path} is of ${callOf(value)?.name ?? 'something'} without obs_rms: a VecNormalize is needed`,
    );
  const flag = (name: string): boolean => {
    const set = attributes.get(name);
    if (typeof set === 'boolean') return set;
    throw new PickleError(`${name} of ${path} is ${describe(set)}, True or False is needed`);
  };
  const epsilon = numberOf(attributes.get('epsilon'), `epsilon of ${path}`);
  const notes: string[] = [];
  let observations: MomentsState | null = null;
  let rewards: MomentsState | null = null;
  if (flag('norm_obs')) {
    const clip = numberOf(attributes.get('clip_obs'), `clip_obs of ${path}`);
    if (clip !== CLIP)
      throw new PickleError(
        `clip_obs of ${path} is ${clip}, Keel holds normalised observations within ${CLIP}: set vec_env.clip_obs = ${CLIP} in Python, see that it still plays as well, and save it again`,
      );
    observations = stateOf(
      momentsOf(ofVector(attributes.get('obs_rms'), path), `obs_rms of ${path}`),
      epsilon,
    );
  }
  if (flag('norm_reward')) {
    rewards = stateOf(momentsOf(attributes.get('ret_rms'), `ret_rms of ${path}`), epsilon);
    const clip = numberOf(attributes.get('clip_reward'), `clip_reward of ${path}`);
    if (clip !== CLIP) notes.push(`rewards were held within ${clip}, Keel holds them within ${CLIP}`);
  }
  return { file: path, observations, rewards, notes };
}

/** Moments of each part of a Dict belong to a policy that cannot be taken over. */
function ofVector(value: PickleValue | undefined, path: string): PickleValue | undefined {
  if (dictOf(value) === undefined) return value;
  throw new PickleError(
    `obs_rms of ${path} has moments by name, of Dict observations: only vectors can be taken over`,
  );
}

/**
 * As Keel keeps them. Counts here begin at a small number instead of 0, so they are not whole; and an epsilon that is
 * another one than Keel's goes into the variance, which is the same.
 */
function stateOf({ count, mean, variance }: Moments, epsilon: number): MomentsState {
  const whole = Math.round(count);
  if (whole < 1) return { count: 0, mean: [...mean].fill(0), m2: [...mean].fill(0) };
  return {
    count: whole,
    mean: [...mean],
    m2: [...variance].map(value => Math.max(0, value + epsilon - EPSILON) * whole),
  };
}

/** The normaliser that people, rl-zoo and the checkpoint callback save beside a model. */
export function normaliserBeside(model: string): string | undefined {
  const dir = dirname(model);
  const stem = basename(model).replace(/\.zip$/, '');
  const steps = /^(.*)_(\d+_steps)$/.exec(stem);
  const names = [
    ...(steps ? [`${steps[1]}_vecnormalize_${steps[2]}.pkl`] : []),
    `${stem}_vecnormalize.pkl`,
    `${stem}-vecnormalize.pkl`,
    join(stem, 'vecnormalize.pkl'),
    'vecnormalize.pkl',
    'vec_normalize.pkl',
  ];
  return names.map(name => join(dir, name)).find(path => existsSync(path));
}
