import { cite, citeStep, say, settledOf } from '../../judge/facts.ts';
import { limitsOf } from '../limits.ts';
import type { Rule } from '../rule.ts';
import { finding, mark, name, percent, soon } from '../words.ts';
import { suspectOf } from './unstable.ts';

const limits = limitsOf('kl-coef-runaway', {
  rows: 10,
  /** Where it ends, and how many times that is where it started. */
  end: 50,
  times: 100,
  /** Of its largest value at the end. */
  largest: 0.9,
});

export const klCoefRunaway: Rule = {
  code: 'kl-coef-runaway',
  title: 'The KL penalty grows without end',
  looksAt: ['kl/coef', 'kl/step'],
  causes: ['learning-rate-too-high'],
  text: {
    means:
      'An adaptive penalty multiplies its weight each time the KL is above twice its target. A weight that never stops growing says that the penalty cannot hold the updates, and in the end it is the whole loss.',
    seen: `A coefficient that ends above ${limits.end}, ${limits.times} times above where it started, and at ${percent(limits.largest)} of its largest value or more.`,
    todo: 'Lower the learning rate or the number of epochs, cap the coefficient, or raise the target.',
    silent: 'A coefficient that finds a level, or falls: halving down to 0 is what small updates do.',
    references: ['ray-project/ray#18492'],
  },
  check(run, signals) {
    const coef = signals.get('kl/coef');
    if (coef === undefined || coef.n < limits.rows) return [];
    if (
      !(
        coef.last > limits.end &&
        coef.last > limits.times * coef.first &&
        coef.last >= limits.largest * coef.q(1)
      )
    )
      return [];
    const suspect = suspectOf(signals);
    const { kl } = signals;
    return [
      finding('kl-coef-runaway', {
        severity: 'warning',
        title: say`${name(coef)} grew from ${cite(coef, 'first')} to ${cite(coef, 'last')}`,
        cause: suspect.cause,
        confidence: 0.6,
        evidence: [
          say`${name(coef)} ends at ${cite(coef, 'last')} (${citeStep(coef, coef.n - 1)}); its largest is ${cite(coef, 'most')}`,
          kl === undefined
            ? undefined
            : say`${name(kl.track)} has a median of ${cite(settledOf(kl), 'median')}`,
        ],
        fix: [...suspect.fix, 'cap the coefficient, or raise the KL that it aims at'],
        watch: `${soon(run, signals.to - signals.from)} ${name(coef)} should find a level`,
        marks: [mark(coef, signals.from, signals.to)],
      }),
    ];
  },
};
