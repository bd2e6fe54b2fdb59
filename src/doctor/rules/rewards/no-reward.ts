import { cite, citeCourse, citeStep, limit, rowsOf, say } from '../../judge/facts.ts';
import { median, spread } from '../../statistics/order.ts';
import { courseSaid } from '../course.ts';
import { limitsOf } from '../limits.ts';
import type { Progress } from '../progress.ts';
import type { Rule } from '../rule.ts';
import type { Signals } from '../signals.ts';
import { part, split, type Track } from '../track.ts';
import { finding, mark, name, num, soon } from '../words.ts';

const l = limitsOf('no-reward', {
  /** Rows of a return; of a language model, which may well earn nothing early on; and of the other series. */
  rows: 8,
  modelRows: 20,
  /** A spread of the rewards of single steps, and of advantages, that is none. */
  stepsVary: 1e-9,
  advantages: 1e-7,
  /** A critic that explains more has a small loss because it is good. */
  explains: 0.5,
  /** Next to no loss: below this, and below this share of the square of what returns vary by. */
  loss: 1e-4,
  share: 1e-5,
  /** What returns vary by: their spread, at least this share of their range, and at least so much; of a constant, a share of it. */
  ofRange: 0.1,
  least: 0.1,
  ofLevel: 1e-2,
  /** Where the return rose all the same: rows of the loss, and an explained variance below this, as of a critic of nothing. */
  luckRows: 12,
  worse: -0.1,
  /** There was something to learn once: a loss above this in two rows of a hundred; or one above the other at first, that stayed. */
  much: 1,
  some: 1e-2,
  /** A loss that has not fallen to this share of itself within its first tenth stayed. */
  stayed: 0.5,
  /** The share of its way that the return had come when the loss had gone. */
  solved: 0.5,
  /** A constant other than 0 that the critic explains may be a bad start: with fewer rows it is a warning. */
  earlyRows: 40,
});

/** In which a critic may still have a loss though there is nothing to learn. */
const UNTRAINED_ROWS = 3;

/**
 * Whether rewards did arrive and there are none left to learn: there was much to fit once; or, in a long run, a loss that
 * stayed for its first tenth, where a critic of nothing forgets what it began with, and that had gone only when the return
 * had come most of its way.
 */
function wasSolved(loss: Track, { track, start, end }: Progress): boolean {
  if (loss.q(0.98) > l.much) return true;
  const tenth = loss.v.subarray(UNTRAINED_ROWS, Math.max(12, Math.ceil(loss.n / 10)));
  const third = Math.ceil(tenth.length / 3);
  const [early, late] = [median(tenth.subarray(0, third)), median(tenth.subarray(-third))];
  if (!(late > l.some && late > l.stayed * early)) return false;
  const gone = loss.v.findIndex((_, i) => i > UNTRAINED_ROWS && median(loss.v.subarray(i, i + 5)) <= l.some);
  const [, after] = split(track, loss.x[Math.max(0, gone)]);
  const then = median(after.subarray(0, Math.max(3, Math.ceil(track.n / 20))));
  return then - start >= l.solved * (end - start);
}

/**
 * What the critic has to learn is nothing: its loss is next to 0 while the returns that are logged vary. Of a policy that had
 * learnt something before the log began, a small loss says that the critic had as well; and so it may where all returns are
 * one and above 0, unless the policy is seen to be random.
 */
function nothingToFit(
  { critic: { loss, lossLate, evLate }, practised }: Signals,
  progress: Progress,
): boolean {
  if (loss === undefined || loss.n < l.rows || practised) return false;
  // A critic that explains everything has a small loss because it is good.
  if (evLate > l.explains) return false;
  const { track } = progress;
  const varies = Math.max(spread(track.v), l.ofRange * (track.q(0.98) - track.q(0.02)));
  if (varies > 0) return lossLate < lossOfNothing(Math.max(varies, l.least));
  return (
    (track.median <= 0 || practised === false) && lossLate < lossOfNothing(l.ofLevel * Math.abs(track.median))
  );
}

/**
 * The same for a run whose return drifted up by luck: the critic has next to no loss and yet predicts worse than a
 * constant, which only returns of 0 bring about, while those that are logged still vary.
 */
function nothingToFitByLuck(
  { critic: { loss, lossLate, evLate }, practised }: Signals,
  progress: Progress,
): boolean {
  if (loss === undefined || loss.n < l.luckRows || practised || !(evLate < l.worse)) return false;
  return !wasSolved(loss, progress) && lossLate < lossOfNothing(spread(part(progress.track, 0.5)));
}

/** Beside returns that vary so much, a smaller loss is one of nothing. */
const lossOfNothing = (varies: number): number => Math.min(l.loss, l.share * varies ** 2);

export const noReward: Rule = {
  code: 'no-reward',
  title: 'The reward says nothing',
  looksAt: [
    'episode/return',
    'reward/mean',
    'reward/std',
    'loss/value',
    'value/explained_variance',
    'adv/std',
  ],
  causes: ['no-reward-signal'],
  text: {
    means:
      'Every episode earns the same, or what is earned never reaches the learner. All advantages are noise around 0, normalised to a spread of 1, so the policy still moves: at random.',
    seen: `The return is one constant at or below 0 from the first row on, for ${l.rows} rows or more (${l.modelRows} of a language model); or the value loss is next to 0 (below ${num(l.loss)} and far below the spread of the returns) while the return does not improve, or though it does while the explained variance is below ${l.worse}; or advantages have no spread.`,
    todo: 'Print the rewards that the learner gets. Make the first success easier to reach, shape the reward, or explore more.',
    silent:
      'When the return rose before it became constant, which is a task solved; so is a value loss that stayed until the return had come most of its way. A positive constant may be a solved task that was resumed, and so may any return of a policy that was not random when the log began. A policy whose entropy is 0 always does the same: that is another cause.',
    references: ['docs/ppo.md', 'utra-robosoccer/Bez_IsaacGym: a log with rewards of 0 for 62 epochs'],
  },
  check(run, signals) {
    const classic = run.kind === 'classic';
    const { progress, critic } = signals;
    // Early on a language model may well earn nothing.
    if (progress === undefined || progress.track.n < (classic ? l.rows : l.modelRows)) return [];
    const { track } = progress;
    const level = track.median;
    const spreadOfRewards = signals.get('reward/std');
    const stepsVary =
      spreadOfRewards !== undefined && spreadOfRewards.n > 0 && spreadOfRewards.median > l.stepsVary;
    const constant = progress.constant && level <= 0 && !stepsVary;
    const unfit = classic && !progress.improved && !progress.saturated && nothingToFit(signals, progress);
    const byLuck = classic && !unfit && nothingToFitByLuck(signals, progress);
    const empty = unfit || byLuck;
    const advantages = signals.get('adv/std');
    const flatAdvantages =
      advantages !== undefined && advantages.n >= l.rows && median(part(advantages, 0.3)) < l.advantages;
    if (!constant && !empty && !(classic && flatAdvantages && !progress.improved && !progress.saturated))
      return [];
    const loss = critic.loss;
    // A critic that explains the returns has some to explain: a bad start, perhaps no more.
    const early = constant && level !== 0 && critic.evLate > l.explains && !empty && track.n < l.earlyRows;
    return [
      finding('no-reward', {
        severity: early ? 'warning' : 'critical',
        title: constant
          ? say`${name(track)} is ${cite(track, 'median')} in every row`
          : say`The critic has nothing to learn: ${name(loss ?? advantages ?? track)} is ${cite(loss === undefined ? rowsOf(advantages ?? track, 0.3) : rowsOf(loss, 0.5), 'median')}`,
        cause: 'no-reward-signal',
        confidence: early
          ? 0.45
          : constant && (level === 0 || empty || critic.lossLate < l.some)
            ? 0.95
            : constant
              ? 0.8
              : 0.85,
        evidence: [
          constant
            ? say`${name(track)} has the same value, ${cite(track, 'median')}, in all ${cite(track, 'rows')} rows from ${citeStep(track, 0)} to ${citeStep(track, track.n - 1)}`
            : progress.improved
              ? say`${name(track)} goes from ${citeCourse(progress, 'start')} to ${citeCourse(progress, 'end')}, but nothing of it reaches the learner`
              : courseSaid(progress),
          loss === undefined
            ? undefined
            : say`${name(loss)} begins at ${cite(loss, 'first')} and has a median of ${cite(rowsOf(loss, 0.5), 'median')} in the second half: there is ${critic.lossLate < l.some ? 'nothing' : 'little'} to predict`,
          byLuck && critic.ev !== undefined
            ? say`${name(critic.ev)} has a median of ${cite(rowsOf(critic.ev, 0.5), 'median')} in the second half: worse than a constant, as only returns of ${limit(0)} bring about`
            : undefined,
          flatAdvantages ? say`${name(advantages)} is ${cite(rowsOf(advantages, 0.3), 'median')}` : undefined,
        ],
        fix: classic
          ? [
              'print the rewards of one episode as the learner gets them, after all wrappers: they must not all be equal',
              'reward progress towards the goal, or start episodes nearer to it, until some succeed',
            ]
          : [
              'score ten completions by hand: does the reward function read the answer where the model writes it?',
              'give partial credit, use easier prompts, or warm up on worked examples until some completions earn more',
            ],
        watch: constant
          ? `${soon(run, signals.to - signals.from)} ${name(track)} should differ from ${num(level)} in some rows`
          : `${soon(run, signals.to - signals.from)} ${loss === undefined ? 'advantages should scatter' : `${name(loss)} should be well above 0`}`,
        marks: [
          mark(track, track.x[0], signals.to),
          ...(loss === undefined ? [] : [mark(loss, signals.from, signals.to)]),
        ],
      }),
    ];
  },
};
