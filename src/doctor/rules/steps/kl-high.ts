import { healthyWords, type KlContract, klBand, klBandsFor } from '../../../metrics/registry.ts';
import { contractOfRun } from '../../contract.ts';
import type { Severity } from '../../findings.ts';
import { type Fix, withAside } from '../../fixes.ts';
import {
  type Cited,
  cite,
  citeSetting,
  citeStep,
  limit,
  quoted,
  rowsBetween,
  say,
  settledOf,
} from '../../judge/facts.ts';
import { blockMedians } from '../../statistics/blocks.ts';
import { median, share } from '../../statistics/order.ts';
import { longestAbove, type Stretch, stretchesAbove } from '../../statistics/stretches.ts';
import { courseSaid, courseWords, fellBack, standingOf } from '../course.ts';
import { limitsOf } from '../limits.ts';
import type { Rule } from '../rule.ts';
import { MIN_POINTS, type Signals, type StepKl } from '../signals.ts';
import { finding, mark, name, num, percent, type Said, soon } from '../words.ts';
import {
  inARow,
  OK_KL,
  PROBLEM_KL,
  rowWord,
  scaleOf,
  streakLimits,
  streaksOf,
  WARNING_KL,
} from './streak.ts';
import { suspectLimits, suspectOf, unguarded } from './unstable.ts';

/** Shares of the rows after the first tenth above the marks of a KL. */
const limits = limitsOf('kl-high', {
  /** Far above all marks, and beyond even that. */
  far: 0.1,
  vast: 0.2,
  /** Critical: so many above PROBLEM_KL where the return fell; where it never rose; so many far above in any case. */
  fallen: 0.2,
  stuck: 0.3,
  farUnusual: 0.25,
  mostlyFar: 0.6,
  /** A warning: above WARNING_KL beside an unusual setting; above OK_KL beside one that is far so; and so on. */
  unusual: 0.3,
  farSetting: 0.3,
  fell: 0.15,
  slips: 0.4,
  mostlyVast: 0.5,
  /** Told alone: above OK_KL. */
  borderline: 0.3,
  /** A return slips that ends so many of its noises below its best. */
  slipped: 4,
});

/** Rows in a row above a mark with which a KL is taken to have become high. */
const ONSET = 3;

export const klHigh: Rule = {
  code: 'kl-high',
  title: 'KL of the updates is high for long',
  looksAt: ['kl/step', 'episode/return', 'train/lr', 'train/epochs_run', 'train/clip_range'],
  causes: ['learning-rate-too-high', 'too-many-epochs', 'clip-range-too-large'],
  text: {
    means:
      'Update after update moves the policy further than its samples support. PPO then optimises a surrogate that no longer describes the return, and what was learnt is lost again.',
    seen: `Shares of the rows after the first tenth. Critical: ${percent(limits.fallen)} above ${PROBLEM_KL} where the return fell back; ${percent(limits.stuck)} where it never rose, or where a setting is unusual and ${percent(limits.farUnusual)} are above ${limits.far}; ${percent(limits.mostlyFar)} above ${limits.far} beside an unusual setting or a return that does not hold. A warning: ${percent(limits.unusual)} above ${WARNING_KL} beside an unusual setting; ${percent(limits.farSetting)} above ${OK_KL} beside one that is far from usual; ${percent(limits.fell)} above ${PROBLEM_KL} where the return fell back, ${percent(limits.slips)} where it slips from its best; ${percent(limits.mostlyVast)} above ${limits.vast} in any case. Only told: ${percent(limits.borderline)} above ${OK_KL} where the return does not improve. ${streakLimits.rows} updates in a row above ${WARNING_KL}, anywhere in the run, are larger steps than usual: at least a warning, whatever else is well and whatever the target KL.`,
    todo: 'If the return still rises, nothing has to change yet; if it stalls, lower the learning rate or set a target KL. Otherwise change the setting that stands out: the learning rate (divide by 3 or more), the epochs (10 or fewer), the clip range (0.2). If none does, divide the learning rate by 3 and set a target KL of 0.015.',
    silent: `The KL to a reference and the KL of whole sequences have other scales. A high KL in the first tenth of a run is the start of learning. A run with ordinary settings that keeps improving is left alone below ${limits.vast}, but for ${streakLimits.rows} updates in a row above ${WARNING_KL}. With k1, which scatters, medians of blocks are looked at.`,
    references: [
      'DLR-RM/stable-baselines3#324',
      'openai/baselines#975',
      'openai/baselines#456',
      'Schulman 2017, arXiv:1707.06347',
    ],
  },
  gauges: (_, { kl }) => [
    kl === undefined || kl.signed
      ? undefined
      : {
          of: `updates in a row with a KL above ${WARNING_KL}`,
          at: streakLimits.rows,
          value: longestAbove(kl.track.v, WARNING_KL)?.length ?? 0,
          speaks: 'above',
        },
  ],
  check(_, signals) {
    const { kl } = signals;
    if (kl === undefined) return [];
    const streaks = streaksOf(kl);
    const level = levelOf(signals, kl);
    if (level !== undefined && level.severity !== 'info') return [sustained(signals, kl, level)];
    if (streaks.length > 0) return [largerSteps(signals, kl, streaks)];
    return level === undefined ? [] : [sustained(signals, kl, level)];
  },
};

interface Level {
  readonly severity: Severity;
  /** The mark that is cited. */
  readonly mark: number;
  /** From where on it is high. Only rows before it decide, so that it stays where it is while the run goes on. */
  readonly from: number;
}

/** How high the KL is over the rows after the first tenth, and whether that does harm. */
function levelOf(signals: Signals, kl: StepKl): Level | undefined {
  const { progress } = signals;
  if (kl.settled.length < MIN_POINTS) return undefined;
  const scale = scaleOf(signals.run);
  const values = kl.signed ? blockMedians(kl.settled, 20) : kl.settled;
  const above = (level: number): number => share(values, v => v > level * scale);
  const [f2, f3, f5, f10] = [above(OK_KL), above(WARNING_KL), above(PROBLEM_KL), above(limits.far)];
  const suspect = suspectOf(signals);
  const unusual = suspect.excess >= suspectLimits.unusual;
  const { fell, holds, stuck } = standingOf(progress, unusual);
  const slips =
    progress !== undefined &&
    !progress.improving &&
    progress.best - progress.end > limits.slipped * progress.noise;
  const severity =
    (f5 >= limits.fallen && fell) ||
    (f5 >= limits.stuck && (stuck || (unusual && f10 >= limits.farUnusual))) ||
    (f10 >= limits.mostlyFar && (unusual || !holds))
      ? 'critical'
      : (f3 >= limits.unusual && unusual) ||
          (f2 >= limits.farSetting && suspect.excess >= suspectLimits.far) ||
          (f5 >= limits.fell && fell) ||
          (f5 >= limits.slips && slips) ||
          above(limits.vast) >= limits.mostlyVast
        ? 'warning'
        : f2 >= limits.borderline && !(progress?.improving ?? false)
          ? 'info'
          : undefined;
  if (severity === undefined) return undefined;
  const mark = severity === 'info' || f3 < 0.2 ? OK_KL : f5 >= 0.2 ? PROBLEM_KL : WARNING_KL;
  return {
    severity,
    mark: mark * scale,
    from: onsetOf(kl, scale * (severity === 'info' || f3 < 0.2 ? OK_KL : WARNING_KL)),
  };
}

/** Where the KL first stays above a level for some rows; without such rows, where it first is. */
function onsetOf({ track }: StepKl, level: number): number {
  const stretches = stretchesAbove(track.v, level);
  const first = stretches.find(({ length }) => length >= ONSET) ?? stretches[0];
  return track.x[first?.from ?? 0];
}

function sustained(signals: Signals, kl: StepKl, { severity, mark: level, from }: Level) {
  const { run, progress } = signals;
  const suspect = suspectOf(signals);
  const off = unguarded(run);
  const word = rowWord(run, kl.track);
  // Block medians of k1 may be above a level that no single row in a row is.
  const longest = longestAbove(kl.settled, level);
  const skipped = kl.track.n - kl.settled.length;
  return finding('kl-high', {
    severity,
    title: say`${name(kl.track)} is above ${limit(level)} in ${cite(settledOf(kl), kl.signed ? 'share of stretches above' : 'share above', level)} of the ${kl.signed ? `stretches of ${word}` : word}`,
    cause: severity === 'info' ? null : suspect.cause,
    confidence: severity === 'critical' ? suspect.confidence : suspect.confidence - 0.1,
    evidence: [
      sizes(kl, contractOfRun(run)),
      longest === undefined || longest.length < 2
        ? undefined
        : say`${inARow(cite(settledOf(kl), 'longest above', level), word)} are above ${limit(level)}, from ${citeStep(kl.track, skipped + longest.from)} to ${citeStep(kl.track, skipped + longest.to)}`,
      suspect.why,
      progress === undefined ? undefined : courseSaid(progress),
      off?.why,
    ],
    fix: [...suspect.fix, off?.fix],
    watch: `${soon(run, signals.to - signals.from)} ${name(kl.track)} should stay below ${num(OK_KL * scaleOf(signals.run))}`,
    marks: [mark(kl.track, from, signals.to)],
  });
}

/** `median 0.034 (problem), largest 0.048 (problem); healthy to 0.01, ok to 0.02`: by the run's own bands. */
function sizes(kl: StepKl, contract: KlContract): Said {
  const banded = (value: Cited): Said =>
    kl.signed ? value : say`${value} (${klBand(value.value, contract).name})`;
  const settled = settledOf(kl);
  return say`${name(kl.track)}: median ${banded(cite(settled, 'median'))}, largest ${banded(cite(settled, 'most'))}; ${quoted(healthyWords(klBandsFor(contract)))}`;
}

/**
 * Nothing is lost, or nobody can tell, but the steps are large: to be watched. It accuses no setting, and says why the
 * verdict is not healthy though all else may be.
 */
function largerSteps(signals: Signals, kl: StepKl, streaks: readonly Stretch[]) {
  const { run, progress, settings } = signals;
  const { track } = kl;
  const contract = contractOfRun(run);
  const word = rowWord(run, track);
  const longest = streaks.reduce((a, b) => (b.length > a.length ? b : a));
  const off = unguarded(run);
  const suspect = suspectOf(signals);
  const rises = progress !== undefined && !fellBack(progress) && (progress.improving || progress.improved);
  const later = (fix: Fix | undefined): Fix | undefined =>
    rises && fix !== undefined ? withAside(fix, 'if the return stalls') : fix;
  const typical = median(track.v.subarray(longest.from, longest.to + 1));
  const [own, absolute] = [klBand(typical, contract), klBand(typical)];
  const after = track.v.subarray(streaks.at(-1)!.to + 1);
  const guard = typeof contract.guard === 'number' ? contract.guard : undefined;
  return finding('kl-high', {
    severity: 'warning',
    title: say`larger steps than usual: ${inARow(cite(track, 'longest above', WARNING_KL), word)} with ${name(track)} above ${limit(WARNING_KL)}${progress === undefined ? '' : `; ${name(progress.track)} ${courseWords(progress)}`}`,
    cause: null,
    confidence: 0.5,
    evidence: [
      say`${inARow(cite(track, 'longest above', WARNING_KL), word)} are above ${limit(WARNING_KL)}, from ${citeStep(track, longest.from)} to ${citeStep(track, longest.to)}; ${limit(streakLimits.rows)} are enough to be watched`,
      sizes(kl, contract),
      settings.targetKl !== undefined && own.name !== absolute.name
        ? say`by the run's own target KL of ${citeSetting('targetKl', settings.targetKl)} these steps are ${own.name}; by the absolute marks they are ${absolute.name}`
        : undefined,
      progress === undefined ? undefined : courseSaid(progress),
      guard === undefined
        ? off?.why
        : say`the guard holds every update within ${citeSetting('guard', guard)}`,
      after.length >= streakLimits.rows
        ? say`since then ${name(track)} has a median of ${cite(rowsBetween(track, track.n - after.length), 'median')} (${klBand(median(after), contract).name})`
        : undefined,
    ],
    fix: [...suspect.fix.map(later), off?.fix],
    watch: `${soon(run, signals.to - signals.from)} ${name(track)} should stay below ${num(WARNING_KL)}${progress === undefined ? '' : `, and ${name(progress.track)} should not stall`}`,
    marks: [mark(track, track.x[streaks[0].from], track.x[streaks.at(-1)!.to])],
  });
}
