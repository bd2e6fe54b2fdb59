/** The report as one page that needs nothing else: to send to a colleague, or to keep with a CI run. */
import { counted } from '../../base/numbers.ts';
import { healthyWords } from '../../metrics/registry.ts';
import { spansOf } from '../findings.ts';
import {
  type Document,
  documentOfRuns,
  type OtherFinding,
  type RunDocument,
  type Section,
} from './document.ts';
import { html, type Markup } from './escape.ts';
import { pageStyle } from './page-style.ts';
import { type Plot, rangeOf } from './plot.ts';
import type { Change } from './presentable.ts';
import type { Outcome } from './run-report.ts';
import { svgChart } from './svg.ts';
import { wholePage } from './whole-page.ts';

/** Runs that are told in full; the others have a line. A page of a thousand would open in no browser. */
const MOST_STORIES = 100;

/** How a report is written as HTML. */
export interface HtmlOptions {
  /** Shown at the foot: when the report was made, in any form. */
  readonly madeAt?: string;
}

/** A whole document. Nothing in it can run or load anything, whatever the logs contain. */
export function renderHtml(outcomes: readonly Outcome[], { madeAt }: HtmlOptions = {}): string {
  const document = documentOfRuns(outcomes, { tells: () => true, mostStories: MOST_STORIES });
  const { rows, stories, counts } = document;
  const [only] = stories.items;
  const title = rows.items.length === 1 && only !== undefined ? only.path : document.title;
  const body = html`<header><h1>Keel doctor</h1><p class="dim">${document.title}: ${counts.map(({ text }) => text).join(', ')}</p></header>
<main>
${rows.items.length > 1 ? overview(document) : []}
${rows.items.length === 1 ? rows.items.map(({ path, error }) => (error === undefined ? [] : html`<article><p class="run"><span class="badge unread">unread</span><b>${path}</b></p><p>${error}</p></article>`)) : []}
${stories.items.map((report, i) => story(report, `run-${i + 1}`))}
${stories.left > 0 ? html`<p class="dim">${counted(stories.left, 'run')} more: see the table. For their stories, give the doctor fewer runs at once.</p>` : []}
</main>
<footer class="dim"><p>Made by <code>keel doctor</code>${madeAt === undefined ? '' : ` on ${madeAt}`}. <code>keel doctor --explain &lt;code&gt;</code> says more about a rule.</p></footer>`;
  return wholePage({ title: `Keel doctor: ${title}`, style: pageStyle, body });
}

/** Stories stand in the order of the table, which has those that could not be read at its end. */
export function overview({ common, rows, stories }: Document): Markup {
  return html`${common === '' ? [] : html`<p>In <code>${common}</code></p>`}<div class="scroll"><table>
<thead><tr><th scope="col">Verdict</th><th scope="col">Run</th><th scope="col" class="extra">Trainer</th><th scope="col" class="count extra">Length</th><th scope="col">What</th></tr></thead>
<tbody>
${rows.items.map(({ verdict, words, path, trainer, length, what }, i) => {
  const name = i < stories.items.length ? html`<a href="#run-${i + 1}">${path}</a>` : path;
  return html`<tr><td><span class="badge ${verdict}">${words}</span></td><td class="name">${name}</td><td class="extra">${trainer}</td><td class="count extra">${length}</td><td>${prose(what)}</td></tr>\n`;
})}</tbody>
</table></div>`;
}

/** Names between backticks become code. */
const prose = (text: string): Markup =>
  html`${spansOf(text).map(span => (span.code ? html`<code>${span.text}</code>` : span.text))}`;

export function story(document: RunDocument, id: string): Markup {
  const { verdict, words, path, trainer, length, headline, lead, sure, understood, sections } = document;
  return html`<article id="${id}" aria-labelledby="${id}-head">
<p class="run"><span class="badge ${verdict}">${words}</span><b>${path}</b><span class="dim">${trainer}, ${length}</span></p>
${sectionMarkup(understood, document, id)}
<h2 id="${id}-head">${prose(headline)}</h2>
<p>${prose(lead)}${sure === undefined ? [] : html` <span class="dim">(${sure})</span>`}</p>
${sections.map(section => sectionMarkup(section, document, id))}
</article>
`;
}

function sectionMarkup(section: Section, document: RunDocument, id: string): Markup {
  switch (section.kind) {
    case 'understood':
      return html`<details class="understood"><summary>Understood: ${section.summary}</summary><ul>${section.facts.map(
        ({ label, items, isProse }) =>
          html`<li>${label}: ${items.map((item, i) => [i === 0 ? '' : isProse ? '; ' : ', ', isProse ? prose(item) : html`<code>${item}</code>`])}</li>`,
      )}</ul></details>`;
    case 'list':
      return html`<h3>${section.title}</h3>${list(section.list.items)}`;
    case 'text':
      return html`<h3>${section.title}</h3><p>${prose(section.text)}</p>`;
    case 'plots': {
      const range = rangeOf(section.plots.flatMap(({ points }) => points));
      return html`${section.plots.map((plot, i) => figure(plot, document, `${id}-chart-${i + 1}`, range))}`;
    }
    case 'changes':
      return html`<h3>${section.title}</h3>${changes(section.changes)}`;
    case 'findings':
      return html`<h3>${section.title}</h3>${section.list.items.map(other)}`;
    default:
      return section satisfies never;
  }
}

const list = (texts: readonly string[]): Markup =>
  texts.length === 0 ? html`` : html`<ul>${texts.map(text => html`<li>${prose(text)}</li>`)}</ul>`;

function figure(
  plot: Plot,
  { unit, restarts }: RunDocument,
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

/** What to type stands by itself, to be copied; sentences are in a list. */
function changes(all: readonly Change[]): Markup {
  return html`${all.map(({ code, words }) =>
    code === undefined
      ? html`<ul><li>${prose(words)}</li></ul>`
      : html`<pre>${code}</pre>${words === '' ? [] : html`<p>${prose(words)}</p>`}`,
  )}`;
}

function other({ severity, title, code, stretch, evidence, changes: all, watch }: OtherFinding): Markup {
  const head = html`${prose(title)} <span class="dim">(${severity}, <code>${code}</code>, ${stretch})</span>`;
  if (evidence.length + all.length === 0) return html`<div class="other ${severity}">${head}</div>`;
  return html`<details class="other ${severity}"><summary>${head}</summary>${list(evidence)}${changes(all)}${watch === undefined ? [] : html`<p>${prose(watch)}</p>`}</details>`;
}
