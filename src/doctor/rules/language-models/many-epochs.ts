import { cite, citeSetting, limit, say } from '../../judge/facts.ts';
import { limitsOf } from '../limits.ts';
import type { Rule } from '../rule.ts';
import { change, finding, mark, name, percent, soon } from '../words.ts';
import { gainsNothing, goesSaid, long } from './levels.ts';

const l = limitsOf('many-epochs', {
  rows: 8,
  /** Passes over each batch; 1 to 4 are usual. */
  epochs: 8,
  clipped: 0.08,
});

export const manyEpochs: Rule = {
  code: 'many-epochs',
  title: 'So many passes over each batch that much of it is clipped',
  looksAt: ['policy/clip_fraction', 'reward/mean'],
  causes: ['too-many-epochs'],
  text: {
    means:
      'Each batch is learnt from again and again, until the policy is so far from the one that wrote it that the clip holds much of it.',
    seen: `${l.epochs} passes over each batch or more, with a median of ${percent(l.clipped)} or more of the tokens clipped. Critical where the reward does not improve.`,
    todo: 'Use 1 to 4 passes.',
    silent: 'Where the number of passes is not known, or little is clipped.',
    references: ['huggingface/trl: num_iterations'],
  },
  check(run, signals) {
    const { epochs } = run.config;
    const clipped = long(signals.get('policy/clip_fraction'), l.rows);
    if (run.kind !== 'language-model' || epochs === undefined || epochs < l.epochs) return [];
    if (clipped === undefined || clipped.median < l.clipped) return [];
    const { progress } = signals;
    return [
      finding('many-epochs', {
        severity: gainsNothing(progress) || progress?.collapsed ? 'critical' : 'warning',
        title: say`${citeSetting('epochs', epochs)} passes over each batch, and ${cite(clipped, 'median', undefined, percent)} of the tokens are clipped`,
        cause: 'too-many-epochs',
        confidence: 0.85,
        evidence: [
          say`${name(clipped)} has a median of ${cite(clipped, 'median')}; below ${limit(0.05)} is usual`,
          progress === undefined ? undefined : goesSaid(progress),
        ],
        fix: [change(run, { epochs: 2 }, 'use 2 passes over each batch')],
        watch: `${soon(run, signals.to - signals.from)} ${name(clipped)} should fall below 0.05`,
        marks: [mark(clipped, signals.from, signals.to)],
      }),
    ];
  },
};
