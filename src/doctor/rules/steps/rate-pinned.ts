import { cite, limit, quoted, say } from '../../judge/facts.ts';
import { share } from '../../statistics/order.ts';
import { courseSaid } from '../course.ts';
import { limitsOf } from '../limits.ts';
import type { Rule } from '../rule.ts';
import { finding, mark, name, percent, soon } from '../words.ts';

const limits = limitsOf('rate-pinned', {
  rows: 30,
  /** So many times the floor is at it. */
  floor: 1.05,
  often: 0.8,
});

export const ratePinned: Rule = {
  code: 'rate-pinned',
  title: 'The adaptive learning rate sits on its floor',
  looksAt: ['train/lr', 'episode/return'],
  causes: [],
  text: {
    means:
      'RSL-RL, rl_games and skrl log no KL but lower the learning rate while KL is above twice its target. A rate at its floor in every row says that KL stays too large even so: something else moves the policy, such as rewards out of scale, observations that are not normalised or a tiny std.',
    seen: `The rate at its floor in ${percent(limits.often)} of ${limits.rows} rows or more while the return does not improve.`,
    todo: 'Normalise observations and rewards, start with a larger std, use larger minibatches, or raise the target KL.',
    silent: 'When the return improves; a rate at its ceiling only says that updates are small.',
    references: ['DongjaeMoon/myIsaacLabstudy: a log with the rate at 1e-5 on all 130 iterations'],
  },
  check(run, signals) {
    const proxy = run.klProxy;
    const { lrTrack } = signals.settings;
    const { progress } = signals;
    if (proxy === undefined || lrTrack === undefined || lrTrack.n < limits.rows || progress === undefined)
      return [];
    const low = share(lrTrack.v, v => v <= limits.floor * proxy.floor);
    if (low < limits.often || progress.improved || progress.saturated) return [];
    return [
      finding('rate-pinned', {
        severity: 'warning',
        title: say`${name(lrTrack)} is at its floor of ${limit(proxy.floor)} in ${cite(lrTrack, 'share up to', limits.floor * proxy.floor)} of the rows`,
        cause: null,
        confidence: 0.5,
        evidence: [quoted(proxy.meaning), courseSaid(progress)],
        fix: [
          'normalise observations and scale rewards; a std that starts below 0.3 also makes the KL large',
          'use larger minibatches, or raise the KL that the schedule aims at',
        ],
        watch: `${soon(run, signals.to - signals.from)} ${name(lrTrack)} should leave its floor`,
        marks: [mark(lrTrack, signals.from, signals.to)],
      }),
    ];
  },
};
