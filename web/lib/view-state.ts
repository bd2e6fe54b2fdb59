/**
 * What is looked at and how, as one value that fits in the address after `#`: a copied link shows the same view. What a
 * link holds is not trusted: unknown parts are left out and named, so that the page can say so and go on.
 */
import { type Verdict, verdicts } from '../../src/doctor/findings.ts';
import type { RunState, XAxis } from '../../src/server/api.ts';

export const tabs = [
  'plots',
  'robot',
  'completions',
  'cluster',
  'doctor',
  'checkpoints',
  'events',
  'config',
] as const;
export type Tab = (typeof tabs)[number];

export const sortKeys = [
  'name',
  'state',
  'environment',
  'step',
  'return',
  'kl',
  'verdict',
  'updated',
] as const;
export type SortKey = (typeof sortKeys)[number];

const states: readonly RunState[] = [
  'running',
  'finished',
  'stopped',
  'failed',
  'killed',
  'quiet',
  'unreadable',
];
const axes: readonly XAxis[] = ['step', 'iteration', 'time'];

/** How plots are drawn; shared by runs and compare. */
export interface PlotView {
  readonly x: XAxis;
  /** Zoom, in units of the axis; both or none. */
  readonly from: number | null;
  readonly to: number | null;
  /** Exponential smoothing, 0 (none) to .999. */
  readonly smooth: number;
  /** Logarithmic values, in all plots but those in `logBut`. */
  readonly log: boolean;
  readonly logBut: readonly string[];
  /** Plots that are kept linear although they would be logarithmic by themselves. */
  readonly linear: readonly string[];
}

export interface OverviewView {
  readonly query: string;
  readonly sort: SortKey;
  readonly down: boolean;
  readonly states: readonly RunState[];
  readonly tag: string | null;
  readonly verdict: Verdict | null;
  readonly environment: string | null;
  readonly trainer: string | null;
  readonly archived: boolean;
  /** Each run has a row of its own, also those that differ only in their seed. */
  readonly flat: boolean;
}

export const groupFigures = ['iqm', 'median', 'mean'] as const;
/** What stands for the runs of a group at each place; the band around it is its bootstrapped interval. */
export type GroupFigure = (typeof groupFigures)[number];

/** Stands for no grouping at all in an address. */
export const eachRun = '*';

export interface CompareView {
  readonly runs: readonly string[];
  /** The setting to group by; `*` draws each run; null puts those together that differ only in their seed. */
  readonly by: string | null;
  /** What is drawn of a group. */
  readonly of: GroupFigure;
  /** What is drawn; empty for the four headline metrics. */
  readonly metrics: readonly string[];
  /** Labels of lines that are left out. */
  readonly hidden: readonly string[];
}

export interface StudyView {
  readonly id: string | null;
  /** The column of the trials' table: one of its own, or `p.` and a setting; after a minus the other way round. */
  readonly order: string;
  /** The setting against which results are drawn; null for the first. */
  readonly axis: string | null;
}

export interface View {
  readonly page: 'overview' | 'run' | 'compare' | 'study';
  readonly run: string | null;
  readonly tab: Tab;
  /** The metric shown large, alone. */
  readonly focus: string | null;
  readonly plot: PlotView;
  readonly overview: OverviewView;
  readonly compare: CompareView;
  readonly study: StudyView;
}

const defaultPlotView: PlotView = {
  x: 'step',
  from: null,
  to: null,
  smooth: 0,
  log: false,
  logBut: [],
  linear: [],
};
export const defaultView: View = {
  page: 'overview',
  run: null,
  tab: 'plots',
  focus: null,
  plot: defaultPlotView,
  overview: {
    query: '',
    sort: 'updated',
    down: true,
    states: [],
    tag: null,
    verdict: null,
    environment: null,
    trainer: null,
    archived: false,
    flat: false,
  },
  compare: { runs: [], by: null, of: 'iqm', metrics: [], hidden: [] },
  study: { id: null, order: '-value', axis: null },
};

/** Whether a plot's values are on a logarithmic axis; `usual` is what it would be if nobody chose. */
export function isLog(plot: PlotView, metric: string, usual = false): boolean {
  if (plot.linear.includes(metric)) return false;
  return plot.log ? !plot.logBut.includes(metric) : usual || plot.logBut.includes(metric);
}

/** The change that gives one plot the other axis. */
export function toggleLog(
  plot: PlotView,
  metric: string,
  usual = false,
): Pick<PlotView, 'logBut' | 'linear'> {
  const was = isLog(plot, metric, usual);
  const others = {
    logBut: plot.logBut.filter(m => m !== metric),
    linear: plot.linear.filter(m => m !== metric),
  };
  if (isLog({ ...plot, ...others }, metric, usual) !== was) return others;
  return usual && !plot.log
    ? { ...others, linear: [...others.linear, metric] }
    : { ...others, logBut: [...others.logBut, metric] };
}

const mostSmooth = 0.999;
const maxRuns = 24;
const maxMetrics = 60;

/** The part of the address after `#`. */
export function encodeView(view: View): string {
  const query: [string, string][] = [];
  const put = (key: string, value: string, usual: string) => {
    if (value !== usual) query.push([key, value]);
  };
  const list = (values: readonly string[]) => values.map(encodeURIComponent).join(',');
  if (view.page === 'overview') {
    const o = view.overview;
    put('q', encodeURIComponent(o.query), '');
    put('sort', `${o.down ? '-' : ''}${o.sort}`, '-updated');
    put('state', o.states.join(','), '');
    put('tag', encodeURIComponent(o.tag ?? ''), '');
    put('verdict', o.verdict ?? '', '');
    put('env', encodeURIComponent(o.environment ?? ''), '');
    put('trainer', encodeURIComponent(o.trainer ?? ''), '');
    put('archived', o.archived ? '1' : '0', '0');
    put('flat', o.flat ? '1' : '0', '0');
  } else if (view.page === 'study') {
    put('order', encodeURIComponent(view.study.order), '-value');
    put('axis', encodeURIComponent(view.study.axis ?? ''), '');
  } else {
    const p = view.plot;
    if (view.page === 'compare') {
      put('runs', list(view.compare.runs), '');
      put('by', encodeURIComponent(view.compare.by ?? ''), '');
      put('of', view.compare.of, 'iqm');
      put('metrics', list(view.compare.metrics), '');
      put('hidden', list(view.compare.hidden), '');
    }
    put('x', p.x, 'step');
    if (p.from !== null && p.to !== null) query.push(['from', String(p.from)], ['to', String(p.to)]);
    put('smooth', String(p.smooth), '0');
    put('log', p.log ? '1' : '0', '0');
    put('logBut', list(p.logBut), '');
    put('linear', list(p.linear), '');
    put('focus', encodeURIComponent(view.focus ?? ''), '');
  }
  const path =
    view.page === 'overview'
      ? '/'
      : view.page === 'compare'
        ? '/compare'
        : view.page === 'study'
          ? `/studies/${encodeURIComponent(view.study.id ?? '')}`
          : `/runs/${encodeURIComponent(view.run ?? '')}${view.tab === 'plots' ? '' : `/${view.tab}`}`;
  return path + (query.length > 0 ? `?${query.map(pair => pair.join('=')).join('&')}` : '');
}

/** The view of an address, and what of it could not be understood, as sentences. */
export function decodeView(hash: string): { view: View; problems: string[] } {
  const problems: string[] = [];
  const text = hash.replace(/^#/, '').slice(0, 16_000);
  const mark = text.indexOf('?');
  const path = (mark < 0 ? text : text.slice(0, mark)).split('/').filter(part => part !== '');
  const query = new Map<string, string>();
  for (const pair of mark < 0 ? [] : text.slice(mark + 1).split('&')) {
    const at = pair.indexOf('=');
    if (at > 0) query.set(pair.slice(0, at), pair.slice(at + 1));
  }

  const read = (value: string): string => {
    try {
      return decodeURIComponent(value);
    } catch {
      problems.push(`The link has a part that cannot be read: ${value.slice(0, 40)}`);
      return '';
    }
  };
  const string = (key: string) => read(query.get(key) ?? '');
  const list = (key: string, limit: number) => {
    const all = (query.get(key) ?? '')
      .split(',')
      .map(read)
      .filter(part => part !== '');
    const once = [...new Set(all)];
    if (once.length > limit)
      problems.push(`The link names ${once.length} ${key}; the first ${limit} are shown.`);
    return once.slice(0, limit);
  };
  const choice = <T extends string>(key: string, values: readonly T[], usual: T, text: string): T => {
    if (text === '') return usual;
    if ((values as readonly string[]).includes(text)) return text as T;
    problems.push(
      `The link asks for ${key} “${text.slice(0, 40)}”, which there is not: it can be ${values.join(', ')}.`,
    );
    return usual;
  };
  const number = (key: string): number | null => {
    const text = query.get(key);
    if (text === undefined) return null;
    const value = Number(text);
    if (text !== '' && Number.isFinite(value)) return value;
    problems.push(`The link has ${key}=${text.slice(0, 40)}, which is no number.`);
    return null;
  };

  const base = defaultView;
  let { page, run, tab } = base;
  let study: string | null = null;
  if (path[0] === 'runs' && path[1] !== undefined) {
    page = 'run';
    run = read(path[1]);
    tab = choice('the tab', tabs, 'plots', read(path[2] ?? ''));
  } else if (path[0] === 'studies' && path[1] !== undefined) {
    page = 'study';
    study = read(path[1]);
  } else if (path[0] === 'compare') page = 'compare';
  else if (path.length > 0)
    problems.push(`There is no page “/${path.join('/').slice(0, 60)}”; this is the overview.`);

  const sort = string('sort');
  let from = number('from');
  let to = number('to');
  if (from === null || to === null || !(from < to)) from = to = null;
  const smooth = number('smooth') ?? 0;
  if (smooth < 0 || smooth > mostSmooth)
    problems.push(`The link asks for smoothing ${smooth}: it goes from 0 to ${mostSmooth}.`);
  return {
    view: {
      page,
      run,
      tab,
      focus: string('focus') || null,
      plot: {
        x: choice('x', axes, 'step', string('x')),
        from,
        to,
        smooth: Math.min(mostSmooth, Math.max(0, smooth)),
        log: query.get('log') === '1',
        logBut: list('logBut', maxMetrics),
        linear: list('linear', maxMetrics),
      },
      overview: {
        query: string('q').slice(0, 200),
        sort: choice('the order', sortKeys, 'updated', sort.replace(/^-/, '')),
        down: sort === '' ? true : sort.startsWith('-'),
        states: list('state', 10).map(s => choice('the state', states, 'running', s)),
        tag: string('tag') || null,
        verdict:
          string('verdict') === '' ? null : choice('the verdict', verdicts, 'healthy', string('verdict')),
        environment: string('env') || null,
        trainer: string('trainer') || null,
        archived: query.get('archived') === '1',
        flat: query.get('flat') === '1',
      },
      compare: {
        runs: list('runs', maxRuns),
        by: string('by') || null,
        of: choice('the figure of a group', groupFigures, 'iqm', string('of')),
        metrics: list('metrics', maxMetrics),
        hidden: list('hidden', maxRuns),
      },
      study: { id: study, order: string('order') || '-value', axis: string('axis') || null },
    },
    problems,
  };
}
