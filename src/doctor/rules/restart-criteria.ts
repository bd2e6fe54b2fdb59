import { median } from '../statistics/order.ts';
import { spikes } from '../statistics/spikes.ts';
import { longestAbove } from '../statistics/stretches.ts';
import type { Rule } from './rule.ts';
import { inARow, PROBLEM_KL, rowWord, STREAK, WARNING_KL } from './streak.ts';
import { part } from './track.ts';
import { finding, mark, name, num, stepAt } from './words.ts';

export const restartCriteria: Rule = {
  code: 'restart-criteria',
  title: 'Signs that a run will not recover',
  looksAt: ['kl/step', 'episode/return', 'value/explained_variance', 'loss/value'],
  causes: [],
  text: {
    means:
      'Five signs, each of which alone may pass: KL above 0.03 for several updates in a row, spikes that grow, a return that collapsed, explained variance below 0, a value loss above ten million. Two or more together seldom recover.',
    seen: 'It counts which of the five hold in the second half of the run, and speaks from two on.',
    todo: 'Do not wait: mend the cause that the other findings name and restart, from a checkpoint before the first sign or anew.',
    silent:
      'With fewer than two signs, with fewer than 20 rows, or while the return still improves. It never changes the verdict.',
    references: ['DLR-RM/stable-baselines3#324'],
  },
  check(run, signals) {
    const { kl, progress, critic } = signals;
    if (run.kind !== 'classic' || signals.rows < 20 || progress === undefined || progress.improving)
      return [];
    const signs: string[] = [];
    if (kl !== undefined && kl.track.n >= 20 && !kl.signed) {
      const late = part(kl.track, 0.5);
      const longest = longestAbove(late, WARNING_KL);
      if (longest !== undefined && longest.length >= STREAK)
        signs.push(
          `${inARow(longest.length, rowWord(run, kl.track))} with ${name(kl.track)} above ${num(WARNING_KL)}`,
        );
      const found = spikes(kl.track.v, { level: PROBLEM_KL });
      const half = found.length >> 1;
      if (
        half >= 2 &&
        median(found.slice(half).map(s => s.value)) > 2 * median(found.slice(0, half).map(s => s.value))
      )
        signs.push(`${found.length} spikes of ${name(kl.track)}, growing`);
    }
    if (progress.collapsed)
      signs.push(`${name(progress.track)} collapsed from ${num(progress.best)} to ${num(progress.end)}`);
    if (critic.evLate < -0.1 && !(critic.lossLate < 1e-3))
      signs.push(`${name(critic.ev!)} is ${num(critic.evLate)}`);
    if (critic.lossLate > 1e7) signs.push(`${name(critic.loss!)} is ${num(critic.lossLate)}`);
    if (signs.length < 2) return [];
    return [
      finding('restart-criteria', {
        severity: 'info',
        title: `${signs.length} of the five signs that a run will not recover`,
        cause: null,
        confidence: 0.6,
        evidence: signs,
        fix: [
          `mend the cause and restart${progress.collapsed ? ` from the checkpoint nearest to ${stepAt(run, progress.bestX)}` : ' anew'}`,
        ],
        marks: [mark(progress.track, signals.from + (signals.to - signals.from) / 2, signals.to)],
      }),
    ];
  },
};
