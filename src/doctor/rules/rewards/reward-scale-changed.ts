import { typed } from '../../../base/typed.ts';
import { fixOf } from '../../fixes.ts';
import {
  cite,
  citeAt,
  citeCount,
  citeStep,
  limit,
  rowsBefore,
  rowsBetween,
  rowsSince,
  say,
  workOut,
} from '../../judge/facts.ts';
import { abruptStep, changePoint } from '../../statistics/change-point.ts';
import { median, quantile, share } from '../../statistics/order.ts';
import { limitsOf } from '../limits.ts';
import type { Rule } from '../rule.ts';
import type { Signals } from '../signals.ts';
import { split, type Track } from '../track.ts';
import { finding, mark, name, num, percent, type Said, soon, stepAt, unitOf } from '../words.ts';

const l = limitsOf('reward-scale-changed', {
  /** The reward of a step: how many times another it becomes, how still it is on both sides (of that jump), and before. */
  ratio: 2.5,
  ratioScatter: 0.35,
  ratioStill: 0.07,
  /** The value loss jumps so many times; the critic saw more than the first and sees less than the second since. */
  jump: 10,
  seeing: 0.3,
  blind: 0.2,
  /** Or the KL falls to this share. */
  starved: 0.1,
  /** The value loss rises to so many times all that it was. */
  level: 10,
  /** An explained variance falls from above the first to below the second, and is back above the third; the loss is this share since. */
  dipFrom: 0.8,
  dipTo: -0.3,
  dipBack: 0.7,
  dipLoss: 0.05,
  /** The value loss becomes so many times smaller, with this explained variance on both sides. */
  shrunkRows: 20,
  shrunk: 60,
  shrunkExplained: 0.5,
  /** How many times the returns' own variance would have had to shrink less. */
  shrunkReturns: 5,
});

interface Change {
  readonly x: number;
  readonly confidence: number;
  readonly evidence: readonly (Said | string)[];
  readonly tracks: readonly Track[];
}

/** The largest value less the smallest. */
function rangeOf(values: readonly number[]): number {
  let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const v of values) {
    low = Math.min(low, v);
    high = Math.max(high, v);
  }
  return high - low;
}

/** Return for a step of an episode, where both are logged in the same rows. */
function rewardPerStep(signals: Signals): { readonly x: number[]; readonly v: number[] } | undefined {
  const a = signals.get('episode/return');
  const b = signals.get('episode/length');
  if (a === undefined || b === undefined || a.n < 12 || a.n !== b.n) return undefined;
  const x: number[] = [];
  const v: number[] = [];
  for (let i = 0; i < a.n; i++) {
    if (a.x[i] !== b.x[i] || !(b.v[i] > 0)) continue;
    x.push(a.x[i]);
    v.push(a.v[i] / b.v[i]);
  }
  return v.length < 12 ? undefined : { x, v };
}

/** The value loss of the rows after `x` is five times what it was before it. */
function lossJumps(signals: Signals, x: number): boolean {
  const { loss } = signals.critic;
  if (loss === undefined || loss.n < 12) return false;
  const [was, is] = split(loss, x);
  return was.length >= 4 && is.length >= 3 && median(is.subarray(0, 6)) > 5 * median(was.subarray(-8));
}

/** The critic explains less just after `x` than just before it. A policy that learns fast takes its critic along. */
function criticStumbles(signals: Signals, x: number): boolean {
  const { ev } = signals.critic;
  if (ev === undefined || ev.n < 12) return false;
  const [was, is] = split(ev, x);
  return was.length >= 4 && is.length >= 3 && median(is.subarray(0, 4)) < median(was.subarray(-6)) - 0.2;
}

/**
 * Rewards above 0 that became smaller by a factor took the value loss down by its square at the same place, and no large
 * update came with it. (Losses that shrink look the same when they are learnt away, so this says nothing of those.)
 */
function lossFollows(signals: Signals, x: number, jump: number): boolean {
  const { loss } = signals.critic;
  if (loss === undefined || loss.n < 12) return false;
  const [was, is] = split(loss, x);
  if (was.length < 4 || is.length < 4) return false;
  const fall = Math.log(median(is.subarray(-Math.max(4, is.length >> 1))) / median(was.subarray(-8)));
  const reach = 0.1 * (signals.to - signals.from);
  const kl = signals.kl?.track;
  const large = kl?.v.some((v, i) => v > 0.05 && kl.x[i] >= x - reach && kl.x[i] <= x + reach) ?? false;
  return !large && Math.abs(fall - 2 * jump) < 0.35 * Math.abs(2 * jump);
}

/** The reward of a step jumps by a factor while episodes stay as long as they were. */
function byRatio(signals: Signals): Change | undefined {
  const ratio = rewardPerStep(signals);
  if (ratio === undefined) return undefined;
  const logs = ratio.v.map(r => Math.log(Math.abs(r)));
  if (!logs.every(Number.isFinite)) return undefined;
  // A reward that changes its sign was learnt, not scaled.
  if (ratio.v.some(r => Math.sign(r) !== Math.sign(ratio.v[0]))) return undefined;
  const n = logs.length;
  // No step is higher than all of it: most runs are done with here.
  if (!(rangeOf(logs) >= Math.log(l.ratio))) return undefined;
  const step = abruptStep(logs, Math.max(4, Math.floor(n / 12)));
  if (step === undefined || step.index < 0.1 * n || step.index > 0.92 * n) return undefined;
  const before = logs.slice(0, step.index);
  const margin = Math.max(2, Math.floor(n / 20));
  const after = logs.slice(Math.min(n - 2, step.index + margin));
  const jump = median(after) - median(before.slice(0, Math.max(2, before.length - margin)));
  // A task whose reward grows as it is learnt has a wide spread before; a change of scale starts from a still one.
  const scatter =
    quantile(before, 0.95) - quantile(before, 0.05) + quantile(after, 0.95) - quantile(after, 0.05);
  if (Math.abs(jump) < Math.log(l.ratio) || scatter > l.ratioScatter * Math.abs(jump)) return undefined;
  const x = ratio.x[step.index];
  // Where each step earns the same, as in CartPole, a jump can be nothing else. Where it does not, skill moves it as
  // well, and only a critic that is suddenly wrong tells the one from the other.
  const settled = before.slice(0, Math.max(4, before.length - margin));
  // Losses that shrink are what learning looks like: there it must not have moved at all.
  const constant = quantile(settled, 0.95) - quantile(settled, 0.05) < (jump > 0 ? l.ratioStill : 0.02);
  const grew = jump > 0 && lossJumps(signals, x) && criticStumbles(signals, x);
  const shrank = jump < 0 && ratio.v[0] > 0 && lossFollows(signals, x, jump);
  if (!constant && !grew && !shrank) return undefined;
  const length = signals.get('episode/length')!;
  const [short, long] = split(length, x);
  const lengths = Math.abs(Math.log(median(long) / median(short)));
  if (lengths > 0.5 * Math.abs(jump)) return undefined;
  const a = signals.get('episode/return')!;
  const sign = Math.sign(ratio.v[0]);
  const was = citeCount('reward of a step before the jump', Math.exp(median(before)) * sign, num, a);
  const is = citeCount('reward of a step after the jump', Math.exp(median(after)) * sign, num, a);
  return {
    x,
    confidence: constant || grew ? 0.95 : 0.7,
    evidence: [
      say`the reward of a step (${name(a)} / ${name(length)}) goes from ${was} to ${is} at ${citeAt(a, x)}, ${jump > 0 ? workOut('times', is, was) : workOut('times', was, is)} times, while episodes stay as long`,
    ],
    tracks: [a],
  };
}

/** The value loss jumps for good and the critic goes blind, while the returns that are logged stay as they were. */
function byCritic(signals: Signals): Change | undefined {
  const { critic, progress, kl } = signals;
  const { loss, ev } = critic;
  if (loss === undefined || loss.n < 16) return undefined;
  const logs = loss.v.map(v => Math.log(Math.max(v, 1e-12)));
  const found = changePoint(logs, Math.max(3, Math.floor(loss.n / 12)));
  if (found === undefined || found.p > 0.01 || found.after - found.before < Math.log(8)) return undefined;
  const sharp = abruptStep(logs, Math.max(3, Math.floor(loss.n / 20)));
  if (sharp === undefined) return undefined;
  const jump = sharp.after - sharp.before;
  if (!(jump > Math.log(l.jump))) return undefined;
  if (sharp.index < 0.1 * loss.n || sharp.index > 0.92 * loss.n) return undefined;
  const x = loss.x[sharp.index];
  // The new level holds: a bump that heals is the policy finding something.
  const [, since] = split(loss, x);
  if (Math.log(quantile(since, 0.2)) - sharp.before < Math.log(6)) return undefined;
  let blind = false;
  let evidenceOfEv: Said | undefined;
  if (ev !== undefined && ev.n >= 12) {
    const [was, is] = split(ev, x);
    const tail = was.subarray(Math.floor(was.length / 2));
    blind = quantile(tail, 0.6) > l.seeing && quantile(is, 0.75) < l.blind;
    evidenceOfEv = say`${name(ev)} was ${cite(rowsBetween(ev, was.length - tail.length, was.length), 'median')} and is ${cite(rowsSince(ev, x), 'median')} since`;
  }
  let still = false;
  let returns: Said | undefined;
  if (progress !== undefined && progress.track.n >= 12) {
    const [was, is] = split(progress.track, x);
    if (was.length < 4 || is.length < 4) return undefined;
    const near = was.subarray(Math.floor(was.length * 0.7));
    const sizeOf = (values: Float64Array): number => quantile(values.map(Math.abs), 0.9);
    const grown = sizeOf(is) / Math.max(sizeOf(was), 1e-9);
    // Returns that grow raise the value loss with their square: that is learning, not a change of scale.
    still = grown < 1.8 && jump > 2 * Math.log(Math.max(grown, 1)) + Math.log(8);
    returns = say`${name(progress.track)} hardly notices: ${cite(rowsBetween(progress.track, was.length - near.length, was.length), 'median')} before, ${cite(rowsSince(progress.track, x), 'median')} after`;
  }
  if (!still) return undefined;
  let starved = false;
  let evidenceOfKl: Said | undefined;
  if (kl !== undefined && kl.track.n >= 12) {
    const [was, is] = split(kl.track, x);
    starved = median(is) < l.starved * median(was);
    if (starved)
      evidenceOfKl = say`${name(kl.track)} falls from ${cite(rowsBefore(kl.track, x), 'median')} to ${cite(rowsSince(kl.track, x), 'median')}: the value loss takes the whole gradient`;
  }
  const restart = signals.run.restarts.some(r => Math.abs(r - x) <= 0.05 * (signals.to - signals.from));
  if (!blind && !starved && !restart) return undefined;
  const [lossWas, lossIs] = [cite(rowsBefore(loss, x), 'median'), cite(rowsSince(loss, x), 'median')];
  return {
    x,
    confidence: Math.min(0.95, 0.6 + (blind ? 0.15 : 0) + (starved ? 0.1 : 0) + (restart ? 0.1 : 0)),
    evidence: [
      say`${name(loss)} jumps from ${lossWas} to ${lossIs} at ${citeAt(loss, x)}, ${workOut('times', lossIs, lossWas)} times, and stays there`,
      ...[
        evidenceOfEv,
        returns,
        evidenceOfKl,
        restart ? say`the log begins anew at about ${citeAt(loss, x)}` : undefined,
      ].filter(s => s !== undefined),
    ],
    tracks: [loss, ...(ev === undefined ? [] : [ev])],
  };
}

/** Three of the first four rows are above a level, and so is the median of those that come next: two spikes are neither. */
function stays(values: Float64Array, level: number): boolean {
  if (share(values.subarray(0, 4), v => v > level) < 0.75) return false;
  const next = values.subarray(4, 16);
  return next.length === 0 || median(next) > level;
}

/**
 * The value loss rises to ten times all that it ever was, out of a calm run. Returns that grow raise it with their square,
 * and updates that are too large can blow it up as well: both are ruled out.
 */
function byLevel(signals: Signals): Change | undefined {
  const { progress, kl } = signals;
  const { loss } = signals.critic;
  if (loss === undefined || loss.n < 14 || progress === undefined || progress.track.n < 12) return undefined;
  const first = 8;
  let highest = Math.max(...loss.v.subarray(0, first));
  let best = { at: -1, rise: 0, before: 0, after: 0 };
  for (let i = first; i + 4 <= loss.n; i++) {
    const after = median(loss.v.subarray(i, i + 4));
    const rise = after / Math.max(highest, 1e-9);
    if (rise > best.rise && loss.v[i] > 3 * highest && stays(loss.v.subarray(i), 3 * highest))
      best = { at: i, rise, before: highest, after };
    highest = Math.max(highest, loss.v[i]);
  }
  if (best.at < 0) return undefined;
  const x = loss.x[best.at];
  const [was, is] = split(progress.track, x);
  if (was.length < 4 || is.length < 3) return undefined;
  const sizeOf = (values: Float64Array): number => quantile(values.map(Math.abs), 0.9);
  const grown = Math.max(1, sizeOf(is) / Math.max(sizeOf(was), 1e-9));
  if (best.rise < l.level * grown ** 2) return undefined;
  if (kl !== undefined) {
    const [calm] = split(kl.track, x);
    if (share(calm, v => v > 0.05) > 0.2) return undefined;
  }
  return {
    x,
    confidence: best.rise > 25 * grown ** 2 ? 0.9 : 0.75,
    evidence: [
      say`${name(loss)} was at most ${cite(rowsBetween(loss, 0, best.at), 'most')} before ${citeStep(loss, best.at)} and has a median of ${cite(rowsBetween(loss, best.at, best.at + 4), 'median')} in the four rows from it on`,
      say`${name(progress.track)} hardly notices: ${cite(rowsBetween(progress.track, Math.floor(was.length * 0.7), was.length), 'median')} before, ${cite(rowsSince(progress.track, x), 'median')} after`,
    ],
    tracks: [loss],
  };
}

/**
 * Rewards that became smaller: a critic that saw nearly everything predicts worse than a constant for a row or two, learns
 * the new scale, and its loss ends far below what it was, while the returns that are logged go on as before.
 */
function byDip(signals: Signals): Change | undefined {
  const { progress } = signals;
  const { loss, ev } = signals.critic;
  if (loss === undefined || ev === undefined || progress === undefined) return undefined;
  if (ev.n < 16 || loss.n !== ev.n || progress.track.n < 12) return undefined;
  for (let i = 6; i + 5 <= ev.n; i++) {
    const before = ev.v.subarray(i - 5, i);
    if (!(ev.v[i] < l.dipTo && quantile(before, 0.2) > l.dipFrom)) continue;
    const back = ev.v.subarray(i + 1).findIndex(v => v > l.dipBack);
    if (back < 0 || back > 8) continue;
    const level = median(loss.v.subarray(i - 5, i));
    const after = median(loss.v.subarray(Math.min(loss.n - 3, i + back + 2)));
    if (!(loss.v[i] > level && after < l.dipLoss * level)) continue;
    const x = ev.x[i];
    const [was, is] = split(progress.track, x);
    // Just before and just after: a return that is on its way up must not look like a jump.
    const [near, next] = [was.subarray(-3), is.subarray(0, 3)];
    if (near.length < 3 || next.length < 3) continue;
    if (Math.abs(median(next) - median(near)) > Math.max(4 * progress.noise, 0.3 * Math.abs(median(near))))
      continue;
    return {
      x,
      confidence: 0.65,
      evidence: [
        say`${name(ev)} falls from ${cite(rowsBetween(ev, i - 5, i), 'median')} to ${cite(rowsBetween(ev, i, i + 1), 'first')} at ${citeStep(ev, i)} and is back above ${limit(l.dipBack)} at ${citeStep(ev, i + 1 + back)}`,
        say`${name(loss)} had a median of ${cite(rowsBetween(loss, i - 5, i), 'median')} before and has ${cite(rowsBetween(loss, Math.min(loss.n - 3, i + back + 2)), 'median')} since, while ${name(progress.track)} hardly notices: ${cite(rowsBetween(progress.track, was.length - 3, was.length), 'median')} and ${cite(rowsBetween(progress.track, was.length, was.length + 3), 'median')}`,
      ],
      tracks: [loss, ev],
    };
  }
  return undefined;
}

/**
 * The value loss shrinks sixty times and more within a tenth of the run, while the critic explains as much as before and the
 * returns that are logged keep their size: rewards may be ten times as small, or the task may just be learnt.
 */
function byShrinking(signals: Signals): Change | undefined {
  const { progress } = signals;
  const { loss, ev } = signals.critic;
  if (loss === undefined || ev === undefined || progress === undefined || loss.n < l.shrunkRows)
    return undefined;
  const logs = loss.v.map(v => Math.log(Math.max(v, 1e-12)));
  const found = changePoint(logs, Math.max(3, Math.floor(loss.n / 12)));
  if (found === undefined || found.before - found.after < Math.log(l.shrunk)) return undefined;
  const x = loss.x[found.index];
  const [was, is] = split(ev, x);
  const [returns, later] = split(progress.track, x);
  if (was.length < 4 || is.length < 4 || returns.length < 4 || later.length < 4) return undefined;
  if (!(median(is) > l.shrunkExplained && median(was.subarray(-4)) > l.shrunkExplained)) return undefined;
  const size = (values: Float64Array): number => quantile(values, 0.9) - quantile(values, 0.1);
  const varied = size(later) / Math.max(size(returns.subarray(returns.length >> 1)), 1e-12);
  // The loss goes with the square of what the returns vary by.
  if (!(varied ** 2 > l.shrunkReturns * Math.exp(found.after - found.before))) return undefined;
  const variesNow = cite(rowsSince(progress.track, x), 'range of most');
  return {
    x,
    confidence: 0.4,
    evidence: [
      say`${name(loss)} had a median of ${cite(rowsBefore(loss, x), 'median')} before ${citeAt(loss, x)} and has ${cite(rowsSince(loss, x), 'median')} since, and the critic explains as much of the returns as before`,
      say`${name(progress.track)} varies by ${variesNow} since, ${workOut('times', variesNow, cite(rowsBetween(progress.track, returns.length >> 1, returns.length), 'range of most'))} times what it did just before`,
    ],
    tracks: [loss],
  };
}

export const rewardScaleChanged: Rule = {
  code: 'reward-scale-changed',
  title: 'The scale of the reward changed in mid-run',
  looksAt: ['episode/return', 'episode/length', 'loss/value', 'value/explained_variance', 'kl/step'],
  causes: ['reward-scale-changed'],
  text: {
    means:
      'From one row to the next the rewards are several times larger or smaller: a resumed run with another reward, a changed wrapper, a curriculum. The critic predicts returns of the old scale, so all advantages are wrong.',
    seen: `The return for a step of an episode jumps at least ${l.ratio} times from one still level to another while episodes stay as long, and each step had earned the same before, or the value loss jumps and the explained variance falls with it, or rewards above 0 shrink and the value loss with their square; or the value loss jumps more than ${l.jump} times within a few rows and stays, with the explained variance falling from above ${l.seeing} to below ${l.blind} or the KL below ${percent(l.starved)} of what it was, while the logged returns hardly change; or, out of a calm run, it rises to ${l.level} times all that it was before. A warning: an explained variance that falls from above ${l.dipFrom} to below ${l.dipTo} and is back above ${l.dipBack}, with a value loss below ${percent(l.dipLoss)} of what it was from then on. Told alone: a value loss that shrinks ${l.shrunk} times while the critic explains more than ${percent(l.shrunkExplained)} before and after, and the returns vary as before.`,
    todo: 'Go back to the reward of before, start a new model with the new one at the same size, or rescale the last layer of the critic by the same factor.',
    silent:
      'Returns that grow because the policy learns raise the value loss with their square, and a task in which the reward of a step grows with skill has no still level before.',
    references: ['docs/ppo.md'],
  },
  check(run, signals) {
    if (run.kind !== 'classic') return [];
    const grown = byRatio(signals) ?? byCritic(signals) ?? byLevel(signals);
    const shrunk = grown === undefined ? byDip(signals) : undefined;
    const found = grown ?? shrunk ?? byShrinking(signals);
    if (found === undefined) return [];
    return [
      finding('reward-scale-changed', {
        // Smaller rewards heal by themselves.
        severity: grown !== undefined ? 'critical' : shrunk !== undefined ? 'warning' : 'info',
        title: say`The scale of the reward ${(grown ?? shrunk) ? 'changed' : 'may have shrunk'} at ${unitOf(run)} ${citeAt(found.tracks[0], found.x)}`,
        cause: 'reward-scale-changed',
        confidence: found.confidence,
        evidence: found.evidence,
        fix: [
          `go back to the reward of before ${stepAt(run, found.x)}, or start a new run with the present one, scaled to the size of before`,
          run.trainer === 'keel'
            ? fixOf({
                code: `${typed('resume')} <run> --set rewardScale=<new> --rescale-critic`,
                aside: 'scales the critic with the reward',
              })
            : 'if the run must go on, scale the last layer of the critic by the same factor',
        ],
        watch: `${soon(run, signals.to - signals.from)} ${name(found.tracks[0])} should come back to where it was before`,
        marks: found.tracks.map(t => mark(t, found.x, signals.to)),
      }),
    ];
  },
};
