import { citeSetting, say } from '../../judge/facts.ts';
import { courseOf, falls, rises } from '../../judge/trends.ts';
import { limitsOf } from '../limits.ts';
import type { Rule } from '../rule.ts';
import { change, finding, mark, name, percent, round, soon } from '../words.ts';
import { early, firstAndLast, late, long } from './levels.ts';

const limits = limitsOf('kl-in-reward', {
  rows: 16,
  /** How much of its first level the score has lost while the sum with the penalty rose. */
  lost: 0.1,
});

export const klInReward: Rule = {
  code: 'kl-in-reward',
  title: 'The penalty in the reward is learnt, not the task',
  looksAt: ['reward/penalised', 'reward/mean', 'kl/ref', 'kl/ref_coef'],
  causes: ['kl-in-reward'],
  text: {
    means:
      'The reward that is learnt from has the KL to the reference taken off it. It rises because the policy goes back to the reference, while the score of the answers falls: the cheapest reward is to stay close.',
    seen: `A reward with the penalty in it that surely rises over ${limits.rows} rows or more, while the score without it surely falls by ${percent(limits.lost)} of its first level.`,
    todo: 'Lower the weight of the KL, or take it out of the reward and put it in the loss. A stronger pull makes it worse.',
    silent: 'Where the log has one of the two only, or both go the same way.',
    references: ['volcengine/verl: algorithm.use_kl_in_reward, critic/rewards against critic/score'],
  },
  check(run, signals) {
    const paid = long(signals.get('reward/penalised'), limits.rows);
    const score = long(signals.get('reward/mean'), limits.rows);
    if (run.kind !== 'language-model' || paid === undefined || score === undefined) return [];
    const [before, after] = [early(score), late(score)];
    if (!(before - after >= limits.lost * Math.abs(before) && before > after)) return [];
    if (!rises(courseOf(paid.v)) || !falls(courseOf(score.v))) return [];
    const coef = run.config.refCoef;
    const ref = signals.get('kl/ref');
    return [
      finding('kl-in-reward', {
        severity: 'warning',
        title: `${name(paid)} rises while ${name(score)} falls: the KL penalty is learnt, not the task`,
        cause: 'kl-in-reward',
        confidence: 0.8,
        evidence: [
          firstAndLast(paid),
          firstAndLast(score),
          ref === undefined || ref.n < limits.rows ? undefined : firstAndLast(ref),
          coef === undefined ? undefined : say`the weight of the KL is ${citeSetting('refCoef', coef)}`,
        ],
        fix: [
          change(
            run,
            coef === undefined ? {} : { refCoef: round(coef / 10) },
            'divide the weight of the KL in the reward by 10',
          ),
        ],
        watch: `${soon(run, signals.to - signals.from)} ${name(score)} should rise again`,
        marks: [mark(paid, signals.from, signals.to), mark(score, signals.from, signals.to)],
      }),
    ];
  },
};
