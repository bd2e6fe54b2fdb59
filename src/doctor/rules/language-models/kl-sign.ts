import { citeCount, citeSetting, say, workOut } from '../../judge/facts.ts';
import { courseOf, rises } from '../../judge/trends.ts';
import { limitsOf } from '../limits.ts';
import type { Rule } from '../rule.ts';
import { finding, mark, name, num, soon } from '../words.ts';
import { citeEarly, citeLate, early, endsSaid, late, long } from './levels.ts';

const l = limitsOf('kl-sign', {
  rows: 12,
  /** The KL at the end, per token, and over that at the start. */
  kl: 0.3,
  growth: 5,
  /** What the KL costs at the end, in ranges that the reward went through. */
  cost: 1,
});

export const klSign: Rule = {
  code: 'kl-sign',
  title: 'The penalty grows with its own weight',
  looksAt: ['kl/ref', 'kl/ref_coef', 'reward/mean'],
  causes: ['kl-sign-wrong'],
  text: {
    means:
      'The KL to the reference costs more than the whole reward moves, and yet the policy makes it larger and earns less for it. A penalty that is paid for nothing has the wrong sign: the loss rewards the distance.',
    seen: `A KL to the reference that surely rises to ${num(l.kl)} a token and ${num(l.growth)} times its start or more, while its weight times it is ${num(l.cost)} times the range of the reward or more, and the reward does not improve.`,
    todo: 'Look at the sign of the KL in the loss: it is added to a loss that is made small, and taken off a reward that is made large.',
    silent: 'Where the weight is not known, or the KL costs little beside the reward.',
    references: ['huggingface/trl: beta times the KL is added to the loss', 'docs/kl.md'],
  },
  check(run, signals) {
    const ref = long(signals.get('kl/ref'), l.rows);
    const coef = run.config.refCoef;
    const { progress } = signals;
    if (run.kind !== 'language-model' || ref === undefined || ref.kl?.per === 'sequence') return [];
    if (coef === undefined || progress === undefined || progress.improved) return [];
    const [begins, ends] = [early(ref), late(ref)];
    if (!(ends >= l.kl && ends >= l.growth * begins && rises(courseOf(ref.v)))) return [];
    const range = Math.max(progress.best, progress.end) - Math.min(progress.worst, progress.start);
    if (!(coef * ends >= l.cost * range)) return [];
    const [last, weight] = [citeLate(ref), citeSetting('refCoef', coef)];
    const costs = workOut('product', weight, last);
    return [
      finding('kl-sign', {
        severity: 'critical',
        title: say`${name(ref)} rises from ${citeEarly(ref)} to ${last} although it costs ${costs}, and ${name(progress.track)} does not improve`,
        cause: 'kl-sign-wrong',
        confidence: 0.9,
        evidence: [
          say`the weight of the KL is ${weight}; times ${last} that is ${costs}, where all of ${name(progress.track)} went through a range of ${citeCount('range of the reward', range, num, progress.track)}`,
          endsSaid(progress),
        ],
        fix: [
          'turn the sign of the KL round: it is added to the loss that the optimiser makes small, or taken off the reward',
          'restart from the first checkpoint: what was learnt since is distance',
        ],
        watch: `${soon(run, signals.to - signals.from)} ${name(ref)} should stay below ${num(l.kl)}`,
        marks: [mark(ref, signals.from, signals.to), mark(progress.track, signals.from, signals.to)],
      }),
    ];
  },
};
