/**
 * SB3 writes a row when a rollout ends and trains after that, so that `train/*` in a row tells of the update on the
 * rollout before. An evaluation writes a row too, in the middle of a rollout, and takes `train/*` with it. Here each
 * value of `train/*` is moved to the end of the rollout that it was trained on.
 */
import type { KnownConfig } from '../known-settings.ts';
import type { Series } from '../series.ts';
import { moved, seriesOf } from './derive.ts';
import type { Draft, Log, Refine } from './dialect.ts';

const offPolicy = ['train/actor_loss', 'train/critic_loss', 'rollout/exploration_rate', 'time/episodes'];

export const sb3Lag: Refine = (drafts, log, stepOf) => {
  if (offPolicy.some(name => log.series.has(name))) return {};
  const ends = rolloutEnds(drafts);
  const size = rolloutSize(drafts, log, ends);
  const trainedOn = (x: number): number => {
    let previous = 0;
    let low = 0;
    let high = ends.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (ends[middle] < x) low = middle + 1;
      else high = middle;
    }
    if (low > 0) previous = ends[low - 1];
    else if (size === undefined) return x;
    if (size === undefined) return previous;
    return previous + Math.max(0, Math.ceil((x - previous) / size - 1e-6) - 1) * size;
  };
  const shifted = drafts.map(draft =>
    draft.mapping.late === true ? { ...draft, series: moved(draft.series, trainedOn) } : draft,
  );
  const epochs = epochsRun(log, x => trainedOn(stepOf(x)), size);
  const config: KnownConfig = {
    ...(size === undefined ? {} : { samplesPerUpdate: size }),
    ...(epochs === undefined ? {} : epochs.config),
  };
  const { drafts: named, notes } = withEstimator(epochs === undefined ? shifted : [...shifted, epochs.draft]);
  return { drafts: named, config, notes };
};

/** Below this a KL is less than 0 by more than single precision does. */
const NEGATIVE = -1e-5;

/** k3 cannot be negative; SB3 logged the mean log-ratio, which may be, until its issue 417 was mended. */
function withEstimator(drafts: readonly Draft[]): { drafts: readonly Draft[]; notes: readonly string[] } {
  let isOld = false;
  const named = drafts.map(draft => {
    const { id, mapping, series } = draft;
    const { kl } = mapping;
    if (id !== 'kl/step' || typeof kl !== 'object' || kl.estimator !== 'k3') return draft;
    if (!series.min.subarray(0, series.length).some(v => v < NEGATIVE)) return draft;
    isOld = true;
    return { ...draft, mapping: { ...mapping, kl: { ...kl, estimator: 'k1' as const } } };
  });
  return { drafts: named, notes: isOld ? [oldKl] : [] };
}

const oldKl =
  '`train/approx_kl` is negative in places: early versions of Stable-Baselines3 (before their issue 417 was mended) logged the mean log-ratio, which scatters around the KL; a newer version logs one that is never negative';

/** Steps at which a rollout ended: only those rows have a speed. */
function rolloutEnds(drafts: readonly Draft[]): number[] {
  const speed = drafts.find(draft => draft.id === 'time/steps_per_second')?.series;
  return speed === undefined ? [] : [...new Set(speed.x.subarray(0, speed.length))].sort((a, b) => a - b);
}

/** Steps of one rollout, all environments together. */
function rolloutSize(drafts: readonly Draft[], log: Log, ends: readonly number[]): number | undefined {
  const iterations = drafts.find(draft => draft.id === 'train/iteration')?.series;
  const sizes: number[] = [];
  if (iterations !== undefined) {
    for (let i = 1; i < iterations.length; i++) {
      const more = iterations.max[i] - iterations.max[i - 1];
      const steps = iterations.x[i] - iterations.x[i - 1];
      if (more > 0 && steps > 0) sizes.push(steps / more);
    }
    if (sizes.length === 0 && iterations.length === 1) sizes.push(iterations.x[0] / iterations.max[0]);
  } else {
    const [steps, envs] = [log.setting(['n_steps']), log.setting(['n_envs', 'num_envs'])];
    if (typeof steps === 'number' && typeof envs === 'number' && steps > 0 && envs > 0) return steps * envs;
    for (let i = 1; i < ends.length; i++) sizes.push(ends[i] - ends[i - 1]);
  }
  sizes.sort((a, b) => a - b);
  const middle = sizes[sizes.length >> 1];
  return middle !== undefined && Number.isFinite(middle) && middle > 0 ? middle : undefined;
}

/** The first rollout runs about as many epochs as the next. */
const mostTimes = 3;
/** Where there is no next. */
const mostEpochs = 100;

/** Whether a model had been trained before: then its first row also counts the epochs of that. */
function wasLoaded({ length, max }: Series): boolean {
  const next = length > 1 ? mostTimes * (max[1] - max[0]) : mostEpochs;
  return max[0] > next;
}

/**
 * `n_updates` counts epochs, also those that the target KL cut short, so that its growth from row to row is the epochs
 * that an update ran. Always 1 may be one epoch by choice or a stop in the first: then nothing is said of the setting.
 */
function epochsRun(
  log: Log,
  place: (x: number) => number,
  size: number | undefined,
): { draft: Draft; config: KnownConfig } | undefined {
  const updates = log.series.get('train/n_updates');
  if (updates === undefined || size === undefined || !log.series.has('train/approx_kl')) return undefined;
  const points = moved(updates.series, place);
  const x: number[] = [];
  const values: number[] = [];
  for (let i = 0; i < points.length; i++) {
    const more = points.max[i] - (i === 0 ? 0 : points.max[i - 1]);
    const rollouts = Math.round((points.x[i] - (i === 0 ? 0 : points.x[i - 1])) / size);
    if (i === 0 && (rollouts !== 1 || wasLoaded(points))) continue;
    if (!(more > 0) || rollouts < 1) continue;
    x.push(points.x[i]);
    values.push(more / rollouts);
  }
  if (values.length === 0) return undefined;
  const most = Math.round(values.reduce((a, b) => Math.max(a, b), 0));
  return {
    draft: {
      id: 'train/epochs_run',
      theirs: updates.theirs,
      series: seriesOf(x, values),
      mapping: { theirs: 'train/n_updates', id: 'train/epochs_run' },
    },
    config: most > 1 ? { epochs: most } : {},
  };
}
