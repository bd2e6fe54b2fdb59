/** What is said of a return that shows no progress where no other rule has found anything wrong. */
import { loud } from '../../findings.ts';
import { cite, say } from '../../judge/facts.ts';
import { falls } from '../../judge/trends.ts';
import { limitsOf } from '../limits.ts';
import type { Rule } from '../rule.ts';
import { finding, mark, name, num, soon } from '../words.ts';

const limits = limitsOf('return-flat', { rows: 12 });

export const returnFlat: Rule = {
  code: 'return-flat',
  title: 'The return does not rise',
  looksAt: ['episode/return', 'reward/mean'],
  causes: [],
  text: {
    means:
      'Updates run, nothing in them looks wrong, and the return stands still or falls from the first row to the last. A run that learns nothing is not healthy, whatever its losses look like.',
    seen: `A return (for language models the reward) of ${limits.rows} rows or more that surely falls, or that surely stands still: what it may have changed by, with the noise of its rows and their dependence on each other, is no more than their spread. It is a warning that names no cause, and only where no other rule has one.`,
    todo: 'Compare it with a random policy. Look at rewards and observations of one episode by hand; try a learning rate three times as large, then one three times as small.',
    silent:
      'A return that rose and then stays, or that varies so much that nobody can tell: of that the verdict says so. One constant above 0 may be a solved task that was resumed: it is told where the policy is seen to have been random in the first rows.',
    references: ['docs/doctor.md'],
  },
  check(run, { progress, practised, from, to }, found) {
    if (progress === undefined || progress.track.n < limits.rows || loud(found).length > 0) return [];
    const { track, course, improved, improving, saturated, kept } = progress;
    if (improved || improving || saturated || kept) return [];
    // One positive return in every row: what always was so, or a task that was solved before.
    if (run.kind === 'classic' && progress.constant && track.median > 0 && practised !== false) return [];
    const down = falls(course);
    if (!down && course.shape !== 'flat') return [];
    return [
      finding('return-flat', {
        severity: 'warning',
        // A course that is flat ends above its start as often as below it.
        title:
          !down && course.end > course.start
            ? say`${name(track)} goes from ${cite(track, 'course start')} to ${cite(track, 'course end')} over the whole run, which is within its noise`
            : say`${name(track)} ${down ? 'falls' : 'does not rise'} over the whole run, from ${cite(track, 'course start')} to ${cite(track, 'course end')}`,
        cause: null,
        confidence: 0.6,
        evidence: [
          down
            ? say`its trend is down by ${cite(track, 'course change', undefined, v => num(-v))}, with a standard score of ${cite(track, 'course score')} in ${cite(track, 'rows')} rows`
            : progress.constant
              ? say`it is ${cite(track, 'course end')} in all ${cite(track, 'rows')} rows`
              : say`its trend is ${cite(track, 'course change')} over the run, give or take ${cite(track, 'course margin')}, and single rows scatter by ${cite(track, 'course noise')}`,
          'no other rule has anything to say',
        ],
        fix: [
          'compare it with a policy that acts at random: if it is no better, nothing is learnt',
          'look at the observations, actions and rewards of one episode by hand',
        ],
        watch: `${soon(run, to - from)} ${name(track)} should leave ${num(course.end)} by more than ${num(2 * progress.noise)}`,
        marks: [mark(track, track.x[0] ?? from, to)],
      }),
    ];
  },
};
