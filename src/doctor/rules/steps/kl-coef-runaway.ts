import { cite, citeStep, say, settledOf } from '../../judge/facts.ts';
import type { Rule } from '../rule.ts';
import { finding, mark, name, soon } from '../words.ts';
import { suspectOf } from './unstable.ts';

export const klCoefRunaway: Rule = {
  code: 'kl-coef-runaway',
  title: 'The KL penalty grows without end',
  looksAt: ['kl/coef', 'kl/step'],
  causes: ['learning-rate-too-high'],
  text: {
    means:
      'An adaptive penalty multiplies its weight each time the KL is above twice its target. A weight that never stops growing says that the penalty cannot hold the updates, and in the end it is the whole loss.',
    seen: 'A coefficient that ends above 50 and at least 100 times above where it started, still at its largest in the last tenth.',
    todo: 'Lower the learning rate or the number of epochs, cap the coefficient, or raise the target.',
    silent: 'A coefficient that finds a level, or falls: halving down to 0 is what small updates do.',
    references: ['ray-project/ray#18492'],
  },
  check(run, signals) {
    const coef = signals.get('kl/coef');
    if (coef === undefined || coef.n < 10) return [];
    const start = Math.max(coef.first, 1e-3);
    if (!(coef.last > 50 && coef.last > 100 * start && coef.last >= 0.9 * coef.q(1))) return [];
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
