import { cite, citeCourse, say } from '../../judge/facts.ts';
import { courseOf, falls, rises } from '../../judge/trends.ts';
import { limitsOf } from '../limits.ts';
import type { Rule } from '../rule.ts';
import { finding, mark, name, num, soon } from '../words.ts';
import { citeLate, early, endsSaid, firstAndLast, late, long } from './levels.ts';

const l = limitsOf('reward-without-meaning', {
  rows: 30,
  /** The policy has moved so far from the reference, per token, by small steps. */
  moved: 0.05,
  step: 0.02,
  /** Entropy that has not fallen to less than this share: what is learnt from makes a policy surer. */
  entropy: 0.5,
});

export const rewardWithoutMeaning: Rule = {
  code: 'reward-without-meaning',
  title: 'The policy moves and the reward does not',
  looksAt: ['reward/mean', 'kl/ref', 'kl/step', 'policy/entropy', 'reward/std'],
  causes: ['no-reward-signal'],
  text: {
    means:
      'Updates are small and regular, the policy wanders away from the reference, and the reward stays where it was while nothing becomes surer: what is rewarded has nothing to do with what is written.',
    seen: `A reward over ${l.rows} rows or more that surely neither rises nor falls, while the KL to the reference reaches ${num(l.moved)} a token, steps have a median below ${num(l.step)} where they are logged, and the entropy keeps ${num(l.entropy)} of its start or more.`,
    todo: 'Score ten completions by hand and compare. Grade the same completion twice: the reward must be the same.',
    silent:
      'Where the policy stands still, moves by large steps, becomes surer, or an entropy bonus keeps it unsure.',
    references: ['Shao et al. 2025, arXiv:2506.10947: rewards that say nothing'],
  },
  check(run, signals) {
    const { progress } = signals;
    if (run.kind !== 'language-model' || progress === undefined || progress.track.n < l.rows) return [];
    if (progress.constant || progress.improved || progress.saturated || progress.collapsed) return [];
    const course = courseOf(progress.track.v);
    if (rises(course) || falls(course)) return [];
    const ref = long(signals.get('kl/ref'), l.rows);
    const entropy = long(signals.get('policy/entropy'), l.rows);
    if (ref === undefined || entropy === undefined || ref.kl?.per === 'sequence') return [];
    if ((run.config.entropyCoef ?? 0) !== 0) return [];
    const small = signals.kl === undefined || Math.abs(signals.kl.median) < l.step;
    if (!small || !(late(ref) >= l.moved) || !(late(entropy) >= l.entropy * early(entropy))) return [];
    return [
      finding('reward-without-meaning', {
        severity: 'warning',
        title: say`${name(ref)} reaches ${citeLate(ref)} and ${name(progress.track)} stays where it was, at ${citeCourse(progress, 'end')}`,
        cause: 'no-reward-signal',
        confidence: 0.6,
        evidence: [
          say`${endsSaid(progress)}, with a noise of ${cite(progress.track, 'course noise')} from row to row`,
          firstAndLast(entropy),
        ],
        fix: [
          'score ten completions by hand: does the reward know good ones from bad?',
          'grade one completion twice: a reward that differs is noise',
        ],
        watch: `${soon(run, signals.to - signals.from)} ${name(progress.track)} should leave its noise of ${num(course.noise)}`,
        marks: [mark(progress.track, signals.from, signals.to), mark(ref, signals.from, signals.to)],
      }),
    ];
  },
};
