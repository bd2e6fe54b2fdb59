/** A critic that never learns. */
import { cite, citeCount, citeSetting, limit, rowsOf, say, settledOf } from '../../judge/facts.ts';
import { quantile } from '../../statistics/order.ts';
import { trend } from '../../statistics/trend.ts';
import { limitsOf } from '../limits.ts';
import type { Rule } from '../rule.ts';
import type { Signals } from '../signals.ts';
import { part } from '../track.ts';
import { change, finding, mark, name, num, percent, soon } from '../words.ts';
import { OWN_RATE } from './remedies.ts';
import { scaleFor } from './reward-scale.ts';
import { weightOfValueLoss } from './value-weight.ts';

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
  /** An explained variance this near to 0 is of a critic with one answer to all states, even if its loss falls. */
  alike: 1e-3,
  /** Rows without which it is a warning. */
  sure: 30,
});

/** Where an episode is one step there may be one state, and nothing to tell apart. */
function isOneStep(signals: Signals): boolean {
  const length = signals.get('episode/length');
  return length !== undefined && length.n > 0 && length.median <= 1;
}

export const criticFlat: Rule = {
  code: 'critic-flat',
  title: 'The critic never learns',
  looksAt: ['value/explained_variance', 'loss/value', 'loss/total', 'kl/step'],
  causes: ['critic-not-learning', 'no-reward-signal'],
  text: {
    means:
      'The explained variance stays at 0 from beginning to end while the value loss does not fall and the policy does move. The critic is switched off, disconnected or far too slow, so the advantages carry the whole noise of the returns.',
    seen: `Explained variance within ±${l.explained} throughout (90th percentile below it) for ${l.rows} rows or more, a value loss that stays above ${percent(l.falls)} of what it was, a policy that moves (a median KL of ${num(l.kl)} or more). Where it is within ±${num(l.alike)} in ${l.sure} rows or more, the critic has one answer to all states, and its loss may fall with the level of the returns. A total loss that does not contain the value loss proves that its weight is 0. One that does, with a value loss that stands still and a return that never rises, or whose size changes without any trace in the value loss, says that the rewards cannot be predicted at all: they do not depend on what is seen or done. Below ${l.sure} rows it is a warning, unless the weight is 0.`,
    todo: 'Check the value coefficient, that gradients reach the value head, and its learning rate.',
    silent:
      'At the start of a run; when all returns are equal; when the policy is frozen as well or the returns are out of scale, which are other causes; where an episode is one step, unless the value loss stands still.',
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
    // One answer to all states follows the level of the returns, and its loss falls with that.
    const alike = ev.n >= l.sure && quantile(settled.map(Math.abs), 0.9) < l.alike && !isOneStep(signals);
    if (falls && !unweighted && (!alike || progress?.saturated)) return [];
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
          alike && !unweighted
            ? say`it is between ${cite(rowsOf(ev, 0.1), 'quantile', 0.05)} and ${cite(rowsOf(ev, 0.1), 'quantile', 0.95)} in ${limit(0.9, percent)} of these rows: one answer to all states, which follows the level of the returns and nothing else`
            : undefined,
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
                alike
                  ? 'normalise the observations: large ones saturate the first layer, and all states look alike'
                  : undefined,
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
