import { loud } from '../../findings.ts';
import { cite, limit, say } from '../../judge/facts.ts';
import { share } from '../../statistics/order.ts';
import { long } from '../language-models/levels.ts';
import { limitsOf } from '../limits.ts';
import type { Rule } from '../rule.ts';
import { finding, mark, name, percent } from '../words.ts';

const limits = limitsOf('usual-in-ppo', {
  rows: 5,
  /** The share of the rows with a negative value from which on people ask. */
  often: 0.2,
});

export const usualInPpo: Rule = {
  code: 'usual-in-ppo',
  title: 'What looks odd and is usual in PPO',
  looksAt: ['loss/total', 'policy/entropy', 'policy/std'],
  causes: [],
  text: {
    means:
      'The loss of PPO is no error that goes to 0: it is the negative of what is gained, less the entropy bonus, and says nothing about how well the run does. The entropy of continuous actions is below 0 as soon as their std is small (below .24 of one dimension): that is a policy that has become sure.',
    seen: `A total loss below 0 in ${percent(limits.often)} of ${limits.rows} rows or more; an entropy of continuous actions that is below 0 in as many.`,
    todo: 'Nothing. Judge a run by its return, its KL and its explained variance.',
    silent:
      'Where something is wrong: then that is told. It never changes the verdict, and says nothing of language models, which have a page of their own.',
    references: ['DLR-RM/stable-baselines3#602', 'Stable-Baselines-Team/stable-baselines3-contrib#282'],
  },
  check(run, signals, found) {
    if (run.kind !== 'classic' || loud(found).length > 0) return [];
    const odd = [
      {
        track: long(signals.get('loss/total'), limits.rows),
        why: 'the loss is the negative of what an update gains, less the entropy bonus',
      },
      {
        track: run.actions === 'continuous' ? long(signals.get('policy/entropy'), limits.rows) : undefined,
        why: 'the entropy of continuous actions is negative where their std is small',
      },
    ];
    return odd.flatMap(({ track, why }) => {
      const often = track === undefined ? 0 : share(track.v, v => v < 0);
      if (track === undefined || often < limits.often) return [];
      return [
        finding('usual-in-ppo', {
          severity: 'info',
          title: say`${name(track)} is below ${limit(0)}: that is usual`,
          cause: null,
          confidence: 0.9,
          evidence: [
            say`${name(track)} is below ${limit(0)} in ${cite(track, 'share below', 0)} of the rows, with a median of ${cite(track, 'median')}: ${why}`,
          ],
          fix: [
            'nothing is to be changed for it: judge the run by its return, its KL and its explained variance',
          ],
          marks: [mark(track, signals.from, signals.to)],
        }),
      ];
    });
  },
};
