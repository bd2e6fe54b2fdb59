/** A run, or several beside each other, as one page that needs nothing else: to zoom, to read, to send. */
import { duration } from '../base/numbers.ts';
import { verdictWords } from '../doctor/findings.ts';
import { clean } from '../doctor/report/clean.ts';
import { documentOfRuns, type RunDocument } from '../doctor/report/document.ts';
import { html, type Markup } from '../doctor/report/escape.ts';
import { overview, story } from '../doctor/report/html.ts';
import { pageStyle } from '../doctor/report/page-style.ts';
import { presentable } from '../doctor/report/presentable.ts';
import {
  isRead,
  isUnreadable,
  type Outcome,
  type RunReport,
  type Unreadable,
  worstFirst,
} from '../doctor/report/run-report.ts';
import { wholePage } from '../doctor/report/whole-page.ts';
import { figuresOf } from './figures.ts';
import { MOST_RUNS } from './limits.ts';
import { viewer, viewerStyle } from './viewer.ts';

/** Logs that are named where they could not be read. */
const MOST_LOST = 50;
/** Settings that differ, and a run's own. */
const MOST_SETTINGS = 200;

/** The page of runs that were examined with `whole`. What is in the logs is text or data, never markup or program. */
export function renderReport(
  outcomes: readonly Outcome[],
  madeAt?: string,
  notes: readonly string[] = [],
): string {
  const kept = worstFirst(outcomes)
    .filter(isRead)
    .slice(0, MOST_RUNS)
    .map(report => presentable(report));
  const document = documentOfRuns(kept, { tells: () => true, mostStories: MOST_RUNS });
  const names = document.rows.items.map(({ path }) => path);
  const title = names.length === 1 ? names[0] : document.title;
  const body = html`<header><h1>${title}</h1><p class="dim">${kept.length === 1 ? verdictWords(kept[0].diagnosis.verdict) : document.counts.map(({ text }) => text).join(', ')}${madeAt === undefined ? '' : `; made by keel report on ${madeAt}`}</p></header>
<main>
${names.length > 1 ? overview(document) : []}
<section aria-label="Plots"><div id="controls"></div><div id="plots"></div><noscript><p>The plots need JavaScript; what was found is below.</p></noscript></section>
${document.stories.items.map((one, i) => story(withoutPlots(one), `run-${i + 1}`))}
${settings(kept, names)}
${lost(outcomes.filter(isUnreadable), notes)}
</main>`;
  return wholePage({
    title: `Keel report: ${title}`,
    style: `${pageStyle}${viewerStyle}`,
    kind: 'report',
    body,
    program: { script: viewer, data: figuresOf(kept, names) },
  });
}

/** Who is sent the page did not see what was said when it was made. */
function lost(unread: readonly Unreadable[], notes: readonly string[]): Markup | [] {
  if (unread.length + notes.length === 0) return [];
  const more = unread.length - MOST_LOST;
  return html`<article><h2>Not read</h2><ul>${notes.map(note => html`<li>${clean(note)}</li>`)}${unread.slice(0, MOST_LOST).map(({ path, why }) => html`<li><code>${clean(path)}</code>: ${clean(why)}</li>`)}</ul>${more > 0 ? html`<p class="dim">and ${more} more</p>` : []}</article>`;
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
