import { cite, citeCount, limit, rowsBetween, say } from '../../judge/facts.ts';
import { limitsOf } from '../limits.ts';
import type { Rule } from '../rule.ts';
import type { Signals } from '../signals.ts';
import type { Track } from '../track.ts';
import { finding, mark, name, num, percent, soon } from '../words.ts';
import { long, movedAtFirst } from './levels.ts';

const l = limitsOf('ratio-biased', {
  rows: 5,
  /** The share of the tokens of the first rows that the clip holds. */
  clipped: 0.1,
  /** The KL of the update as it goes on, by k1, in the first rows: either sign. */
  kl: 0.05,
  /** The policy has moved less than this KL, per token, by then. */
  moved: 0.02,
  /** A smaller clip range holds much by itself. */
  clip: 0.05,
});

/** What is far off in the first rows though nothing has moved yet. */
function offAtFirst(signals: Signals): { readonly track: Track; readonly level: number } | undefined {
  const clip = long(signals.get('policy/clip_fraction'), l.rows);
  const first = (track: Track): number =>
    Math.min(Math.abs(track.v[0]), Math.abs(track.v[1]), Math.abs(track.v[2]));
  if (clip !== undefined && first(clip) >= l.clipped) return { track: clip, level: first(clip) };
  const kl = long(signals.get('kl/step'), l.rows);
  if (kl?.kl?.estimator === 'k1' && first(kl) >= l.kl) return { track: kl, level: first(kl) };
  return undefined;
}

export const ratioBiased: Rule = {
  code: 'ratio-biased',
  title: 'Ratios are off 1 before the policy has moved',
  looksAt: ['policy/clip_fraction', 'kl/step', 'kl/ref'],
  causes: ['importance-ratio-biased'],
  text: {
    means:
      'The old log-probabilities in the ratio are not those of the policy that sampled, at the same temperature, in the same precision: ratios are far from 1 before the first gradient step, and the clip throws away tokens that nothing has changed.',
    seen: `In each of the first three rows ${percent(l.clipped)} or more of the tokens are clipped, or the KL by k1 is ${num(l.kl)} off 0 or more, while the policy has moved by a KL below ${num(l.moved)} a token.`,
    todo: 'Compute the old log-probabilities as the new ones are: the same weights, temperature, precision and masks. Before the first step every ratio must be 1.',
    silent: `Where it is not logged how far the policy has moved, where it has moved, or where the clip range is below ${num(l.clip)}.`,
    references: ['huggingface/trl#5815', 'verl-project/verl: rollout.temperature'],
  },
  check(run, signals) {
    if (run.kind !== 'language-model') return [];
    const off = offAtFirst(signals);
    if (off === undefined || (run.config.clipRange ?? 1) < l.clip) return [];
    const ref = signals.get('kl/ref');
    const exact = signals.kl !== undefined && !signals.kl.signed ? signals.kl.track : undefined;
    const moved = exact !== undefined && exact.n >= 3 ? Math.max(exact.v[0], exact.v[1]) : movedAtFirst(ref);
    if (moved === undefined || !(moved < l.moved)) return [];
    const by = exact ?? ref!;
    return [
      finding('ratio-biased', {
        severity: 'critical',
        title: say`${name(off.track)} is ${citeCount('least distance of the first three rows', off.level, num, off.track)} or more off ${limit(0)} in the first rows, before the policy has moved`,
        cause: 'importance-ratio-biased',
        confidence: 0.85,
        evidence: [
          say`${name(off.track)}: ${cite(off.track, 'first')} in the first row, a median of ${cite(off.track, 'median')}; before any step it must be ${limit(0)}`,
          say`${name(by)} is at most ${cite(by === exact ? rowsBetween(by, 0, 2) : rowsBetween(by, 1, 3), by === exact ? 'most' : 'largest size')} then: the policy is where it was`,
        ],
        fix: [
          'compute the old log-probabilities with the weights, temperature and precision of the new ones, under the same mask',
          'check before training that every ratio is 1 and nothing is clipped',
        ],
        watch: `${soon(run, signals.to - signals.from)} ${name(off.track)} should begin at 0`,
        marks: [mark(off.track, signals.from, signals.to), mark(by, signals.from, by.x[2])],
      }),
    ];
  },
};
