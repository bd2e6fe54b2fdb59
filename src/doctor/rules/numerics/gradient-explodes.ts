import { cite, citeCourse, rowsOf, say } from '../../judge/facts.ts';
import { median, quantile, spread } from '../../statistics/order.ts';
import { limitsOf } from '../limits.ts';
import type { Rule } from '../rule.ts';
import { part } from '../track.ts';
import { change, finding, mark, name, num, round, soon } from '../words.ts';

const limits = limitsOf('gradient-explodes', {
  rows: 20,
  /** The norm of the last fifth against the median of the first half: in times, and beyond it in its spreads. */
  times: 20,
  spreads: 20,
  /** Three quarters of the last fifth are at least so many times as large. */
  most: 5,
});

export const gradientExplodes: Rule = {
  code: 'gradient-explodes',
  title: 'Gradients explode and the reward breaks down',
  looksAt: ['grad/norm', 'reward/mean', 'episode/return', 'policy/ratio_mean'],
  causes: ['learning-rate-too-high'],
  text: {
    means:
      'The gradient norm leaves its range by orders of magnitude and the reward falls: the step before NaN. In language models long outputs, huge ratios times negative advantages or a sampler mismatch are behind it.',
    seen: `In the last fifth a gradient norm above ${limits.times} times the median of the first half and ${limits.spreads} of its spreads beyond it, in three quarters of these rows above ${limits.most} times, and a reward that collapsed; ${limits.rows} rows or more.`,
    todo: 'Lower the learning rate, clip the gradient norm, skip batches whose ratio is far above 10, and look at the difference between sampler and scorer.',
    silent:
      'Single large gradients, which clipping takes care of; large gradients while the reward improves.',
    references: ['volcengine/verl#3595', 'huggingface/trl#101'],
  },
  check(run, signals) {
    const norm = signals.get('grad/norm');
    const { progress, settings } = signals;
    if (norm === undefined || norm.n < limits.rows || !progress?.collapsed) return [];
    const early = part(norm, 0, 0.5);
    const late = part(norm, 0.8);
    const base = median(early);
    const level = median(late);
    if (
      !(
        level > limits.times * base &&
        level > base + limits.spreads * spread(early) &&
        quantile(late, 0.25) > limits.most * base
      )
    )
      return [];
    const rate = settings.lr;
    return [
      finding('gradient-explodes', {
        severity: 'critical',
        title: say`${name(norm)} grows from ${cite(rowsOf(norm, 0, 0.5), 'median')} to ${cite(rowsOf(norm, 0.8), 'median')} and ${name(progress.track)} falls to ${citeCourse(progress, 'end')}`,
        cause: 'learning-rate-too-high',
        confidence: 0.55,
        evidence: [
          say`${name(norm)}: median ${cite(rowsOf(norm, 0, 0.5), 'median')} in the first half, ${cite(rowsOf(norm, 0.8), 'median')} in the last fifth, at most ${cite(norm, 'most')}`,
          say`${name(progress.track)} was ${citeCourse(progress, 'best')} at ${citeCourse(progress, 'bestX')}`,
        ],
        fix: [
          change(
            run,
            rate === undefined ? {} : { learningRate: round(rate / 3) },
            'divide the learning rate by 3',
          ),
          change(run, { maxGradNorm: 0.5 }, 'clip the gradient norm'),
        ],
        watch: `${soon(run, signals.to - signals.from)} ${name(norm)} should stay near ${num(base)}`,
        marks: [mark(norm, norm.x[Math.floor(norm.n * 0.8)], signals.to)],
      }),
    ];
  },
};
