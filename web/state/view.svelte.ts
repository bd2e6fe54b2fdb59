/** The current view, kept in step with the address. */
import {
  decodeView,
  encodeView,
  type OverviewView,
  type PlotView,
  type StudyView,
  type View,
} from '../lib/view-state.ts';

const first = decodeView(location.hash);
let view = $state.raw<View>(first.view);
/** What of the link could not be followed; the page says it, and a person may close it. */
let linkProblems = $state.raw<readonly string[]>(first.problems);
let timer: ReturnType<typeof setTimeout> | undefined;

function writeAddress(push: boolean): void {
  clearTimeout(timer);
  timer = undefined;
  const hash = `#${encodeView(view)}`;
  if (hash === location.hash || (hash === '#/' && location.hash === '')) return;
  if (push) history.pushState(null, '', hash);
  else history.replaceState(null, '', hash);
}

addEventListener('hashchange', follow);
addEventListener('popstate', follow);

function follow(): void {
  const { view: next, problems } = decodeView(location.hash);
  if (encodeView(next) === encodeView(view)) return;
  // An address of a page without plots says nothing of how they are drawn: that is kept for the next run.
  const hasPlots = next.page === 'run' || next.page === 'compare';
  view = hasPlots ? next : { ...next, plot: looksOf(view.plot) };
  linkProblems = problems;
}

export const viewState = {
  get view(): View {
    return view;
  },
  get problems(): readonly string[] {
    return linkProblems;
  },
  dismissProblems(): void {
    linkProblems = [];
  },
  /** A change of place: can be gone back from. */
  go(change: Partial<View>): void {
    writeAddress(false);
    view = { ...view, ...change };
    linkProblems = [];
    writeAddress(true);
    if (change.page !== undefined) scrollTo(0, 0);
  },
  /** A change of looks: replaces the address, a little later, so that dragging does not flood the history. */
  plot(change: Partial<PlotView>): void {
    view = { ...view, plot: { ...view.plot, ...change } };
    timer ??= setTimeout(() => writeAddress(false), 250);
  },
  overview(change: Partial<OverviewView>): void {
    view = { ...view, overview: { ...view.overview, ...change } };
    timer ??= setTimeout(() => writeAddress(false), 250);
  },
  compare(change: Partial<View['compare']>): void {
    view = { ...view, compare: { ...view.compare, ...change } };
    writeAddress(false);
  },
  study(change: Partial<StudyView>): void {
    view = { ...view, study: { ...view.study, ...change } };
    writeAddress(false);
  },
  /** The address of a view that differs from this one. */
  link(change: Partial<View>): string {
    return `#${encodeView({ ...view, ...change })}`;
  },
};

/** The address of a study. */
export const studyLink = (id: string): string => `#/studies/${encodeURIComponent(id)}`;

/** How plots are drawn, without the place that is looked at: that is another in another run. */
const looksOf = (plot: PlotView): PlotView => ({ ...plot, from: null, to: null });

/** The address of a run, with plots drawn as they are now. */
export function runLink(id: string, tab: View['tab'] = 'plots'): string {
  return `#${encodeView({ ...view, page: 'run', run: id, tab, focus: null, plot: looksOf(view.plot) })}`;
}
