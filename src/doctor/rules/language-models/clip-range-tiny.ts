import { cite, citeSetting, limit, say, usual } from '../../judge/facts.ts';
import { limitsOf } from '../limits.ts';
import type { Rule } from '../rule.ts';
import { change, finding, mark, name, num, percent, soon } from '../words.ts';
import { gainsNothing, goesSaid, long } from './levels.ts';

const l = limitsOf('clip-range-tiny', {
  rows: 8,
  /** Sequence-level ratios (GSPO) are clipped at 3e-4: the clip fraction then tells them apart. */
  clip: 0.02,
  clipped: 0.2,
});

export const clipRangeTiny: Rule = {
  code: 'clip-range-tiny',
  title: 'A clip range that lets nothing through',
  looksAt: ['policy/clip_fraction', 'reward/mean'],
  causes: ['clip-range-too-small'],
  text: {
    means:
      'The clip range is so small that nearly every token leaves it with the first gradient step of a batch: all later steps are thrown away, and learning is as slow as one step a batch.',
    seen: `A clip range below ${num(l.clip)} with a median of ${percent(l.clipped)} or more of the tokens clipped.`,
    todo: 'Use a clip range of 0.1 to 0.3 for ratios of tokens.',
    silent: 'When the clip range is not known, or few tokens are clipped.',
    references: [
      'Zheng et al. 2025, arXiv:2507.18071: sequence-level ratios need small ranges, token-level ones do not',
    ],
  },
  check(run, signals) {
    const clip = run.config.clipRange;
    const clipped = long(signals.get('policy/clip_fraction'), l.rows);
    if (run.kind !== 'language-model' || clip === undefined || clip >= l.clip) return [];
    if (clipped === undefined || clipped.median < l.clipped) return [];
    const { progress } = signals;
    return [
      finding('clip-range-tiny', {
        severity: gainsNothing(progress) ? 'critical' : 'warning',
        title: say`A clip range of ${citeSetting('clipRange', clip)} clips ${cite(clipped, 'median', undefined, percent)} of the tokens`,
        cause: 'clip-range-too-small',
        confidence: 0.9,
        evidence: [
          say`the clip range is ${citeSetting('clipRange', clip)}; ${usual(0.1, 0.3)}`,
          say`${name(clipped)} has a median of ${cite(clipped, 'median')}; below ${limit(0.05)} is usual`,
          progress === undefined ? undefined : goesSaid(progress),
        ],
        fix: [change(run, { clipRange: 0.2, clipRangeHigh: 0.2 }, 'set the clip range to 0.2')],
        watch: `${soon(run, signals.to - signals.from)} ${name(clipped)} should fall below 0.05`,
        marks: [mark(clipped, signals.from, signals.to)],
      }),
    ];
  },
};
