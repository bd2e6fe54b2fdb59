/**
 * What the doctor says: the contract of `keel doctor --json`, of the library and of the page. Runs in a browser:
 * nothing here may import a Node module.
 */
import type { Tone } from '../metrics/registry.ts';
import type { Fix } from './fixes.ts';
import type { KnownSetting } from './known-settings.ts';

/**
 * How a run is doing; the exit codes of `keel doctor` are 0, 1, 2 and 3 in this order. `cannot-tell` is said where the log
 * does not show how well the run does its task, or too little of it, and nothing else in it is wrong.
 */
export const verdicts = ['healthy', 'watch', 'sick', 'cannot-tell'] as const;
/** What is said of a run as a whole. */
export type Verdict = (typeof verdicts)[number];

/** How bad a verdict is beside others: what nobody can tell is no success, and no alarm either. */
export const verdictRank: Readonly<Record<Verdict, number>> = {
  healthy: 0,
  'cannot-tell': 1,
  watch: 2,
  sick: 3,
};

/** The worst of several verdicts; null of none. */
export const worstOf = (all: readonly (Verdict | null)[]): Verdict | null =>
  all.reduce(
    (worst, one) => (one !== null && (worst === null || verdictRank[one] > verdictRank[worst]) ? one : worst),
    null,
  );

/** A verdict as people read it. */
export const verdictWords = (verdict: Verdict): string => verdict.replace('-', ' ');

/** `info` never changes the verdict; `warning` makes it watch; `critical` makes it sick. */
export const severities = ['info', 'warning', 'critical'] as const;
/** How bad a finding is. */
export type Severity = (typeof severities)[number];

/** How loud a verdict and a finding are shown, everywhere. */
export const verdictTone: Readonly<Record<Verdict, Tone>> = {
  healthy: 'good',
  watch: 'warn',
  sick: 'bad',
  'cannot-tell': 'muted',
};
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
  'reward-hacking',
  'truncation-zeroes-reward',
  'length-explosion',
  'entropy-explosion',
  'importance-ratio-biased',
  'kl-sign-wrong',
  'group-of-one',
  'stale-rollouts',
  'wrong-mask',
  'clip-range-too-small',
  'kl-in-reward',
  'peak-then-collapse',
  'value-over-estimation',
  'action-saturation',
  'time-limit-as-death',
  'state-not-restored',
  'inert-setting',
  'metric-broken',
  'plasticity-lost',
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

/** What a sentence of the evidence speaks of. */
export interface Cite extends Mark {
  /** The sentence, by its place in `evidence`. */
  readonly evidence: number;
}

/** What a number in a sentence is, so that anybody can work it out again. */
export type FactOf =
  /** A statistic of rows of a series: `rows` are places among its finite values, the second one not included. */
  | {
      readonly kind: 'rows';
      readonly statistic: string;
      /** The level, or the share, that the statistic asks for. */
      readonly argument?: number;
      readonly metric: string;
      readonly theirs: string;
      readonly rows: readonly [number, number];
    }
  /** The step of a row of a series, by the row's place among its finite values. */
  | { readonly kind: 'step'; readonly metric: string; readonly theirs: string; readonly row: number }
  /** A level of the return or reward, smoothed by blocks of rows: its best, its end, the step of its best. */
  | { readonly kind: 'course'; readonly metric: string; readonly theirs: string; readonly what: string }
  /** A setting, by the doctor's name for it. */
  | { readonly kind: 'setting'; readonly setting: KnownSetting }
  /** A number of the rule's own: a limit, or what is usual. */
  | { readonly kind: 'limit' }
  /** Words of the log or of the trainer, as they are. */
  | { readonly kind: 'quoted' }
  /** What only the rule works out: how many late spikes there are. */
  | { readonly kind: 'counted'; readonly what: string; readonly metric?: string }
  /** Worked out of two others. */
  | { readonly kind: 'times' | 'less' | 'product'; readonly of: readonly [Fact, Fact] };

/** A number as a sentence prints it, and what it is. */
export type Fact = FactOf & { readonly text: string; readonly value: number };

/** A number of the title, or of a sentence of the evidence by its place. */
export type CitedFact = Fact & { readonly evidence: number | null };

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
  /**
   * The step at which it was first seen. It stays where it is while the run goes on, so that a checkpoint from before it
   * is one from before the fault.
   */
  readonly firstSeen: number;
  /** Sentences with numbers and steps. */
  readonly evidence: readonly string[];
  /** The series and stretch that each sentence of the evidence speaks of, where it speaks of one. */
  readonly cites: readonly Cite[];
  /** Every number of the title and of the evidence, with what it is of. */
  readonly facts: readonly CitedFact[];
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

/** What the log was taken to say. */
export interface Understood {
  /** Which column is which metric, in the registry's names. */
  readonly columns: readonly { readonly metric: string; readonly theirs: string }[];
  /** The settings that are known, with the trainer's own names for them. */
  readonly settings: readonly {
    readonly setting: KnownSetting;
    readonly name: string;
    readonly value: number | string;
  }[];
  readonly rows: number;
  /** The run's axis, from its first to its last row. */
  readonly from: number;
  readonly to: number;
  /** Names in the log that nobody understood. */
  readonly notUnderstood: readonly string[];
  /** What would have been needed to say more: metrics that are not in the log, and why they are missed. */
  readonly absent: readonly { readonly metric: string; readonly why: string }[];
}

/**
 * What became of a rule: `found` it spoke, `near` it is close to its limit, `clear` it looked and saw nothing, `blind` the
 * log lacks what it looks at.
 */
export const checkStates = ['found', 'near', 'clear', 'blind'] as const;
/** What became of a rule on one run. */
export interface Checked {
  readonly code: string;
  readonly state: (typeof checkStates)[number];
  /** Of `near`: the limit in words, where it lies, and what the run has. */
  readonly limit?: { readonly of: string; readonly at: number; readonly value: number };
  /** Of `blind`: metrics and settings without which the rule cannot look. */
  readonly missing?: readonly string[];
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
  /** What the log was taken to say, and what it does not say. */
  readonly understood: Understood;
  /** What "healthy" rests on, in sentences; empty of other verdicts. */
  readonly basis: readonly string[];
  /** Each rule, and what became of it. */
  readonly checked: readonly Checked[];
  /** What the reader should know of the log itself: restarts, dropped lines, names that no one understood. */
  readonly notes: readonly string[];
}

/** A root cause in words: `learning rate too high`. */
export const causeWords = (cause: string): string =>
  cause.replaceAll(/(?<!^non)-/g, ' ').replace(/\bkl\b/, 'KL');

/** A title in the middle of a sentence: `The policy` is `the policy`, `KL` stays. */
const within = (title: string): string => title.replace(/^[A-Z](?=[a-z]* )/, letter => letter.toLowerCase());

/** What was seen, in one sentence: the summary of a diagnosis that is not healthy is this behind its cause. */
export function tale(findings: readonly Finding[]): string {
  const [first, ...rest] = loud(findings).map(({ title }) => title);
  if (first === undefined) return '';
  const tail = rest.length > 0 ? `; then ${rest.slice(0, 2).map(within).join('; ')}` : '';
  const more = rest.length > 2 ? `; and ${rest.length - 2} more` : '';
  return `${first}${tail}${more}.`;
}

/** The findings that make a run other than healthy. */
export const loud = (findings: readonly Finding[]): readonly Finding[] =>
  findings.filter(({ severity }) => severity !== 'info');

/** The summary of a diagnosis where its cause is said beside it. */
export const lead = ({ verdict, summary, findings }: Diagnosis): string =>
  verdict === 'healthy' || verdict === 'cannot-tell' ? summary : tale(findings);

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
