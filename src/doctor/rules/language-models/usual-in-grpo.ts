import { cite, limit, say } from '../../judge/facts.ts';
import { quantile } from '../../statistics/order.ts';
import { limitsOf } from '../limits.ts';
import type { Rule } from '../rule.ts';
import { finding, mark, name, num } from '../words.ts';
import { long } from './levels.ts';

const l = limitsOf('usual-in-grpo', {
  rows: 5,
  /** A loss whose rows are all this near to 0. */
  loss: 0.02,
  /** The share of rows with a negative loss from which on people ask. */
  negative: 0.2,
});

export const usualInGrpo: Rule = {
  code: 'usual-in-grpo',
  title: 'What looks odd and is usual in GRPO',
  looksAt: ['loss/total', 'loss/policy', 'policy/clip_fraction', 'grad/norm'],
  causes: [],
  text: {
    means:
      'Advantages of a group have a mean of 0 and ratios are 1 in the first gradient step of a batch. The loss is then about 0, or below it, while its gradient is not; and nothing is clipped where each batch is used for one step.',
    seen: `A loss within ${num(l.loss)} of 0 in 9 rows of 10, or negative in ${num(l.negative)} of the rows or more, with a gradient above 0; a clip fraction of 0 in every row.`,
    todo: 'Nothing. Judge a run by its reward, its KL and its entropy.',
    silent:
      'Where the gradient is 0 as well: then nothing is learnt. It says nothing of negative losses under an entropy bonus, nor of clip fractions where a batch is used for several steps. It never changes the verdict.',
    references: ['huggingface/trl#3452', 'huggingface/trl#3120', 'DLR-RM/stable-baselines3#602'],
  },
  check(run, signals) {
    const gradient = long(signals.get('grad/norm'), l.rows);
    if (run.kind !== 'language-model' || gradient === undefined || gradient.median < 1e-6) return [];
    const loss = long(signals.get('loss/total') ?? signals.get('loss/policy'), l.rows);
    const clip = long(signals.get('policy/clip_fraction'), l.rows);
    const small = loss !== undefined && quantile(loss.v.map(Math.abs), 0.9) <= l.loss;
    // An entropy bonus takes the loss below 0 by itself, and of several steps a batch the later ones have other ratios.
    const below =
      loss !== undefined && quantile(loss.v, l.negative) < 0 && !((run.config.entropyCoef ?? 0) > 0);
    const unclipped = clip !== undefined && clip.q(1) === 0 && (run.config.epochs ?? 1) <= 1;
    if (!small && !below && !unclipped) return [];
    return [
      finding('usual-in-grpo', {
        severity: 'info',
        title: [
          small ? `${name(loss)} is next to nothing` : below ? `${name(loss)} is often negative` : undefined,
          unclipped ? `nothing is clipped (${name(clip)})` : undefined,
        ]
          .filter(text => text !== undefined)
          .join(' and ')
          .concat(': that is usual in GRPO'),
        cause: null,
        confidence: 0.9,
        evidence: [
          small || below
            ? say`${name(loss)} has a median of ${cite(loss, 'median')}, and ${name(gradient)} one of ${cite(gradient, 'median')}: the mean advantage of a group is ${limit(0)}, its gradient is not`
            : undefined,
          unclipped
            ? say`${name(clip)} is ${limit(0)} in all ${cite(clip, 'rows')} rows: with one step a batch every ratio is ${limit(1)}`
            : undefined,
        ],
        fix: ['nothing is to be changed for it: judge the run by its reward, its KL and its entropy'],
        marks: [
          ...(small || below ? [mark(loss, signals.from, signals.to)] : []),
          ...(unclipped ? [mark(clip, signals.from, signals.to)] : []),
        ],
      }),
    ];
  },
};
