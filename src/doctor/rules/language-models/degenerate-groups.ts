import type { CanonicalRun } from '../../canonical.ts';
import { cite, citeCount, limit, rowsOf, say } from '../../judge/facts.ts';
import { jitter } from '../../statistics/blocks.ts';
import { median, share } from '../../statistics/order.ts';
import { courseSaid } from '../course.ts';
import { limitsOf } from '../limits.ts';
import type { Rule } from '../rule.ts';
import type { Signals } from '../signals.ts';
import { part, type Track } from '../track.ts';
import { change, finding, mark, name, num, percent, soon } from '../words.ts';

const l = limitsOf('degenerate-groups', {
  /** Of each series. */
  rows: 8,
  /** The share of groups without spread, or of rows without an advantage; and from which on it is nearly all of them. */
  most: 0.8,
  groups: 0.95,
  /** A spread of the rewards of a group below this is none, in this share of the rows; and in nearly all of them. */
  spread: 1e-4,
  flat: 0.6,
  all: 0.9,
  /** An advantage that is none, and a gradient that is; advantages that were divided by a spread of 0. */
  advantage: 1e-6,
  gradient: 1e-6,
  blown: 1e3,
  /** All but a twentieth of the rewards are above this and none is above 1, by more than a rounding, and they are not all one. */
  ceiling: 0.9,
  vary: 1e-6,
});

/** The share of rows in the second half in which all advantages are 0; NaN where they are not logged. */
function advantageless(signals: Signals): number {
  const [most, least] = [signals.get('adv/max'), signals.get('adv/min')];
  if (most === undefined || least === undefined || most.n < l.rows || least.n !== most.n) return Number.NaN;
  const low = part(least, 0.5);
  return share(
    part(most, 0.5).map((v, i) => Math.abs(v) + Math.abs(low[i])),
    v => v < l.advantage,
  );
}

/** Within a tenth of 1, the most that a reward of right or wrong can be, and not all the same. */
function isCeiling(track: Track): boolean {
  return track.q(0.05) >= l.ceiling && track.q(1) <= 1 + 1e-9 && track.q(0.95) - track.q(0.05) > l.vary;
}

/** Completions that differ: rows, so warm a sampler, and so much entropy (nats a token) in the second half. */
const differ = limitsOf('degenerate-groups/by-prompt', { rows: 8, temperature: 0.7, entropy: 0.05 });

/**
 * Whether the reward is told by the prompt alone: completions differ, rewards differ from batch to batch, and yet no group has
 * ever a better answer and a worse one. Prompts that are all solved, or never, give the same reward in every batch.
 */
function isByPrompt({ config }: CanonicalRun, signals: Signals): boolean {
  const entropy = signals.get('policy/entropy');
  const { progress } = signals;
  if (entropy === undefined || entropy.n < differ.rows || progress === undefined) return false;
  const lively = median(part(entropy, 0.5)) >= differ.entropy;
  return lively && (config.temperature ?? 0) >= differ.temperature && jitter(progress.track.v) > 0;
}

export const degenerateGroups: Rule = {
  code: 'degenerate-groups',
  title: 'All completions of a prompt earn the same',
  looksAt: [
    'reward/zero_std_groups',
    'reward/group_std',
    'loss/total',
    'grad/norm',
    'reward/mean',
    'adv/std',
    'adv/max',
    'adv/min',
  ],
  causes: ['degenerate-groups'],
  text: {
    means:
      'GRPO learns from differences within a group. If all completions of a prompt get the same reward, the advantages are 0 and the prompt teaches nothing; leave-one-out baselines may even divide by 0.',
    seen: `At least ${percent(l.most)} of the groups without spread over the second half of the run, or a spread within groups of 0 in ${percent(l.flat)} of the rows, with a gradient of 0; or, as verl tells it, advantages whose largest and smallest are both 0. Advantages above ${num(l.blown)} are the same fault, divided by 0.`,
    todo: 'Choose prompts of middling difficulty, larger groups or a higher temperature; give partial credit; leave out groups without spread.',
    silent: `Single rows without spread. A loss of 0.0 with a gradient above 0 is normal in GRPO. When the reward rose to its ceiling, or varies between ${l.ceiling} and 1 from the start, the task is solved.`,
    references: ['huggingface/trl#3857', 'NVIDIA/NeMo-RL#1518'],
  },
  check(run, signals) {
    if (run.kind !== 'language-model') return [];
    const zero = signals.get('reward/zero_std_groups');
    const spread = signals.get('reward/group_std');
    const gradient = signals.get('grad/norm');
    const advantages = signals.get('adv/std');
    const { progress } = signals;
    if (progress?.saturated) return [];
    // Nothing is left to learn where nearly all of the reward is had from the first row on.
    if (progress !== undefined && isCeiling(progress.track)) return [];
    const share0 = zero === undefined || zero.n < l.rows ? Number.NaN : median(part(zero, 0.5));
    const flatRows =
      spread === undefined || spread.n < l.rows ? Number.NaN : share(part(spread, 0.5), v => v < l.spread);
    const blown =
      advantages !== undefined && advantages.n >= l.rows && median(part(advantages, 0.5)) > l.blown;
    const still =
      gradient === undefined || gradient.n < l.rows ? undefined : median(part(gradient, 0.5)) < l.gradient;
    // verl tells no spread of groups, but the largest and smallest advantage: both are 0 where no group has any.
    const none = advantageless(signals);
    const most = share0 >= l.most || (flatRows >= l.flat && still !== false) || none >= l.most;
    if (!most && !blown) return [];
    // A reward that rose on the way says that the groups without spread are those that are solved.
    if (!blown && progress?.improved && !(share0 >= l.groups)) return [];
    const track = (
      share0 >= l.most ? zero : blown ? advantages : none >= l.most ? signals.get('adv/max') : spread
    )!;
    const all = share0 >= l.groups || flatRows >= l.all || none >= l.all || blown;
    return [
      finding('degenerate-groups', {
        severity: all && !progress?.improved ? 'critical' : 'warning',
        title: blown
          ? say`${name(track)} is ${cite(rowsOf(track, 0.5), 'median')}: divided by a spread of ${limit(0)}`
          : share0 >= l.most
            ? say`${cite(rowsOf(zero!, 0.5), 'median', undefined, percent)} of the groups have no spread of rewards`
            : none >= l.most
              ? say`${citeCount('rows without an advantage', none, percent)} of the rows have no advantage at all: no group has a spread of rewards`
              : say`in ${cite(rowsOf(spread!, 0.5), 'share below', l.spread)} of the rows no group has a spread of rewards`,
        cause: 'degenerate-groups',
        confidence: all ? 0.9 : 0.75,
        evidence: [
          Number.isNaN(share0)
            ? undefined
            : say`${name(zero!)} has a median of ${cite(rowsOf(zero!, 0.5), 'median')} in the second half`,
          Number.isNaN(flatRows)
            ? undefined
            : say`${name(spread!)} is below ${limit(l.spread)} in ${cite(rowsOf(spread!, 0.5), 'share below', l.spread)} of these rows`,
          still === undefined
            ? undefined
            : say`${name(gradient!)} has a median of ${cite(rowsOf(gradient!, 0.5), 'median')}`,
          progress === undefined ? undefined : courseSaid(progress),
        ],
        fix: [
          all && !blown && isByPrompt(run, signals)
            ? 'score several completions of one prompt by hand: they differ and earn the same, so the reward does not look at what was written'
            : undefined,
          change(
            run,
            {
              groupSize: Math.min(64, 2 * (run.config.groupSize ?? 8)),
              temperature: Math.max(1, run.config.temperature ?? 1),
            },
            'use larger groups and a higher temperature',
          ),
          'use prompts that the model solves now and then, and give partial credit',
        ],
        watch: `${soon(run, signals.to - signals.from)} ${name(track)} should ${track === zero ? 'fall below 0.5' : blown ? 'be near 1' : 'be above 0 in most rows'}`,
        marks: [mark(track, signals.from, signals.to)],
      }),
    ];
  },
};
