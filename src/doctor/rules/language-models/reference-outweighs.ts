import { cite, citeSetting, rowsOf, say, usual } from '../../judge/facts.ts';
import { median } from '../../statistics/order.ts';
import { limitsOf } from '../limits.ts';
import type { Rule } from '../rule.ts';
import { part } from '../track.ts';
import { change, finding, mark, name, num, round, soon } from '../words.ts';
import { citeLate, goesSaid, late, long } from './levels.ts';

export const referenceOutweighsLimits = limitsOf('reference-outweighs', {
  rows: 16,
  /** A weight that is large beside rewards of about 1. */
  weight: 0.5,
  /** The KL that the policy is held at, per token. */
  kl: 0.05,
  /** It has come to where it is held: its end, over its level in the second quarter. */
  growth: 1.5,
});
const l = referenceOutweighsLimits;

/** The weight of the GRPO paper (Shao et al. 2024). */
const USUAL = 0.04;

export const referenceOutweighs: Rule = {
  code: 'reference-outweighs',
  title: 'The pull to the reference outweighs the reward',
  looksAt: ['kl/ref', 'kl/ref_coef', 'reward/mean'],
  causes: ['reference-too-strong'],
  text: {
    means:
      'The policy moves a little way from the reference and is held there: each further step costs more KL than it earns reward.',
    seen: `A weight of ${num(l.weight)} or more with a KL to the reference that ends below ${num(l.kl)} a token and within ${num(l.growth)} times of what it was in the second quarter of the run, or whose reward does not improve.`,
    todo: `Set the weight of the KL to ${num(USUAL)}, the usual one, or to a tenth of what it is where that is less.`,
    silent: 'Where the weight is small or not known, or the KL still grows while the reward rises.',
    references: ['huggingface/trl: beta, the weight of the KL', 'arXiv:2402.03300'],
  },
  check(run, signals) {
    const ref = long(signals.get('kl/ref'), l.rows);
    const coef = run.config.refCoef;
    const { progress } = signals;
    if (run.kind !== 'language-model' || ref === undefined || ref.kl?.per === 'sequence') return [];
    if (coef === undefined || coef < l.weight || progress === undefined || progress.saturated) return [];
    const ends = Math.abs(late(ref));
    const held = ends <= l.growth * Math.abs(median(part(ref, 0.25, 0.5)));
    if (!(ends < l.kl) || (progress.improved && !held)) return [];
    return [
      finding('reference-outweighs', {
        severity: progress.improved ? 'warning' : 'critical',
        title: say`At a weight of ${citeSetting('refCoef', coef)} ${name(ref)} is held at ${citeLate(ref)} and ${goesSaid(progress)}`,
        cause: 'reference-too-strong',
        confidence: 0.85,
        evidence: [
          say`the weight of the KL is ${citeSetting('refCoef', coef)}; ${usual(0, 0.1)}`,
          say`${name(ref)}: ${cite(ref, 'first')} at first, a median of ${cite(rowsOf(ref, 0.25, 0.5), 'median')} in the second quarter, ${citeLate(ref)} at the end`,
        ],
        fix: [
          change(
            run,
            { refCoef: round(Math.min(coef / 10, USUAL)) },
            `set the weight of the KL to ${num(USUAL)}`,
          ),
        ],
        watch: `${soon(run, signals.to - signals.from)} ${name(ref)} should grow and ${name(progress.track)} rise`,
        marks: [mark(ref, signals.from, signals.to), mark(progress.track, signals.from, signals.to)],
      }),
    ];
  },
};
