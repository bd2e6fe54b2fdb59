import { changePoint } from '../statistics/change-point.ts';
import { median, quantile } from '../statistics/order.ts';
import type { Rule } from './rule.ts';
import { split } from './track.ts';
import { finding, mark, name, num, place, soon, stepAt } from './words.ts';

export const criticDied: Rule = {
  code: 'critic-died',
  title: 'The critic died in mid-run',
  looksAt: ['value/explained_variance', 'loss/value'],
  causes: ['critic-not-learning'],
  text: {
    means:
      'The critic predicted returns well and then, from one row to the next, not at all: dead units, a saturated head, a value update that went wrong. The policy may go on for a while, on advantages that are pure noise.',
    seen: 'One change point at which the explained variance falls from above 0.4 to about 0, stays there for the rest of the run (at least 15 rows and a tenth of it), and the value loss is higher after it.',
    todo: 'Restart from a checkpoint before it, with gradient clipping, a lower rate for the critic or a clipped value loss.',
    silent:
      'When it recovers; when the task is solved and returns no longer vary, which brings explained variance to 0 with a value loss that falls.',
    references: [
      'Jorgitou98/Accelerating-RLlib-Models: a log in which it falls from 0.82 to 1e-9 at one row',
    ],
  },
  check(run, signals) {
    const { critic, progress } = signals;
    const { ev, loss } = critic;
    if (run.kind !== 'classic' || ev === undefined || ev.n < 30) return [];
    if (progress?.saturated || progress?.constant) return [];
    const found = changePoint(ev.v, Math.max(5, Math.floor(ev.n / 20)));
    if (found === undefined || found.p > 1e-3) return [];
    const after = ev.v.subarray(found.index);
    const before = ev.v.subarray(0, found.index);
    if (after.length < Math.max(15, 0.1 * ev.n)) return [];
    if (!(quantile(before, 0.3) > 0.4 && quantile(after, 0.9) < 0.1 && median(after) > -0.5)) return [];
    const x = ev.x[found.index];
    let rise = Number.NaN;
    if (loss !== undefined && loss.n >= 30) {
      const [was, is] = split(loss, x);
      rise = median(is) / median(was);
      if (!(rise > 1.2)) return [];
    }
    return [
      finding('critic-died', {
        severity: 'critical',
        title: `${name(ev)} falls from ${num(median(before))} to ${num(median(after))} at ${stepAt(run, x)} and stays there`,
        cause: 'critic-not-learning',
        confidence: 0.85,
        evidence: [
          `before ${place(x)} its median is ${num(median(before))}; in the ${after.length} rows since it is ${num(median(after))}, 90% below ${num(quantile(after, 0.9))}`,
          Number.isNaN(rise) ? undefined : `${name(loss!)} is ${num(rise)} times as large since`,
          progress === undefined
            ? undefined
            : `${name(progress.track)} ends at ${num(progress.end)}: the policy goes on without a critic`,
        ],
        fix: [
          `restart from a checkpoint before ${stepAt(run, x)}`,
          'clip the gradient of the value loss, or the value loss itself, and give the critic a lower learning rate',
        ],
        watch: `${soon(run, signals.to - signals.from)} of the restart ${name(ev)} should stay above ${num(0.5 * median(before))}`,
        marks: [mark(ev, x, signals.to), ...(loss === undefined ? [] : [mark(loss, x, signals.to)])],
      }),
    ];
  },
};
