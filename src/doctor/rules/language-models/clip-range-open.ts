import { cite, citeCourse, citeSetting, say } from '../../judge/facts.ts';
import { limitsOf } from '../limits.ts';
import type { Rule } from '../rule.ts';
import { change, finding, mark, name, num, soon } from '../words.ts';
import { bestSaid, late, long } from './levels.ts';

const l = limitsOf('clip-range-open', {
  rows: 8,
  clip: 0.9,
  clipHigh: 2,
  /** A clip fraction that is as good as none. */
  clipped: 0.01,
});

export const clipRangeOpen: Rule = {
  code: 'clip-range-open',
  title: 'A clip range that clips nothing, over several steps a batch',
  looksAt: ['policy/clip_fraction', 'reward/mean', 'kl/step', 'kl/ref'],
  causes: ['clip-range-too-large'],
  text: {
    means:
      'Several gradient steps go over each batch, and the clip range is so wide that no ratio leaves it: later steps learn from data of a policy that is long gone.',
    seen: `A clip range of ${num(l.clip)} or more, or an upper one of ${num(l.clipHigh)} or more, with less than ${num(l.clipped)} of the tokens clipped, and a reward that fell back or does not improve.`,
    todo: 'Use a clip range of 0.2.',
    silent:
      'When the reward rises and holds, when the clip range is not known, or with one gradient step a batch, where no ratio leaves 1.',
    references: [
      'Schulman 2017, arXiv:1707.06347',
      'Yu et al. 2025, arXiv:2503.14476: an upper range of 0.28',
    ],
  },
  check(run, signals) {
    const { clipRange = 0, clipRangeHigh = clipRange } = run.config;
    const clipped = long(signals.get('policy/clip_fraction'), l.rows);
    const { progress } = signals;
    if (run.kind !== 'language-model' || clipped === undefined || progress === undefined) return [];
    if ((clipRange < l.clip && clipRangeHigh < l.clipHigh) || late(clipped) >= l.clipped) return [];
    const fell = progress.collapsed || progress.drawdown >= 0.5;
    if (progress.track.n < l.rows || (!fell && (progress.improved || progress.saturated))) return [];
    const moved = signals.kl?.track ?? signals.get('kl/ref');
    return [
      finding('clip-range-open', {
        severity: 'critical',
        title: say`A clip range of ${citeSetting('clipRange', clipRange)}${clipRangeHigh === clipRange ? '' : say` to ${citeSetting('clipRangeHigh', clipRangeHigh)}`} clips ${clipped.median === 0 ? 'nothing' : 'next to nothing'}, and ${name(progress.track)} ${fell ? say`fell from ${citeCourse(progress, 'best')} to ${citeCourse(progress, 'end')}` : 'does not improve'}`,
        cause: 'clip-range-too-large',
        confidence: 0.95,
        evidence: [
          say`${name(clipped)} has a median of ${cite(clipped, 'median')}`,
          moved === undefined
            ? undefined
            : say`${name(moved)} has a median of ${cite(moved, 'median')}, at most ${cite(moved, 'most')}`,
          bestSaid(progress),
        ],
        fix: [change(run, { clipRange: 0.2, clipRangeHigh: 0.2 }, 'set the clip range to 0.2')],
        watch: `${soon(run, signals.to - signals.from)} ${name(progress.track)} should hold what it gains`,
        marks: [mark(clipped, signals.from, signals.to), mark(progress.track, signals.from, signals.to)],
      }),
    ];
  },
};
