import { cite, citeCount, citeCourse, rowsSince, say } from '../../judge/facts.ts';
import { median, quantile, share } from '../../statistics/order.ts';
import { courseSaid } from '../course.ts';
import type { Progress } from '../progress.ts';
import type { Rule } from '../rule.ts';
import type { Signals } from '../signals.ts';
import { suspectOf } from '../steps/unstable.ts';
import { part, type Track } from '../track.ts';
import { change, finding, mark, name, num, percent, soon, stepAt, unitOf } from '../words.ts';

/** Values of a track between two steps. */
function between(track: Track, from: number, to: number): number[] {
  const out: number[] = [];
  for (let i = 0; i < track.n; i++) if (track.x[i] >= from && track.x[i] <= to) out.push(track.v[i]);
  return out;
}

/** An adaptive rate at its ceiling while the return was at its worst. */
function rateRanUp(signals: Signals, x: number): Track | undefined {
  const rate = signals.settings.lrTrack;
  const proxy = signals.run.klProxy;
  if (rate === undefined || proxy === undefined || rate.n < 20) return undefined;
  const reach = 0.05 * (signals.to - signals.from);
  const around = between(rate, x - reach, x + reach);
  return around.length >= 3 && median(around) >= 0.9 * proxy.ceiling ? rate : undefined;
}

/** Far outside the noise, over the whole end of the run, and not on its way back. */
function lostForGood({ track, start, best, end, noise, collapsed, improving }: Progress): boolean {
  if (!collapsed || improving || track.n < 20) return false;
  const floor = Math.min(start, end);
  const lost = best - end;
  if (!(lost > 10 * noise && lost > 0.7 * (best - floor) && lost > 0.3 * Math.abs(best))) return false;
  const half = (best + floor) / 2;
  return share(part(track, 0.85), v => v < half) >= 0.95;
}

export const returnCollapse: Rule = {
  code: 'return-collapse',
  title: 'What was learnt is lost',
  looksAt: ['episode/return', 'kl/step', 'train/lr'],
  causes: ['learning-rate-too-high', 'too-many-epochs', 'clip-range-too-large'],
  text: {
    means:
      'The return had risen well above its noise and then lost most of the gain for good: unlearning. Together with large updates it is the classic collapse.',
    seen: 'The last sixth of the run has lost more than half of what the best stretch had gained. It names a cause only when the KL was large around the fall, or an adaptive learning rate ran up. Without, it is a warning that names none where seven tenths of the gain are gone over the whole end of the run, far outside the noise, and the KL is logged; else it is only told.',
    todo: 'Go back to the best checkpoint; lower the learning rate or set a target KL.',
    silent:
      'Without large updates the fall may be a curriculum, an evaluation or a harder task: a dip, one that heals, or one after the log was taken up again is then no more than information.',
    references: ['DLR-RM/stable-baselines3#324', 'volcengine/verl#4818'],
  },
  check(run, signals) {
    const { progress, kl } = signals;
    if (run.kind !== 'classic' || progress === undefined || progress.track.n < 12) return [];
    // Down to a level far below all that was before, even if it came partly back.
    const { start, best, worst, noise } = progress;
    const plunged =
      !progress.improved && best - worst > 15 * noise && start - worst > 3 * Math.abs(best - start);
    // What only falls has lost nothing that was learnt: that is another rule.
    if (!(progress.collapsed && progress.gained) && !plunged) return [];
    const { track, bestX } = progress;
    const reach = 0.15 * (signals.to - signals.from);
    const around = kl === undefined || kl.signed ? [] : between(kl.track, bestX - reach, signals.to);
    const since = kl === undefined ? undefined : rowsSince(kl.track, bestX - reach);
    const large = share(around, v => v > 0.05) >= 0.1 && quantile(around, 0.95) > 0.1;
    const rate = plunged ? rateRanUp(signals, progress.worstX) : undefined;
    const suspect = suspectOf(signals);
    const told = large || rate !== undefined;
    // A log that was taken up again since may well be of a harder task.
    const resumed = run.restarts.some(x => x > bestX - reach);
    // Without a KL nothing says that it was calm: off-policy runs and evaluations dip for long and come back.
    const lasting = !told && !resumed && around.length >= 8 && lostForGood(progress);
    return [
      finding('return-collapse', {
        severity: large ? 'critical' : rate !== undefined || lasting ? 'warning' : 'info',
        title: say`${name(track)} reached ${citeCourse(progress, 'best')} at ${unitOf(run)} ${citeCourse(progress, 'bestX')}, ${plunged ? say`fell to ${citeCourse(progress, 'worst')} ` : ''}and ends at ${citeCourse(progress, 'end')}`,
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
          told || around.some(v => v > 0.1)
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
