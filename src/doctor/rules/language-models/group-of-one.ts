import { cite, citeCount, citeSetting, say } from '../../judge/facts.ts';
import { share } from '../../statistics/order.ts';
import { limitsOf } from '../limits.ts';
import type { Rule } from '../rule.ts';
import { change, finding, mark, name, percent, soon } from '../words.ts';
import { long } from './levels.ts';

const l = limitsOf('group-of-one', {
  rows: 5,
  /** The share of rows in which the mean advantage is the mean reward. */
  same: 0.9,
  /** As a share of the reward. */
  within: 0.01,
});

export const groupOfOne: Rule = {
  code: 'group-of-one',
  title: 'One completion a prompt',
  looksAt: ['adv/mean', 'reward/mean'],
  causes: ['group-of-one'],
  text: {
    means:
      'GRPO compares completions of one prompt with each other. With one completion there is nothing to compare: some trainers then take the reward itself for the advantage, others have an advantage of 0 and learn nothing.',
    seen: `A group size of 1; or a mean advantage that is the mean reward within ${percent(l.within)}, in ${percent(l.same)} of the rows or more.`,
    todo: 'Sample 8 completions of each prompt, of fewer prompts.',
    silent: 'Where neither the group size nor the advantages are logged.',
    references: ['verl-project/verl: rollout.n'],
  },
  check(run, signals) {
    if (run.kind !== 'language-model') return [];
    const size = run.config.groupSize;
    const advantage = long(signals.get('adv/mean'), l.rows);
    const reward = long(signals.get('reward/mean'), l.rows);
    const same =
      advantage === undefined ||
      reward === undefined ||
      advantage.n !== reward.n ||
      signals.critic.loss !== undefined
        ? Number.NaN
        : share(
            advantage.v.map((v, i) => Math.abs(v - reward.v[i]) - l.within * Math.abs(reward.v[i])),
            v => v <= 0,
          );
    // Rewards of 0 are equal to advantages of 0, whatever the group.
    const taken = same >= l.same && reward !== undefined && reward.q(1) - reward.q(0) > 1e-9;
    if (size === undefined ? !taken : size !== 1) return [];
    const track = advantage ?? reward;
    return [
      finding('group-of-one', {
        severity: 'critical',
        title:
          size === 1
            ? 'Each prompt has one completion, so that there is none to compare it with'
            : `${name(advantage!)} is ${name(reward!)}: there is nothing that rewards are compared with`,
        cause: 'group-of-one',
        confidence: size === 1 ? 0.97 : 0.85,
        evidence: [
          size === 1 ? say`the group size is ${citeSetting('groupSize', size)}` : undefined,
          taken
            ? say`${name(advantage!)} is the same as ${name(reward)} in ${citeCount('rows in which the advantage is the reward', same, percent, advantage!)} of the rows: ${cite(advantage!, 'first')} and ${cite(reward, 'first')} in the first`
            : undefined,
        ],
        fix: [change(run, { groupSize: 8 }, 'sample 8 completions of each prompt')],
        watch: `${soon(run, signals.to - signals.from)} ${track === undefined ? 'the mean advantage' : name(track)} should ${track === advantage && track !== undefined ? 'be near 0' : 'rise'}`,
        marks: track === undefined ? [] : [mark(track, signals.from, signals.to)],
        ...(track === undefined ? { from: signals.from, to: signals.to } : {}),
      }),
    ];
  },
};
