/** The number that a fact stands for, worked out again from the series without what made it. */
import { expect } from 'vitest';
import { whole } from '../../../src/base/numbers.ts';
import type { Fact, Finding } from '../../../src/doctor/findings.ts';
import { entropyWeightOf, lossFit } from '../../../src/doctor/judge/loss-weights.ts';
import { courseOf } from '../../../src/doctor/judge/trends.ts';
import { weightOfValueLoss } from '../../../src/doctor/rules/critic/value-weight.ts';
import { impliedEntropyCoef } from '../../../src/doctor/rules/entropy/entropy-stuck.ts';
import { limitTables } from '../../../src/doctor/rules/limits.ts';
import type { Signals } from '../../../src/doctor/rules/signals.ts';
import { lateSpikesOf } from '../../../src/doctor/rules/steps/kl-spikes.ts';
import type { Track } from '../../../src/doctor/rules/track.ts';
import { num, percent, place } from '../../../src/doctor/rules/words.ts';
import { theilSen, trend } from '../../../src/doctor/statistics/trend.ts';

const ascending = (values: readonly number[]): number[] => [...values].sort((a, b) => a - b);

function quantile(values: readonly number[], p: number): number {
  const all = ascending(values);
  const at = p * (all.length - 1);
  const [low, high] = [all[Math.floor(at)], all[Math.ceil(at)]];
  return low + (high - low) * (at - Math.floor(at));
}
const median = (values: readonly number[]): number => quantile(values, 0.5);
const shareOf = (values: readonly number[], holds: (v: number) => boolean): number =>
  values.filter(holds).length / values.length;

function longest(values: readonly number[], level: number): number {
  let [run, most] = [0, 0];
  for (const v of values) {
    run = v > level ? run + 1 : 0;
    most = Math.max(most, run);
  }
  return most;
}

/** The medians of so many stretches of as many values each, or nearly. */
const stretches = (values: readonly number[], count: number): number[] =>
  values.length <= count
    ? [...values]
    : Array.from({ length: count }, (_, i) =>
        median(
          values.slice(
            Math.round((i * values.length) / count),
            Math.round(((i + 1) * values.length) / count),
          ),
        ),
      );

const statistics: Readonly<Record<string, (values: number[], argument: number) => number>> = {
  first: values => values[0],
  last: values => values.at(-1)!,
  median,
  least: values => Math.min(...values),
  most: values => Math.max(...values),
  range: values => Math.max(...values) - Math.min(...values),
  spread: values => 1.4826 * median(values.map(v => Math.abs(v - median(values)))),
  'median size': values => median(values.map(Math.abs)),
  'median size of the logarithm': values => median(values.map(v => Math.abs(Math.log(Math.max(v, 1e-6))))),
  'largest size': values => Math.max(...values.map(Math.abs)),
  quantile,
  'quantile of the sizes': (values, p) => quantile(values.map(Math.abs), p),
  'range of most': values => quantile(values, 0.9) - quantile(values, 0.1),
  'size of most': values => Math.max(Math.abs(quantile(values, 0.02)), Math.abs(quantile(values, 0.98))),
  'root of the median': values => Math.sqrt(median(values)),
  'share above': (values, level) => shareOf(values, v => v > level),
  'share from': (values, level) => shareOf(values, v => v >= level),
  'share below': (values, level) => shareOf(values, v => v < level),
  'share up to': (values, level) => shareOf(values, v => v <= level),
  'share at': (values, level) => shareOf(values, v => v === level),
  'share of stretches above': (values, level) => shareOf(stretches(values, 20), v => v > level),
  rows: values => values.length,
  'rows above': (values, level) => values.filter(v => v > level).length,
  'longest above': longest,
  'trend start': values => median(values.slice(0, Math.max(1, Math.floor(values.length / 5)))),
  'trend end': values => median(values.slice(values.length - Math.max(1, Math.floor(values.length / 5)))),
  'trend score': values => trend(values).z,
  'slope a row': values =>
    theilSen(
      values.map((_, i) => i),
      values,
    ),
  'course start': values => courseOf(values).start,
  'course end': values => courseOf(values).end,
  'course change': values => courseOf(values).change,
  'course margin': values => courseOf(values).margin,
  'course score': values => courseOf(values).score,
  'course noise': values => courseOf(values).noise,
};

/** What a rule alone works out, by the name that its sentence has for it. */
const counted: Readonly<
  Record<string, (signals: Signals, track: Track | undefined, finding: Finding) => number>
> = {
  'last step': signals =>
    Math.max(...[...signals.tracks.values()].filter(({ n }) => n > 0).map(({ x, n }) => x[n - 1])),
  'late spikes': signals => lateSpikesOf(signals)!.late.length,
  'harmful late spikes': signals => lateSpikesOf(signals)!.harmful.length,
  'growth of late spikes': signals => lateSpikesOf(signals)!.growth,
  'largest late spike': signals => Math.max(...lateSpikesOf(signals)!.late.map(({ value }) => value)),
  'surroundings of the largest late spike': signals =>
    lateSpikesOf(signals)!.late.reduce((a, b) => (b.value > a.value ? b : a)).base,
  'signs of five': ({ progress }, _, { evidence }) => evidence.length - Number(progress!.improving),
  'entropy coefficient that the losses imply': signals => entropyWeightOf(signals)!,
  'least entropy coefficient': signals => impliedEntropyCoef(signals)!,
  'share of the value loss in the total loss': signals => weightOfValueLoss(signals)!,
  'share of the gain that is lost': ({ progress }) =>
    Math.min(1, (progress!.best - progress!.end) / (progress!.best - progress!.start)),
  'range of the reward': ({ progress }) =>
    Math.max(progress!.best, progress!.end) - Math.min(progress!.worst, progress!.start),
  'relative entropy of the second half': ({ relativeEntropy }) => median(secondHalf(relativeEntropy!)),
  'relative entropy at the start of the second half': ({ relativeEntropy }) =>
    statistics['trend start'](secondHalf(relativeEntropy!), Number.NaN),
  'relative entropy at the end': ({ relativeEntropy }) =>
    statistics['trend end'](secondHalf(relativeEntropy!), Number.NaN),
  'growth of the std that the entropy implies': (_, track) =>
    Math.exp(
      (statistics['trend end']([...track!.v], 0) - statistics['trend start']([...track!.v], 0)) /
        Math.max(1, Math.round(track!.first / (0.5 * Math.log(2 * Math.PI * Math.E)))),
    ),
  'least distance of the first three rows': (_, track) =>
    Math.min(...[...track!.v.subarray(0, 3)].map(Math.abs)),
  'rows that are not finite': (_, track) => track!.broken.points,
  'rows at the end that are not finite': (_, track) => track!.broken.trailing,
  'step of the first row that is not finite': (_, track) => track!.broken.from,
  'rows that there are': (_, track) => track!.rows,
  'rows before its cells are empty': (_, track) => track!.blank!.before,
  'rows with an empty cell': (_, track) => track!.blank!.rows,
  'step of the first empty cell': ({ tracks }, _, { from }) =>
    Math.min(...[...tracks.values()].flatMap(({ blank }) => (blank?.from === from ? [from] : []))),
  'rows in which the advantage is the reward': ({ get }) => {
    const [advantage, reward] = [get('adv/mean')!, get('reward/mean')!];
    return shareOf(
      [...advantage.v].map(
        (v, i) => Math.abs(v - reward.v[i]) - limitTables.get('group-of-one')!.within * Math.abs(reward.v[i]),
      ),
      v => v <= 0,
    );
  },
  'rows without an advantage': ({ get }) => {
    const [most, least] = [secondHalf(get('adv/max')!.v), secondHalf(get('adv/min')!.v)];
    return shareOf(
      most.map((v, i) => Math.abs(v) + Math.abs(least[i])),
      v => v < 1e-6,
    );
  },
  'updates in which the guard acted': ({ get, from, to }) => {
    const late = (id: string): [number, number][] => {
      const track = get(id);
      return [...(track?.x ?? [])]
        .map((x, i): [number, number] => [x, track!.v[i]])
        .filter(([x]) => x > from + (to - from) / 2);
    };
    const acted = [
      ...late('guard/retries').filter(([, v]) => v > 0),
      ...late('guard/backtracks').filter(([, v]) => v > 0),
      ...late('guard/scale').filter(([, v]) => v < 1),
    ];
    const all = ['guard/retries', 'guard/backtracks', 'guard/scale'].flatMap(late);
    return new Set(acted.map(([x]) => x)).size / new Set(all.map(([x]) => x)).size;
  },
  'scale of updates that the guard took back': ({ get, from, to }) => {
    const scale = get('guard/scale')!;
    return median([...scale.v].filter((v, i) => v < 1 && scale.x[i] > from + (to - from) / 2));
  },
  'best level of the explained variance': (_, track) => {
    const blocks = stretches([...track!.v], 200);
    const wide = Math.max(3, Math.floor(blocks.length / 10));
    return Math.max(
      ...blocks.slice(0, blocks.length - wide + 1).map((_, i) => median(blocks.slice(i, i + wide))),
    );
  },
  'growth of the value loss while the critic fades': ({ get }, loss, { from }) => {
    const ev = get('value/explained_variance')!;
    const wide = Math.max(3, Math.floor(Math.min(200, ev.n) / 10));
    const since = [...loss!.v].filter((_, i) => loss!.x[i] >= from);
    return (
      median(since.slice(-Math.max(3, Math.floor(since.length / 5)))) /
      median(since.slice(0, Math.round((wide * ev.n) / Math.min(200, ev.n))))
    );
  },
  'reward of a step before the jump': (signals, _, { from }) =>
    ofMiddle(rewardOfStep(signals).flatMap(({ x, v }) => (x < from ? [v] : []))),
  'reward of a step after the jump': (signals, _, { from }) => {
    const all = rewardOfStep(signals);
    const at = all.findIndex(({ x }) => x >= from);
    const margin = Math.max(2, Math.floor(all.length / 20));
    return ofMiddle(all.slice(Math.min(all.length - 2, at + margin)).map(({ v }) => v));
  },
  'most that can be earned': ({ progress, get, run }) => {
    const largest = Math.max(...[...progress!.track.v].map(Math.abs));
    const length = get('episode/length');
    const gamma = run.config.gamma ?? 0.99;
    return length === undefined || !(gamma < 1)
      ? largest
      : largest * Math.max(1, 1 / ((1 - gamma) * Math.max(1, median([...length.v]))));
  },
  'least relative entropy': ({ relativeEntropy }) => Math.min(...relativeEntropy!),
  'relative entropy of the last fifth': ({ relativeEntropy }) =>
    median([...relativeEntropy!].slice(Math.floor(0.8 * relativeEntropy!.length))),
  'values that the metric cannot have': (_, track) =>
    [...track!.v].filter(v => v < cannotBeBelow(track!.id) - 1e-3 || v > cannotBeAbove(track!.id) + 1e-3)
      .length,
  'share of the gain that a resume lost': (_, track, { from }) => {
    const before = [...track!.v].filter((_, i) => track!.x[i] < from);
    const after = [...track!.v].filter((_, i) => track!.x[i] >= from);
    const had = median(before.slice(-10));
    return Math.min(1, (had - median(after.slice(0, 5))) / (had - median(before.slice(0, 5))));
  },
  'entropy coefficient of the sum of the losses': signals => Math.max(0, lossFit(signals)!.entropy),
  'share of the training that is over': ({ from, to, run }) =>
    Math.min(1, (to - from) / run.config.totalSteps!),
  'last level of the explained variance': (_, track) =>
    median([...track!.v].slice(track!.n - Math.max(4, Math.floor(track!.n / 5)))),
};

function rewardOfStep({ get }: Signals): { x: number; v: number }[] {
  const [returns, lengths] = [get('episode/return')!, get('episode/length')!];
  return [...returns.x].flatMap((x, i) =>
    lengths.x[i] === x && lengths.v[i] > 0 ? [{ x, v: returns.v[i] / lengths.v[i] }] : [],
  );
}

/** The median by size, of numbers of one sign. */
const ofMiddle = (values: readonly number[]): number =>
  Math.sign(values[0]) * Math.exp(median(values.map(v => Math.log(Math.abs(v)))));

const shares = [
  'policy/clip_fraction',
  'completion/truncated',
  'completion/parse_rate',
  'reward/zero_std_groups',
];
const cannotBeAbove = (id: string): number =>
  shares.includes(id) || id === 'value/explained_variance' ? 1 : Number.POSITIVE_INFINITY;
const cannotBeBelow = (id: string): number =>
  id === 'value/explained_variance' ? Number.NEGATIVE_INFINITY : 0;

const secondHalf = (values: Float64Array): number[] => [...values.subarray(Math.floor(values.length / 2))];

const combined: Readonly<Record<string, (a: number, b: number) => number>> = {
  times: (a, b) => a / b,
  less: (a, b) => a - b,
  product: (a, b) => a * b,
};

/** What the fact must be by the series; undefined where there is nothing to work out: a limit, words of the log. */
export function recomputed(fact: Fact, signals: Signals, finding?: Finding): number | undefined {
  const track = 'metric' in fact && fact.metric !== undefined ? signals.get(fact.metric) : undefined;
  switch (fact.kind) {
    case 'rows':
      return statistics[fact.statistic]([...track!.v.subarray(...fact.rows)], fact.argument ?? Number.NaN);
    case 'step':
      return track!.x[fact.row];
    case 'course':
      expect(track).toBe(signals.progress!.track);
      return signals.progress![fact.what as 'start'];
    case 'setting':
      return settingOf(fact.setting, signals);
    case 'counted':
      if (counted[fact.what] === undefined) throw new Error(`nobody knows how ${fact.what} is worked out`);
      return counted[fact.what](signals, track, finding!);
    case 'times':
    case 'less':
    case 'product': {
      const [a, b] = fact.of.map(one => recomputed(one, signals, finding) ?? one.value);
      return combined[fact.kind](a, b);
    }
    case 'limit':
    case 'quoted':
      return undefined;
    default:
      return fact satisfies never;
  }
}

/** A setting as the log tells it, or as the series of it do. */
function settingOf(setting: string, { run, settings }: Signals): number {
  const told = run.config[setting as 'learningRate'];
  if (told !== undefined) return told;
  const seen = {
    learningRate: settings.lr,
    epochs: settings.epochs,
    clipRange: settings.clip,
    targetKl: settings.targetKl,
  };
  return seen[setting as 'epochs'] ?? Number.NaN;
}

/** Every way in which a number is printed. */
const prints = [num, percent, place, whole, (v: number) => num(-v), (v: number) => percent(v)];

export const isPrinted = ({ text, value }: Fact): boolean =>
  Number.isNaN(value) || prints.some(print => print(value) === text);

/** The numbers of a sentence that are no fact of it: what is left when the facts, in their order, and names are taken out. */
export function uncited(sentence: string, facts: readonly Fact[]): string | undefined {
  let rest = sentence;
  let left = '';
  for (const { text } of facts) {
    const at = rest.indexOf(text);
    if (at < 0) return `${text} is not in: ${sentence}`;
    left += `${rest.slice(0, at)} `;
    rest = rest.slice(at + text.length);
  }
  left += rest;
  return /\d/.test(left.replaceAll(/`[^`]*`/g, '')) ? left : undefined;
}
