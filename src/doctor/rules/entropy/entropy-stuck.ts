import {
  cite,
  citeCount,
  citeCourse,
  citeSetting,
  rowsOf,
  say,
  settledOf,
  usual,
} from '../../judge/facts.ts';
import { entropyWeightOf } from '../../judge/loss-weights.ts';
import { blockMedians } from '../../statistics/blocks.ts';
import { median, quantile } from '../../statistics/order.ts';
import { trend } from '../../statistics/trend.ts';
import { limitsOf } from '../limits.ts';
import type { Rule } from '../rule.ts';
import type { Signals } from '../signals.ts';
import { part } from '../track.ts';
import { change, finding, mark, name, num, percent, soon } from '../words.ts';

/** The entropy coefficient that the losses imply, or a lower bound of it. */
export const impliedEntropyCoef = (signals: Signals): number | undefined =>
  entropyWeightOf(signals) ?? boundOfEntropyCoef(signals);

/**
 * A lower bound of the entropy coefficient: total = policy + value part - coefficient x H, and the value part is not
 * negative, so a total that is often far below the policy loss needs a large coefficient.
 */
function boundOfEntropyCoef(signals: Signals): number | undefined {
  const total = signals.get('loss/total');
  const policy = signals.get('loss/policy');
  const entropy = signals.get('policy/entropy');
  if (total === undefined || policy === undefined || entropy === undefined) return undefined;
  if (total.n < bound.rows || total.n !== policy.n || total.n !== entropy.n) return undefined;
  const bounds: number[] = [];
  for (let i = 0; i < total.n; i++) {
    const gap = policy.v[i] - total.v[i];
    if (entropy.v[i] > bound.entropy) bounds.push(gap > bound.gap ? gap / entropy.v[i] : 0);
  }
  return bounds.length < bound.told ? undefined : quantile(bounds, bound.often);
}

/** A coefficient that nothing tells but a total far below the policy loss. */
const bound = limitsOf('entropy-stuck/bound', {
  rows: 10,
  /** Rows with an entropy above the other. */
  told: 8,
  entropy: 0.05,
  /** How far the total is below: one minibatch's policy loss differs from the mean by some hundredths. */
  gap: 0.1,
  /** The share of the rows whose bound is taken. */
  often: 0.8,
});

/** The critic learns: it explains the returns, or its loss has halved. */
function criticWorks(signals: Signals): boolean {
  const { critic } = signals;
  if (critic.evLate > l.explains) return true;
  if (critic.loss === undefined || critic.loss.n < l.lossRows) return critic.ev === undefined;
  const over = trend(critic.loss.v);
  return over.end < l.halved * over.start && over.z < l.falls;
}

const l = limitsOf('entropy-stuck', {
  rows: 20,
  /** An entropy coefficient that is large: told, or implied by the losses. */
  coef: 0.05,
  implied: 0.15,
  /** One that is ordinary, and one that is a mistake even where the return still creeps up. */
  ordinary: 0.03,
  huge: 0.2,
  /** Of its maximum the entropy stays at this with a large coefficient, at this without; at its very maximum; and, while the return rises, at this. */
  stays: 0.75,
  high: 0.85,
  maximum: 0.97,
  rising: 0.9,
  /** It falls: standard scores of the trend, and how much. */
  score: -2.5,
  fall: 0.03,
  /** The critic learns: it explains so much, or its loss has so many rows, falls by this score and comes to this share. */
  explains: 0.3,
  lossRows: 10,
  falls: -2,
  halved: 0.5,
  /** A policy moves with a KL above this; at a rate below the other it could not. */
  kl: 5e-4,
  rate: 5e-5,
  /** Where it had begun to learn: so much is explained; the entropy falls by less than this; so many noises were gained, */
  sees: 0.5,
  sinks: 0.02,
  gained: 4,
  /** of which less than this share came in the last quarter, in no trend above this score. */
  gains: 0.15,
  trend: 2,
});

/** The largest coefficient that is usual: a tenth of one that is far beyond it is still too large. */
const USUAL = 0.01;
/** Within this share of the level at which it stays. */
const NEAR = 0.95;

export const entropyStuck: Rule = {
  code: 'entropy-stuck',
  title: 'The policy stays random',
  looksAt: [
    'policy/entropy',
    'policy/entropy_relative',
    'policy/clip_fraction',
    'kl/step',
    'episode/return',
    'loss/total',
  ],
  causes: ['entropy-bonus-too-large'],
  text: {
    means:
      'The policy moves and the critic works, but entropy stays near its maximum and does not fall any more: the bonus for randomness outweighs what acting well would bring.',
    seen: `Discrete actions. In the second half entropy is above ${percent(l.high)} of its maximum and does not fall, the return had risen and does so no more though it is not at a ceiling, the critic explains the returns, and the step KL is above ${num(l.kl)}: a warning. An entropy coefficient of ${l.coef} or more (${l.implied}, if the losses imply it) with an entropy above ${percent(l.stays)}, or an entropy above ${percent(l.maximum)} while the critic learns, makes it critical.`,
    todo: `Set the entropy coefficient to ${USUAL} or less.`,
    silent:
      'At the start of a run; when entropy still falls or the return still rises; when the policy is frozen or there is no reward, which keep entropy high too; when the coefficient is known to be ordinary.',
    references: ['DLR-RM/stable-baselines3#2240', 'volcengine/verl#781'],
  },
  check(run, signals) {
    const { relativeEntropy, progress, kl, settings } = signals;
    if (run.kind !== 'classic' || relativeEntropy === undefined || progress === undefined) return [];
    if (relativeEntropy.length < l.rows || progress.track.n < l.rows) return [];
    const entropy = signals.get('policy/entropy_relative') ?? signals.get('policy/entropy')!;
    const late = relativeEntropy.subarray(Math.floor(relativeEntropy.length / 2));
    const level = median(late);
    const coef = run.config.entropyCoef;
    const implied = impliedEntropyCoef(signals);
    const large = (coef ?? 0) >= l.coef || (coef === undefined && (implied ?? 0) >= l.implied);
    if (coef !== undefined && coef < l.ordinary) return [];
    if (!(level > (large ? l.stays : l.high))) return [];
    if (progress.saturated || progress.constant) return [];
    const over = trend(late);
    const falling = over.z < l.score && over.start - over.end > l.fall;
    if (falling) return [];
    const critic = criticWorks(signals);
    const moves = kl === undefined || kl.median > l.kl;
    const ran = signals.get('train/epochs_run');
    const rate = settings.lr ?? 3e-4;
    // At its very maximum for good, though the critic learns at the same rate: something holds the policy there.
    const pinned =
      moves &&
      level > l.maximum &&
      critic &&
      rate >= l.rate &&
      !progress.improved &&
      (ran === undefined || ran.median > 1);
    // It had begun to learn, and then neither became surer nor got better, though the critic sees well.
    const { noise } = progress;
    const gained = progress.best - progress.start;
    const [third, last] = [part(progress.track, 0.5, 0.75), part(progress.track, 0.75)];
    const stopped =
      level > l.high &&
      moves &&
      signals.critic.evLate > l.sees &&
      over.end > over.start - l.sinks &&
      gained > l.gained * noise &&
      median(last) - median(third) < l.gains * gained &&
      trend(blockMedians(part(progress.track, 0.5), 20)).z < l.trend;
    // So large a coefficient is a mistake even where the return still creeps up.
    const huge = (coef ?? 0) >= l.huge;
    const told = large && (moves || critic) && (huge || !(progress.improving && level < l.rising));
    if (!pinned && !stopped && !told) return [];
    return [
      finding('entropy-stuck', {
        severity: (large && !(huge && progress.improving)) || pinned ? 'critical' : 'warning',
        title: say`${name(entropy)} stays at ${citeCount('relative entropy of the second half', level, percent, entropy)} of its maximum and the return has stopped rising`,
        cause: 'entropy-bonus-too-large',
        confidence: large ? 0.92 : pinned ? 0.75 : 0.6,
        evidence: [
          say`in the second half the entropy is ${citeCount('relative entropy of the second half', level, percent, entropy)} of its maximum, from ${citeCount('relative entropy at the start of the second half', over.start, percent)} to ${citeCount('relative entropy at the end', over.end, percent)}`,
          say`${name(progress.track)} reached ${citeCourse(progress, 'best')} and ends at ${citeCourse(progress, 'end')}`,
          kl === undefined || !moves
            ? undefined
            : say`the policy does move: ${name(kl.track)} has a median of ${cite(settledOf(kl), 'median')}`,
          signals.critic.ev === undefined
            ? undefined
            : say`${name(signals.critic.ev)} has a median of ${cite(rowsOf(signals.critic.ev, 0.5), 'median')} in the second half`,
          coef !== undefined
            ? say`the entropy coefficient is ${citeSetting('entropyCoef', coef)}; ${usual(0, USUAL)}`
            : (implied ?? 0) > 0
              ? say`the total loss is so far below the policy loss that the entropy coefficient must be at least ${citeCount('least entropy coefficient', implied!, num)}`
              : undefined,
        ],
        fix: [
          change(
            run,
            { entropyCoef: coef === undefined ? 0 : Math.min(USUAL, Number((coef / 10).toPrecision(1))) },
            `set the entropy coefficient to ${coef === undefined ? 0 : USUAL} or less`,
          ),
        ],
        watch: `${soon(run, signals.to - signals.from)} ${name(entropy)} should begin to fall and ${name(progress.track)} to rise again`,
        // From where it first was so high: that does not move while the run goes on.
        marks: [mark(entropy, entropy.x[relativeEntropy.findIndex(v => v >= NEAR * level)], signals.to)],
      }),
    ];
  },
};
