/** A critic that is worse than none. */
import { cite, limit, rowsOf, say } from '../../judge/facts.ts';
import { quantile } from '../../statistics/order.ts';
import { courseSaid } from '../course.ts';
import { limitsOf } from '../limits.ts';
import type { Rule } from '../rule.ts';
import { part } from '../track.ts';
import { finding, mark, name, soon } from '../words.ts';
import { moreWeight, OWN_NETWORK } from './remedies.ts';

const l = limitsOf('critic-negative', {
  rows: 15,
  /** Three quarters of the second half are below this; below the other it is critical. */
  explained: -0.2,
  worse: -0.5,
  /** A value loss below this is that of a solved task. */
  loss: 1e-2,
});

export const criticNegative: Rule = {
  code: 'critic-negative',
  title: 'The critic is worse than none',
  looksAt: ['value/explained_variance', 'loss/value', 'episode/return'],
  causes: ['critic-not-learning'],
  text: {
    means:
      'Explained variance below 0 means that the mean of the returns would predict them better. For long, it makes the advantages point the wrong way.',
    seen: `Explained variance below ${l.explained} in three quarters of the second half, with a value loss above ${l.loss} and a return that does not improve; critical below ${l.worse}, or where the return collapsed.`,
    todo: 'Give the critic more weight, its own network or a higher rate, and scaled returns.',
    silent:
      'On a solved task the returns hardly vary, and explained variance may be -45 for that reason alone. While the return improves. When the value loss is next to 0.',
    references: ['DLR-RM/stable-baselines3#324', 'docs/ppo.md'],
  },
  gauges: ({ kind }, { critic: { ev } }) => [
    kind !== 'classic' || ev === undefined || ev.n < l.rows
      ? undefined
      : {
          of: 'what three quarters of the explained variance are below, in the second half',
          at: l.explained,
          value: quantile(part(ev, 0.5), 0.75),
          speaks: 'below',
        },
  ],
  check(run, signals) {
    const { critic, progress } = signals;
    const { ev, loss } = critic;
    if (run.kind !== 'classic' || ev === undefined || ev.n < l.rows || progress === undefined) return [];
    if (progress.improved || progress.saturated || progress.constant) return [];
    if (!(quantile(part(ev, 0.5), 0.75) < l.explained)) return [];
    if (loss !== undefined && !(critic.lossLate > l.loss)) return [];
    return [
      finding('critic-negative', {
        severity: quantile(part(ev, 0.5), 0.75) < l.worse || progress.collapsed ? 'critical' : 'warning',
        title: say`${name(ev)} stays below ${limit(0)} (median ${cite(rowsOf(ev, 0.5), 'median')}): the critic is worse than the mean`,
        cause: 'critic-not-learning',
        confidence: 0.6,
        evidence: [
          say`${name(ev)} is at most ${cite(rowsOf(ev, 0.5), 'quantile', 0.75)} in three quarters of the second half`,
          loss === undefined
            ? undefined
            : say`${name(loss)} has a median of ${cite(rowsOf(loss, 0.5), 'median')} there`,
          courseSaid(progress),
        ],
        fix: [moreWeight(run), `${OWN_NETWORK}, and normalise returns`],
        watch: `${soon(run, signals.to - signals.from)} ${name(ev)} should rise above 0`,
        marks: [mark(ev, signals.from + 0.5 * (signals.to - signals.from), signals.to)],
      }),
    ];
  },
};
