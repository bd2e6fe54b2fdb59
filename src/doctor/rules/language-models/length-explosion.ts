import { say } from '../../judge/facts.ts';
import { quantile } from '../../statistics/order.ts';
import { limitsOf } from '../limits.ts';
import type { Rule } from '../rule.ts';
import { part } from '../track.ts';
import { finding, mark, name, num, percent, soon } from '../words.ts';
import { citeEarly, citeLate, early, firstAndLast, late, long } from './levels.ts';

const l = limitsOf('length-explosion', {
  rows: 16,
  /** The length at the end, over that at the start. */
  growth: 2,
  /** The share that is cut off at the end, and at most at the start. */
  cut: 0.3,
  before: 0.1,
  /** The share from which on nearly nothing is answered any more. */
  most: 0.5,
});

export const lengthExplosion: Rule = {
  code: 'length-explosion',
  title: 'Completions grow until they are cut off',
  looksAt: ['completion/length', 'completion/truncated', 'reward/mean', 'reward/part/length'],
  causes: ['length-explosion'],
  text: {
    means:
      'Something pays for length, or nothing pays for an end: completions grow until they fill all the room that they have, and what is cut off has no answer.',
    seen: `A mean length of ${num(l.growth)} times its start or more in 9 of 10 rows of the last fifth, over ${l.rows} rows or more, while the share of completions that are cut off rises from ${percent(l.before)} at most to ${percent(l.cut)} at least; critical from ${percent(l.most)} on.`,
    todo: 'Take the reward for length out or cap it, pay only for what ends, or let the loss divide by a constant so that long answers do not weigh more. A larger limit only moves the point at which they are cut off.',
    silent: 'Lengths that grow while completions still end: a model that learns to think longer does so.',
    references: [
      'Liu et al. 2025, arXiv:2503.20783: the length bias of GRPO',
      'huggingface/trl: completions/clipped_ratio',
    ],
  },
  check(run, signals) {
    if (run.kind !== 'language-model') return [];
    const length = long(signals.get('completion/length'), l.rows);
    const cut = long(signals.get('completion/truncated'), l.rows);
    if (length === undefined || cut === undefined) return [];
    const [begins, ends] = [early(length), late(length)];
    if (!(ends >= l.growth * begins && early(cut) <= l.before && late(cut) >= l.cut)) return [];
    // Nearly every row of the end is above the start, not the middle one alone.
    if (!(quantile(part(length, 0.8), 0.1) >= l.growth * begins)) return [];
    const paid = [...signals.tracks.values()].find(
      ({ id }) => id.startsWith('reward/part/') && /length|long|thorough|verbos/i.test(id),
    );
    return [
      finding('length-explosion', {
        severity: late(cut) >= l.most ? 'critical' : 'warning',
        title: say`${name(length)} grows from ${citeEarly(length)} to ${citeLate(length)} tokens, and ${citeLate(cut, percent)} of the completions are cut off`,
        cause: 'length-explosion',
        confidence: 0.85,
        evidence: [
          firstAndLast(cut),
          paid === undefined
            ? undefined
            : say`${name(paid)} goes from ${citeEarly(paid)} to ${citeLate(paid)}`,
        ],
        fix: [
          paid === undefined
            ? 'look for what pays for length: a part of the reward that grows with it, or a loss in which long answers weigh more'
            : `take ${name(paid)} out, or pay it only up to the length that a good answer has`,
          'give what is cut off a reward below that of a wrong answer that ends',
        ],
        watch: `${soon(run, signals.to - signals.from)} ${name(cut)} should fall below ${num(l.before)}`,
        marks: [mark(length, signals.from, signals.to), mark(cut, signals.from, signals.to)],
      }),
    ];
  },
};
