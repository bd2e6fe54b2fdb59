import { quantile, share } from '../statistics/order.ts';
import { trend } from '../statistics/trend.ts';
import type { Rule } from './rule.ts';
import { stalledOf } from './stalled.ts';
import { part } from './track.ts';
import { weightOfValueLoss } from './value-weight.ts';
import { change, finding, mark, name, num, percent, soon } from './words.ts';

/** A power of ten that brings the returns, as the log or else the error of the critic tells them, to about ±10. */
export function scaleFor(largest: number, valueLoss: number): number {
  const size = Math.max(Number.isFinite(largest) ? largest : 0, Math.sqrt(valueLoss));
  return Math.min(0.1, 10 ** -Math.round(Math.log10(Math.max(size, 1) / 10)));
}

/** A value loss that no critic lives with. */
const VAST_LOSS = 1e7;

export const rewardScale: Rule = {
  code: 'reward-scale',
  title: 'Returns too large for the critic',
  looksAt: ['loss/value', 'value/explained_variance', 'kl/step', 'episode/return', 'train/lr'],
  causes: ['reward-scale-too-large'],
  text: {
    means:
      'The value function must fit returns of thousands. Its loss of millions swamps the gradient that is clipped together with the policy, so the policy hardly moves, and the critic creeps towards the mean of the returns and explains nothing.',
    seen: 'A value loss of 1e3 or more with an explained variance of about 0 throughout, and one of: an error larger than any return in the log (what the learner gets is scaled up), a step KL that is starved at an ordinary learning rate, a loss of 1e4 and more that falls without ever explaining anything or that is known to be in the total loss, an adaptive rate pinned at its floor.',
    todo: 'Scale or normalise the rewards so that returns are between -10 and 10 (VecNormalize, a reward wrapper). Start anew: the critic has learnt the old scale.',
    silent:
      'A large value loss with a high explained variance is a critic that works. At the start of any run the critic explains nothing.',
    references: ['DLR-RM/stable-baselines3#2240', 'isaac-sim/IsaacLab#1999'],
  },
  check(run, signals) {
    const { critic, progress, settings, kl } = signals;
    if (run.kind !== 'classic' || critic.loss === undefined || critic.loss.n < 8) return [];
    const { loss, ev } = critic;
    const vl = critic.lossLate;
    if (!(vl >= 100)) return [];
    const blind =
      ev !== undefined && ev.n >= 8 && Math.abs(critic.evLate) < 0.05 && quantile(part(ev, 0.1), 0.9) < 0.2;
    const stalled = stalledOf(signals);
    const rate = settings.lr;
    const ordinary = rate === undefined || rate >= 2e-5;
    const largest =
      progress === undefined
        ? Number.NaN
        : Math.max(Math.abs(progress.track.q(0.02)), Math.abs(progress.track.q(0.98)));
    const beyond =
      blind &&
      progress !== undefined &&
      progress.track.n >= 5 &&
      largest > 0 &&
      Math.sqrt(vl) > 3 * largest &&
      vl >= 1e3;
    // One epoch in every update: a target KL that stops it holds back policy and critic alike.
    const ran = signals.get('train/epochs_run');
    const stopped = ran !== undefined && ran.median <= 1 && run.config.epochs !== 1;
    const starved = !stopped && blind && stalled !== undefined && ordinary && vl >= 1e3;
    const over = trend(loss.v);
    const creeping = blind && vl >= 1e3 && over.end < 0.5 * over.start && loss.first >= 1e4;
    // The critic is trained, sees nothing, and leaves the policy little.
    const swamped =
      !stopped &&
      blind &&
      vl >= 1e4 &&
      (weightOfValueLoss(signals) ?? 0.5) > 0.01 &&
      (kl?.median ?? 1) < 1.5e-3 &&
      ordinary;
    // Its loss is in the total that is trained on, and the policy moves, so that the rate is not to blame.
    const unseen =
      !stopped &&
      blind &&
      vl >= 1e4 &&
      (weightOfValueLoss(signals) ?? 0) > 0.1 &&
      ordinary &&
      (kl?.median ?? 0) >= 1.5e-3;
    const millions = vl >= 1e6 && critic.evLate < 0.3;
    // Whatever the critic explains: ten million is one of the signs by which a run is given up.
    const vast = vl > VAST_LOSS;
    const proxy = run.klProxy;
    const lr = settings.lrTrack;
    const pinned =
      ev === undefined &&
      proxy !== undefined &&
      lr !== undefined &&
      lr.n >= 20 &&
      vl >= 500 &&
      share(lr.v, v => v <= 1.05 * proxy.floor) >= 0.7;
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
        title: `${name(loss)} is ${num(vl)}: the returns are too large for the critic`,
        cause: 'reward-scale-too-large',
        confidence,
        evidence: [
          `${name(loss)} has a median of ${num(vl)} in the second half, at most ${num(loss.q(1))}`,
          ev === undefined
            ? undefined
            : `${name(ev)} stays at ${num(critic.evLate)}: the critic explains nothing`,
          beyond
            ? `its error of about ${num(Math.sqrt(vl))} is larger than any return in the log (${num(largest)}): what the learner gets is scaled up`
            : undefined,
          stalled !== undefined
            ? `the policy hardly moves (${name(stalled.track)} ${num(stalled.level)}) at a learning rate of ${num(rate ?? Number.NaN)}: the value loss takes the whole gradient`
            : undefined,
          pinned
            ? `the adaptive learning rate is at its floor in ${percent(share(lr.v, v => v <= 1.05 * proxy.floor))} of the rows`
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
