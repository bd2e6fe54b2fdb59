/** Runs made by hand, in the registry's names, as a dialect would hand them to the rules. */
import type { CanonicalRun, CanonicalSeries, KlMeaning } from '../../../../src/doctor/canonical.ts';
import { fixOf } from '../../../../src/doctor/fixes.ts';
import type { KnownSetting } from '../../../../src/doctor/known-settings.ts';
import type { Series } from '../../../../src/doctor/series.ts';

export function series(values: readonly number[], stepsARow = 1000): Series {
  return {
    length: values.length,
    count: values.length,
    x: Float64Array.from(values, (_, i) => (i + 1) * stepsARow),
    values: Float64Array.from(values),
    min: Float64Array.from(values),
    max: Float64Array.from(values),
    broken: Uint32Array.from(values, v => (Number.isFinite(v) ? 0 : 1)),
    wallTime: Float64Array.from(values, () => Number.NaN),
  };
}

/** What a KL id stands for in these runs. */
const meanings: Readonly<Record<string, KlMeaning>> = {
  'kl/step': { pair: 'step', estimator: 'k3', per: 'action', aggregation: 'last-epoch', lag: 0 },
  'kl/step_k1': { pair: 'step', estimator: 'k1', per: 'action', aggregation: 'last-epoch', lag: 0 },
  'kl/ref': { pair: 'ref', estimator: 'k3', per: 'token', aggregation: 'minibatches', lag: 0 },
  'kl/sampler': { pair: 'sampler', estimator: 'k3', per: 'token', aggregation: 'rollout', lag: 0 },
};

export interface More extends Partial<Omit<CanonicalRun, 'series'>> {
  readonly kl?: Readonly<Record<string, Partial<KlMeaning>>>;
}

/** A run of these series, one point each 1000 steps. */
export function run(values: Readonly<Record<string, readonly number[]>>, more: More = {}): CanonicalRun {
  const { kl, ...rest } = more;
  const entries = Object.entries(values).map(([id, list]): [string, CanonicalSeries] => {
    const meaning = meanings[id] === undefined ? undefined : { ...meanings[id], ...kl?.[id] };
    return [
      id,
      { id, theirs: `their/${id}`, series: series(list), ...(meaning === undefined ? {} : { kl: meaning }) },
    ];
  });
  return {
    path: 'made',
    trainer: 'stable-baselines3',
    kind: 'classic',
    unit: 'steps',
    series: new Map(entries),
    config: {},
    wording: {
      setting: changes => {
        const pairs = Object.entries(changes) as [KnownSetting, number | string][];
        return fixOf(
          { code: `PPO(${pairs.map(([k, v]) => `${k}=${v}`).join(', ')})` },
          pairs.map(([setting, value]) => ({ setting, name: setting, from: null, value })),
        );
      },
      nameOf: setting => setting,
    },
    actions: 'unknown',
    restarts: [],
    notes: [],
    unknown: [],
    unfinished: false,
    ...rest,
  };
}

/** `n` values of a function of the row. */
export const rows = (n: number, f: (i: number, t: number) => number): number[] =>
  Array.from({ length: n }, (_, i) => f(i, i / Math.max(1, n - 1)));
