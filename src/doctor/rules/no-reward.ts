import { median, spread } from '../statistics/order.ts';
import { courseSaid } from './course.ts';
import type { Rule } from './rule.ts';
import type { Signals } from './signals.ts';
import { part, split, type Track } from './track.ts';
import { finding, mark, name, num, place, said, soon } from './words.ts';

/** In which a critic may still have a loss though there is nothing to learn. */
const UNTRAINED_ROWS = 3;
/** Of scaled returns: above it there is something to fit. */
const SOME_LOSS = 1e-2;

/**
 * Whether rewards did arrive and there are none left to learn: there was much to fit once; or, in a long run, a loss that
 * stayed for its first tenth, where a critic of nothing forgets what it began with, and that had gone only when the return
 * had come most of its way.
 */
function wasSolved(loss: Track, { track, start, end }: NonNullable<Signals['progress']>): boolean {
  if (loss.q(0.98) > 1) return true;
  const tenth = loss.v.subarray(UNTRAINED_ROWS, Math.max(12, Math.ceil(loss.n / 10)));
  const third = Math.ceil(tenth.length / 3);
  const [early, late] = [median(tenth.subarray(0, third)), median(tenth.subarray(-third))];
  if (!(late > SOME_LOSS && late > early / 2)) return false;
  const gone = loss.v.findIndex(
    (_, i) => i > UNTRAINED_ROWS && median(loss.v.subarray(i, i + 5)) <= SOME_LOSS,
  );
  const [, after] = split(track, loss.x[Math.max(0, gone)]);
  const then = median(after.subarray(0, Math.max(3, Math.ceil(track.n / 20))));
  return then - start >= 0.5 * (end - start);
}

/** What the critic has to learn is nothing: its loss is next to 0 while the returns that are logged vary. */
function nothingToFit(signals: Signals): boolean {
  const { critic, progress } = signals;
  if (critic.loss === undefined || critic.loss.n < 8 || progress === undefined) return false;
  // A critic that explains everything has a small loss because it is good.
  if (critic.evLate > 0.5) return false;
  const size = Math.max(spread(progress.track.v), 1e-3 * Math.abs(median(progress.track.v)));
  return critic.lossLate < Math.min(1e-4, 1e-5 * Math.max(size, 0.1) ** 2);
}

/**
 * The same for a run whose return drifted up by luck: the critic has next to no loss and yet predicts worse than a
 * constant, which only returns of 0 bring about, while those that are logged still vary.
 */
function nothingToFitByLuck(signals: Signals): boolean {
  const { critic, progress } = signals;
  if (critic.loss === undefined || critic.loss.n < 12 || progress === undefined) return false;
  if (!(critic.evLate < -0.1)) return false;
  if (wasSolved(critic.loss, progress)) return false;
  const varies = spread(part(progress.track, 0.5));
  return critic.lossLate < Math.min(1e-4, 1e-5 * varies ** 2);
}

export const noReward: Rule = {
  code: 'no-reward',
  title: 'The reward says nothing',
  looksAt: ['episode/return', 'reward/mean', 'reward/std', 'loss/value', 'adv/std'],
  causes: ['no-reward-signal'],
  text: {
    means:
      'Every episode earns the same, or what is earned never reaches the learner. All advantages are noise around 0, normalised to a spread of 1, so the policy still moves: at random.',
    seen: 'The return is one constant at or below 0 from the first row on; or the value loss is next to 0 (below 1e-4 and far below the spread of the returns) while the return does not improve, or though it does while the explained variance is below 0; or advantages have no spread.',
    todo: 'Print the rewards that the learner gets. Make the first success easier to reach, shape the reward, or explore more.',
    silent:
      'When the return rose before it became constant, which is a task solved; so is a value loss that stayed until the return had come most of its way. A positive constant may be a solved task that was resumed. A policy whose entropy is 0 always does the same: that is another cause.',
    references: ['docs/ppo.md', 'utra-robosoccer/Bez_IsaacGym: a log with rewards of 0 for 62 epochs'],
  },
  check(run, signals) {
    const classic = run.kind === 'classic';
    const { progress, critic } = signals;
    // Early on a language model may well earn nothing.
    if (progress === undefined || progress.track.n < (classic ? 8 : 20)) return [];
    const { track } = progress;
    const level = track.median;
    const spreadOfRewards = signals.get('reward/std');
    const stepsVary = spreadOfRewards !== undefined && spreadOfRewards.n > 0 && spreadOfRewards.median > 1e-9;
    const constant = progress.constant && level <= 0 && !stepsVary;
    const empty =
      classic &&
      ((!progress.improved && !progress.saturated && nothingToFit(signals)) || nothingToFitByLuck(signals));
    const advantages = signals.get('adv/std');
    const flatAdvantages =
      advantages !== undefined && advantages.n >= 8 && median(part(advantages, 0.3)) < 1e-7;
    if (!constant && !empty && !(classic && flatAdvantages && !progress.improved)) return [];
    const loss = critic.loss;
    // A critic that explains the returns has some to explain: a bad start, perhaps no more.
    const early = constant && level !== 0 && critic.evLate > 0.5 && !empty && track.n < 40;
    return [
      finding('no-reward', {
        severity: early ? 'warning' : 'critical',
        title: constant
          ? `${name(track)} is ${num(level)} in every row`
          : `The critic has nothing to learn: ${name(loss ?? advantages ?? track)} is ${num(loss === undefined ? 0 : critic.lossLate)}`,
        cause: 'no-reward-signal',
        confidence: early
          ? 0.45
          : constant && (level === 0 || empty || critic.lossLate < 1e-2)
            ? 0.95
            : constant
              ? 0.8
              : 0.85,
        evidence: [
          constant
            ? said(
                track,
                `${name(track)} has the same value, ${num(level)}, in all ${track.n} rows from ${place(track.x[0])} to ${place(signals.to)}`,
              )
            : progress.improved
              ? said(
                  track,
                  `${name(track)} goes from ${num(progress.start)} to ${num(progress.end)}, but nothing of it reaches the learner`,
                )
              : courseSaid(progress),
          loss === undefined
            ? undefined
            : said(
                loss,
                `${name(loss)} goes from ${num(loss.first)} to ${num(critic.lossLate)}: there is ${critic.lossLate < 1e-2 ? 'nothing' : 'little'} to predict`,
              ),
          flatAdvantages
            ? said(advantages, `${name(advantages)} is ${num(median(part(advantages, 0.3)))}`)
            : undefined,
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
        watch: `${soon(run, signals.to - signals.from)} ${name(track)} should differ from ${num(level)} in some rows`,
        marks: [
          mark(track, track.x[0], signals.to),
          ...(loss === undefined ? [] : [mark(loss, signals.from, signals.to)]),
        ],
      }),
    ];
  },
};
