import type { CanonicalRun } from '../../canonical.ts';
import { cite, citeCount, limit, rowsOf, say } from '../../judge/facts.ts';
import { jitter } from '../../statistics/blocks.ts';
import { median, quantile, share } from '../../statistics/order.ts';
import { courseSaid } from '../course.ts';
import type { Rule } from '../rule.ts';
import type { Signals } from '../signals.ts';
import { part, type Track } from '../track.ts';
import { change, finding, mark, name, percent, soon } from '../words.ts';

/** A spread of the rewards of a group below this is none. */
const NO_SPREAD = 1e-4;

/** The share of rows in the second half in which all advantages are 0; NaN where they are not logged. */
function advantageless(signals: Signals): number {
  const [most, least] = [signals.get('adv/max'), signals.get('adv/min')];
  if (most === undefined || least === undefined || most.n < 8 || least.n !== most.n) return Number.NaN;
  const low = part(least, 0.5);
  return share(
    part(most, 0.5).map((v, i) => Math.abs(v) + Math.abs(low[i])),
    v => v < 1e-6,
  );
}

/** Within a tenth of 1, the most that a reward of right or wrong can be, and not all the same. */
function isCeiling(track: Track): boolean {
  return track.q(0.05) >= 0.9 && track.q(1) <= 1 + 1e-9 && track.q(0.95) - track.q(0.05) > 1e-6;
}

/** Completions that differ: so warm a sampler, and so much entropy (nats a token) in the second half. */
const WARM = 0.7;
const LIVELY = 0.05;

/**
 * Whether the reward is told by the prompt alone: completions differ, rewards differ from batch to batch, and yet no group has
 * ever a better answer and a worse one. Prompts that are all solved, or never, give the same reward in every batch.
 */
function isByPrompt({ config }: CanonicalRun, signals: Signals): boolean {
  const entropy = signals.get('policy/entropy');
  const { progress } = signals;
  if (entropy === undefined || entropy.n < 8 || progress === undefined) return false;
  const lively = median(part(entropy, 0.5)) >= LIVELY;
  return lively && (config.temperature ?? 0) >= WARM && jitter(progress.track.v) > 0;
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
    seen: 'At least 80% of the groups without spread over the second half of the run, or a spread within groups of 0 in most rows, with a loss and gradient of 0; or, as verl tells it, advantages whose largest and smallest are both 0. Advantages of 1e3 and more with small rewards are the same fault, divided by 0.',
    todo: 'Choose prompts of middling difficulty, larger groups or a higher temperature; give partial credit; leave out groups without spread.',
    silent:
      'Single rows without spread. A loss of 0.0 with a gradient above 0 is normal in GRPO. When the reward rose to its ceiling, or varies between 0.9 and 1 from the start, the task is solved.',
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
    const share0 = zero === undefined || zero.n < 8 ? Number.NaN : median(part(zero, 0.5));
    const flatRows =
      spread === undefined || spread.n < 8 ? Number.NaN : share(part(spread, 0.5), v => v < NO_SPREAD);
    const blown = advantages !== undefined && advantages.n >= 8 && quantile(part(advantages, 0.5), 0.5) > 1e3;
    const still = gradient === undefined || gradient.n < 8 ? undefined : median(part(gradient, 0.5)) < 1e-6;
    // verl tells no spread of groups, but the largest and smallest advantage: both are 0 where no group has any.
    const none = advantageless(signals);
    const most = share0 >= 0.8 || (flatRows >= 0.6 && still !== false) || none >= 0.8;
    if (!most && !blown) return [];
    // A reward that rose on the way says that the groups without spread are those that are solved.
    if (!blown && progress?.improved && !(share0 >= 0.95)) return [];
    const track = (
      share0 >= 0.8 ? zero : blown ? advantages : none >= 0.8 ? signals.get('adv/max') : spread
    )!;
    const all = share0 >= 0.95 || flatRows >= 0.9 || none >= 0.9 || blown;
    return [
      finding('degenerate-groups', {
        severity: all && !progress?.improved ? 'critical' : 'warning',
        title: blown
          ? say`${name(track)} is ${cite(rowsOf(track, 0.5), 'median')}: divided by a spread of ${limit(0)}`
          : share0 >= 0.8
            ? say`${cite(rowsOf(zero!, 0.5), 'median', undefined, percent)} of the groups have no spread of rewards`
            : none >= 0.8
              ? say`${citeCount('rows without an advantage', none, percent)} of the rows have no advantage at all: no group has a spread of rewards`
              : say`in ${cite(rowsOf(spread!, 0.5), 'share below', NO_SPREAD)} of the rows no group has a spread of rewards`,
        cause: 'degenerate-groups',
        confidence: all ? 0.9 : 0.75,
        evidence: [
          Number.isNaN(share0)
            ? undefined
            : say`${name(zero!)} has a median of ${cite(rowsOf(zero!, 0.5), 'median')} in the second half`,
          Number.isNaN(flatRows)
            ? undefined
            : say`${name(spread!)} is below ${limit(NO_SPREAD)} in ${cite(rowsOf(spread!, 0.5), 'share below', NO_SPREAD)} of these rows`,
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
