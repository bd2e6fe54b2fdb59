import { cite, citeAt, limit, say } from '../../judge/facts.ts';
import { limitsOf } from '../limits.ts';
import type { Rule } from '../rule.ts';
import { finding, mark, name, percent, soon, unitOf } from '../words.ts';

const limits = limitsOf('skipped-minibatches', {
  rows: 3,
  /** Rows in which some were skipped; and the share of all rows that is critical. */
  skipped: 2,
  often: 0.2,
});

export const skippedMinibatches: Rule = {
  code: 'skipped-minibatches',
  title: 'Minibatches were skipped because they were not finite',
  looksAt: ['train/skipped'],
  causes: ['non-finite'],
  text: {
    means:
      'The loss or gradient of some minibatches was NaN or infinite, and the trainer left them out. The run survives, but something in its data is broken.',
    seen: `Skipped minibatches in ${limits.skipped} rows or more; critical in ${percent(limits.often)} of them.`,
    todo: 'Look at the observations and rewards of the first such row.',
    silent: 'A single skipped row.',
    references: ['docs/ppo.md'],
  },
  check(run, signals) {
    const skipped = signals.get('train/skipped');
    if (skipped === undefined || skipped.n < limits.rows) return [];
    const count = skipped.v.filter(v => v > 0).length;
    if (count < limits.skipped) return [];
    const often = count / skipped.n;
    const first = skipped.x[skipped.v.findIndex(v => v > 0)];
    return [
      finding('skipped-minibatches', {
        severity: often >= limits.often ? 'critical' : 'warning',
        title: say`Minibatches were skipped in ${cite(skipped, 'share above', 0)} of the rows, first at ${unitOf(run)} ${citeAt(skipped, first)}`,
        cause: 'non-finite',
        confidence: 0.85,
        evidence: [
          say`${name(skipped)} is above ${limit(0)} in ${cite(skipped, 'rows above', 0)} of ${cite(skipped, 'rows')} rows`,
        ],
        fix: ['check observations and rewards for NaN and infinity', 'clip rewards and observations'],
        watch: `${soon(run, signals.to - signals.from)} ${name(skipped)} should be 0`,
        marks: [mark(skipped, first, signals.to)],
      }),
    ];
  },
};
