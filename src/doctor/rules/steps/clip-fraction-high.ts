import { cite, limit, rowsOf, say, usual } from '../../judge/facts.ts';
import { median, share } from '../../statistics/order.ts';
import { courseSaid, standingOf } from '../course.ts';
import { limitsOf } from '../limits.ts';
import type { Rule } from '../rule.ts';
import { MIN_POINTS } from '../signals.ts';
import { part } from '../track.ts';
import { finding, mark, name, percent, soon } from '../words.ts';
import { suspectLimits, suspectOf } from './unstable.ts';

const limits = limitsOf('clip-fraction-high', {
  clipped: 0.3,
  /** Shares of the updates after the first tenth: beside an unusual setting, and without one. */
  often: 0.5,
  mostly: 0.7,
});

export const clipFractionHigh: Rule = {
  code: 'clip-fraction-high',
  title: 'Much of every batch is clipped',
  looksAt: ['policy/clip_fraction', 'episode/return'],
  causes: ['learning-rate-too-high', 'too-many-epochs'],
  text: {
    means:
      'Three in ten or more of the samples leave the clip range within an update: the step is larger than the trust region that the clip range stands for.',
    seen: `A clip fraction above ${limits.clipped} in ${percent(limits.often)} of the updates after the first tenth, with a setting far from usual; or in ${percent(limits.mostly)} of them, with a return that falls or does not improve. Both together are critical.`,
    todo: 'Lower the learning rate, or run fewer epochs.',
    silent:
      'While the return improves with ordinary settings: fast learning clips too. For language models, whose clip ratios have other scales.',
    references: ['DLR-RM/stable-baselines3#324', 'openai/baselines#456'],
  },
  gauges(_, signals) {
    const clip = signals.get('policy/clip_fraction');
    return [
      clip === undefined || clip.n < MIN_POINTS
        ? undefined
        : {
            of: 'the median of the clip fraction',
            at: limits.clipped,
            value: median(part(clip, 0.1)),
            speaks: 'above',
          },
    ];
  },
  check(run, signals) {
    const clip = signals.get('policy/clip_fraction');
    const { progress } = signals;
    if (run.kind !== 'classic' || clip === undefined || clip.n < MIN_POINTS) return [];
    const settled = part(clip, 0.1);
    const often = share(settled, v => v > limits.clipped);
    if (often < limits.often) return [];
    const suspect = suspectOf(signals);
    const unusual = suspect.excess >= suspectLimits.unusual;
    const { fell, stuck } = standingOf(progress, unusual);
    const harms = (fell || stuck) && often >= limits.mostly;
    if (!unusual && !harms) return [];
    const critical = unusual && harms;
    return [
      finding('clip-fraction-high', {
        severity: critical ? 'critical' : 'warning',
        title: say`${name(clip)} is above ${limit(limits.clipped)} in ${cite(rowsOf(clip, 0.1), 'share above', limits.clipped)} of the updates`,
        cause: suspect.cause === 'clip-range-too-large' ? 'learning-rate-too-high' : suspect.cause,
        confidence: suspect.confidence - 0.15,
        evidence: [
          say`${name(clip)}: median ${cite(clip, 'median')}, largest ${cite(clip, 'most')}; ${usual(0.02, 0.2)}`,
          suspect.why,
          progress !== undefined && (fell || stuck) ? courseSaid(progress) : undefined,
        ],
        fix: suspect.fix,
        watch: `${soon(run, signals.to - signals.from)} ${name(clip)} should fall below 0.2`,
        marks: [mark(clip, signals.from, signals.to)],
      }),
    ];
  },
};
