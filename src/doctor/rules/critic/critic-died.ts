/** A critic that dies at one row. */
import {
  cite,
  citeCourse,
  citeStep,
  limit,
  rowsBefore,
  rowsBetween,
  rowsSince,
  say,
  workOut,
} from '../../judge/facts.ts';
import { changePoint } from '../../statistics/change-point.ts';
import { median, quantile } from '../../statistics/order.ts';
import { limitsOf } from '../limits.ts';
import type { Rule } from '../rule.ts';
import { split } from '../track.ts';
import { finding, mark, name, num, percent, soon, stepAt, unitOf } from '../words.ts';

const l = limitsOf('critic-died', {
  rows: 30,
  /** Most rows before were above the first, nearly all after it are below the second. */
  before: 0.4,
  after: 0.1,
  /** Far below 0 it is another rule. */
  worst: -0.5,
  /** It stays for so many rows. */
  stays: 15,
  /** How many times the value loss is what it was. */
  rise: 1.2,
});

export const criticDied: Rule = {
  code: 'critic-died',
  title: 'The critic died in mid-run',
  looksAt: ['value/explained_variance', 'loss/value'],
  causes: ['critic-not-learning'],
  text: {
    means:
      'The critic predicted returns well and then, from one row to the next, not at all: dead units, a saturated head, a value update that went wrong. The policy may go on for a while, on advantages that are pure noise.',
    seen: `One change point in ${l.rows} rows or more, at which the explained variance falls from above ${l.before} to about 0 (below ${l.after}, with a median above ${l.worst}), stays there for the rest of the run (at least ${l.stays} rows and a tenth of it), and the value loss is more than ${l.rise} times what it was.`,
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
    if (run.kind !== 'classic' || ev === undefined || ev.n < l.rows) return [];
    if (progress?.saturated || progress?.constant) return [];
    const found = changePoint(ev.v, Math.max(5, Math.floor(ev.n / 20)));
    if (found === undefined || found.p > 1e-3) return [];
    const after = ev.v.subarray(found.index);
    const before = ev.v.subarray(0, found.index);
    if (after.length < Math.max(l.stays, 0.1 * ev.n)) return [];
    if (!(quantile(before, 0.3) > l.before && quantile(after, 0.9) < l.after && median(after) > l.worst))
      return [];
    const x = ev.x[found.index];
    let rise = Number.NaN;
    if (loss !== undefined && loss.n >= l.rows) {
      const [was, is] = split(loss, x);
      rise = median(is) / median(was);
      if (!(rise > l.rise)) return [];
    }
    const since = rowsBetween(ev, found.index);
    const [was, is] = [cite(rowsBetween(ev, 0, found.index), 'median'), cite(since, 'median')];
    return [
      finding('critic-died', {
        severity: 'critical',
        title: say`${name(ev)} falls from ${was} to ${is} at ${unitOf(run)} ${citeStep(ev, found.index)} and stays there`,
        cause: 'critic-not-learning',
        confidence: 0.85,
        evidence: [
          say`before ${citeStep(ev, found.index)} its median is ${was}; in the ${cite(since, 'rows')} rows since it is ${is}, ${limit(0.9, percent)} of them up to ${cite(since, 'quantile', 0.9)}`,
          Number.isNaN(rise)
            ? undefined
            : say`${name(loss!)} is ${workOut('times', cite(rowsSince(loss!, x), 'median'), cite(rowsBefore(loss!, x), 'median'))} times as large since`,
          progress === undefined
            ? undefined
            : say`${name(progress.track)} ends at ${citeCourse(progress, 'end')}: the policy goes on without a critic`,
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
