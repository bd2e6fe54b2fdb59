import { citeCourse, say } from '../../judge/facts.ts';
import { share } from '../../statistics/order.ts';
import { limitsOf } from '../limits.ts';
import type { Rule } from '../rule.ts';
import { part } from '../track.ts';
import { finding, mark, name, num, percent, soon, stepAt, unitOf } from '../words.ts';

const limits = limitsOf('reward-collapse', {
  rows: 20,
  /** The loss, in the noise of the smoothed curve, and as a share of what had been gained. */
  noise: 10,
  lost: 0.7,
  /** The end that must be below half of the gain, nearly all of it. */
  end: 0.85,
  below: 0.95,
});

export const rewardCollapse: Rule = {
  code: 'reward-collapse',
  title: 'The reward was there, and is lost for good',
  looksAt: ['reward/mean', 'kl/ref', 'policy/entropy', 'completion/length'],
  causes: ['peak-then-collapse'],
  text: {
    means:
      'The reward rose well above its noise, peaked, and fell to where it began or below. What else broke down at the peak says why; where nothing did, the log does not show it.',
    seen: `${percent(limits.lost)} of what had been gained is lost, ${limits.noise} times the noise of the smoothed reward, and ${percent(limits.below)} of the rows of the last ${percent(1 - limits.end)} lie below half of the gain; over ${limits.rows} rows or more.`,
    todo: 'Go back to the checkpoint of the peak. Lower the learning rate or let it fall to 0 by then, and raise the weight of the KL to the reference.',
    silent: 'Where the reward comes back, or began to fall before it had gained anything.',
    references: ['volcengine/verl#4818', 'DLR-RM/stable-baselines3#324'],
  },
  check(run, signals) {
    const { progress } = signals;
    if (run.kind !== 'language-model' || progress === undefined || progress.track.n < limits.rows) return [];
    const { track, start, best, bestX, end, noise, gained, collapsed, improving } = progress;
    if (!collapsed || !gained || improving) return [];
    const floor = (['worst', 'end', 'start'] as const).reduce((a, b) => (progress[b] < progress[a] ? b : a));
    const lost = best - end;
    if (!(lost > limits.noise * noise && lost >= limits.lost * (best - Math.min(start, end)))) return [];
    const half = (best + Math.min(start, end)) / 2;
    if (share(part(track, limits.end), v => v < half) < limits.below) return [];
    return [
      finding('reward-collapse', {
        severity: 'warning',
        title: say`${name(track)} reached ${citeCourse(progress, 'best')} at ${unitOf(run)} ${citeCourse(progress, 'bestX')} and ends at ${citeCourse(progress, 'end')}`,
        cause: 'peak-then-collapse',
        confidence: 0.6,
        evidence: [
          say`${name(track)} began at ${citeCourse(progress, 'start')}; ${citeCourse(progress, floor)} is the lowest that lasted`,
        ],
        fix: [
          `restart from the checkpoint nearest to ${stepAt(run, bestX)}, with a third of the learning rate`,
        ],
        watch: `${soon(run, signals.to - signals.from)} of a restart ${name(track)} should stay above ${num(half)}`,
        marks: [mark(track, bestX, signals.to)],
      }),
    ];
  },
};
