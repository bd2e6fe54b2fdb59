import { cite, citeSetting, limit, say, settledOf, usual } from '../../judge/facts.ts';
import { fellBack } from '../course.ts';
import { limitsOf } from '../limits.ts';
import type { Rule } from '../rule.ts';
import { MIN_POINTS } from '../signals.ts';
import { change, finding, mark, name, percent, soon } from '../words.ts';
import { OK_KL, WARNING_KL } from './streak.ts';

const limits = limitsOf('clip-range-inert', {
  clip: 0.5,
  /** A KL that clipping would have held back, and in what share of the updates. */
  kl: 0.015,
  often: 0.25,
  /** Or a clip fraction that is as good as none, at a KL above this. */
  unclipped: 0.02,
  unheldKl: 0.005,
  /** Critical where the return fell and this share is far too large. */
  harmful: 0.2,
});

export const clipRangeInert: Rule = {
  code: 'clip-range-inert',
  title: 'A clip range that holds nothing back',
  looksAt: ['train/clip_range', 'policy/clip_fraction', 'kl/step'],
  causes: ['clip-range-too-large'],
  text: {
    means: `Clipping is what keeps a PPO update near the old policy. With a clip range of ${limits.clip} or more it never acts, so several epochs run as a plain policy gradient on old data.`,
    seen: `A clip range of ${limits.clip} or more while KL is above ${limits.kl} in ${percent(limits.often)} of the updates, or while the clip fraction is below ${limits.unclipped} although KL is above ${limits.unheldKl}.`,
    todo: 'Set the clip range to 0.1 - 0.2.',
    silent: 'When the clip range is not known, or updates stay small anyway.',
    references: ['openai/baselines#456', 'Schulman 2017, arXiv:1707.06347'],
  },
  gauges: (_, { settings: { clip } }) => [
    clip === undefined ? undefined : { of: 'the clip range', at: limits.clip, value: clip, speaks: 'above' },
  ],
  check(run, signals) {
    const { kl, settings, progress } = signals;
    const { clip } = settings;
    if (clip === undefined || clip < limits.clip || kl === undefined || kl.settled.length < MIN_POINTS)
      return [];
    const fraction = signals.get('policy/clip_fraction');
    const large = kl.above(limits.kl);
    const unheld = (fraction?.median ?? 1) < limits.unclipped && kl.median > limits.unheldKl;
    if (large < limits.often && !unheld) return [];
    const fell = progress !== undefined && fellBack(progress);
    const others = (settings.lr ?? 0) > 2e-3 || (settings.epochs ?? 0) > 20;
    return [
      finding('clip-range-inert', {
        severity: fell && kl.above(WARNING_KL) >= limits.harmful ? 'critical' : 'warning',
        title: say`A clip range of ${citeSetting('clipRange', clip)} does not hold the updates: ${name(kl.track)} has a median of ${cite(settledOf(kl), 'median')}`,
        cause: 'clip-range-too-large',
        confidence: others ? 0.5 : 0.85,
        evidence: [
          say`the clip range is ${citeSetting('clipRange', clip)}; ${usual(0.1, 0.2)}`,
          fraction === undefined
            ? undefined
            : say`${name(fraction)} has a median of ${cite(fraction, 'median')}: clipping ${fraction.median < limits.unclipped ? 'never acts' : 'acts late'}`,
          large > 0
            ? say`${name(kl.track)} is above ${limit(limits.kl)} in ${cite(settledOf(kl), 'share above', limits.kl)} of the updates, at most ${cite(settledOf(kl), 'most')}`
            : say`${name(kl.track)} is at most ${cite(settledOf(kl), 'most')}`,
        ],
        fix: [change(run, { clipRange: 0.2 }, 'set the clip range to 0.2')],
        watch: `${soon(run, signals.to - signals.from)} ${name(kl.track)} should stay below ${OK_KL}`,
        marks: [mark(kl.track, signals.from, signals.to)],
      }),
    ];
  },
};
