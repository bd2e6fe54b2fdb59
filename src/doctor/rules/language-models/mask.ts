import { cite, citeCourse, say } from '../../judge/facts.ts';
import { limitsOf } from '../limits.ts';
import type { Rule } from '../rule.ts';
import { finding, mark, name, num, soon } from '../words.ts';
import { allOfOneLength, late, long } from './levels.ts';

const l = limitsOf('mask-counts-padding', {
  rows: 8,
  /** The share that is told to be cut off: fewer, and yet all are as long as allowed. */
  cut: 0.5,
});

export const mask: Rule = {
  code: 'mask-counts-padding',
  title: 'The mask counts what is behind the end',
  looksAt: [
    'completion/length',
    'completion/length_min',
    'completion/length_max',
    'completion/truncated',
    'reward/mean',
  ],
  causes: ['wrong-mask'],
  text: {
    means:
      'All completions are told to be of one length, that of the longest allowed, though they are not cut off: padding behind the end is counted. It is then in the loss as well, where it outweighs the answer.',
    seen: `A shortest and a longest completion of the same length in nearly all of ${l.rows} rows or more, while fewer than ${num(l.cut)} of them are cut off or the reward improves.`,
    todo: 'Let the mask end with the first end token, that token included. Where padding and end are one token, look for the first, not for all of them.',
    silent: 'Where all completions are cut off and nothing is learnt: then the model does not stop.',
    references: ['huggingface/trl: completion_mask up to the first end token'],
  },
  check(run, signals) {
    if (run.kind !== 'language-model') return [];
    const longest = long(signals.get('completion/length_max'), l.rows);
    const shortest = signals.get('completion/length_min');
    const cut = long(signals.get('completion/truncated'), l.rows);
    if (longest === undefined || !allOfOneLength(shortest, longest)) return [];
    const ends = cut !== undefined && late(cut) < l.cut;
    const improved = signals.progress?.improved ?? false;
    if (!ends && !improved) return [];
    return [
      finding('mask-counts-padding', {
        severity: ends ? 'critical' : 'warning',
        title: say`${name(shortest!)} and ${name(longest)} are ${cite(longest, 'most')} in nearly all rows${ends ? ', and yet few completions are cut off' : ''}`,
        cause: 'wrong-mask',
        confidence: ends ? 0.9 : 0.75,
        evidence: [
          cut === undefined ? undefined : say`${name(cut)} has a median of ${cite(cut, 'median')}`,
          improved
            ? say`${name(signals.progress!.track)} improves, from ${citeCourse(signals.progress!, 'start')} to ${citeCourse(signals.progress!, 'end')}: answers do end`
            : undefined,
        ],
        fix: [
          'let the mask of the completion end with the first end token, that token included',
          'print the mask of one short completion: it must have as many ones as the completion has tokens',
        ],
        watch: `${soon(run, signals.to - signals.from)} ${name(shortest!)} should be below ${name(longest)}`,
        marks: [mark(shortest!, signals.from, signals.to), mark(longest, signals.from, signals.to)],
      }),
    ];
  },
};
