import { cite, citeSetting, rowsOf, say } from '../../judge/facts.ts';
import { quantile, share } from '../../statistics/order.ts';
import { trend } from '../../statistics/trend.ts';
import { limitsOf } from '../limits.ts';
import type { Rule } from '../rule.ts';
import { stalledOf } from '../steps/stalled.ts';
import { part } from '../track.ts';
import { change, finding, mark, name, num, percent, soon } from '../words.ts';
import { weightOfValueLoss } from './value-weight.ts';

/** A power of ten that brings the returns, as the log or else the error of the critic tells them, to about ±10. */
export function scaleFor(largest: number, valueLoss: number): number {
  const size = Math.max(Number.isFinite(largest) ? largest : 0, Math.sqrt(valueLoss));
  return Math.min(0.1, 10 ** -Math.round(Math.log10(Math.max(size, 1) / 10)));
}

const l = limitsOf('reward-scale', {
  rows: 8,
  /** An explained variance of about 0 throughout: its median late, and its 90th percentile. */
  blind: 0.05,
  blindMost: 0.2,
  /** Value losses: large; one that falls from here without explaining anything; millions; and one that no critic lives with. */
  loss: 1e3,
  swamping: 1e4,
  millions: 1e6,
  vast: 1e7,
  /** With millions: the critic explains less than this. */
  explained: 0.3,
  /** So many times larger than any return in the log is the error of the critic. */
  beyond: 3,
  /** Below this a learning rate starves the policy by itself. */
  rate: 2e-5,
  /** A loss that comes to less than this share of what it was. */
  falls: 0.5,
  /** Shares of the value loss in the total: not known not to be there, and surely there. */
  maybe: 0.01,
  surely: 0.1,
  /** The policy moves little below this median KL, and else the rate is not to blame. */
  kl: 1.5e-3,
  /** An adaptive rate at its floor: rows, the value loss, and the share of the rows. */
  pinnedRows: 20,
  pinnedLoss: 500,
  pinned: 0.7,
});
/** A value loss that no critic lives with. */
export const VAST_LOSS = l.vast;

export const rewardScale: Rule = {
  code: 'reward-scale',
  title: 'Returns too large for the critic',
  looksAt: ['loss/value', 'value/explained_variance', 'kl/step', 'episode/return', 'train/lr'],
  causes: ['reward-scale-too-large'],
  text: {
    means:
      'The value function must fit returns of thousands. Its loss of millions swamps the gradient that is clipped together with the policy, so the policy hardly moves, and the critic creeps towards the mean of the returns and explains nothing.',
    seen: `A value loss of ${num(l.loss)} or more with an explained variance of about 0 throughout (a median within ±${l.blind}, a 90th percentile below ${l.blindMost}), and one of: an error more than ${l.beyond} times any return in the log (what the learner gets is scaled up); a step KL that is starved at a learning rate of ${num(l.rate)} or more; a loss that begins at ${num(l.swamping)} or more and falls below ${percent(l.falls)} of that without ever explaining anything; one of ${num(l.swamping)} or more while the KL stays below ${num(l.kl)}, or that is surely in the total loss. Without an explained variance in the log: a loss of ${l.pinnedLoss} or more and an adaptive rate at its floor in ${percent(l.pinned)} of the rows. A loss of ${num(l.millions)} or more with an explained variance below ${l.explained}, and one above ${num(l.vast)} in any case.`,
    todo: 'Scale or normalise the rewards so that returns are between -10 and 10 (VecNormalize, a reward wrapper). Start anew: the critic has learnt the old scale.',
    silent:
      'A large value loss with a high explained variance is a critic that works. At the start of any run the critic explains nothing.',
    references: ['DLR-RM/stable-baselines3#2240', 'isaac-sim/IsaacLab#1999'],
  },
  check(run, signals) {
    const { critic, progress, settings, kl } = signals;
    if (run.kind !== 'classic' || critic.loss === undefined || critic.loss.n < l.rows) return [];
    const { loss, ev } = critic;
    const vl = critic.lossLate;
    const blind =
      ev !== undefined &&
      ev.n >= l.rows &&
      Math.abs(critic.evLate) < l.blind &&
      quantile(part(ev, 0.1), 0.9) < l.blindMost;
    const stalled = stalledOf(signals);
    const rate = settings.lr;
    const ordinary = rate === undefined || rate >= l.rate;
    const largest =
      progress === undefined
        ? Number.NaN
        : Math.max(Math.abs(progress.track.q(0.02)), Math.abs(progress.track.q(0.98)));
    const beyond =
      blind &&
      progress !== undefined &&
      progress.track.n >= 5 &&
      largest > 0 &&
      Math.sqrt(vl) > l.beyond * largest &&
      vl >= l.loss;
    // One epoch in every update: a target KL that stops it holds back policy and critic alike.
    const ran = signals.get('train/epochs_run');
    const stopped = ran !== undefined && ran.median <= 1 && run.config.epochs !== 1;
    const starved = !stopped && blind && stalled !== undefined && ordinary && vl >= l.loss;
    const over = trend(loss.v);
    const creeping = blind && vl >= l.loss && over.end < l.falls * over.start && loss.first >= l.swamping;
    // The critic is trained, sees nothing, and leaves the policy little.
    const swamped =
      !stopped &&
      blind &&
      vl >= l.swamping &&
      (weightOfValueLoss(signals) ?? 0.5) > l.maybe &&
      (kl?.median ?? 1) < l.kl &&
      ordinary;
    // Its loss is in the total that is trained on, and the policy moves, so that the rate is not to blame.
    const unseen =
      !stopped &&
      blind &&
      vl >= l.swamping &&
      (weightOfValueLoss(signals) ?? 0) > l.surely &&
      ordinary &&
      (kl?.median ?? 0) >= l.kl;
    const millions = vl >= l.millions && critic.evLate < l.explained;
    // Whatever the critic explains: ten million is one of the signs by which a run is given up.
    const vast = vl > l.vast;
    const proxy = run.klProxy;
    const lr = settings.lrTrack;
    const pinned =
      ev === undefined &&
      proxy !== undefined &&
      lr !== undefined &&
      lr.n >= l.pinnedRows &&
      vl >= l.pinnedLoss &&
      share(lr.v, v => v <= 1.05 * proxy.floor) >= l.pinned;
    if (!beyond && !starved && !creeping && !swamped && !unseen && !millions && !pinned && !vast) return [];
    const confidence = beyond ? 0.92 : starved ? 0.85 : millions || swamped || unseen ? 0.8 : 0.6;
    // A policy may learn without a critic, only slower.
    const learns =
      !beyond &&
      !starved &&
      !creeping &&
      !swamped &&
      !millions &&
      !pinned &&
      (progress?.improved || progress === undefined);
    return [
      finding('reward-scale', {
        severity: learns ? 'warning' : 'critical',
        title: say`${name(loss)} is ${cite(rowsOf(loss, 0.5), 'median')}: the returns are too large for the critic`,
        cause: 'reward-scale-too-large',
        confidence,
        evidence: [
          say`${name(loss)} has a median of ${cite(rowsOf(loss, 0.5), 'median')} in the second half; its largest is ${cite(loss, 'most')}`,
          ev === undefined
            ? undefined
            : say`${name(ev)} has a median of ${cite(rowsOf(ev, 0.5), 'median')} in the second half: the critic explains ${critic.evLate < l.blind ? 'nothing' : 'some of the returns'}`,
          beyond
            ? say`its error of about ${cite(rowsOf(loss, 0.5), 'root of the median')} is larger than nearly any return in the log (${cite(progress.track, 'size of most')}): what the learner gets is scaled up`
            : undefined,
          stalled !== undefined
            ? say`the policy hardly moves (${name(stalled.track)} ${cite(stalled.rows, 'median size')})${rate === undefined ? '' : say` at a learning rate of ${citeSetting('learningRate', rate)}`}: the value loss takes the whole gradient`
            : undefined,
          pinned
            ? say`the adaptive learning rate is at its floor in ${cite(lr, 'share up to', 1.05 * proxy.floor)} of the rows`
            : undefined,
        ],
        fix: [
          change(
            run,
            { rewardScale: scaleFor(largest, vl) },
            'divide the rewards by the running std of the discounted return, or by a constant, so that returns are within ±10',
          ),
          'start a new run: the critic has learnt returns of this scale',
        ],
        watch: `${soon(run, signals.to - signals.from)} ${name(loss)} should be below 10${ev === undefined ? '' : ` and ${name(ev)} should climb above 0.3`}`,
        marks: [
          mark(loss, signals.from, signals.to),
          ...(ev === undefined ? [] : [mark(ev, signals.from, signals.to)]),
          ...(stalled === undefined || kl === undefined ? [] : [mark(kl.track, signals.from, signals.to)]),
        ],
      }),
    ];
  },
};
