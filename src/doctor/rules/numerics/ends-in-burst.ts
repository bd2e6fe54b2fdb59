import { cite, citeEnd, citeSetting, rowsBetween, say, workOut } from '../../judge/facts.ts';
import { median, spread } from '../../statistics/order.ts';
import { limitsOf } from '../limits.ts';
import type { Rule } from '../rule.ts';
import type { Signals } from '../signals.ts';
import { OK_KL, PROBLEM_KL } from '../steps/streak.ts';
import type { Track } from '../track.ts';
import { finding, mark, name, percent, place, soon, unitOf } from '../words.ts';

const limits = limitsOf('ends-in-burst', {
  rows: 15,
  /** The last KL: a level, and beyond all before in robust spreads and in times. */
  kl: PROBLEM_KL,
  spreads: 10,
  times: 1.5,
  /** The same of what ends with it. */
  otherSpreads: 8,
  otherTimes: 1.2,
  /** A spread is at least this share of the level: of values that do not vary, the level itself is the measure. */
  least: 0.1,
  /** The share of the length that was asked for, with which a run has ended by itself. */
  ended: 0.95,
});

/** Whether a total of one or two digits (60,000) lies within the last row's steps: what people type as a length. */
function isRoundEnd(previous: number, last: number): boolean {
  const unit = 10 ** Math.floor(Math.log10(Math.max(last, 1)));
  for (const step of [unit, unit / 2]) {
    const round = Math.floor(last / step) * step;
    if (round > previous && round <= last) return true;
  }
  return false;
}

/** What an update that breaks loose shows in, besides its KL. */
const companions = [
  'policy/clip_fraction',
  'loss/policy',
  'loss/value',
  'grad/norm',
  'policy/ratio_mean',
] as const;

/** How far the last value is outside everything after the first tenth of the rows: in spreads, and against the largest. */
function lastOf(track: Track): { readonly last: number; readonly spreads: number; readonly times: number } {
  const sizes = track.v.map(Math.abs);
  const before = sizes.subarray(Math.floor(track.n / 10), track.n - 1);
  const base = median(before);
  const last = sizes[track.n - 1];
  const most = before.reduce((a, b) => Math.max(a, b), 0);
  const scale = Math.max(spread(before), limits.least * base, Number.MIN_VALUE);
  return { last, spreads: (last - base) / scale, times: last / Math.max(most, Number.MIN_VALUE) };
}

/** Series that end in the same row as the KL, far outside all that they were. */
function alsoBroken(signals: Signals, kl: Track): Track[] {
  return companions
    .map(id => signals.get(id))
    .filter((t): t is Track => t !== undefined && t.n >= limits.rows && t.x[t.n - 1] >= kl.x[kl.n - 1])
    .filter(t => {
      const { spreads, times } = lastOf(t);
      return spreads > limits.otherSpreads && times > limits.otherTimes;
    });
}

export const endsInBurst: Rule = {
  code: 'ends-in-burst',
  title: 'The log ends in a burst',
  looksAt: ['kl/step', ...companions],
  causes: ['non-finite'],
  text: {
    means:
      'After a calm run the very last row has a KL far outside everything before, other numbers of the same update with it, and then the log stops in the middle of the run. Trainers that check their distributions (Stable-Baselines3, CleanRL) die on the first NaN before they can log it, and this is what is left.',
    seen: `The last KL is above ${limits.kl}, beyond ${limits.spreads} robust spreads and ${limits.times} times the largest before it (the first tenth of the rows apart); the clip fraction, the policy loss, the value loss, the ratio or the gradient norm of the same row is beyond ${limits.otherSpreads} spreads and ${limits.otherTimes} times its largest as well; and the run ends neither at ${percent(limits.ended)} of the length that was configured nor at a round number of steps.`,
    todo: 'Look at the error message of the run. Check observations and rewards for NaN, and restart from the last checkpoint.',
    silent: `With fewer than ${limits.rows} rows; when the run reached its length; when KL had been as high before, which is another rule.`,
    references: ['DLR-RM/stable-baselines3#440', 'DLR-RM/rl-baselines3-zoo#156'],
  },
  check(run, signals) {
    const kl = signals.kl?.track;
    if (run.kind !== 'classic' || kl === undefined || kl.n < limits.rows || run.unit !== 'steps') return [];
    const end = lastOf(kl);
    if (!(end.last > limits.kl && end.spreads > limits.spreads && end.times > limits.times)) return [];
    const others = alsoBroken(signals, kl);
    if (others.length === 0) return [];
    const total = run.config.totalSteps;
    const previous = signals.progress?.track.x.at(-2) ?? kl.x[kl.n - 2];
    if (total === undefined ? isRoundEnd(previous, signals.to) : signals.to >= limits.ended * total)
      return [];
    const calm = rowsBetween(kl, 0, kl.n - 1);
    return [
      finding('ends-in-burst', {
        severity: 'critical',
        title: say`The log stops at ${unitOf(run)} ${citeEnd(signals)}, one row after its first large update`,
        cause: 'non-finite',
        confidence: 0.55,
        evidence: [
          say`the last ${name(kl)} is ${cite(kl, 'last')}, ${workOut('times', cite(kl, 'last'), cite(calm, 'median'))} times the median of the ${cite(calm, 'rows')} rows before it`,
          ...others.map(
            t => say`the last ${name(t)} is ${cite(t, 'last')}; its median is ${cite(t, 'median')}`,
          ),
          total === undefined
            ? say`${citeEnd(signals)} is no length that one would ask for: the run did not end by itself`
            : say`the run was to take ${citeSetting('totalSteps', total, place)} steps`,
        ],
        fix: [
          'read the error message of the run: a NaN ends a run before it can be logged',
          'check observations and rewards for NaN and infinity',
          'restart from the last checkpoint',
        ],
        watch: `${soon(run, signals.to - signals.from)} of a restart ${name(kl)} should stay below ${OK_KL}`,
        marks: [mark(kl, kl.x[kl.n - 1], signals.to), ...others.map(t => mark(t, t.x[t.n - 1], signals.to))],
      }),
    ];
  },
};
