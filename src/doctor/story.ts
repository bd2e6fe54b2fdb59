/** Which cause brings about which others: the small graph by which twelve alarms become one story. */
import type { Finding, RootCause } from './findings.ts';

/** Settings and data upstream, what they bring about downstream. Read: the key explains each of the list. */
const brings: Partial<Record<RootCause, readonly RootCause[]>> = {
  'state-not-restored': [
    'critic-not-learning',
    'learning-rate-too-low',
    'learning-rate-too-high',
    'no-reward-signal',
  ],
  'value-over-estimation': ['critic-not-learning', 'reward-scale-too-large', 'no-reward-signal'],
  'action-saturation': ['no-reward-signal', 'critic-not-learning', 'learning-rate-too-low'],
  'entropy-explosion': ['no-reward-signal', 'critic-not-learning', 'action-saturation'],
  'plasticity-lost': ['critic-not-learning', 'learning-rate-too-low', 'no-reward-signal'],
  'kl-in-reward': ['reference-too-strong', 'no-reward-signal'],
  'reward-scale-changed': [
    'reward-scale-too-large',
    'critic-not-learning',
    'learning-rate-too-low',
    'learning-rate-too-high',
    'entropy-collapse',
    'entropy-bonus-too-large',
    'non-finite',
  ],
  'reward-scale-too-large': [
    'no-reward-signal',
    'critic-not-learning',
    'learning-rate-too-low',
    'entropy-bonus-too-large',
    'entropy-collapse',
    'non-finite',
  ],
  'no-reward-signal': [
    'critic-not-learning',
    'learning-rate-too-low',
    'learning-rate-too-high',
    'entropy-bonus-too-large',
    'entropy-collapse',
    'degenerate-groups',
  ],
  'target-kl-too-tight': [
    'no-reward-signal',
    'learning-rate-too-low',
    'critic-not-learning',
    'entropy-bonus-too-large',
  ],
  'learning-rate-too-low': ['no-reward-signal', 'critic-not-learning', 'entropy-bonus-too-large'],
  'learning-rate-too-high': [
    'no-reward-signal',
    'non-finite',
    'entropy-collapse',
    'entropy-explosion',
    'critic-not-learning',
    'malformed-outputs',
    'degenerate-groups',
    'action-saturation',
    'value-over-estimation',
    'plasticity-lost',
  ],
  'too-many-epochs': [
    'no-reward-signal',
    'non-finite',
    'entropy-collapse',
    'critic-not-learning',
    'learning-rate-too-high',
  ],
  'clip-range-too-large': [
    'no-reward-signal',
    'non-finite',
    'entropy-collapse',
    'critic-not-learning',
    'learning-rate-too-high',
  ],
  'entropy-collapse': ['no-reward-signal', 'critic-not-learning', 'learning-rate-too-low'],
  'entropy-bonus-too-large': [
    'action-saturation',
    'critic-not-learning',
    'learning-rate-too-high',
    'learning-rate-too-low',
    'no-reward-signal',
  ],
  'critic-not-learning': ['learning-rate-too-high', 'no-reward-signal'],
  'sampler-mismatch': [
    'learning-rate-too-high',
    'reference-too-weak',
    'non-finite',
    'entropy-collapse',
    'kl-estimator-broken',
  ],
  'kl-estimator-broken': ['learning-rate-too-high', 'target-kl-too-tight'],
  'malformed-outputs': ['degenerate-groups', 'no-reward-signal', 'non-finite'],
  'degenerate-groups': ['learning-rate-too-low', 'reference-too-strong', 'no-reward-signal'],
  // ---- language models
  'kl-sign-wrong': [
    'malformed-outputs',
    'degenerate-groups',
    'learning-rate-too-high',
    'reference-too-weak',
    'length-explosion',
    'entropy-explosion',
    'entropy-collapse',
    'reward-hacking',
  ],
  'group-of-one': ['no-reward-signal', 'degenerate-groups', 'learning-rate-too-high', 'entropy-explosion'],
  'length-explosion': ['reward-hacking', 'malformed-outputs', 'degenerate-groups'],
  'truncation-zeroes-reward': ['malformed-outputs', 'degenerate-groups', 'no-reward-signal'],
  'stale-rollouts': [
    'sampler-mismatch',
    'learning-rate-too-high',
    'entropy-explosion',
    'importance-ratio-biased',
  ],
  'importance-ratio-biased': ['learning-rate-too-high', 'kl-estimator-broken', 'no-reward-signal'],
  'clip-range-too-small': ['importance-ratio-biased', 'no-reward-signal', 'learning-rate-too-low'],
  'wrong-mask': [
    'malformed-outputs',
    'reference-too-weak',
    'learning-rate-too-high',
    'truncation-zeroes-reward',
    'no-reward-signal',
  ],
  'reference-too-strong': ['no-reward-signal'],
  'reward-hacking': ['degenerate-groups', 'reference-too-weak'],
  'reference-too-weak': [
    'malformed-outputs',
    'degenerate-groups',
    'non-finite',
    'entropy-collapse',
    'entropy-bonus-too-large',
  ],
};

/** What is known of one cause: all findings that argue for it. */
export interface Case {
  readonly cause: RootCause;
  readonly findings: readonly Finding[];
  readonly critical: boolean;
  readonly confidence: number;
  readonly from: number;
}

/** One case for each cause that a warning or more argues for. */
export function casesOf(findings: readonly Finding[]): Case[] {
  const byCause = new Map<RootCause, Finding[]>();
  for (const f of findings) {
    if (f.cause === null || f.severity === 'info') continue;
    byCause.set(f.cause, [...(byCause.get(f.cause) ?? []), f]);
  }
  return [...byCause].map(([cause, own]) => {
    const sure = own.map(f => f.confidence).sort((a, b) => b - a);
    // A second witness adds a little; it looks at the same run.
    const confidence = Number(Math.min(0.98, sure[0] + 0.05 * (sure.length - 1)).toFixed(2));
    return {
      cause,
      findings: own,
      critical: own.some(f => f.severity === 'critical'),
      confidence,
      from: Math.min(...own.map(f => f.from)),
    };
  });
}

/** Whether `a` explains `b` in a run that spans so many steps. */
export function explains(a: Case, b: Case, from: number, span: number): boolean {
  // A peak is a state that a run is found in, and a setting without effect brings nothing about.
  if (b.cause === 'peak-then-collapse') return a.cause !== 'inert-setting';
  if (!(brings[a.cause] ?? []).includes(b.cause)) return false;
  // What only might be does not explain what surely is.
  if (b.critical && !a.critical && a.confidence < 0.6) return false;
  const tenth = 0.1 * span;
  const half = span / 2;
  switch (b.cause) {
    case 'non-finite':
      // Out of a calm run a NaN is its own cause: the other must have been there before it.
      return a.from <= b.from;
    case 'no-reward-signal':
      // A policy that was dead from the start earns the same for ever; one that dies later had nothing to learn.
      if (a.cause === 'entropy-collapse') return a.from <= from + half;
      // Whatever made it so: a policy that always does the same earns the same.
      if (a.findings.some(f => f.code === 'entropy-collapse' && f.from <= from + half)) return true;
      if (a.cause === 'malformed-outputs' || a.cause === 'degenerate-groups') return true;
      // Much brings about a return that never moves; only a setting that is known to be wrong brings about rewards that
      // are not there at all (a return of 0, a value loss of 0).
      return b.confidence < 0.9 ? a.confidence >= 0.75 : a.confidence >= 0.9 && isSetting(a.cause);
    case 'critic-not-learning':
      return a.cause !== 'no-reward-signal' || b.confidence < 0.9;
    case 'learning-rate-too-low':
      return a.cause !== 'no-reward-signal' || a.confidence >= 0.9 || b.confidence < 0.75;
    case 'entropy-bonus-too-large':
      // A coefficient that is known to be large is a cause; an entropy that stays high is a sign of many.
      return b.confidence < 0.9;
    case 'entropy-collapse':
      return a.cause !== 'no-reward-signal' || b.from > from + half;
    case 'learning-rate-too-high':
      // A setting far from usual is a cause of its own; the most common guess is not.
      return (
        b.confidence < 0.65 ||
        a.confidence >= 0.95 ||
        a.cause === 'sampler-mismatch' ||
        a.cause === 'kl-estimator-broken'
      );
    case 'malformed-outputs':
    case 'degenerate-groups':
      // Only a reward that is surely none at all is no matter of groups.
      if (a.cause === 'no-reward-signal') return a.confidence >= 0.9;
      return a.from < b.from + tenth;
    default:
      return true;
  }
}

/** Settings whose value is seen to be wrong, as opposed to states that a run is found in. */
function isSetting(cause: RootCause): boolean {
  return cause === 'entropy-bonus-too-large' || cause === 'critic-not-learning';
}

/** The causes that no other explains, likeliest first. */
export function roots(cases: readonly Case[], from: number, span: number): Case[] {
  const explained = (b: Case): boolean =>
    cases.some(a => a !== b && explains(a, b, from, span) && !explains(b, a, from, span));
  const free = cases.filter(c => !explained(c));
  return (free.length > 0 ? free : [...cases]).sort(
    (a, b) => Number(b.critical) - Number(a.critical) || b.confidence - a.confidence || a.from - b.from || 0,
  );
}
