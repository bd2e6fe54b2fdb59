/**
 * What the doctor says: the contract of `keel doctor --json`, of the library and of the page. Runs in a browser:
 * nothing here may import a Node module.
 */
import type { Tone } from '../metrics/registry.ts';
import type { Fix } from './fixes.ts';

/** How a run is doing; the exit codes of `keel doctor` are 0, 1 and 2 in this order. */
export const verdicts = ['healthy', 'watch', 'sick'] as const;
/** What is said of a run as a whole. */
export type Verdict = (typeof verdicts)[number];

/** `info` never changes the verdict; `warning` makes it watch; `critical` makes it sick. */
export const severities = ['info', 'warning', 'critical'] as const;
/** How bad a finding is. */
export type Severity = (typeof severities)[number];

/** How loud a verdict and a finding are shown, everywhere. */
export const verdictTone: Readonly<Record<Verdict, Tone>> = { healthy: 'good', watch: 'warn', sick: 'bad' };
export const severityTone: Readonly<Record<Severity, Tone>> = {
  info: 'muted',
  warning: 'warn',
  critical: 'bad',
};

/** What is behind a finding: the thing to change. Stable codes; new ones may be added. */
export const rootCauses = [
  'learning-rate-too-high',
  'learning-rate-too-low',
  'too-many-epochs',
  'clip-range-too-large',
  'target-kl-too-tight',
  'reward-scale-too-large',
  'reward-scale-changed',
  'no-reward-signal',
  'critic-not-learning',
  'entropy-bonus-too-large',
  'entropy-collapse',
  'non-finite',
  'sampler-mismatch',
  'kl-estimator-broken',
  'reference-too-weak',
  'reference-too-strong',
  'degenerate-groups',
  'malformed-outputs',
] as const;
/** What a run can be sick of. */
export type RootCause = (typeof rootCauses)[number];

/** One stretch of one series that a finding cites, so that a report can mark it. */
export interface Mark {
  /** The registry's name: `kl/step`. */
  readonly metric: string;
  /** The name in the user's own log: `train/approx_kl`. */
  readonly theirs: string;
  readonly from: number;
  readonly to: number;
}

/** One thing that a rule saw. */
export interface Finding {
  /** The rule's stable code: `kl-spikes`. `keel doctor --explain <code>` prints its page. */
  readonly code: string;
  readonly severity: Severity;
  /** One line in plain words, with the numbers that matter. */
  readonly title: string;
  /** The steps over which it was seen, on the run's own axis. */
  readonly from: number;
  readonly to: number;
  /** Sentences with numbers and steps. */
  readonly evidence: readonly string[];
  readonly cause: RootCause | null;
  /** Between 0 and 1: how sure the rule is of the cause, given that what it saw is there. */
  readonly confidence: number;
  /** What to change, in the words of the run's own trainer: the sentences of `fixes`. */
  readonly fix: readonly string[];
  /** The same as data: which settings to which values, what to type, what to do. */
  readonly fixes: readonly Fix[];
  /** What to look at next, and what it should do. */
  readonly watch?: string;
  readonly marks: readonly Mark[];
}

/** What is said about one run. */
export interface Diagnosis {
  readonly path: string;
  /** `stable-baselines3`, `cleanrl`, `trl-grpo` …, or `unknown`. */
  readonly trainer: string;
  /** The largest step of the run, on its own axis. */
  readonly steps: number;
  readonly verdict: Verdict;
  /** null when healthy, or when what was seen has no single cause. */
  readonly rootCause: RootCause | null;
  readonly confidence: number;
  /** One sentence: what happened, cause before consequence. */
  readonly summary: string;
  /** The root cause's finding first, then its consequences, then the rest. */
  readonly findings: readonly Finding[];
  /** What the reader should know of the log itself: restarts, dropped lines, names that no one understood. */
  readonly notes: readonly string[];
}

/** A root cause in words: `learning rate too high`. */
export const causeWords = (cause: RootCause): string => cause.replaceAll('-', ' ');

/** What was seen, in one sentence: the summary of a diagnosis that is not healthy is this behind its cause. */
export function tale(findings: readonly Finding[]): string {
  const [first, ...rest] = loud(findings).map(({ title }) => title);
  if (first === undefined) return '';
  const tail = rest.length > 0 ? `; then ${rest.slice(0, 2).join('; ')}` : '';
  const more = rest.length > 2 ? `; and ${rest.length - 2} more` : '';
  return `${first}${tail}${more}.`;
}

/** The findings that make a run other than healthy. */
export const loud = (findings: readonly Finding[]): readonly Finding[] =>
  findings.filter(({ severity }) => severity !== 'info');

/** The summary of a diagnosis where its cause is said beside it. */
export const lead = ({ verdict, summary, findings }: Diagnosis): string =>
  verdict === 'healthy' ? summary : tale(findings);

/** A stretch of a sentence: words, or a name that is code. */
export interface Span {
  readonly text: string;
  readonly code: boolean;
}

/** The stretches of a sentence, in which names in backticks are code; a backtick without its other one is a character. */
export function spansOf(sentence: string): Span[] {
  const parts = sentence.split('`');
  if (parts.length % 2 === 0) parts.splice(-2, 2, parts.slice(-2).join('`'));
  return parts.map((text, i) => ({ text, code: i % 2 === 1 })).filter(({ text }) => text !== '');
}
