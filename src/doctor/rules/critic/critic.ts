/** What goes wrong with a critic: it never learns, dies at one row, fades away, or is worse than none. */
import type { CanonicalRun } from '../../canonical.ts';
import type { Fix } from '../../fixes.ts';
import {
  cite,
  citeAt,
  citeCount,
  citeCourse,
  citeSetting,
  citeStep,
  limit,
  rowsBefore,
  rowsBetween,
  rowsOf,
  rowsSince,
  say,
  settledOf,
  workOut,
} from '../../judge/facts.ts';
import { blockMedians } from '../../statistics/blocks.ts';
import { changePoint } from '../../statistics/change-point.ts';
import { median, quantile } from '../../statistics/order.ts';
import { theilSen, trend } from '../../statistics/trend.ts';
import { courseSaid } from '../course.ts';
import { limitsOf } from '../limits.ts';
import type { Rule } from '../rule.ts';
import type { Signals } from '../signals.ts';
import { part, split, type Track } from '../track.ts';
import { change, finding, mark, name, num, percent, soon, stepAt, unitOf } from '../words.ts';
import { scaleFor } from './reward-scale.ts';
import { weightOfValueLoss } from './value-weight.ts';

const OWN_RATE = 'give the critic a learning rate of its own, 3 times that of the policy';
const OWN_NETWORK = 'give the critic its own network and a learning rate 3 times that of the policy';
const moreWeight = (run: CanonicalRun): Fix | undefined =>
  change(run, { valueCoef: 1 }, 'give the value loss a weight of 1');

const l = limitsOf('critic-flat', {
  rows: 12,
  /** The explained variance stays within this; where its weight is known to be 0, below the other. */
  explained: 0.1,
  unweighted: 0.3,
  /** A coefficient below the first is 0, from the second on it is none of the reasons; so of its share in the total loss. */
  coef: 1e-3,
  share: 0.01,
  weighted: 0.1,
  /** A value loss below this is nothing to learn. */
  loss: 1e-3,
  /** A policy that moves less is frozen, which is another cause. */
  kl: 2e-4,
  /** A loss that comes to less than this share of what it was, falls. */
  falls: 0.5,
  /** Rows without which it is a warning. */
  sure: 30,
});

export const criticFlat: Rule = {
  code: 'critic-flat',
  title: 'The critic never learns',
  looksAt: ['value/explained_variance', 'loss/value', 'loss/total', 'kl/step'],
  causes: ['critic-not-learning', 'no-reward-signal'],
  text: {
    means:
      'The explained variance stays at 0 from beginning to end while the value loss does not fall and the policy does move. The critic is switched off, disconnected or far too slow, so the advantages carry the whole noise of the returns.',
    seen: `Explained variance within ±${l.explained} throughout (90th percentile below it) for ${l.rows} rows or more, a value loss that stays above ${percent(l.falls)} of what it was, a policy that moves (a median KL of ${num(l.kl)} or more). A total loss that does not contain the value loss proves that its weight is 0. One that does, with a value loss that stands still and a return that never rises, or whose size changes without any trace in the value loss, says that the rewards cannot be predicted at all: they do not depend on what is seen or done. Below ${l.sure} rows it is a warning, unless the weight is 0.`,
    todo: 'Check the value coefficient, that gradients reach the value head, and its learning rate.',
    silent:
      'At the start of a run; when all returns are equal; when the policy is frozen as well or the returns are out of scale, which are other causes.',
    references: ['DLR-RM/stable-baselines3#2240', 'docs/ppo.md'],
  },
  check(run, signals) {
    const { critic, progress, kl } = signals;
    const { ev, loss } = critic;
    if (run.kind !== 'classic' || ev === undefined || ev.n < l.rows) return [];
    const settled = part(ev, 0.1);
    const off = run.config.valueCoef !== undefined && run.config.valueCoef < l.coef;
    const weight = weightOfValueLoss(signals);
    const unweighted = off || (weight !== undefined && weight < l.share);
    // Returns that are all equal have no variance to explain; but a critic that is trained would get their level right.
    if (progress?.constant && !unweighted) return [];
    const flat = quantile(settled, 0.9) < l.explained && Math.abs(critic.evLate) < l.explained;
    const never =
      quantile(settled, 0.9) < (unweighted ? l.unweighted : l.explained) && critic.evLate < l.explained;
    if (!(flat || (unweighted && never))) return [];
    if (loss !== undefined && (critic.lossLate < l.loss || loss.n < 8)) return [];
    if (kl !== undefined && kl.median < l.kl && !unweighted) return [];
    const over = loss === undefined ? undefined : trend(loss.v);
    const falls = over !== undefined && over.end < l.falls * over.start && over.z < -2;
    if (falls && !unweighted) return [];
    const evidenceOfWeight = off
      ? say`the value coefficient is ${citeSetting('valueCoef', run.config.valueCoef)}`
      : unweighted
        ? say`the total loss is ${citeCount('share of the value loss in the total loss', weight!, num)} of the value loss: it does not contain it, so the value coefficient is ${limit(0)}`
        : undefined;
    // Its weight is known not to be 0, its loss stands still and no policy earns more: there is nothing to be predicted.
    const weighted =
      (run.config.valueCoef ?? 0) >= l.weighted || (weight !== undefined && weight > l.weighted);
    const still = over !== undefined && Math.abs(Math.log(over.end / over.start)) < 0.35;
    // The same if the return drifts by luck: returns of another size would be another loss.
    const unmoved =
      progress !== undefined &&
      (!progress.improved || Math.abs(Math.log(Math.abs(progress.end / progress.start))) > 0.4);
    const pointless = weighted && still && unmoved;
    const moving = kl === undefined || kl.median >= l.kl;
    return [
      finding('critic-flat', {
        // Many good runs explain nothing in their first rows.
        severity: unweighted || (ev.n >= l.sure && !(progress?.improved ?? true)) ? 'critical' : 'warning',
        title: say`${name(ev)} stays at ${cite(rowsOf(ev, 0.5), 'median')}: the critic does not learn`,
        cause: pointless ? 'no-reward-signal' : 'critic-not-learning',
        confidence: unweighted ? 0.95 : moving && ev.n >= 20 ? 0.75 : 0.65,
        evidence: [
          say`${name(ev)} is below ${limit(l.explained)} in ${cite(rowsOf(ev, 0.1), 'share below', l.explained)} of the rows after the first tenth`,
          loss === undefined || over === undefined
            ? undefined
            : say`${name(loss)} ${falls ? 'falls' : over.end < over.start ? 'hardly falls' : 'does not fall'}: ${cite(loss, 'trend start')} at the start, ${cite(loss, 'trend end')} at the end`,
          evidenceOfWeight,
          kl === undefined
            ? undefined
            : say`the policy ${moving ? 'does move' : 'hardly moves'}: ${name(kl.track)} has a median of ${cite(settledOf(kl), 'median')}`,
        ],
        fix: pointless
          ? [
              'print the rewards of one episode as the learner gets them, beside the actions: they must depend on them',
              'check that the reward is stored with the action that earned it, and that the value head gets gradients',
            ]
          : unweighted
            ? [change(run, { valueCoef: 0.5 }, 'give the value loss a weight of 0.5')]
            : [
                // Returns that are large enough to swamp the gradient; smaller ones need no other scale.
                critic.lossLate > 10
                  ? change(
                      run,
                      { rewardScale: scaleFor(Number.NaN, critic.lossLate) },
                      'divide the rewards by the running std of the discounted return',
                    )
                  : undefined,
                `check that the value head gets gradients, and ${OWN_RATE}`,
              ],
        watch: `${soon(run, signals.to - signals.from)} ${name(ev)} should climb above 0.3`,
        marks: [
          mark(ev, signals.from, signals.to),
          ...(loss === undefined ? [] : [mark(loss, signals.from, signals.to)]),
        ],
      }),
    ];
  },
};

const d = limitsOf('critic-died', {
  rows: 30,
  /** Most rows before were above the first, nearly all after it are below the second. */
  before: 0.4,
  after: 0.1,
  /** Far below 0 it is another rule. */
  worst: -0.5,
  /** It stays for so many rows. */
  stays: 15,
  /** How many times the value loss is what it was. */
  rise: 1.2,
});

export const criticDied: Rule = {
  code: 'critic-died',
  title: 'The critic died in mid-run',
  looksAt: ['value/explained_variance', 'loss/value'],
  causes: ['critic-not-learning'],
  text: {
    means:
      'The critic predicted returns well and then, from one row to the next, not at all: dead units, a saturated head, a value update that went wrong. The policy may go on for a while, on advantages that are pure noise.',
    seen: `One change point in ${d.rows} rows or more, at which the explained variance falls from above ${d.before} to about 0 (below ${d.after}, with a median above ${d.worst}), stays there for the rest of the run (at least ${d.stays} rows and a tenth of it), and the value loss is more than ${d.rise} times what it was.`,
    todo: 'Restart from a checkpoint before it, with gradient clipping, a lower rate for the critic or a clipped value loss.',
    silent:
      'When it recovers; when the task is solved and returns no longer vary, which brings explained variance to 0 with a value loss that falls.',
    references: [
      'Jorgitou98/Accelerating-RLlib-Models: a log in which it falls from 0.82 to 1e-9 at one row',
    ],
  },
  check(run, signals) {
    const { critic, progress } = signals;
    const { ev, loss } = critic;
    if (run.kind !== 'classic' || ev === undefined || ev.n < d.rows) return [];
    if (progress?.saturated || progress?.constant) return [];
    const found = changePoint(ev.v, Math.max(5, Math.floor(ev.n / 20)));
    if (found === undefined || found.p > 1e-3) return [];
    const after = ev.v.subarray(found.index);
    const before = ev.v.subarray(0, found.index);
    if (after.length < Math.max(d.stays, 0.1 * ev.n)) return [];
    if (!(quantile(before, 0.3) > d.before && quantile(after, 0.9) < d.after && median(after) > d.worst))
      return [];
    const x = ev.x[found.index];
    let rise = Number.NaN;
    if (loss !== undefined && loss.n >= d.rows) {
      const [was, is] = split(loss, x);
      rise = median(is) / median(was);
      if (!(rise > d.rise)) return [];
    }
    const since = rowsBetween(ev, found.index);
    const [was, is] = [cite(rowsBetween(ev, 0, found.index), 'median'), cite(since, 'median')];
    return [
      finding('critic-died', {
        severity: 'critical',
        title: say`${name(ev)} falls from ${was} to ${is} at ${unitOf(run)} ${citeStep(ev, found.index)} and stays there`,
        cause: 'critic-not-learning',
        confidence: 0.85,
        evidence: [
          say`before ${citeStep(ev, found.index)} its median is ${was}; in the ${cite(since, 'rows')} rows since it is ${is}, ${limit(0.9, percent)} of them up to ${cite(since, 'quantile', 0.9)}`,
          Number.isNaN(rise)
            ? undefined
            : say`${name(loss!)} is ${workOut('times', cite(rowsSince(loss!, x), 'median'), cite(rowsBefore(loss!, x), 'median'))} times as large since`,
          progress === undefined
            ? undefined
            : say`${name(progress.track)} ends at ${citeCourse(progress, 'end')}: the policy goes on without a critic`,
        ],
        fix: [
          `restart from a checkpoint before ${stepAt(run, x)}`,
          'clip the gradient of the value loss, or the value loss itself, and give the critic a lower learning rate',
        ],
        watch: `${soon(run, signals.to - signals.from)} of the restart ${name(ev)} should stay above ${num(0.5 * median(before))}`,
        marks: [mark(ev, x, signals.to), ...(loss === undefined ? [] : [mark(loss, x, signals.to)])],
      }),
    ];
  },
};

const MAX_BLOCKS = 200;

const f = limitsOf('critic-fading', {
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
  if (ev === undefined || ev.n < f.rows) return undefined;
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
  if (!(best > f.best && end < f.end && best - end > f.fall && quantile(tail, 0.9) < best - 0.4))
    return undefined;
  const since = ev.v.subarray(at);
  if (since.length < Math.max(12, 0.3 * ev.n)) return undefined;
  const over = trend(since);
  const rows = Array.from(since, (_, i) => i);
  const slope = theilSen(rows, since);
  // One way, and the slope alone accounts for half of the fall: neither a step nor noise.
  if (!(over.z < -4 && over.tau < f.tau && -slope * since.length > f.slope * (best - end))) return undefined;
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
    seen: `Explained variance that was above ${f.best} over a tenth of the rows and ends below ${f.end}, more than ${f.fall} lower, falling all the way (Kendall’s tau below ${f.tau} with time, and a slope by pairs that accounts for ${percent(f.slope)} of the fall), with a return that does not improve and a value loss that comes to more than ${f.rise} times what it was; where it does not, or is not logged, an explained variance that ends at ${f.worse} or below.`,
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
    if (!(rise > f.rise) && (end > f.worse || rise < 0.6)) return [];
    const { loss } = critic;
    const fell = [
      citeCount('best level of the explained variance', best, num, ev),
      citeCount('last level of the explained variance', end, num, ev),
    ];
    return [
      finding('critic-fading', {
        severity: progress.collapsed || (end < f.worse && rise > f.rise) ? 'critical' : 'warning',
        title: say`${name(ev)} falls steadily from ${fell[0]} to ${fell[1]}`,
        cause: 'critic-not-learning',
        confidence: rise > f.rise ? 0.65 : 0.55,
        evidence: [
          say`${name(ev)} was ${fell[0]} around ${citeAt(ev, x)} and is ${fell[1]} in the last fifth, losing ${cite(rowsSince(ev, x), 'slope a row', undefined, v => num(-v))} a row`,
          Number.isNaN(rise)
            ? undefined
            : rise > f.rise
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

const w = limitsOf('critic-negative', {
  rows: 15,
  /** Three quarters of the second half are below this; below the other it is critical. */
  explained: -0.2,
  worse: -0.5,
  /** A value loss below this is that of a solved task. */
  loss: 1e-2,
});

export const criticNegative: Rule = {
  code: 'critic-negative',
  title: 'The critic is worse than none',
  looksAt: ['value/explained_variance', 'loss/value', 'episode/return'],
  causes: ['critic-not-learning'],
  text: {
    means:
      'Explained variance below 0 means that the mean of the returns would predict them better. For long, it makes the advantages point the wrong way.',
    seen: `Explained variance below ${w.explained} in three quarters of the second half, with a value loss above ${w.loss} and a return that does not improve; critical below ${w.worse}, or where the return collapsed.`,
    todo: 'Give the critic more weight, its own network or a higher rate, and scaled returns.',
    silent:
      'On a solved task the returns hardly vary, and explained variance may be -45 for that reason alone. While the return improves. When the value loss is next to 0.',
    references: ['DLR-RM/stable-baselines3#324', 'docs/ppo.md'],
  },
  gauges: ({ kind }, { critic: { ev } }) => [
    kind !== 'classic' || ev === undefined || ev.n < w.rows
      ? undefined
      : {
          of: 'what three quarters of the explained variance are below, in the second half',
          at: w.explained,
          value: quantile(part(ev, 0.5), 0.75),
          speaks: 'below',
        },
  ],
  check(run, signals) {
    const { critic, progress } = signals;
    const { ev, loss } = critic;
    if (run.kind !== 'classic' || ev === undefined || ev.n < w.rows || progress === undefined) return [];
    if (progress.improved || progress.saturated || progress.constant) return [];
    if (!(quantile(part(ev, 0.5), 0.75) < w.explained)) return [];
    if (loss !== undefined && !(critic.lossLate > w.loss)) return [];
    return [
      finding('critic-negative', {
        severity: quantile(part(ev, 0.5), 0.75) < w.worse || progress.collapsed ? 'critical' : 'warning',
        title: say`${name(ev)} stays below ${limit(0)} (median ${cite(rowsOf(ev, 0.5), 'median')}): the critic is worse than the mean`,
        cause: 'critic-not-learning',
        confidence: 0.6,
        evidence: [
          say`${name(ev)} is at most ${cite(rowsOf(ev, 0.5), 'quantile', 0.75)} in three quarters of the second half`,
          loss === undefined
            ? undefined
            : say`${name(loss)} has a median of ${cite(rowsOf(loss, 0.5), 'median')} there`,
          courseSaid(progress),
        ],
        fix: [moreWeight(run), `${OWN_NETWORK}, and normalise returns`],
        watch: `${soon(run, signals.to - signals.from)} ${name(ev)} should rise above 0`,
        marks: [mark(ev, signals.from + 0.5 * (signals.to - signals.from), signals.to)],
      }),
    ];
  },
};
