import { share } from '../statistics/order.ts';
import { courseSaid } from './course.ts';
import type { Rule } from './rule.ts';
import { MIN_POINTS } from './signals.ts';
import { part } from './track.ts';
import { suspectOf } from './unstable.ts';
import { finding, mark, name, num, percent, soon } from './words.ts';

export const clipFractionHigh: Rule = {
  code: 'clip-fraction-high',
  title: 'Much of every batch is clipped',
  looksAt: ['policy/clip_fraction', 'episode/return'],
  causes: ['learning-rate-too-high', 'too-many-epochs'],
  text: {
    means:
      'A third or more of the samples leave the clip range within an update: the step is larger than the trust region that the clip range stands for.',
    seen: 'A clip fraction above 0.3 in most updates after the first tenth, with a setting far from usual or a return that falls or does not improve.',
    todo: 'Lower the learning rate, or run fewer epochs.',
    silent:
      'While the return improves with ordinary settings: fast learning clips too. For language models, whose clip ratios have other scales.',
    references: ['DLR-RM/stable-baselines3#324', 'openai/baselines#456'],
  },
  check(run, signals) {
    const clip = signals.get('policy/clip_fraction');
    const { progress } = signals;
    if (run.kind !== 'classic' || clip === undefined || clip.n < MIN_POINTS) return [];
    const settled = part(clip, 0.1);
    const often = share(settled, v => v > 0.3);
    if (often < 0.5) return [];
    const suspect = suspectOf(signals);
    const fell = progress !== undefined && (progress.collapsed || progress.drawdown >= 0.5);
    const unusual = suspect.excess >= 0.9;
    const holds = progress?.improved || progress?.saturated || (progress?.kept && !unusual);
    const stuck = progress !== undefined && progress.track.n >= 10 && !holds;
    if (!unusual && !(often >= 0.7 && (fell || stuck))) return [];
    const critical = unusual && (fell || stuck) && often >= 0.7;
    return [
      finding('clip-fraction-high', {
        severity: critical ? 'critical' : 'warning',
        title: `${name(clip)} is above 0.3 in ${percent(often)} of the updates`,
        cause: suspect.cause === 'clip-range-too-large' ? 'learning-rate-too-high' : suspect.cause,
        confidence: suspect.confidence - 0.15,
        evidence: [
          `${name(clip)}: median ${num(clip.median)}, largest ${num(clip.q(1))}; 0.02 to 0.2 is usual`,
          suspect.why,
          fell || stuck ? courseSaid(progress) : undefined,
        ],
        fix: suspect.fix,
        watch: `${soon(run, signals.to - signals.from)} ${name(clip)} should fall below 0.2`,
        marks: [mark(clip, signals.from, signals.to)],
      }),
    ];
  },
};
