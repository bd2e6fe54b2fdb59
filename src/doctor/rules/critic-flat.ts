import { quantile, share } from '../statistics/order.ts';
import { trend } from '../statistics/trend.ts';
import { scaleFor } from './reward-scale.ts';
import type { Rule } from './rule.ts';
import { part } from './track.ts';
import { weightOfValueLoss } from './value-weight.ts';
import { change, finding, mark, name, num, soon } from './words.ts';

export const criticFlat: Rule = {
  code: 'critic-flat',
  title: 'The critic never learns',
  looksAt: ['value/explained_variance', 'loss/value', 'loss/total', 'kl/step'],
  causes: ['critic-not-learning', 'no-reward-signal'],
  text: {
    means:
      'The explained variance stays at 0 from beginning to end while the value loss does not fall and the policy does move. The critic is switched off, disconnected or far too slow, so the advantages carry the whole noise of the returns.',
    seen: 'Explained variance within ±0.1 throughout (90th percentile below 0.1) for 12 rows or more, no fall of the value loss, a policy that moves by an ordinary KL. A total loss that does not contain the value loss proves that its weight is 0. One that does, with a value loss that stands still and a return that never rises, or whose size changes without any trace in the value loss, says that the rewards cannot be predicted at all: they do not depend on what is seen or done. Below 30 rows it is a warning, unless the weight is 0.',
    todo: 'Check the value coefficient, that gradients reach the value head, and its learning rate.',
    silent:
      'At the start of a run; when all returns are equal; when the policy is frozen as well or the returns are out of scale, which are other causes.',
    references: ['DLR-RM/stable-baselines3#2240', 'docs/ppo.md'],
  },
  check(run, signals) {
    const { critic, progress, kl } = signals;
    const { ev, loss } = critic;
    if (run.kind !== 'classic' || ev === undefined || ev.n < 12) return [];
    const settled = part(ev, 0.1);
    const off = run.config.valueCoef !== undefined && run.config.valueCoef < 1e-3;
    const weight = weightOfValueLoss(signals);
    const unweighted = off || (weight !== undefined && weight < 0.01);
    // Returns that are all equal have no variance to explain; but a critic that is trained would get their level right.
    if (progress?.constant && !unweighted) return [];
    const flat = quantile(settled, 0.9) < 0.1 && Math.abs(critic.evLate) < 0.1;
    const never = quantile(settled, 0.9) < (unweighted ? 0.3 : 0.1) && critic.evLate < 0.1;
    if (!(flat || (unweighted && never))) return [];
    if (loss !== undefined && (critic.lossLate < 1e-3 || loss.n < 8)) return [];
    if (kl !== undefined && kl.median < 2e-4 && !unweighted) return [];
    const over = loss === undefined ? undefined : trend(loss.v);
    const falls = over !== undefined && over.end < 0.5 * over.start && over.z < -2;
    if (falls && !unweighted) return [];
    const evidenceOfWeight = off
      ? `the value coefficient is ${num(run.config.valueCoef)}`
      : unweighted
        ? `the total loss is ${num(weight!)} of the value loss: it does not contain it, so the value coefficient is 0`
        : undefined;
    // Its weight is known not to be 0, its loss stands still and no policy earns more: there is nothing to be predicted.
    const weighted = (run.config.valueCoef ?? 0) >= 0.1 || (weight !== undefined && weight > 0.1);
    const still = over !== undefined && Math.abs(Math.log(over.end / over.start)) < 0.35;
    // The same if the return drifts by luck: returns of another size would be another loss.
    const unmoved =
      progress !== undefined &&
      (!progress.improved || Math.abs(Math.log(Math.abs(progress.end / progress.start))) > 0.4);
    const pointless = weighted && still && unmoved;
    const moving = kl === undefined || kl.median >= 2e-4;
    return [
      finding('critic-flat', {
        // Many good runs explain nothing in their first rows.
        severity: unweighted || (ev.n >= 30 && !(progress?.improved ?? true)) ? 'critical' : 'warning',
        title: `${name(ev)} stays at ${num(critic.evLate)}: the critic does not learn`,
        cause: pointless ? 'no-reward-signal' : 'critic-not-learning',
        confidence: unweighted ? 0.95 : moving && ev.n >= 20 ? 0.75 : 0.65,
        evidence: [
          `${name(ev)} is below 0.1 in ${num(100 * share(settled, v => v < 0.1))}% of the rows after the first tenth`,
          loss === undefined || over === undefined
            ? undefined
            : `${name(loss)} does not fall: ${num(over.start)} at the start, ${num(over.end)} at the end`,
          evidenceOfWeight,
          kl === undefined
            ? undefined
            : `the policy does move: ${name(kl.track)} has a median of ${num(kl.median)}`,
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
                'check that the value head gets gradients, and give it a rate of its own, 3 times that of the policy',
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
