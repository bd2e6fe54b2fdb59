import { citeSetting, limit, say, usual } from '../../judge/facts.ts';
import { courseOf, rises } from '../../judge/trends.ts';
import { limitsOf } from '../limits.ts';
import type { Rule } from '../rule.ts';
import { change, finding, mark, name, num, soon } from '../words.ts';
import { citeEarly, citeLate, early, firstAndLast, goesSaid, late, long } from './levels.ts';

const l = limitsOf('entropy-weight', {
  rows: 16,
  /** A weight that is large for a language model. */
  large: 0.05,
  /** The entropy at the end, over that at the start: with a large weight, and without one. */
  kept: 0.9,
  growth: 1.5,
});

export const entropyWeight: Rule = {
  code: 'entropy-weight',
  title: 'What the entropy bonus makes of the policy',
  looksAt: ['policy/entropy', 'train/entropy_coef', 'reward/mean'],
  causes: ['entropy-bonus-too-large', 'entropy-collapse', 'entropy-explosion'],
  text: {
    means:
      'An entropy bonus that outweighs the reward keeps the policy at random; one with the wrong sign takes the entropy that is needed to find better answers; and entropy may grow by itself, where the reward no longer says anything.',
    seen: `A negative weight of the entropy; a weight of ${num(l.large)} or more, while the entropy keeps ${num(l.kept)} of its start or more and the reward does not improve; or, without such a weight, an entropy that surely rises to ${num(l.growth)} times its start while the reward does not improve.`,
    todo: 'Set the weight of the entropy to 0. Where there is none, lower the learning rate, or the upper clip range.',
    silent: 'Where the reward improves, or the entropy falls.',
    references: ['volcengine/verl#781', 'volcengine/verl#2738', 'volcengine/verl#6382'],
  },
  check(run, signals) {
    const entropy = long(signals.get('policy/entropy'), l.rows);
    const { progress } = signals;
    if (run.kind !== 'language-model' || entropy === undefined || progress === undefined) return [];
    if (progress.track.n < l.rows) return [];
    const coef = run.config.entropyCoef;
    const [begins, ends] = [early(entropy), late(entropy)];
    const negative = coef !== undefined && coef < 0;
    const poor = !progress.improved && !progress.saturated;
    const bonus = coef !== undefined && coef >= l.large && poor && ends >= l.kept * begins;
    const alone = !bonus && poor && ends >= l.growth * begins && rises(courseOf(entropy.v));
    if (!negative && !bonus && !alone) return [];
    return [
      finding('entropy-weight', {
        severity: bonus && !negative ? 'critical' : 'warning',
        title: negative
          ? say`The weight of the entropy is ${citeSetting('entropyCoef', coef)}: the loss rewards an entropy of ${limit(0)}`
          : say`${name(entropy)} goes from ${citeEarly(entropy)} to ${citeLate(entropy)} and ${name(progress.track)} does not improve`,
        cause: negative ? 'entropy-collapse' : bonus ? 'entropy-bonus-too-large' : 'entropy-explosion',
        confidence: negative ? 0.9 : bonus ? 0.9 : 0.6,
        evidence: [
          coef === undefined
            ? undefined
            : say`the weight of the entropy is ${citeSetting('entropyCoef', coef)}; ${usual(0, 0.001)}`,
          firstAndLast(entropy),
          goesSaid(progress),
        ],
        fix: [
          negative || bonus
            ? change(run, { entropyCoef: 0 }, 'set the weight of the entropy to 0')
            : change(
                run,
                signals.settings.lr === undefined
                  ? {}
                  : { learningRate: Number((signals.settings.lr / 3).toPrecision(1)) },
                'divide the learning rate by 3',
              ),
        ],
        watch: `${soon(run, signals.to - signals.from)} ${name(entropy)} should ${negative ? 'fall more slowly' : `fall below ${num(begins)}`}`,
        marks: [mark(entropy, signals.from, signals.to), mark(progress.track, signals.from, signals.to)],
      }),
    ];
  },
};
