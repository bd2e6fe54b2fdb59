/** Reports of simulations as tables for a terminal. */

import { number } from '../../base/numbers.ts';
import { bar, sparkline } from '../../base/plots.ts';
import { table } from '../../base/terminal.ts';
import type { ClusterTimeline } from '../../view/cluster-timeline.ts';
import type { ClusterReport } from './metrics.ts';

/** A run's id would push the numbers off the screen: its last part tells it apart. */
export const shortName = (name: string): string => (name.length > 16 ? `…${name.slice(-15)}` : name);

/** A dash where nothing was measured, such as between the tokens of answers of one. */
const measured = (value: number): string => (Number.isNaN(value) ? '-' : number(value));

/** Routers side by side. */
export function routerTable(results: readonly { router: string; report: ClusterReport }[]): string[] {
  const head = ['router', 'mean s', 'p50', 'p99', 'first', 'p99', 'ms/token', 'evicted', '$/1k'];
  const rows = results.map(({ router, report }) => [
    shortName(router),
    ...[report.endToEnd.mean, report.endToEnd.p50, report.endToEnd.p99].map(number),
    ...[report.timeToFirstToken.mean, report.timeToFirstToken.p99].map(number),
    measured(1000 * report.timeBetweenTokens.mean),
    String(report.preemptions),
    number(report.dollarsPerThousandRequests),
  ]);
  return table([head, ...rows], [1, 2, 3, 4, 5, 6, 7, 8]);
}

/** Every measure of a request, in seconds. */
export function measureTable(report: ClusterReport): string[] {
  const measures = [
    ['end to end', report.endToEnd],
    ['first token', report.timeToFirstToken],
    ['between tokens', report.timeBetweenTokens],
    ['per token', report.normalised],
    ['until scheduled', report.schedulingDelay],
  ] as const;
  const rows = measures.map(([name, { mean, p50, p90, p99 }]) => [
    name,
    ...[mean, p50, p90, p99].map(measured),
  ]);
  return table([['seconds', 'mean', 'p50', 'p90', 'p99'], ...rows], [1, 2, 3, 4]);
}

/** What each replica did, its memory over time in so many columns. */
export function replicaTable(
  { replicas }: ClusterReport,
  { memory }: ClusterTimeline,
  columns: number,
): string[] {
  const most = Math.max(...replicas.map(({ requests }) => requests));
  const rows = replicas.map(({ hardware, utilisation, requests }, r) => [
    hardware,
    `${number(100 * utilisation)}%`,
    bar(requests / most, 8),
    String(requests),
    sparkline(memory[r], columns, 1),
  ]);
  return table([['replica', 'busy', 'requests', '', 'memory over time'], ...rows], [1, 3]);
}
