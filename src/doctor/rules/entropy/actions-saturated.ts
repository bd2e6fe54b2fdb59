import { cite, citeCourse, limit, say } from '../../judge/facts.ts';
import { standingOf } from '../course.ts';
import { citeLate, goesSaid, late, long } from '../language-models/levels.ts';
import { limitsOf } from '../limits.ts';
import type { Rule } from '../rule.ts';
import { change, finding, mark, name, percent, soon } from '../words.ts';

const limits = limitsOf('actions-saturated', {
  rows: 20,
  /** The share of actions at their bounds, late: too many, and nearly all. */
  share: 0.5,
  most: 0.9,
  /** The std of a Gaussian from which on more than 7 of 10 draws lie outside of [-1, 1], and of its start. */
  std: 3,
  grown: 1.5,
});

export const actionsSaturated: Rule = {
  code: 'actions-saturated',
  title: 'Actions lie at their bounds',
  looksAt: ['policy/saturated_actions', 'policy/std', 'episode/return'],
  causes: ['action-saturation'],
  text: {
    means:
      'Most actions are cut off at the bounds of the environment. Whatever the policy changes there changes nothing in the environment: it is all or nothing, and gradients say little.',
    seen: `A logged share of actions at their bounds of ${percent(limits.share)} or more in the last fifth of ${limits.rows} rows or more while the return gets nowhere, critical from ${percent(limits.most)} on; or a std of ${limits.std} or more that was so from the start, with which more than 7 of 10 draws lie outside of [-1, 1], the bounds that most environments have.`,
    todo: 'Scale actions so that the bounds are -1 and 1, begin with a smaller std, and punish the size of the mean action a little.',
    silent:
      'Where the return rises or stands at its best: some tasks are solved at the bounds. Where the std grew to it, another rule says why.',
    references: ['ray-project/ray#8889', 'arXiv:2006.05990'],
  },
  check(run, signals) {
    if (run.kind !== 'classic' || run.actions === 'discrete') return [];
    const { progress } = signals;
    if (progress === undefined || progress.track.n < limits.rows) return [];
    const { stuck, fell } = standingOf(progress, false);
    if (!(stuck || fell) || progress.improving) return [];
    const shareOf = long(signals.get('policy/saturated_actions'), limits.rows);
    const std = long(signals.get('policy/std'), limits.rows);
    const at = shareOf === undefined ? 0 : late(shareOf);
    const spread = std === undefined ? 0 : late(std);
    const wide = spread >= limits.std && spread < limits.grown * std!.first;
    if (!(at >= limits.share && at <= 1) && !wide) return [];
    const track = at >= limits.share ? shareOf! : std!;
    return [
      finding('actions-saturated', {
        severity: at >= limits.most ? 'critical' : 'warning',
        title:
          track === shareOf
            ? say`${citeLate(track, percent)} of the actions lie at their bounds, and ${name(progress.track)} gets nowhere`
            : say`${name(track)} is ${citeLate(track)}, and ${name(progress.track)} gets nowhere`,
        cause: 'action-saturation',
        confidence: track === shareOf ? 0.75 : 0.5,
        evidence: [
          track === shareOf
            ? say`${name(track)} is ${citeLate(track)} in the last fifth of the rows`
            : say`${name(track)} is ${cite(track, 'first')} at first and ${citeLate(track)} in the last fifth: more than ${limit(7)} of ${limit(10)} draws lie outside of [${limit(-1)}, ${limit(1)}]`,
          say`${goesSaid(progress)}, ${citeCourse(progress, 'best')} at best`,
        ],
        fix: [
          change(run, { logStdInitial: -0.5 }, 'begin with a std of about 0.6: an initial log-std of -0.5'),
          'scale actions so that the bounds of the environment are -1 and 1',
        ],
        watch: `${soon(run, signals.to - signals.from)} of a restart ${name(progress.track)} should begin to rise`,
        marks: [mark(track, signals.from, signals.to), mark(progress.track, signals.from, signals.to)],
      }),
    ];
  },
};
