import { say } from '../../judge/facts.ts';
import { courseOf, rises } from '../../judge/trends.ts';
import { courseSaid } from '../course.ts';
import { citeLate, firstAndLast, late, long } from '../language-models/levels.ts';
import { limitsOf } from '../limits.ts';
import type { Rule } from '../rule.ts';
import { change, finding, mark, name, num, percent, round, soon } from '../words.ts';

const limits = limitsOf('units-dead', {
  rows: 20,
  /** The share of units that are dead at the end: many, and nearly all. */
  share: 0.5,
  most: 0.9,
});

export const unitsDead: Rule = {
  code: 'units-dead',
  title: 'Units of the network die',
  looksAt: ['policy/dead_units', 'episode/return', 'reward/mean'],
  causes: ['plasticity-lost'],
  text: {
    means:
      'More and more units give the same for every input, and no gradient reaches them: the network loses the room to learn anything new.',
    seen: `A logged share of dead or dormant units that surely rises to ${percent(limits.share)} or more over ${limits.rows} rows or more while the return does not improve; critical from ${percent(limits.most)} on.`,
    todo: 'Lower the learning rate, normalise layers, use tanh or a leaky activation in place of ReLU, or set dead units back to fresh weights from time to time.',
    silent: `Where no such share is logged, which is the usual case: without it nobody can tell dead units from a task that is as good as it gets. Where the return rises, or the share is more than 1 (another unit).`,
    references: ['arXiv:2302.12902', 'arXiv:2204.09560'],
  },
  check(run, signals) {
    const dead = long(signals.get('policy/dead_units'), limits.rows);
    const { progress, settings } = signals;
    if (dead === undefined || progress === undefined || progress.track.n < limits.rows) return [];
    if (progress.improved || progress.improving || progress.saturated || dead.q(1) > 1) return [];
    const end = late(dead);
    if (!(end >= limits.share) || !rises(courseOf(dead.v))) return [];
    return [
      finding('units-dead', {
        severity: end >= limits.most ? 'critical' : 'warning',
        title: say`${citeLate(dead, percent)} of the units are dead at the end (${name(dead)})`,
        cause: 'plasticity-lost',
        confidence: 0.7,
        evidence: [firstAndLast(dead), courseSaid(progress)],
        fix: [
          change(
            run,
            settings.lr === undefined ? {} : { learningRate: round(settings.lr / 3) },
            'divide the learning rate by 3',
          ),
          'normalise the layers, or use tanh or a leaky activation in place of ReLU',
        ],
        watch: `${soon(run, signals.to - signals.from)} of a restart ${name(dead)} should stay below ${num(limits.share)}`,
        marks: [mark(dead, signals.from, signals.to), mark(progress.track, signals.from, signals.to)],
      }),
    ];
  },
};
