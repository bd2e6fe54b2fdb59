/** Settings of a run: from the config that came with it, else from series that say them. */
import type { CanonicalSeries } from '../canonical.ts';
import type { KnownConfig } from '../known-settings.ts';
import type { Series } from '../series.ts';
import { constantOf, firstOf, rangeOf } from './derive.ts';
import type { Dialect, Log } from './dialect.ts';

type Mutable = { -readonly [K in keyof KnownConfig]: KnownConfig[K] };

const texts: readonly (keyof KnownConfig)[] = ['learningRateSchedule', 'task'];
const counts: readonly (keyof KnownConfig)[] = [
  'epochs',
  'minibatchSize',
  'stepsPerRollout',
  'envs',
  'totalSteps',
  'groupSize',
  'maxCompletionLength',
  'samplesPerUpdate',
];

const signed: readonly (keyof KnownConfig)[] = ['entropyCoef', 'logStdInitial', 'logStdMax'];

/** What the config says, checked: a text where a number belongs is read as one or left out. */
export function configOf(log: Log, names: Dialect['config']): KnownConfig {
  const found: Mutable = {};
  for (const [setting, theirs] of Object.entries(names) as [keyof KnownConfig, readonly string[]][]) {
    const value = log.setting(theirs);
    // Without a bound everything is within it.
    if (value === null && setting === 'guard') put(found, setting, Number.POSITIVE_INFINITY);
    if (value === undefined || value === null) continue;
    if (texts.includes(setting)) {
      if (typeof value !== 'number') put(found, setting, String(value).slice(0, 200));
      continue;
    }
    const number = numberOf(value);
    if (number === undefined || !Number.isFinite(number)) continue;
    // A negative entropy bonus is a mistake that people make, and one that a rule must see; a log may be negative.
    if (number < 0 && !signed.includes(setting)) continue;
    if (counts.includes(setting) && (number === 0 || !Number.isInteger(number))) continue;
    put(found, setting, number);
  }
  if (found.learningRateSchedule === undefined) {
    const rate = log.setting(names.learningRate ?? []);
    if (typeof rate === 'string' && /^lin_/.test(rate)) found.learningRateSchedule = 'linear';
  }
  return found;
}

function put(into: Mutable, setting: keyof KnownConfig, value: number | string): void {
  (into as Record<string, number | string>)[setting] = value;
}

function fill(into: Mutable, setting: keyof KnownConfig, value: number | string | undefined): void {
  if (value === undefined || into[setting] !== undefined) return;
  // Event files hold 32-bit numbers: 4.999999873689376e-05 was typed as 5e-5.
  put(into, setting, typeof value === 'number' ? Number(value.toPrecision(6)) : value);
}

/** A number, or a text that is one: `3e-4`, rl-zoo's `lin_2.5e-4`. Booleans are none. */
function numberOf(value: string | number | boolean): number | undefined {
  if (typeof value === 'number') return value;
  if (typeof value !== 'string') return undefined;
  const match = /^\s*(?:lin_)?([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*$/.exec(value);
  return match === null ? undefined : Number(match[1]);
}

/** Adds what the series say where the config is silent. */
export function withSeries(config: KnownConfig, series: ReadonlyMap<string, CanonicalSeries>): KnownConfig {
  const found: Mutable = { ...config };
  const rate = series.get('train/lr')?.series;
  if (rate !== undefined) {
    // As it was set: what a warm-up leads to and a schedule starts from, or where one that follows the KL began.
    fill(found, 'learningRateSchedule', scheduleOf(rate));
    fill(
      found,
      'learningRate',
      found.learningRateSchedule === 'adaptive' ? firstOf(rate) : rangeOf(rate)?.[1],
    );
  }
  const clip = series.get('train/clip_range')?.series;
  if (clip !== undefined) fill(found, 'clipRange', firstOf(clip));
  const coef = series.get('kl/ref_coef')?.series;
  if (coef !== undefined) fill(found, 'refCoef', firstOf(coef));
  const entropyCoef = series.get('train/entropy_coef')?.series;
  if (entropyCoef !== undefined) fill(found, 'entropyCoef', constantOf(entropyCoef));
  return found;
}

/** What a learning rate does, in a word. */
export function scheduleOf(rate: Series): string | undefined {
  const values: number[] = [];
  for (let i = 0; i < rate.length; i++) if (Number.isFinite(rate.values[i])) values.push(rate.values[i]);
  if (values.length < 3) return undefined;
  if (constantOf(rate) !== undefined) return 'constant';
  let top = 0;
  for (let i = 1; i < values.length; i++) if (values[i] > values[top]) top = i;
  const slack = 1e-6 * values[top];
  const rising = values.slice(0, top + 1).every((v, i, a) => i === 0 || v >= a[i - 1] - slack);
  const falling = values.slice(top).every((v, i, a) => i === 0 || v <= a[i - 1] + slack);
  if (!rising || !falling) return 'adaptive';
  if (top === values.length - 1) return 'rising';
  const last = values.at(-1)! < values[top] - slack ? 'falling' : 'constant';
  return top > 0 ? `warm-up, then ${last}` : last;
}
