import { blockMedians } from '../statistics/blocks.ts';
import { median, quantile } from '../statistics/order.ts';
import { theilSen, trend } from '../statistics/trend.ts';
import { courseSaid } from './course.ts';
import type { Rule } from './rule.ts';
import type { Signals } from './signals.ts';
import { split, type Track } from './track.ts';
import { change, finding, mark, name, num, place, soon, stepAt } from './words.ts';

const MAX_BLOCKS = 200;

interface Fading {
  readonly ev: Track;
  /** Where it was best, by a median of a tenth of the rows, and the levels there and at the end. */
  readonly x: number;
  readonly best: number;
  readonly end: number;
  /** Per row, by pairs of points. */
  readonly slope: number;
  /** Value loss at the end against that at the best; NaN where it is not logged. */
  readonly rise: number;
}

/** A fall that takes a good part of the run and goes one way all along; undefined if there is none. */
function fadingOf(signals: Signals): Fading | undefined {
  const { ev, loss } = signals.critic;
  if (ev === undefined || ev.n < 20) return undefined;
  // A long series is searched by medians of blocks, so that it costs no more than a short one.
  const blocks = blockMedians(ev.v, MAX_BLOCKS);
  const each = ev.n / blocks.length;
  const wide = Math.max(3, Math.floor(blocks.length / 10));
  let first = 0;
  let best = Number.NEGATIVE_INFINITY;
  for (let i = 0; i + wide <= blocks.length; i++) {
    const level = median(blocks.subarray(i, i + wide));
    if (level > best) [best, first] = [level, i];
  }
  const at = Math.round(first * each);
  const width = Math.round(wide * each);
  const tail = ev.v.subarray(ev.n - Math.max(4, Math.floor(ev.n / 5)));
  const end = median(tail);
  // It explained most and explains next to nothing: half of all variance is lost, in nearly every row of the end.
  if (!(best > 0.5 && end < 0.2 && best - end > 0.6 && quantile(tail, 0.9) < best - 0.4)) return undefined;
  const since = ev.v.subarray(at);
  if (since.length < Math.max(12, 0.3 * ev.n)) return undefined;
  const over = trend(since);
  const rows = Array.from(since, (_, i) => i);
  const slope = theilSen(rows, since);
  // One way, and the slope alone accounts for half of the fall: neither a step nor noise.
  if (!(over.z < -4 && over.tau < -0.45 && -slope * since.length > 0.5 * (best - end))) return undefined;
  const x = ev.x[at];
  let rise = Number.NaN;
  if (loss !== undefined && loss.n >= 12) {
    const [, after] = split(loss, x);
    rise =
      median(after.subarray(-Math.max(3, Math.floor(after.length / 5)))) / median(after.subarray(0, width));
  }
  return { ev, x, best, end, slope, rise };
}

export const criticFading: Rule = {
  code: 'critic-fading',
  title: 'The critic gets worse and worse',
  looksAt: ['value/explained_variance', 'loss/value', 'episode/return'],
  causes: ['critic-not-learning'],
  text: {
    means:
      'The critic explained most of the returns and loses that row by row, while the return stands still or falls. It no longer follows the policy: too few critic steps, a rate that decays too early, a value loss whose clip holds it back, or targets that drift. The advantages turn into noise before the return shows it.',
    seen: 'Explained variance that was above 0.5 over a tenth of the rows and ends below 0.2, at least 0.6 lower, falling all the way (Kendall’s tau below -0.45 with time, and a slope by pairs that accounts for half of the fall), with a return that does not improve and a value loss that rises by half at least; where it does not rise, or is not logged, an explained variance that ends below -0.2.',
    todo: 'Give the critic more weight or a rate of its own, take the clip off its loss, and normalise returns.',
    silent:
      'On a solved task returns no longer vary, and explained variance falls with them: when the return improved, is at its ceiling or is one constant, and when the value loss falls. A fall from one row to the next is another rule.',
    references: ['DLR-RM/stable-baselines3#324', 'docs/ppo.md'],
  },
  check(run, signals) {
    const { progress, critic } = signals;
    if (run.kind !== 'classic' || progress === undefined || progress.track.n < 12) return [];
    if ((progress.improved && !progress.collapsed) || progress.saturated || progress.constant) return [];
    const found = fadingOf(signals);
    if (found === undefined) return [];
    const { ev, x, best, end, slope, rise } = found;
    // Explained variance is 1 - loss / variance of the returns. With a loss that stands still it is the variance that
    // fell, as in any policy that gets surer: then only a critic that is plainly worse than none counts.
    if (!(rise > 1.5) && (end > -0.2 || rise < 0.6)) return [];
    const { loss } = critic;
    return [
      finding('critic-fading', {
        severity: progress.collapsed || (end < -0.2 && rise > 1.5) ? 'critical' : 'warning',
        title: `${name(ev)} falls steadily from ${num(best)} to ${num(end)}`,
        cause: 'critic-not-learning',
        confidence: rise > 1.5 ? 0.65 : 0.55,
        evidence: [
          `${name(ev)} was ${num(best)} around ${place(x)} and is ${num(end)} in the last fifth, losing ${num(-slope)} a row`,
          Number.isNaN(rise)
            ? undefined
            : `${name(loss!)} is ${num(rise)} times what it was then: the returns still vary, the critic does not follow`,
          courseSaid(progress),
        ],
        fix: [
          change(run, { valueCoef: 1 }, 'give the value loss a weight of 1'),
          'give the critic its own network and a learning rate 3 times that of the policy, and take the clip off the value loss',
          `restart from a checkpoint near ${stepAt(run, x)}`,
        ],
        watch: `${soon(run, signals.to - signals.from)} of the restart ${name(ev)} should stay above ${num(0.7 * best)}`,
        marks: [mark(ev, x, signals.to), ...(loss === undefined ? [] : [mark(loss, x, signals.to)])],
      }),
    ];
  },
};
