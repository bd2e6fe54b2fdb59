/** All rules on one run, and one story of what they found. */
import { counted } from '../base/numbers.ts';
import { klBand, redAbove } from '../metrics/registry.ts';
import type { CanonicalRun } from './canonical.ts';
import { contractOfRun } from './contract.ts';
import { causeWords, type Diagnosis, type Finding, type Severity, tale, type Verdict } from './findings.ts';
import { basisOf } from './judge/basis.ts';
import { checkedOf } from './judge/checked.ts';
import { understoodOf } from './judge/understood.ts';
import { rules } from './rules/all.ts';
import type { Rule } from './rules/rule.ts';
import { type Signals, signalsOf } from './rules/signals.ts';
import { num, stepAt } from './rules/words.ts';
import { stretchesAbove } from './statistics/stretches.ts';
import { type Case, casesOf, explains, roots } from './story.ts';

/** Says how a run is doing. Never throws for what is in the series. */
export function diagnose(run: CanonicalRun, use: readonly Rule[] = rules): Diagnosis {
  const signals = signalsOf(run);
  const found = use.flatMap(rule => rule.check(run, signals));
  const span = signals.to - signals.from;
  const cases = casesOf(found);
  const root = roots(cases, signals.from, span)[0];
  const findings = ordered(found, cases, root, signals);
  const verdict = verdictOf(found);
  return {
    path: run.path,
    trainer: run.trainer,
    steps: signals.to,
    verdict,
    rootCause: root?.cause ?? null,
    confidence: root?.confidence ?? (verdict === 'healthy' ? healthConfidence(signals) : 0.4),
    summary: summaryOf(verdict, findings, root, signals),
    findings,
    understood: understoodOf(signals),
    basis: verdict === 'healthy' ? basisOf(signals) : [],
    checked: use.map(rule => checkedOf(rule, found, signals)),
    notes: run.notes,
  };
}

function verdictOf(findings: readonly Finding[]): Verdict {
  if (findings.some(f => f.severity === 'critical')) return 'sick';
  return findings.some(f => f.severity === 'warning') ? 'watch' : 'healthy';
}

/** How sure silence is: few rows, or neither KL nor returns in the log, say little. */
function healthConfidence(signals: Signals): number {
  const seen = [signals.kl, signals.progress, signals.critic.loss].filter(s => s !== undefined).length;
  const rows = Math.min(1, signals.rows / 20);
  return Math.round(100 * Math.min(0.95, 0.3 + 0.2 * seen * rows + 0.1 * rows)) / 100;
}

const rank: Readonly<Record<Severity, number>> = { critical: 0, warning: 1, info: 2 };

/** The root's findings first, the surest at the head; then what it explains; then the rest. */
function ordered(
  found: readonly Finding[],
  cases: readonly Case[],
  root: Case | undefined,
  signals: Signals,
): Finding[] {
  const span = signals.to - signals.from;
  const consequences = new Set(
    root === undefined
      ? []
      : cases.filter(c => c !== root && explains(root, c, signals.from, span)).flatMap(c => c.findings),
  );
  const own = new Set(root?.findings ?? []);
  const place = (f: Finding): number => (own.has(f) ? 0 : consequences.has(f) ? 1 : 2);
  return [...found].sort(
    (a, b) =>
      place(a) - place(b) ||
      rank[a.severity] - rank[b.severity] ||
      b.confidence - a.confidence ||
      a.from - b.from,
  );
}

/** That bands are red where the verdict is not, and why: single large steps are no finding. */
function largeSteps({ run, kl }: Signals): string {
  if (kl === undefined || kl.signed) return '';
  const contract = contractOfRun(run);
  const stretches = stretchesAbove(kl.track.v, redAbove(contract));
  if (stretches.length === 0) return '';
  const count = stretches.reduce((sum, { length }) => sum + length, 0);
  const streak = stretches.reduce((most, { length }) => Math.max(most, length), 0);
  const largest = kl.track.v.reduce((a, b) => Math.max(a, b));
  return `; ${counted(count, 'large step')} (largest ${num(largest)}, ${klBand(largest, contract).name}), ${streak === 1 ? 'none after another' : `at most ${streak} in a row`}`;
}

/** One sentence, cause before consequence. */
function summaryOf(
  verdict: Verdict,
  findings: readonly Finding[],
  root: Case | undefined,
  signals: Signals,
): string {
  const { run } = signals;
  if (verdict === 'healthy') {
    return `Nothing wrong in ${signals.rows} rows up to ${stepAt(run, signals.to)}${largeSteps(signals)}.`;
  }
  return root === undefined ? tale(findings) : `${causeWords(root.cause)}: ${tale(findings)}`;
}
