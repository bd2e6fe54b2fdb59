import { quantile } from '../statistics/order.ts';
import { courseSaid } from './course.ts';
import type { Rule } from './rule.ts';
import { part } from './track.ts';
import { change, finding, mark, name, num, soon } from './words.ts';

export const criticNegative: Rule = {
  code: 'critic-negative',
  title: 'The critic is worse than none',
  looksAt: ['value/explained_variance', 'loss/value', 'episode/return'],
  causes: ['critic-not-learning'],
  text: {
    means:
      'Explained variance below 0 means that the mean of the returns would predict them better. For long, it makes the advantages point the wrong way.',
    seen: 'Explained variance below -0.2 in three quarters of the second half, with a value loss that is not negligible and a return that does not improve.',
    todo: 'Give the critic more weight, its own network or a higher rate, and scaled returns.',
    silent:
      'On a solved task the returns hardly vary, and explained variance may be -45 for that reason alone. While the return improves. When the value loss is next to 0.',
    references: ['DLR-RM/stable-baselines3#324', 'docs/ppo.md'],
  },
  check(run, signals) {
    const { critic, progress } = signals;
    const { ev, loss } = critic;
    if (run.kind !== 'classic' || ev === undefined || ev.n < 15 || progress === undefined) return [];
    if (progress.improved || progress.saturated || progress.constant) return [];
    if (!(quantile(part(ev, 0.5), 0.75) < -0.2)) return [];
    if (loss !== undefined && !(critic.lossLate > 1e-2)) return [];
    return [
      finding('critic-negative', {
        severity: quantile(part(ev, 0.5), 0.75) < -0.5 || progress.collapsed ? 'critical' : 'warning',
        title: `${name(ev)} stays below 0 (median ${num(critic.evLate)}): the critic is worse than the mean`,
        cause: 'critic-not-learning',
        confidence: 0.6,
        evidence: [
          `${name(ev)} is below ${num(quantile(part(ev, 0.5), 0.75))} in three quarters of the second half`,
          loss === undefined ? undefined : `${name(loss)} is ${num(critic.lossLate)}`,
          courseSaid(progress),
        ],
        fix: [
          change(run, { valueCoef: 1 }, 'give the value loss a weight of 1'),
          'give the critic its own network and a learning rate 3 times that of the policy, and normalise returns',
        ],
        watch: `${soon(run, signals.to - signals.from)} ${name(ev)} should rise above 0`,
        marks: [mark(ev, signals.from + 0.5 * (signals.to - signals.from), signals.to)],
      }),
    ];
  },
};
