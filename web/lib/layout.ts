/** Which plots a run shows, and in which order. */
import { axisMetrics } from '../../src/metrics/objectives.ts';
import { compareMetricIds, findMetric, headlineMetrics, metricGroups } from '../../src/metrics/registry.ts';
import type { MetricInfo } from '../../src/server/api.ts';

/** What stands in for a headline metric that a trainer does not log: the same question, asked otherwise. */
const standIns: Readonly<Record<string, readonly string[]>> = {
  'kl/step': ['kl/step_k3', 'kl/step_k2', 'kl/step_k1', 'kl/ref', 'kl/ref_k3'],
  'episode/return': ['reward/mean', 'eval/return', 'episode/length'],
  'value/explained_variance': ['policy/entropy', 'policy/clip_fraction'],
  'loss/value': ['loss/clone', 'loss/policy', 'loss/total', 'grad/norm'],
};

/** What is drawn beside a metric, in its plot: the same thing, measured otherwise, under a short name. */
const companions: Readonly<Record<string, { readonly id: string; readonly label: string }>> = {
  'episode/return': { id: 'eval/return', label: 'evaluation' },
};

/** What a plot of a metric draws beside it, of the metrics that there are. */
export function companionOf(
  metric: string,
  known: readonly Pick<MetricInfo, 'id'>[],
): { readonly id: string; readonly label: string } | undefined {
  const companion = Object.hasOwn(companions, metric) ? companions[metric] : undefined;
  return companion && known.some(({ id }) => id === companion.id) ? companion : undefined;
}

/** Where the registry's title is too long for a tile. */
const shortTitles: Readonly<Record<string, string>> = {
  'kl/step_raw': 'KL unguarded',
  'kl/step_p99': 'KL, 99th percentile',
  'kl/step_max': 'KL, worst state',
  'kl/step_k1': 'KL, k1 estimate',
  'kl/step_k2': 'KL, k2 estimate',
  'kl/step_k3': 'KL, k3 estimate',
};

/** A plot's title: that of its metric, or a shorter one; members of a family (`env/<name>`) go by their own name. */
export function plotTitle(metric: Pick<MetricInfo, 'id' | 'title'>): string {
  if (Object.hasOwn(shortTitles, metric.id)) return shortTitles[metric.id];
  const known = findMetric(metric.id);
  return known !== undefined && known.id !== metric.id
    ? metric.id.slice(metric.id.indexOf('/') + 1)
    : metric.title;
}

export interface PlotGroup {
  readonly id: string;
  readonly title: string;
  readonly metrics: readonly MetricInfo[];
}

export interface Layout {
  /** Those that someone pinned, in their order. */
  readonly pinned: readonly MetricInfo[];
  readonly headline: readonly MetricInfo[];
  readonly groups: readonly PlotGroup[];
}

/** What fills the place beside an odd last headline plot: what tells most of the rest. */
const fillers: readonly string[] = [
  'loss/clone',
  'loss/policy',
  'loss/total',
  'policy/entropy',
  'reward/mean',
  'reward/std',
  'episode/length',
  'grad/norm',
  'train/lr',
];

/** Whether a metric has all words of a search in its name, title or meaning. */
export function findsMetric(metric: MetricInfo, query: string): boolean {
  const text =
    `${metric.id} ${metric.theirs} ${metric.title} ${plotTitle(metric)} ${metric.group} ${metric.doc}`.toLowerCase();
  return query
    .toLowerCase()
    .split(/\s+/)
    .every(term => text.includes(term));
}

export function layoutPlots(all: readonly MetricInfo[], pins: readonly string[] = []): Layout {
  const pinned = pins
    .map(id => all.find(metric => metric.id === id))
    .filter(metric => metric !== undefined && !axisMetrics.includes(metric.id)) as MetricInfo[];
  const metrics = all.filter(metric => !pinned.includes(metric));
  const byId = new Map(metrics.map(metric => [metric.id, metric]));
  const headline: MetricInfo[] = [];
  for (const id of headlineMetrics) {
    const found = [id, ...(standIns[id] ?? [])]
      .map(name => byId.get(name))
      .find(m => m !== undefined && !headline.includes(m));
    if (found !== undefined) headline.push(found);
  }
  // Two plots a row: the place beside the last one is not left empty while there is something to show.
  for (const id of [...fillers, ...metrics.map(metric => metric.id)]) {
    if (headline.length % 2 === 0 && headline.length > 0) break;
    const filler = byId.get(id);
    const fits = findMetric(id) !== undefined && !axisMetrics.includes(id) && !id.startsWith('time/');
    if (filler !== undefined && fits && !headline.includes(filler)) headline.push(filler);
  }
  const rest = metrics
    .filter(metric => !headline.includes(metric) && !axisMetrics.includes(metric.id))
    .sort((a, b) => compareMetricIds(a.id, b.id));
  const known = metricGroups.map(group => ({ ...group, metrics: rest.filter(m => m.group === group.id) }));
  const ids = new Set(metricGroups.map(group => group.id));
  const others = [...new Set(rest.map(m => m.group).filter(group => !ids.has(group)))].sort();
  const unknown = others.map(id => ({
    id,
    title: id || 'Others',
    metrics: rest.filter(m => m.group === id),
  }));
  return { pinned, headline, groups: [...known, ...unknown].filter(group => group.metrics.length > 0) };
}
