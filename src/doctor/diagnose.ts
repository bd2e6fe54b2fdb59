/** All rules on one run, and one story of what they found. */
import { counted, whole } from '../base/numbers.ts';
import { klBand, redAbove } from '../metrics/registry.ts';
import type { CanonicalRun } from './canonical.ts';
import { contractOfRun } from './contract.ts';
import { causeWords, type Diagnosis, type Finding, type Severity, tale, type Verdict } from './findings.ts';
import { withAdvice } from './judge/advice.ts';
import { basisOf } from './judge/basis.ts';
import { calibrated, claimOf } from './judge/calibration.ts';
import { checkedOf } from './judge/checked.ts';
import { withFirstSeen } from './judge/first-seen.ts';
import { trendLimits } from './judge/trends.ts';
import { understoodOf } from './judge/understood.ts';
import { rules } from './rules/all.ts';
import type { Rule } from './rules/rule.ts';
import { type Signals, signalsOf } from './rules/signals.ts';
import { name, num, stepAt } from './rules/words.ts';
import { stretchesAbove } from './statistics/stretches.ts';
import { type Case, casesOf, explains, roots } from './story.ts';

/** Says how a run is doing. Never throws for what is in the series. */
export const diagnose = (run: CanonicalRun, use: readonly Rule[] = rules): Diagnosis =>
  judge(run, use).diagnosis;

/** The same, with how strongly the rules hold what is said: what the confidence is worked out from. */
export function judge(
  run: CanonicalRun,
  use: readonly Rule[] = rules,
): { readonly diagnosis: Diagnosis; readonly strength: number } {
  const signals = signalsOf(run);
  const found: Finding[] = [];
  for (const rule of use) found.push(...rule.check(run, signals, found));
  const span = signals.to - signals.from;
  const cases = casesOf(found);
  const root = roots(cases, signals.from, span)[0];
  const findings = withAdvice(
    withFirstSeen(ordered(found, cases, root, signals), use, signals),
    root?.cause,
    run,
  );
  const verdict = verdictOf(found, signals);
  const strength = root?.confidence ?? (verdict === 'healthy' ? healthStrength(signals) : UNSURE);
  const rootCause = root?.cause ?? null;
  const diagnosis: Diagnosis = {
    path: run.path,
    trainer: run.trainer,
    steps: signals.to,
    verdict,
    rootCause,
    confidence: Math.round(100 * calibrated(claimOf(verdict, rootCause), strength)) / 100,
    summary: summaryOf(verdict, findings, root, signals),
    findings,
    understood: understoodOf(signals),
    basis: verdict === 'healthy' ? basisOf(signals).map(({ text }) => text) : [],
    checked: use.map(rule => checkedOf(rule, found, signals)),
    notes: run.notes,
  };
  return { diagnosis, strength };
}

/** What is wrong decides first, whatever else is well; where nothing is, a return that shows progress. */
function verdictOf(findings: readonly Finding[], { progress }: Signals): Verdict {
  if (findings.some(f => f.severity === 'critical')) return 'sick';
  if (findings.some(f => f.severity === 'warning')) return 'watch';
  if (progress === undefined) return 'cannot-tell';
  const { improved, surelyImproving, saturated, kept, collapsed } = progress;
  return (improved || surelyImproving || saturated || kept) && !collapsed ? 'healthy' : 'cannot-tell';
}

/** Of what names no cause. */
const UNSURE = 0.4;

/** How much silence says: few rows, or neither KL nor returns in the log, say little. */
function healthStrength(signals: Signals): number {
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
  const { peak, merged } = kl.track;
  const stretches = stretchesAbove(peak, redAbove(contract));
  if (stretches.length === 0) return '';
  const count = stretches.reduce((sum, { length }) => sum + length, 0);
  const largest = peak.reduce((a, b) => Math.max(a, b));
  const said = `${counted(count, 'large step')} (largest ${num(largest)}, ${klBand(largest, contract).name})`;
  // A point that stands for several rows tells the largest of them, not how many are large.
  if (merged) return `; at least ${said}`;
  const streak = stretches.reduce((most, { length }) => Math.max(most, length), 0);
  return `; ${said}, ${streak === 1 ? 'none after another' : `at most ${streak} in a row`}`;
}

/** Why there is no verdict, in a sentence. */
function cannotTell({ run, logged, to, progress }: Signals): string {
  const calm = `Nothing is wrong in ${counted(logged, 'row')} up to ${stepAt(run, to)} as far as the log shows`;
  if (progress === undefined)
    return `${calm}, but it has no ${run.kind === 'classic' ? 'return' : 'reward'}: whether anything is learnt cannot be told.`;
  const { track, course, collapsed, constant, best, end } = progress;
  const who = name(track);
  if (collapsed)
    return `${calm}, but ${who} was ${num(best)} and ends at ${num(end)}: perhaps the task changed.`;
  if (constant)
    return `${calm}, but ${who} is ${num(end)} in all ${whole(course.n)} rows: a task that was solved before, or one that pays everything alike.`;
  return course.n < trendLimits.points
    ? `${calm}, but ${who} has ${counted(course.n, 'value')}: too few to tell whether anything is learnt.`
    : `${calm}, but ${who} neither surely rises nor surely stands still: it scatters by ${num(course.noise)} in ${counted(course.n, 'row')}.`;
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
    return `Nothing wrong in ${counted(signals.logged, 'row')} up to ${stepAt(run, signals.to)}${largeSteps(signals)}.`;
  }
  if (verdict === 'cannot-tell') return cannotTell(signals);
  return root === undefined ? tale(findings) : `${causeWords(root.cause)}: ${tale(findings)}`;
}
