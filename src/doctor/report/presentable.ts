/** What every renderer needs of a report: texts made harmless, the story's parts picked out. */
import type { Finding } from '../findings.ts';
import { causeText } from './causes.ts';
import { cleanLines, clean as cleanText, toAscii } from './clean.ts';
import { whole } from './figures.ts';
import type { RunReport, Unreadable } from './run-report.ts';

/** The same report, with every text that may come from a log cleaned. Renderers for people begin with it. */
export function presentable(report: RunReport, unicode = true): RunReport {
  const { diagnosis } = report;
  const clean = (text: string): string => (unicode ? cleanText(text) : toAscii(cleanText(text)));
  return {
    ...report,
    unit: clean(report.unit),
    plots: report.plots.map(plot => ({ ...plot, theirs: clean(plot.theirs), title: clean(plot.title) })),
    diagnosis: {
      ...diagnosis,
      path: clean(diagnosis.path),
      trainer: clean(diagnosis.trainer),
      summary: clean(diagnosis.summary),
      notes: diagnosis.notes.map(clean),
      findings: diagnosis.findings.map(finding => ({
        ...finding,
        code: clean(finding.code),
        title: clean(finding.title),
        evidence: finding.evidence.map(clean),
        fix: finding.fix.map(text =>
          cleanLines(text)
            .map(line => (unicode ? line : toAscii(line)))
            .join('\n'),
        ),
        ...(finding.watch === undefined ? {} : { watch: clean(finding.watch) }),
      })),
    },
  };
}

export function presentableError({ path, error }: Unreadable, unicode = true): Unreadable {
  const clean = (text: string): string => (unicode ? cleanText(text) : toAscii(cleanText(text)));
  return { path: clean(path), error: clean(error) };
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
}

export function storyOf({ diagnosis }: RunReport): Story {
  const { findings, verdict, rootCause, summary } = diagnosis;
  if (verdict === 'healthy') {
    return { headline: 'Nothing wrong was found', lead: summary, main: undefined, others: findings };
  }
  const [first, ...others] = findings;
  if (rootCause === null) {
    const headline = capital(first?.title ?? 'Something is wrong');
    return {
      headline,
      lead: capital(summary) === `${headline}.` ? '' : capital(summary),
      main: first,
      others,
    };
  }
  const said = `${rootCause.replaceAll('-', ' ')}: `;
  const lead = capital(summary.startsWith(said) ? summary.slice(said.length) : summary);
  return { headline: causeText(rootCause).title, lead, main: first, others };
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

/** Tells `PPO(..., learning_rate=1e-4) (a third of it)` from a sentence. */
export function changeOf(text: string): Change {
  const whole = text.trim();
  if (isCode(whole)) return { code: whole, words: '' };
  const [, code, words] = /^(.*?\S) \(([^()]*(?:\([^()]*\)[^()]*)*)\)\.?$/s.exec(whole) ?? [];
  return code !== undefined && words !== undefined && isCode(code) ? { code, words } : { words: whole };
}

/** Whether a text is to be typed as it is. */
function isCode(text: string): boolean {
  return (
    text.includes('\n') ||
    /^--?[\w.-]+(?:[ =]\S+)*$/.test(text) ||
    /^[\w.]+\([^()]*(?:\([^()]*\)[^()]*)*\)$/.test(text) ||
    /^[\w./+-]+ ?[=:] ?\S+(?:,? [\w./+-]+ ?[=:] ?\S+)*$/.test(text) ||
    /^(?:python|keel|pip|accelerate|trl) \S/.test(text)
  );
}

/** Names between backticks, and what is between them. A single backtick is only a character. */
export function spansOf(text: string): { readonly text: string; readonly code: boolean }[] {
  const parts = text.split('`');
  if (parts.length % 2 === 0) parts.splice(-2, 2, parts.slice(-2).join('`'));
  return parts.map((part, i) => ({ text: part, code: i % 2 === 1 })).filter(part => part.text !== '');
}
