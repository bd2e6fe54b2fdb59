/** A run, or several beside each other, as one page that needs nothing else: to zoom, to read, to send. */
import { createHash } from 'node:crypto';
import { duration } from '../base/numbers.ts';
import { documentOfRuns, type RunDocument } from '../doctor/report/document.ts';
import { html, type Markup, textOf } from '../doctor/report/escape.ts';
import { overview, story } from '../doctor/report/html.ts';
import { pageStyle } from '../doctor/report/page-style.ts';
import { presentable } from '../doctor/report/presentable.ts';
import { isRead, type Outcome, type RunReport, worstFirst } from '../doctor/report/run-report.ts';
import { figuresOf } from './figures.ts';
import { MOST_RUNS } from './limits.ts';
import { viewer, viewerStyle } from './viewer.ts';

/** Settings that differ, and a run's own. */
const MOST_SETTINGS = 200;

/**
 * The page of runs that were examined with `whole`. What is in the logs is text or data, never markup or program: the policy
 * of the page allows one style and one script, by their hashes, and no address at all.
 */
export function renderReport(outcomes: readonly Outcome[], madeAt?: string): string {
  const kept = worstFirst(outcomes)
    .filter(isRead)
    .slice(0, MOST_RUNS)
    .map(report => presentable(report));
  const document = documentOfRuns(kept, { tells: () => true, mostStories: MOST_RUNS });
  const names = document.rows.items.map(({ path }) => path);
  const style = `${pageStyle}${viewerStyle}`;
  const hash = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
  const policy = `default-src 'none'; style-src ${hash(style)}; script-src ${hash(viewer)}; base-uri 'none'; form-action 'none'`;
  const title = names.length === 1 ? names[0] : document.title;
  const head = html`<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>Keel report: ${title}</title>
<style>`;
  const body = html`</style>
</head>
<body class="report">
<header><h1>${title}</h1><p class="dim">${document.counts.map(({ text }) => text).join(', ')}${madeAt === undefined ? '' : `; made by keel report on ${madeAt}`}</p></header>
<main>
${names.length > 1 ? overview(document) : []}
<section aria-label="Plots"><div id="controls"></div><div id="plots"></div><noscript><p>The plots need JavaScript; what was found is below.</p></noscript></section>
${document.stories.items.map((one, i) => story(withoutPlots(one), `run-${i + 1}`))}
${settings(kept, names)}
</main>
`;
  const data = JSON.stringify(figuresOf(kept, names))
    .replaceAll('<', '\\u003c')
    .replaceAll('\u2028', '\\u2028')
    .replaceAll('\u2029', '\\u2029');
  return `<!doctype html>\n${textOf(head)}${style}${textOf(body)}<script type="application/json" id="data">${data}</script>\n<script>${viewer}</script>\n</body>\n</html>\n`;
}

/** They are drawn above, for all runs together. */
const withoutPlots = (document: RunDocument): RunDocument => ({
  ...document,
  sections: document.sections.filter(({ kind }) => kind !== 'plots'),
});

/** Of one run all settings; of several those that differ, among the runs that say any. */
function settings(reports: readonly RunReport[], names: readonly string[]): Markup {
  const told = reports.map(({ log }) => new Map(log?.settings ?? []));
  const keys = [...new Set(told.flatMap(one => [...one.keys()]))].sort();
  const saying = told.filter(({ size }) => size > 0);
  const shown =
    reports.length === 1 ? keys : keys.filter(key => new Set(saying.map(one => one.get(key))).size > 1);
  const times = reports.map(({ log }) => log?.seconds ?? null);
  const rows = shown.slice(0, MOST_SETTINGS);
  return html`<article><h2>${reports.length === 1 ? 'Settings' : 'Settings that differ'}</h2>
<div class="scroll"><table><thead><tr><th scope="col">Setting</th>${names.map(name => html`<th scope="col">${name}</th>`)}</tr></thead><tbody>
<tr><th scope="row">duration</th>${times.map(seconds => html`<td>${seconds === null ? '–' : duration(seconds)}</td>`)}</tr>
${rows.map(key => html`<tr><th scope="row">${key}</th>${told.map(one => html`<td>${one.get(key) ?? '–'}</td>`)}</tr>\n`)}</tbody></table></div>
${shown.length > rows.length ? html`<p class="dim">and ${shown.length - rows.length} more</p>` : []}</article>`;
}
