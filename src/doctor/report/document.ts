/**
 * What a report says, before anybody has decided how it looks: sections of sentences, facts, plots, findings and changes.
 * It is made once from a diagnosis, every text of a log in it is clean, and the terminal, Markdown and HTML write it down,
 * so that all of them say the same in the same words.
 */
import { amount, counted, whole } from '../../base/numbers.ts';
import { findMetric, headlineMetrics } from '../../metrics/registry.ts';
import {
  type Checked,
  causeWords,
  type Finding,
  type Severity,
  type Verdict,
  verdictWords,
} from '../findings.ts';
import { type Beside, besideWhom, changeWords, partingWords, settingWords } from './beside-words.ts';
import { clean } from './clean.ts';
import { settingValue, sureness } from './figures.ts';
import type { Plot } from './plot.ts';
import { type Change, changeOf, presentable, presentableError, storyOf, stretchOf } from './presentable.ts';
import {
  commonDirectory,
  isRead,
  isUnreadable,
  type Outcome,
  type RunReport,
  tally,
  worstFirst,
} from './run-report.ts';

/** Some of many, and how many were left out. */
export interface Some<T> {
  readonly items: readonly T[];
  readonly left: number;
}

/** One thing that is known of a log: `settings`, and which. Items are names, `isProse` ones are sentences. */
export interface Fact extends Some<string> {
  readonly label: string;
  readonly isProse?: boolean;
}

/** A finding beside the one that tells the story; in full, it has evidence and changes. */
export interface OtherFinding {
  readonly severity: Severity;
  readonly title: string;
  readonly code: string;
  readonly stretch: string;
  readonly evidence: readonly string[];
  readonly changes: readonly Change[];
  readonly watch: string | undefined;
}

/** A part of a report. */
export type Section =
  | { readonly kind: 'understood'; readonly summary: string; readonly facts: readonly Fact[] }
  | { readonly kind: 'list'; readonly title: string; readonly list: Some<string>; readonly isQuiet?: boolean }
  | { readonly kind: 'text'; readonly title: string; readonly text: string }
  | { readonly kind: 'plots'; readonly plots: readonly Plot[] }
  | { readonly kind: 'changes'; readonly title: string; readonly changes: readonly Change[] }
  | { readonly kind: 'findings'; readonly title: string; readonly list: Some<OtherFinding> };

/** The report of one run. */
export interface RunDocument {
  readonly verdict: Verdict;
  readonly words: string;
  readonly path: string;
  readonly trainer: string;
  /** `60,000 steps`. */
  readonly length: string;
  readonly unit: string;
  readonly restarts: readonly number[];
  /** What the log was taken to say: first, because the rest stands on it. */
  readonly understood: Section & { readonly kind: 'understood' };
  /** One line: the cause, or what was seen. */
  readonly headline: string;
  /** How sure that is, in words. */
  readonly sure: string | undefined;
  /** A sentence or two; may be empty. */
  readonly lead: string;
  readonly sections: readonly Section[];
  /** The rule to read about. */
  readonly code: string | undefined;
}

/** How much is told: `brief` is a screen, `whole` everything. */
export type Detail = 'brief' | 'whole';

/** How much is told in brief. */
const FEW = {
  columns: 5,
  settings: 6,
  names: 5,
  evidence: 4,
  charts: 3,
  context: 2,
  others: 6,
  near: 3,
  notes: 4,
} as const;

const some = <T>(all: readonly T[], most: number, detail: Detail): Some<T> => {
  const items = detail === 'whole' ? all : all.slice(0, most);
  return { items, left: all.length - items.length };
};

/** The report of one run, in parts. */
export function documentOf(raw: RunReport, detail: Detail = 'whole', unicode = true): RunDocument {
  const report = presentable(raw, unicode);
  const { diagnosis, unit } = report;
  const { verdict, findings, notes, basis, checked } = diagnosis;
  const { headline, lead, main, others, isNamed } = storyOf(report);
  const isCalm = verdict === 'healthy' || verdict === 'cannot-tell';
  const near = checked.flatMap(nearWords);
  const sections: (Section | undefined)[] = [
    ...(report.beside === undefined ? [] : besideSections(report.beside, unit, detail)),
    listed('Why', main?.evidence ?? [], FEW.evidence, detail),
    listed('What this rests on', basis, FEW.evidence, detail),
    { kind: 'plots', plots: plotsShown(report.plots, detail) },
    main === undefined || main.fixes.length === 0
      ? undefined
      : { kind: 'changes', title: 'Change this', changes: main.fixes.map(changeOf) },
    main?.watch === undefined || main.watch === ''
      ? undefined
      : { kind: 'text', title: 'Then watch', text: main.watch },
    others.length === 0
      ? undefined
      : {
          kind: 'findings',
          title: 'Also seen',
          list: some(
            others.map(finding => otherOf(finding, unit)),
            FEW.others,
            detail,
          ),
        },
    listed('Near a limit', near, FEW.near, detail),
    isCalm || detail === 'whole' ? checkedText(checked) : undefined,
    listed('About the log', notes, FEW.notes, detail, true),
  ];
  return {
    verdict,
    words: verdictWords(verdict),
    path: diagnosis.path,
    trainer: diagnosis.trainer,
    length: `${whole(diagnosis.steps)} ${unit}`,
    unit,
    restarts: report.restarts,
    understood: understoodSection(report, detail),
    headline,
    sure: isNamed ? sureness(diagnosis.confidence) : undefined,
    lead,
    sections: sections.filter(section => section !== undefined),
    code: findings[0]?.code,
  };
}

function listed(
  title: string,
  all: readonly string[],
  most: number,
  detail: Detail,
  isQuiet = false,
): Section | undefined {
  return all.length === 0 ? undefined : { kind: 'list', title, list: some(all, most, detail), isQuiet };
}

/** What differs from a run that is well, where the series part, and what makes the one as the other. */
function besideSections(beside: Beside, unit: string, detail: Detail): (Section | undefined)[] {
  const { settings, partings, compared } = beside;
  const none = (what: string): string => `${compared.length} series compared, ${what}`;
  const task = settings.find(({ isTask }) => isTask);
  const changes = task === undefined ? settings.filter(({ isAdvisedAgainst }) => !isAdvisedAgainst) : [];
  return [
    {
      kind: 'text',
      title: besideWhom(beside),
      text:
        compared.length === 0
          ? 'The logs have no series in common that count the same.'
          : partings.length === 0
            ? `${none('and none parts beyond the noise of both')}.`
            : `${none(`${partings.length} part`)}; first ${partingWords(partings[0], unit)}.${task === undefined ? '' : ' They are of different tasks: levels say little.'}`,
    },
    listed(
      'Where they part',
      partings.map(parting => partingWords(parting, unit)),
      FEW.near + 2,
      detail,
    ),
    listed('Settings that differ', settings.map(settingWords), FEW.others, detail),
    beside.verdict === 'healthy' && changes.length > 0
      ? {
          kind: 'list',
          title: 'To become like it',
          list: some(changes.map(changeWords), FEW.others, detail),
        }
      : undefined,
  ];
}

/** Which column is which, which settings, how many rows; and what nobody understood, or is missed. */
function understoodSection({ diagnosis, unit }: RunReport, detail: Detail): RunDocument['understood'] {
  const { columns, settings, rows, from, to, notUnderstood, absent } = diagnosis.understood;
  const first = new Map(headlineMetrics.map((id, i) => [id, i]));
  const rank = (metric: string): number => first.get(metric) ?? first.size;
  const ordered = [...columns].sort((a, b) => rank(a.metric) - rank(b.metric));
  const facts: readonly Fact[] = [
    {
      label: 'columns',
      ...some(
        ordered.map(({ metric, theirs }) => (metric === theirs ? metric : `${theirs} = ${metric}`)),
        FEW.columns,
        detail,
      ),
    },
    {
      label: 'settings',
      ...some(
        settings.map(({ name, value }) => `${name} ${settingValue(value)}`),
        FEW.settings,
        detail,
      ),
    },
    { label: 'not understood', ...some(notUnderstood, FEW.names, detail) },
    {
      label: 'not in the log',
      isProse: true,
      items: absent.map(({ metric, why }) => `${findMetric(metric)?.title ?? metric}: ${why}`),
      left: 0,
    },
  ];
  const strange = notUnderstood.length === 0 ? '' : `, ${counted(notUnderstood.length, 'name')} not`;
  const where = rows === 0 ? '' : `, ${stretchOf({ from, to }, unit)}`;
  return {
    kind: 'understood',
    summary: `${counted(rows, 'row')}${where}; ${counted(columns.length, 'column')} and ${counted(settings.length, 'setting')} understood${strange}`,
    facts: facts.filter(({ items }) => items.length > 0),
  };
}

function nearWords({ code, state, limit }: Checked): string[] {
  if (state !== 'near' || limit === undefined) return [];
  return [`\`${clean(code)}\`: ${clean(limit.of)} is ${amount(limit.value)}, its limit ${amount(limit.at)}`];
}

/** How many rules looked, and what the others would have needed. */
function checkedText(checked: readonly Checked[]): Section | undefined {
  if (checked.length === 0) return undefined;
  const blind = checked.filter(({ state }) => state === 'blind');
  const spoke = checked.filter(({ state }) => state === 'found').length;
  const silent = checked.length - blind.length - spoke;
  const missing = [...new Set(blind.flatMap(({ missing }) => missing ?? []))].map(id => `\`${id}\``);
  const needs = `${missing.slice(0, FEW.names).join(', ')}${missing.length > FEW.names ? ` and ${missing.length - FEW.names} more` : ''}`;
  const text = [
    `${counted(silent, 'rule')} looked and saw nothing`,
    ...(spoke === 0 ? [] : [`${spoke} spoke`]),
    ...(blind.length === 0
      ? []
      : [`${blind.length} could not look${needs === '' ? '' : `: the log has no ${needs}`}`]),
  ].join('; ');
  return { kind: 'text', title: 'Checked', text: `${text}.` };
}

function plotsShown(plots: readonly Plot[], detail: Detail): readonly Plot[] {
  if (detail === 'whole') return plots;
  const cited = plots.filter(({ marks }) => marks.length > 0);
  const context = plots.filter(({ marks }) => marks.length === 0);
  // One cited series says more beside another: KL beside the return, say.
  return [...cited.slice(0, FEW.charts), ...context.slice(0, Math.max(0, FEW.context - cited.length))];
}

const otherOf = (finding: Finding, unit: string): OtherFinding => ({
  severity: finding.severity,
  title: finding.title,
  code: finding.code,
  stretch: stretchOf(finding, unit),
  evidence: finding.evidence,
  changes: finding.fixes.map(changeOf),
  watch: finding.watch,
});

/** A line of a table of runs. */
export interface Row {
  readonly verdict: Verdict | 'unread';
  readonly words: string;
  /** Without what all paths begin with. */
  readonly path: string;
  readonly trainer: string;
  readonly length: string;
  /** What is wrong, or why it could not be read. */
  readonly what: string;
  /** The same in fewer words, for a narrow column. */
  readonly brief: string;
  /** The same with the path, where it stands alone. */
  readonly error?: string;
}

/** The report of any number of runs. */
export interface Document {
  /** `4 runs`. */
  readonly title: string;
  readonly counts: readonly { readonly verdict: Verdict | 'unread'; readonly text: string }[];
  /** What all paths begin with. */
  readonly common: string;
  readonly rows: Some<Row>;
  readonly stories: Some<RunDocument>;
}

/** Which runs are told of, and how much. */
export interface Telling {
  readonly detail?: Detail;
  readonly unicode?: boolean;
  /** Whose story is told, of several. */
  readonly tells: (verdict: Verdict) => boolean;
  readonly mostRows?: number;
  readonly mostStories: number;
}

/** The report of runs, worst first. One that stands alone is always told. */
export function documentOfRuns(outcomes: readonly Outcome[], telling: Telling): Document {
  const { detail = 'whole', unicode = true, tells, mostRows = outcomes.length, mostStories } = telling;
  const ordered = worstFirst(outcomes);
  const rows = ordered.map(outcome => rowOf(outcome, unicode));
  const common = rows.length > 1 ? commonDirectory(rows.map(({ path }) => path)) : '';
  const told = ordered
    .filter(isRead)
    .filter(({ diagnosis }) => ordered.length === 1 || tells(diagnosis.verdict));
  const failed = outcomes.length - ordered.filter(isRead).length;
  return {
    title: counted(outcomes.length, 'run'),
    counts: [
      ...tally(outcomes).map(({ verdict, count }) => ({
        verdict,
        text: `${count} ${verdictWords(verdict)}`,
      })),
      ...(failed > 0 ? [{ verdict: 'unread' as const, text: `${failed} could not be read` }] : []),
    ],
    common,
    rows: {
      items: rows.slice(0, mostRows).map(row => ({ ...row, path: row.path.slice(common.length) })),
      left: Math.max(0, rows.length - mostRows),
    },
    stories: {
      items: told.slice(0, mostStories).map(report => documentOf(report, detail, unicode)),
      left: Math.max(0, told.length - mostStories),
    },
  };
}

function rowOf(outcome: Outcome, unicode: boolean): Row {
  if (isUnreadable(outcome)) {
    const { path, why, error } = presentableError(outcome, unicode);
    return {
      verdict: 'unread',
      words: 'unread',
      path,
      trainer: '',
      length: '',
      what: why,
      brief: why,
      error,
    };
  }
  const report = presentable(outcome, unicode);
  const { verdict, path, trainer, steps, rootCause } = report.diagnosis;
  const { headline, isNamed } = storyOf(report);
  const what = verdict === 'healthy' ? '' : headline;
  return {
    verdict,
    words: verdictWords(verdict),
    path,
    trainer,
    length: `${whole(steps)} ${report.unit}`,
    what,
    brief: rootCause !== null && isNamed ? causeWords(rootCause) : what,
  };
}
