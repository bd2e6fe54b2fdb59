import { citeCount, say } from '../../judge/facts.ts';
import { courseOf, rises } from '../../judge/trends.ts';
import { courseSaid } from '../course.ts';
import { citeEarly, citeLate, early, firstAndLast, late, long } from '../language-models/levels.ts';
import { limitsOf } from '../limits.ts';
import type { Rule } from '../rule.ts';
import type { Signals } from '../signals.ts';
import { change, finding, mark, name, num, round, soon } from '../words.ts';

const limits = limitsOf('value-over-estimates', {
  rows: 20,
  /** The predicted value at the end, over the most that could have been earned; and from where on it is sick. */
  times: 5,
  vast: 50,
  /** The same over the value at the start. */
  growth: 3,
});

/** The discount that most trainers have unless told otherwise. */
const USUAL_GAMMA = 0.99;

/**
 * The most that a value can honestly be: the largest return of the run; where episodes are cut off early, what their rewards
 * would come to at this discount if they went on for ever.
 */
function mostToEarn(signals: Signals): number {
  const { progress, run } = signals;
  const largest = progress!.track.v.reduce((most, v) => Math.max(most, Math.abs(v)), 0);
  const length = signals.get('episode/length');
  const gamma = run.config.gamma ?? USUAL_GAMMA;
  if (length === undefined || length.n === 0 || !(gamma < 1)) return largest;
  return largest * Math.max(1, 1 / ((1 - gamma) * Math.max(1, length.median)));
}

export const overEstimation: Rule = {
  code: 'value-over-estimates',
  title: 'The critic predicts more than can be earned',
  looksAt: ['value/mean', 'episode/return', 'episode/length'],
  causes: ['value-over-estimation'],
  text: {
    means:
      'The predicted values grow far beyond any return that the policy has ever had. They are made of their own errors: each target takes the largest of several noisy predictions, and the policy goes where the error is largest.',
    seen: `A mean predicted value that surely rises to ${limits.growth} times its start and ${limits.times} times the largest return so far over ${limits.rows} rows or more, while the return does not improve; critical from ${limits.vast} times on. Where episodes are shorter than the discount looks ahead, the largest return is counted as if its rewards went on.`,
    todo: 'Take the smaller of two critics (TD3, SAC, double DQN), lower the learning rate of the critic, update its target more slowly, and clip gradients.',
    silent:
      'Where the return rises, or values are not logged. Values of rewards that were scaled up can be larger than returns; they do not grow while the return stands still.',
    references: ['arXiv:1509.06461', 'arXiv:1802.09477'],
  },
  check(run, signals) {
    const value = long(signals.get('value/mean'), limits.rows);
    const { progress, settings } = signals;
    if (run.kind !== 'classic' || value === undefined) return [];
    // What a step earns is no return.
    if (progress === undefined || progress.track.id === 'reward/mean' || progress.track.n < limits.rows)
      return [];
    if (progress.improved || progress.improving || progress.saturated) return [];
    const [begins, ends] = [early(value), late(value)];
    const most = mostToEarn(signals);
    if (!(most > 0 && ends >= limits.times * most && ends >= limits.growth * Math.abs(begins))) return [];
    if (!rises(courseOf(value.v))) return [];
    const vast = ends >= limits.vast * most;
    return [
      finding('value-over-estimates', {
        severity: vast ? 'critical' : 'warning',
        title: say`${name(value)} rises from ${citeEarly(value)} to ${citeLate(value)}, and no more than ${citeCount('most that can be earned', most, num)} can be earned`,
        cause: 'value-over-estimation',
        confidence: vast ? 0.9 : 0.75,
        evidence: [firstAndLast(value), courseSaid(progress)],
        fix: [
          change(
            run,
            settings.lr === undefined ? {} : { learningRate: round(settings.lr / 3) },
            'divide the learning rate of the critic by 3',
          ),
          'take the smaller of two critics as target, and update the target network more slowly',
        ],
        watch: `${soon(run, signals.to - signals.from)} ${name(value)} should stay below ${num(most)}`,
        marks: [mark(value, signals.from, signals.to), mark(progress.track, signals.from, signals.to)],
      }),
    ];
  },
};
