/** A critic that fades away. */
import { cite, citeAt, citeCount, rowsSince, say } from '../../judge/facts.ts';
import { blockMedians } from '../../statistics/blocks.ts';
import { median, quantile } from '../../statistics/order.ts';
import { theilSen, trend } from '../../statistics/trend.ts';
import { courseSaid } from '../course.ts';
import { limitsOf } from '../limits.ts';
import type { Rule } from '../rule.ts';
import type { Signals } from '../signals.ts';
import { split, type Track } from '../track.ts';
import { finding, mark, name, num, percent, soon, stepAt } from '../words.ts';
import { moreWeight, OWN_NETWORK } from './remedies.ts';

const MAX_BLOCKS = 200;

const l = limitsOf('critic-fading', {
  rows: 20,
  /** What it explained at its best, what at the end, and how far these are apart. */
  best: 0.5,
  end: 0.2,
  fall: 0.6,
  /** Kendall's tau with time, and the share of the fall that the slope by pairs accounts for. */
  tau: -0.45,
  slope: 0.5,
  /** How many times the value loss is what it was; where it is not, the explained variance must end below the other. */
  rise: 1.5,
  worse: -0.2,
});

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
  if (ev === undefined || ev.n < l.rows) return undefined;
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
  if (!(best > l.best && end < l.end && best - end > l.fall && quantile(tail, 0.9) < best - 0.4))
    return undefined;
  const since = ev.v.subarray(at);
  if (since.length < Math.max(12, 0.3 * ev.n)) return undefined;
  const over = trend(since);
  const rows = Array.from(since, (_, i) => i);
  const slope = theilSen(rows, since);
  // One way, and the slope alone accounts for half of the fall: neither a step nor noise.
  if (!(over.z < -4 && over.tau < l.tau && -slope * since.length > l.slope * (best - end))) return undefined;
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
    seen: `Explained variance that was above ${l.best} over a tenth of the rows and ends below ${l.end}, more than ${l.fall} lower, falling all the way (Kendall’s tau below ${l.tau} with time, and a slope by pairs that accounts for ${percent(l.slope)} of the fall), with a return that does not improve and a value loss that comes to more than ${l.rise} times what it was; where it does not, or is not logged, an explained variance that ends at ${l.worse} or below.`,
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
    const { ev, x, best, end, rise } = found;
    // Explained variance is 1 - loss / variance of the returns. With a loss that stands still it is the variance that
    // fell, as in any policy that gets surer: then only a critic that is plainly worse than none counts.
    if (!(rise > l.rise) && (end > l.worse || rise < 0.6)) return [];
    const { loss } = critic;
    const fell = [
      citeCount('best level of the explained variance', best, num, ev),
      citeCount('last level of the explained variance', end, num, ev),
    ];
    return [
      finding('critic-fading', {
        severity: progress.collapsed || (end < l.worse && rise > l.rise) ? 'critical' : 'warning',
        title: say`${name(ev)} falls steadily from ${fell[0]} to ${fell[1]}`,
        cause: 'critic-not-learning',
        confidence: rise > l.rise ? 0.65 : 0.55,
        evidence: [
          say`${name(ev)} was ${fell[0]} around ${citeAt(ev, x)} and is ${fell[1]} in the last fifth, losing ${cite(rowsSince(ev, x), 'slope a row', undefined, v => num(-v))} a row`,
          Number.isNaN(rise)
            ? undefined
            : rise > l.rise
              ? say`${name(loss!)} is ${citeCount('growth of the value loss while the critic fades', rise, num, loss!)} times what it was then: the returns still vary, the critic does not follow`
              : say`${name(loss!)} is ${citeCount('growth of the value loss while the critic fades', rise, percent, loss!)} of what it was then: the critic does not follow what the returns still vary by`,
          courseSaid(progress),
        ],
        fix: [
          moreWeight(run),
          `${OWN_NETWORK}, and take the clip off the value loss`,
          `restart from a checkpoint near ${stepAt(run, x)}`,
        ],
        watch: `${soon(run, signals.to - signals.from)} of the restart ${name(ev)} should stay above ${num(0.7 * best)}`,
        marks: [mark(ev, x, signals.to), ...(loss === undefined ? [] : [mark(loss, x, signals.to)])],
      }),
    ];
  },
};
