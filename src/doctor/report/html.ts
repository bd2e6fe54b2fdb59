/** The report as one page that needs nothing else: to send to a colleague, or to keep with a CI run. */
import { createHash } from 'node:crypto';
import { counted, whole } from '../../base/numbers.ts';
import { healthyWords } from '../../metrics/registry.ts';
import { type Finding, spansOf, verdictWords } from '../findings.ts';
import type { Fix } from '../fixes.ts';
import { html, type Markup, textOf } from './escape.ts';
import { sureness } from './figures.ts';
import { pageStyle } from './page-style.ts';
import { type Plot, rangeOf } from './plot.ts';
import { changeOf, presentable, presentableError, storyOf, stretchOf } from './presentable.ts';
import {
  commonDirectory,
  isRead,
  isUnreadable,
  type Outcome,
  type RunReport,
  tally,
  worstFirst,
} from './run-report.ts';
import { svgChart } from './svg.ts';

/** Runs that are told in full; the others have a line. A page of a thousand would open in no browser. */
const MOST_STORIES = 100;

/** How a report is written as HTML. */
export interface HtmlOptions {
  /** Shown at the foot: when the report was made, in any form. */
  readonly madeAt?: string;
}

/** A whole document. Nothing in it can run or load anything, whatever the logs contain. */
export function renderHtml(outcomes: readonly Outcome[], { madeAt }: HtmlOptions = {}): string {
  const ordered = worstFirst(outcomes).map(outcome =>
    isUnreadable(outcome) ? presentableError(outcome) : presentable(outcome),
  );
  const stories = ordered.filter(isRead).slice(0, MOST_STORIES);
  const left = ordered.filter(isRead).length - stories.length;
  const [only] = stories;
  const title =
    ordered.length === 1 && only !== undefined ? only.diagnosis.path : counted(ordered.length, 'run');
  const hash = createHash('sha256').update(pageStyle).digest('base64');
  const policy = `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'`;
  const page = html`<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>Keel doctor: ${title}</title>
<style>`;
  const body = html`</style>
</head>
<body>
<header><h1>Keel doctor</h1><p class="dim">${summaryLine(ordered)}</p></header>
<main>
${ordered.length > 1 ? overview(ordered, stories.length) : []}
${ordered.length === 1 ? ordered.filter(isUnreadable).map(({ path, error }) => html`<article><p class="run"><span class="badge unread">unread</span><b>${path}</b></p><p>${error}</p></article>`) : []}
${stories.map((report, i) => story(report, `run-${i + 1}`))}
${left > 0 ? html`<p class="dim">${counted(left, 'run')} more: see the table. For their stories, give the doctor fewer runs at once.</p>` : []}
</main>
<footer class="dim"><p>Made by <code>keel doctor</code>${madeAt === undefined ? '' : ` on ${madeAt}`}. <code>keel doctor --explain &lt;code&gt;</code> says more about a rule.</p></footer>
</body>
</html>
`;
  // The style stands as it is: its hash is in the policy.
  return `<!doctype html>\n${textOf(page)}${pageStyle}${textOf(body)}`;
}

function summaryLine(outcomes: readonly Outcome[]): string {
  const failed = outcomes.filter(isUnreadable).length;
  const counts = tally(outcomes).map(({ verdict, count }) => `${count} ${verdictWords(verdict)}`);
  return `${counted(outcomes.length, 'run')}: ${[...counts, ...(failed > 0 ? [`${failed} could not be read`] : [])].join(', ')}`;
}

function overview(outcomes: readonly Outcome[], linked: number): Markup {
  let number = 0;
  const common = commonDirectory(
    outcomes.map(outcome => (isUnreadable(outcome) ? outcome.path : outcome.diagnosis.path)),
  );
  return html`${common === '' ? [] : html`<p>In <code>${common}</code></p>`}<div class="scroll"><table>
<thead><tr><th scope="col">Verdict</th><th scope="col">Run</th><th scope="col" class="extra">Trainer</th><th scope="col" class="count extra">Length</th><th scope="col">What</th></tr></thead>
<tbody>
${outcomes.map(outcome => {
  if (isUnreadable(outcome)) {
    return html`<tr><td><span class="badge unread">unread</span></td><td class="name">${outcome.path.slice(common.length)}</td><td class="extra"></td><td class="extra"></td><td>${outcome.error}</td></tr>\n`;
  }
  number++;
  const { diagnosis, unit } = outcome;
  const path = diagnosis.path.slice(common.length);
  const name = number <= linked ? html`<a href="#run-${number}">${path}</a>` : path;
  const what = diagnosis.verdict === 'healthy' ? '' : storyOf(outcome).headline;
  return html`<tr><td>${badge(outcome)}</td><td class="name">${name}</td><td class="extra">${diagnosis.trainer}</td><td class="count extra">${whole(diagnosis.steps)} ${unit}</td><td>${prose(what)}</td></tr>\n`;
})}</tbody>
</table></div>`;
}

const badge = ({ diagnosis }: RunReport): Markup =>
  html`<span class="badge ${diagnosis.verdict}">${verdictWords(diagnosis.verdict)}</span>`;

/** Names between backticks become code. */
const prose = (text: string): Markup =>
  html`${spansOf(text).map(span => (span.code ? html`<code>${span.text}</code>` : span.text))}`;

function story(report: RunReport, id: string): Markup {
  const { diagnosis, unit, plots } = report;
  const { headline, lead, main, others } = storyOf(report);
  const range = rangeOf(plots.flatMap(({ points }) => points));
  const sure =
    main !== undefined && diagnosis.rootCause !== null
      ? html` <span class="dim">(${sureness(diagnosis.confidence)})</span>`
      : html``;
  return html`<article id="${id}" aria-labelledby="${id}-head">
<p class="run">${badge(report)}<b>${diagnosis.path}</b><span class="dim">${diagnosis.trainer}, ${whole(diagnosis.steps)} ${unit}</span></p>
<h2 id="${id}-head">${prose(headline)}</h2>
<p>${prose(lead)}${sure}</p>
${main === undefined ? [] : html`<h3>Why</h3>${list(main.evidence)}`}
${plots.map((plot, i) => figure(plot, report, `${id}-chart-${i + 1}`, range))}
${main === undefined ? [] : whatToDo(main)}
${others.length === 0 ? [] : html`<h3>Also seen</h3>${others.map(finding => other(finding, unit))}`}
${diagnosis.notes.length === 0 ? [] : html`<h3>About the log</h3><ul>${diagnosis.notes.map(text => html`<li>${prose(text)}</li>`)}</ul>`}
</article>
`;
}

const list = (texts: readonly string[]): Markup =>
  texts.length === 0 ? html`` : html`<ul>${texts.map(text => html`<li>${prose(text)}</li>`)}</ul>`;

function figure(
  plot: Plot,
  { unit, restarts }: RunReport,
  id: string,
  range: readonly [number, number],
): Markup {
  const hints = [
    ...(plot.unit === '1' ? [] : [plot.unit]),
    ...(plot.log ? ['log scale'] : []),
    ...(plot.bands === undefined ? [] : [healthyWords(plot.bands)]),
  ].join(', ');
  return html`<figure>
<figcaption><b>${plot.title}</b><code>${plot.theirs}</code><span class="dim">${hints}</span></figcaption>
<div class="scroll">${svgChart(plot, { id, xUnit: unit, range, restarts })}</div>
</figure>
`;
}

function whatToDo({ fixes, watch }: Finding): Markup {
  return html`${fixes.length === 0 ? [] : html`<h3>Change this</h3>${changes(fixes)}`}
${watch === undefined || watch === '' ? [] : html`<h3>Then watch</h3><p>${prose(watch)}</p>`}`;
}

/** What to type stands by itself, to be copied; sentences are in a list. */
function changes(fixes: readonly Fix[]): Markup {
  return html`${fixes
    .map(changeOf)
    .map(({ code, words }) =>
      code === undefined
        ? html`<ul><li>${prose(words)}</li></ul>`
        : html`<pre>${code}</pre>${words === '' ? [] : html`<p>${prose(words)}</p>`}`,
    )}`;
}

function other(finding: Finding, unit: string): Markup {
  const { severity, title, code, evidence, fixes, watch } = finding;
  const head = html`${prose(title)} <span class="dim">(${severity}, <code>${code}</code>, ${stretchOf(finding, unit)})</span>`;
  if (evidence.length + fixes.length === 0) return html`<div class="other ${severity}">${head}</div>`;
  return html`<details class="other ${severity}"><summary>${head}</summary>${list(evidence)}${changes(fixes)}${watch === undefined ? [] : html`<p>${prose(watch)}</p>`}</details>`;
}
