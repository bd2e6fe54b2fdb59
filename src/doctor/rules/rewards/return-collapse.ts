import { cite, citeCount, citeCourse, rowsSince, say } from '../../judge/facts.ts';
import { median, quantile, share } from '../../statistics/order.ts';
import { courseSaid } from '../course.ts';
import { limitsOf } from '../limits.ts';
import type { Progress } from '../progress.ts';
import type { Rule } from '../rule.ts';
import type { Signals } from '../signals.ts';
import { PROBLEM_KL } from '../steps/streak.ts';
import { suspectOf } from '../steps/unstable.ts';
import { part, type Track } from '../track.ts';
import { change, finding, mark, name, num, percent, soon, stepAt, unitOf } from '../words.ts';

/** Values of a track between two steps. */
function between(track: Track, from: number, to: number): number[] {
  const out: number[] = [];
  for (let i = 0; i < track.n; i++) if (track.x[i] >= from && track.x[i] <= to) out.push(track.v[i]);
  return out;
}

const l = limitsOf('return-collapse', {
  rows: 12,
  /** Large updates: a KL above this in so many of the rows since shortly before the best return, and a twentieth above the other. */
  kl: PROBLEM_KL,
  often: 0.1,
  far: 0.1,
  /** How much of the run before the best return that is; a resume from there on may have changed the task. */
  before: 0.15,
  /** Far below all that was before: in noises below the best, and in times of how far the best was above the start. */
  plunge: 15,
  below: 3,
  /** For good: rows of the return and of the KL, and what is lost in noises, of all that was gained, and of the best level. */
  lastingRows: 20,
  klRows: 8,
  noises: 10,
  gain: 0.7,
  level: 0.3,
  /** So much of the end of the run is nearly all in the lower half. */
  end: 0.85,
  nearly: 0.95,
});

/** An adaptive rate that ran up: rows of it, the share of the run around the worst return, and the share of its ceiling. */
const ran = limitsOf('return-collapse/rate', { rows: 20, around: 0.05, few: 3, ceiling: 0.9 });

/** An adaptive rate at its ceiling while the return was at its worst. */
function rateRanUp(signals: Signals, x: number): Track | undefined {
  const rate = signals.settings.lrTrack;
  const proxy = signals.run.klProxy;
  if (rate === undefined || proxy === undefined || rate.n < ran.rows) return undefined;
  const reach = ran.around * (signals.to - signals.from);
  const around = between(rate, x - reach, x + reach);
  return around.length >= ran.few && median(around) >= ran.ceiling * proxy.ceiling ? rate : undefined;
}

/** Far outside the noise, over the whole end of the run, and not on its way back. */
function lostForGood({ track, start, best, end, noise, collapsed, improving }: Progress): boolean {
  if (!collapsed || improving || track.n < l.lastingRows) return false;
  const floor = Math.min(start, end);
  const lost = best - end;
  if (!(lost > l.noises * noise && lost > l.gain * (best - floor) && lost > l.level * Math.abs(best)))
    return false;
  const half = (best + floor) / 2;
  return share(part(track, l.end), v => v < half) >= l.nearly;
}

export const returnCollapse: Rule = {
  code: 'return-collapse',
  title: 'What was learnt is lost',
  looksAt: ['episode/return', 'kl/step', 'train/lr'],
  causes: ['learning-rate-too-high', 'too-many-epochs', 'clip-range-too-large'],
  text: {
    means:
      'The return had risen well above its noise and then lost most of the gain for good: unlearning. Together with large updates it is the classic collapse.',
    seen: `The last sixth of the run has lost more than half of what the best stretch had gained. It names a cause only when the KL was large around the fall (above ${l.kl} in ${percent(l.often)} of the rows, and at times above ${l.far}), or an adaptive learning rate ran up. Without, it is a warning that names none where ${percent(l.gain)} of the gain is gone over the whole end of the run, by more than ${l.noises} times the noise, and the KL is logged; else it is only told.`,
    todo: 'Go back to the best checkpoint; lower the learning rate or set a target KL.',
    silent:
      'Without large updates the fall may be a curriculum, an evaluation or a harder task: a dip, one that heals, or one after the log was taken up again is then no more than information.',
    references: ['DLR-RM/stable-baselines3#324', 'volcengine/verl#4818'],
  },
  check(run, signals) {
    const { progress, kl } = signals;
    if (run.kind !== 'classic' || progress === undefined || progress.track.n < l.rows) return [];
    // Down to a level far below all that was before, even if it came partly back.
    const { start, best, worst, noise } = progress;
    const plunged =
      !progress.improved &&
      best - worst > l.plunge * noise &&
      start - worst > l.below * Math.abs(best - start);
    // What only falls has lost nothing that was learnt: that is another rule.
    if (!(progress.collapsed && progress.gained) && !plunged) return [];
    const { track, bestX } = progress;
    const cameBack = plunged && progress.end >= best;
    const reach = l.before * (signals.to - signals.from);
    const around = kl === undefined || kl.signed ? [] : between(kl.track, bestX - reach, signals.to);
    const since = kl === undefined ? undefined : rowsSince(kl.track, bestX - reach);
    const large = share(around, v => v > l.kl) >= l.often && quantile(around, 0.95) > l.far;
    const rate = plunged ? rateRanUp(signals, progress.worstX) : undefined;
    const suspect = suspectOf(signals);
    const told = large || rate !== undefined;
    // A log that was taken up again since may well be of a harder task.
    const resumed = run.restarts.some(x => x > bestX - reach);
    // Without a KL nothing says that it was calm: off-policy runs and evaluations dip for long and come back.
    const lasting = !told && !resumed && around.length >= l.klRows && lostForGood(progress);
    return [
      finding('return-collapse', {
        severity: large ? 'critical' : rate !== undefined || lasting ? 'warning' : 'info',
        title: cameBack
          ? say`${name(track)} fell from ${citeCourse(progress, 'best')} to ${citeCourse(progress, 'worst')} after ${unitOf(run)} ${citeCourse(progress, 'bestX')}, and came back to ${citeCourse(progress, 'end')}`
          : say`${name(track)} reached ${citeCourse(progress, 'best')} at ${unitOf(run)} ${citeCourse(progress, 'bestX')}, ${plunged ? say`fell to ${citeCourse(progress, 'worst')} ` : ''}and ends at ${citeCourse(progress, 'end')}`,
        cause: large ? suspect.cause : rate === undefined ? null : 'learning-rate-too-high',
        confidence: large ? suspect.confidence - 0.05 : rate === undefined ? 0.3 : 0.5,
        evidence: [
          best > start && best > progress.end
            ? say`it started at ${citeCourse(progress, 'start')}: ${citeCount('share of the gain that is lost', Math.min(1, (best - progress.end) / (best - start)), percent)} of the gain is lost`
            : courseSaid(progress),
          large
            ? say`${name(kl!.track)} since then: median ${cite(since!, 'median')}, a twentieth above ${cite(since!, 'quantile', 0.95)}`
            : undefined,
          rate === undefined
            ? undefined
            : say`${name(rate)} ran up to ${cite(rate, 'most')}, its median is ${cite(rate, 'median')}`,
          told || around.some(v => v > l.far)
            ? undefined
            : 'no large update came with it: it may be the task that changed',
        ],
        fix: told
          ? [
              ...(large
                ? suspect.fix
                : [
                    change(
                      run,
                      { learningRateSchedule: 'constant', learningRate: 3e-4 },
                      'cap the adaptive learning rate at 1e-3',
                    ),
                  ]),
              `restart from the checkpoint nearest to ${stepAt(run, bestX)}`,
            ]
          : [`compare what changed after ${stepAt(run, bestX)}`],
        watch: `${soon(run, signals.to - signals.from)} of a restart ${name(track)} should stay above ${num((progress.best + progress.start) / 2)}`,
        marks: [mark(track, bestX, signals.to)],
      }),
    ];
  },
};
