/** Which plots a run shows, and in which order. */
import { compareMetricIds, findMetric, headlineMetrics, metricGroups } from '../../src/metrics/registry.ts';
import type { MetricInfo } from '../../src/server/api.ts';

/** They are the axes of all other plots. */
const axes: readonly string[] = ['train/step', 'train/iteration', 'time/unix_s'];

/** What stands in for a headline metric that a trainer does not log: the same question, asked otherwise. */
const standIns: Readonly<Record<string, readonly string[]>> = {
  'kl/step': ['kl/step_k3', 'kl/step_k1', 'kl/ref'],
  'episode/return': ['reward/mean', 'eval/return', 'episode/length'],
  'value/explained_variance': ['policy/entropy', 'policy/clip_fraction'],
  'loss/value': ['loss/policy', 'loss/total', 'grad/norm'],
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
  readonly headline: readonly MetricInfo[];
  readonly groups: readonly PlotGroup[];
}

export function layoutPlots(metrics: readonly MetricInfo[]): Layout {
  const byId = new Map(metrics.map(metric => [metric.id, metric]));
  const headline: MetricInfo[] = [];
  for (const id of headlineMetrics) {
    const found = [id, ...(standIns[id] ?? [])]
      .map(name => byId.get(name))
      .find(m => m !== undefined && !headline.includes(m));
    if (found !== undefined) headline.push(found);
  }
  const rest = metrics
    .filter(metric => !headline.includes(metric) && !axes.includes(metric.id))
    .sort((a, b) => compareMetricIds(a.id, b.id));
  const known = metricGroups.map(group => ({ ...group, metrics: rest.filter(m => m.group === group.id) }));
  const ids = new Set(metricGroups.map(group => group.id));
  const others = [...new Set(rest.map(m => m.group).filter(group => !ids.has(group)))].sort();
  const unknown = others.map(id => ({
    id,
    title: id || 'Others',
    metrics: rest.filter(m => m.group === id),
  }));
  return { headline, groups: [...known, ...unknown].filter(group => group.metrics.length > 0) };
}
