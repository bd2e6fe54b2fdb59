import { cite, citeEnd, citeSetting, rowsBetween, say, workOut } from '../../judge/facts.ts';
import { median, spread } from '../../statistics/order.ts';
import type { Rule } from '../rule.ts';
import type { Signals } from '../signals.ts';
import { OK_KL } from '../steps/streak.ts';
import type { Track } from '../track.ts';
import { finding, mark, name, place, soon, unitOf } from '../words.ts';

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
  // A spread of 0 is of values that do not vary: the level itself is the measure then.
  const scale = Math.max(spread(before), 0.1 * base, 1e-12);
  return { last, spreads: (last - base) / scale, times: last / Math.max(most, 1e-12) };
}

/** Series that end in the same row as the KL, far outside all that they were. */
function alsoBroken(signals: Signals, kl: Track): Track[] {
  return companions
    .map(id => signals.get(id))
    .filter((t): t is Track => t !== undefined && t.n >= 15 && t.x[t.n - 1] >= kl.x[kl.n - 1])
    .filter(t => {
      const { spreads, times } = lastOf(t);
      return spreads > 8 && times > 1.2;
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
    seen: 'The last KL is above 0.05, beyond ten robust spreads and larger than any before by half (the first tenth of the rows apart); the clip fraction, the policy loss, the value loss, the ratio or the gradient norm of the same row is beyond eight spreads and larger than ever as well; and the run ends neither at the length that was configured nor at a round number of steps.',
    todo: 'Look at the error message of the run. Check observations and rewards for NaN, and restart from the last checkpoint.',
    silent:
      'With fewer than 15 rows; when the run reached its length; when KL had been as high before, which is another rule.',
    references: ['DLR-RM/stable-baselines3#440', 'DLR-RM/rl-baselines3-zoo#156'],
  },
  check(run, signals) {
    const kl = signals.kl?.track;
    if (run.kind !== 'classic' || kl === undefined || kl.n < 15 || run.unit !== 'steps') return [];
    const end = lastOf(kl);
    if (!(end.last > 0.05 && end.spreads > 10 && end.times > 1.5)) return [];
    const others = alsoBroken(signals, kl);
    if (others.length === 0) return [];
    const total = run.config.totalSteps;
    const previous = signals.progress?.track.x.at(-2) ?? kl.x[kl.n - 2];
    if (total === undefined ? isRoundEnd(previous, signals.to) : signals.to >= 0.95 * total) return [];
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
