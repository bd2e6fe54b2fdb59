/**
 * The one list of what is logged. The log, the page, the documentation and the doctor all take names, units and
 * meanings from here. Runs in a browser: nothing here may import a Node module.
 *
 * One row is written per iteration, after its update. Unless an entry says otherwise a value is the mean over all
 * minibatches of that update, weighted by their samples. A metric that does not apply (no episode ended, no reference
 * policy) is absent from the row: absent is not NaN.
 */

import { fail, show } from '../base/errors.ts';
import { nearest } from '../base/nearest.ts';
import { guardMetrics, klMetrics, samplerMetrics } from './entries/kl.ts';
import {
  advantageMetrics,
  gradientMetrics,
  lossMetrics,
  policyMetrics,
  valueMetrics,
} from './entries/learning.ts';
import {
  completionMetrics,
  environmentMetrics,
  episodeMetrics,
  evaluationMetrics,
  rewardMetrics,
} from './entries/outcomes.ts';
import { progressMetrics, timeMetrics, trainingMetrics } from './entries/training.ts';
import type { KlContract } from './kl-bands.ts';
import type { Metric, MetricGroup } from './metric.ts';

export * from './kl-bands.ts';
export type * from './metric.ts';
export type { Tone } from './tones.ts';

/** In the order of the page. Times come last in every row: see `encodeRow`. */
export const metricGroups: readonly MetricGroup[] = [
  { id: 'kl', title: 'KL divergence' },
  { id: 'episode', title: 'Episodes' },
  { id: 'eval', title: 'Evaluation' },
  { id: 'value', title: 'Value function' },
  { id: 'loss', title: 'Losses' },
  { id: 'policy', title: 'Policy' },
  { id: 'adv', title: 'Advantages' },
  { id: 'reward', title: 'Rewards and returns' },
  { id: 'grad', title: 'Gradients' },
  { id: 'train', title: 'Training' },
  { id: 'guard', title: 'KL guard' },
  { id: 'completion', title: 'Completions' },
  { id: 'sampler', title: 'Sampler and scorer' },
  { id: 'env', title: 'Environment' },
  { id: 'time', title: 'Time' },
];

/** Every metric and family. The order is that of the columns in a row. */
export const metrics: readonly Metric[] = [
  ...progressMetrics,
  ...klMetrics,
  ...episodeMetrics,
  ...evaluationMetrics,
  ...valueMetrics,
  ...lossMetrics,
  ...policyMetrics,
  ...advantageMetrics,
  ...rewardMetrics,
  ...gradientMetrics,
  ...trainingMetrics,
  ...guardMetrics,
  ...completionMetrics,
  ...samplerMetrics,
  ...environmentMetrics,
  ...timeMetrics,
];

/** The four plots to show first: is the policy moving sanely, does it help, and does the critic keep up. */
export const headlineMetrics: readonly string[] = [
  'kl/step',
  'episode/return',
  'value/explained_variance',
  'loss/value',
];

const placeholder = '/<name>';
const exact = new Map(metrics.filter(m => !m.id.endsWith(placeholder)).map(m => [m.id, m]));
const families = metrics
  .filter(m => m.id.endsWith(placeholder))
  .map(m => ({ prefix: m.id.slice(0, -'<name>'.length), metric: m }));
const rank = new Map(metrics.map((m, i) => [m, i]));

/** What a name may look like, so that it is safe in a column header, a tag, a path and a link. */
const idPattern = /^[a-z][a-z0-9_]*(\/[A-Za-z0-9_][A-Za-z0-9_.-]*)+$/;
const maxIdLength = 120;

/** Whether a name is well formed; whether it is known is another question. */
export function isMetricId(id: string): boolean {
  return id.length <= maxIdLength && idPattern.test(id);
}

/** The entry of a name, also of a member of a family (`reward/part/fall`); undefined if there is none. */
export function findMetric(id: string): Metric | undefined {
  const metric = exact.get(id);
  if (metric !== undefined || !isMetricId(id)) return metric;
  return families.find(f => id.startsWith(f.prefix) && !id.includes('/', f.prefix.length))?.metric;
}

/** What a metric's bands are held to in a run with this contract; undefined where it has no bands. */
export function heldTo(id: string, { target, guard }: KlContract): KlContract | undefined {
  const held = findMetric(id)?.heldTo;
  if (held === undefined) return undefined;
  return {
    ...(held.includes('target') ? { target: target ?? null } : {}),
    ...(held.includes('guard') && guard !== undefined ? { guard } : {}),
  };
}

/** The entry of a name; an unknown one is an error that names the nearest. */
export function requireMetric(id: string): Metric {
  return findMetric(id) ?? fail(unknownMetric(id), 'unknown-metric');
}

function unknownMetric(id: string): string {
  const head = `unknown metric ${show(id)}`;
  const family = families.find(f => id.startsWith(f.prefix));
  if (family !== undefined) {
    return `${head}: a name after ${family.prefix} has letters, digits, _ . - and at most ${maxIdLength} characters in all`;
  }
  const near = nearest(
    id,
    metrics.map(m => m.id),
  );
  return near === undefined
    ? `${head}: use one of docs/metrics.md, which is in the package, or env/<name> for a measurement of your own`
    : `${head}: did you mean ${near}?`;
}

/** Orders names as the registry does, members of a family among themselves by name, unknown names before the times. */
export function compareMetricIds(a: string, b: string): number {
  return rankOf(a) - rankOf(b) || (a < b ? -1 : a > b ? 1 : 0);
}

const firstTime = metrics.findIndex(m => m.group === 'time');

function rankOf(id: string): number {
  const metric = findMetric(id);
  if (metric !== undefined) return rank.get(metric)!;
  return isTimeKey(id) ? metrics.length : firstTime - 0.5;
}

/** Whether a key holds the clock's reading, which differs between two otherwise equal runs: all that begin `time/`. */
export function isTimeKey(key: string): boolean {
  return key.startsWith('time/');
}
