import { cite, quoted, rowsOf, say } from '../../judge/facts.ts';
import { share } from '../../statistics/order.ts';
import { limitsOf } from '../limits.ts';
import type { Rule } from '../rule.ts';
import { part } from '../track.ts';
import { finding, mark, name, percent } from '../words.ts';

const limits = limitsOf('time-limits', {
  rows: 10,
  /** The share of the rows of the second half whose episodes are as long as any. */
  often: 0.9,
  /** Episodes shorter than this are no matter of time limits. */
  steps: 10,
});

/** Trainers whose PPO takes the end of the time for a death. */
const forgetful: Readonly<Record<string, string>> = {
  cleanrl: 'CleanRL',
  'openai-baselines': 'OpenAI Baselines',
};

export const timeLimits: Rule = {
  code: 'time-limits',
  title: 'Episodes end by the clock, and the critic takes it for a death',
  looksAt: ['episode/length', 'policy/clip_fraction', 'kl/step'],
  causes: ['time-limit-as-death'],
  text: {
    means:
      'Nearly every episode is as long as the time limit. This trainer puts the value after the last step to 0, as if the agent had died, though it would have gone on earning: the same state is worth much or nothing by how much time is left, which the critic cannot see.',
    seen: `PPO of CleanRL or OpenAI Baselines, and the longest length in ${percent(limits.often)} of the rows of the second half, over ${limits.rows} rows or more and of ${limits.steps} steps or more. It is information alone: how much harm it does, a log does not show.`,
    todo: 'Add gamma times the value of the last observation to the last reward where an episode was cut off (`TimeLimit.truncated`), or give the agent the time that is left as an observation.',
    silent: 'Where episodes end by themselves, and of trainers that tell the two ends apart.',
    references: ['vwxyzjn/cleanrl#408', 'vwxyzjn/cleanrl#198', 'arXiv:1712.00378'],
  },
  check(run, signals) {
    const length = signals.get('episode/length');
    const who = Object.hasOwn(forgetful, run.trainer) ? forgetful[run.trainer] : undefined;
    if (who === undefined || length === undefined || length.n < limits.rows) return [];
    if (signals.kl === undefined && signals.get('policy/clip_fraction') === undefined) return [];
    const most = length.q(1);
    const often = share(part(length, 0.5), v => v === most);
    if (most < limits.steps || often < limits.often) return [];
    return [
      finding('time-limits', {
        severity: 'info',
        title: say`${name(length)} is ${cite(length, 'most')} nearly always: episodes end by the clock, which ${quoted(who)} takes for a death`,
        cause: 'time-limit-as-death',
        confidence: 0.6,
        evidence: [
          say`${name(length)} is ${cite(length, 'most')}, its largest, in ${cite(rowsOf(length, 0.5), 'share at', most)} of the second half of the rows`,
        ],
        fix: [
          'add gamma times the value of the last observation to the last reward of an episode that was cut off',
        ],
        marks: [mark(length, signals.from, signals.to)],
      }),
    ];
  },
};
