/** What every renderer needs of a report: texts made harmless, the story's parts picked out. */
import { whole } from '../../base/numbers.ts';
import { type Finding, lead, loud } from '../findings.ts';
import type { Fix } from '../fixes.ts';
import { causeText } from './causes.ts';
import { cleanLines, clean as cleanText, toAscii } from './clean.ts';
import type { RunReport, Unreadable } from './run-report.ts';

/** The same report, with every text that may come from a log cleaned. Renderers for people begin with it. */
export function presentable(report: RunReport, unicode = true): RunReport {
  const { diagnosis } = report;
  const clean = (text: string): string => (unicode ? cleanText(text) : toAscii(cleanText(text)));
  const cleanCode = (text: string): string =>
    cleanLines(text)
      .map(line => (unicode ? line : toAscii(line)))
      .join('\n')
      .trim();
  const cleanFix = (fix: Fix): Fix => ({
    ...fix,
    text: clean(fix.text),
    ...(fix.kind === 'prose' || fix.code === undefined ? {} : { code: cleanCode(fix.code) }),
    ...(fix.kind === 'prose' || fix.aside === undefined ? {} : { aside: clean(fix.aside) }),
  });
  return {
    ...report,
    unit: clean(report.unit),
    plots: report.plots.map(plot => ({ ...plot, theirs: clean(plot.theirs), title: clean(plot.title) })),
    ...(report.log === undefined
      ? {}
      : {
          log: {
            ...report.log,
            settings: report.log.settings.map(([name, value]) => [clean(name), clean(value)] as const),
            events: report.log.events.map(({ step, kind, message }) => ({
              step,
              kind: clean(kind),
              message: clean(message),
            })),
          },
        }),
    diagnosis: {
      ...diagnosis,
      path: clean(diagnosis.path),
      trainer: clean(diagnosis.trainer),
      summary: clean(diagnosis.summary),
      notes: diagnosis.notes.map(clean),
      basis: diagnosis.basis.map(clean),
      understood: {
        ...diagnosis.understood,
        columns: diagnosis.understood.columns.map(column => ({ ...column, theirs: clean(column.theirs) })),
        settings: diagnosis.understood.settings.map(setting => ({
          ...setting,
          name: clean(setting.name),
          value: typeof setting.value === 'string' ? clean(setting.value) : setting.value,
        })),
        notUnderstood: diagnosis.understood.notUnderstood.map(clean),
      },
      findings: diagnosis.findings.map(finding => ({
        ...finding,
        code: clean(finding.code),
        title: clean(finding.title),
        evidence: finding.evidence.map(clean),
        fix: finding.fix.map(clean),
        fixes: finding.fixes.map(cleanFix),
        ...(finding.watch === undefined ? {} : { watch: clean(finding.watch) }),
      })),
    },
  };
}

export function presentableError({ path, error, why }: Unreadable, unicode = true): Unreadable {
  const clean = (text: string): string => (unicode ? cleanText(text) : toAscii(cleanText(text)));
  return { path: clean(path), error: clean(error), why: clean(why) };
}

/** The one story of a report, and what stands beside it. */
export interface Story {
  /** The root cause in plain words; without one, what was seen. */
  readonly headline: string;
  /** The summary, without what the headline says already. */
  readonly lead: string;
  /** The finding that tells it; none in a healthy run. */
  readonly main: Finding | undefined;
  readonly others: readonly Finding[];
  /** Whether the headline names the cause. */
  readonly isNamed: boolean;
}

/** A cause that is less likely is no headline: what was seen is. */
const LEAST_NAMED = 0.2;

export function storyOf({ diagnosis }: RunReport): Story {
  const { findings, verdict, rootCause } = diagnosis;
  const isCalm = verdict === 'healthy' || verdict === 'cannot-tell';
  const [first, ...rest] = findings;
  const isNamed = rootCause !== null && diagnosis.confidence >= LEAST_NAMED;
  const story = {
    lead: isCalm ? lead(diagnosis) : capital(lead(diagnosis)),
    main: isCalm ? undefined : first,
    others: isCalm ? findings : rest,
    isNamed,
  };
  if (verdict === 'healthy') return { headline: 'Nothing wrong was found', ...story };
  if (verdict === 'cannot-tell') return { headline: 'The log does not tell', ...story };
  if (isNamed) return { headline: causeText(rootCause).title, ...story };
  const headline = capital(first?.title ?? 'Something is wrong');
  // The title of the only finding says it all.
  return loud(findings).length > 1 ? { headline, ...story } : { headline, ...story, lead: '' };
}

/** A sentence begins with a capital, unless it begins with a name. */
const capital = (text: string): string => text.replace(/^[a-z](?=[a-z]* )/, letter => letter.toUpperCase());

/** `steps 12,000 to 60,000`, or the one at which it was seen. */
export function stretchOf({ from, to }: Pick<Finding, 'from' | 'to'>, unit: string): string {
  const one = unit.replace(/s$/, '');
  return from === to ? `${one} ${whole(from)}` : `${unit} ${whole(from)} to ${whole(to)}`;
}

/** A change to make: what to type, if it is that, and words about it. */
export interface Change {
  readonly code?: string;
  readonly words: string;
}

export function changeOf(fix: Fix): Change {
  if (fix.kind === 'prose' || fix.code === undefined) return { words: fix.text };
  return { code: fix.code, words: fix.aside ?? '' };
}
