import { blockMedians } from '../statistics/blocks.ts';
import { share } from '../statistics/order.ts';
import { longestAbove } from '../statistics/stretches.ts';
import type { Rule } from './rule.ts';
import { MIN_POINTS } from './signals.ts';
import { suspectOf } from './unstable.ts';
import { finding, mark, name, num, percent, place, soon } from './words.ts';

export const klHigh: Rule = {
  code: 'kl-high',
  title: 'KL of the updates is high for long',
  looksAt: ['kl/step', 'episode/return', 'train/lr', 'train/epochs_run', 'train/clip_range'],
  causes: ['learning-rate-too-high', 'too-many-epochs', 'clip-range-too-large'],
  text: {
    means:
      'Update after update moves the policy further than its samples support. PPO then optimises a surrogate that no longer describes the return, and what was learnt is lost again.',
    seen: 'Shares of the rows after the first tenth whose step KL is above 0.03, 0.05 and 0.1. It is critical when a fifth is above 0.05 and the return suffers, or when most is above 0.1. While the return rises it is a warning, and only if a setting is far from usual; where it holds most of its gain and slips a little, a warning if two fifths are above 0.05. A third of the rows above 0.02 is borderline, and only told, where the return does not improve.',
    todo: 'Change the setting that stands out: the learning rate (divide by 3 or more), the epochs (10 or fewer), the clip range (0.2). If none does, divide the learning rate by 3 and set a target KL of 0.015.',
    silent:
      'The KL to a reference and the KL of whole sequences have other scales. A high KL in the first tenth of a run is the start of learning. A run with ordinary settings that keeps improving is left alone below 0.2. With k1, which scatters, medians of blocks are looked at.',
    references: [
      'DLR-RM/stable-baselines3#324',
      'openai/baselines#975',
      'openai/baselines#456',
      'Schulman 2017, arXiv:1707.06347',
    ],
  },
  check(run, signals) {
    const { kl, progress } = signals;
    if (kl === undefined || kl.settled.length < MIN_POINTS) return [];
    // A token's KL is larger than an action's before it does harm, and is mostly logged with k1 or k2.
    const scale = run.kind === 'language-model' ? 4 : 1;
    const values = kl.signed ? blockMedians(kl.settled, 20) : kl.settled;
    const above = (level: number): number => share(values, v => v > level * scale);
    const [f3, f5, f10] = [above(0.03), above(0.05), above(0.1)];
    const suspect = suspectOf(signals);
    const unusual = suspect.excess >= 0.9;
    const fell = progress !== undefined && (progress.collapsed || progress.drawdown >= 0.5);
    // With ordinary settings, to hold what was gained at once is no failure.
    const holds = progress?.improved || progress?.saturated || (progress?.kept && !unusual);
    const stuck = progress !== undefined && progress.track.n >= 10 && !holds;
    const slips =
      progress !== undefined && !progress.improving && progress.best - progress.end > 4 * progress.noise;
    const severity =
      (f5 >= 0.2 && fell) ||
      (f5 >= 0.3 && (stuck || (unusual && f10 >= 0.25))) ||
      (f10 >= 0.6 && (unusual || !holds))
        ? 'critical'
        : (f3 >= 0.3 && unusual) ||
            (above(0.02) >= 0.3 && suspect.excess >= 2) ||
            (f5 >= 0.15 && fell) ||
            (f5 >= 0.4 && slips) ||
            above(0.2) >= 0.5
          ? 'warning'
          : above(0.02) >= 0.3 && !(progress?.improving ?? false)
            ? 'info'
            : undefined;
    if (severity === undefined) return [];
    const level = (severity === 'info' || f3 < 0.2 ? 0.02 : f5 >= 0.2 ? 0.05 : 0.03) * scale;
    const longest = longestAbove(kl.settled, level)!;
    const from = kl.settledX.find((_, i) => kl.settled[i] > level)!;
    return [
      finding('kl-high', {
        severity,
        title: `${name(kl.track)} is above ${num(level)} in ${percent(above(level / scale))} of the updates`,
        cause: severity === 'info' ? null : suspect.cause,
        confidence: severity === 'critical' ? suspect.confidence : suspect.confidence - 0.1,
        evidence: [
          `${name(kl.track)}: median ${num(kl.median)}, largest ${num(kl.max)}; 0.001 to 0.02 is usual`,
          `${longest.length} updates in a row are above ${num(level)}, from ${place(kl.settledX[longest.from])} to ${place(kl.settledX[longest.to])}`,
          suspect.why,
          progress === undefined
            ? undefined
            : fell
              ? `${name(progress.track)} fell from ${num(progress.best)} after ${place(progress.drawdownX)}`
              : progress.improved
                ? `${name(progress.track)} still improves, from ${num(progress.start)} to ${num(progress.end)}`
                : `${name(progress.track)} does not improve: ${num(progress.start)} at the start, ${num(progress.end)} at the end`,
        ],
        fix: suspect.fix,
        watch: `${soon(run, signals.to - signals.from)} ${name(kl.track)} should stay below ${num(0.02 * scale)}`,
        marks: [mark(kl.track, from, signals.to)],
      }),
    ];
  },
};
