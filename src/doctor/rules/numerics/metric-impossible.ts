/** Values that a metric cannot have, whatever the run does: it is computed wrongly, or is another thing than its name says. */
import { whole } from '../../../base/numbers.ts';
import type { CanonicalRun } from '../../canonical.ts';
import { cite, citeCount, quoted, say } from '../../judge/facts.ts';
import { limitsOf } from '../limits.ts';
import type { Rule } from '../rule.ts';
import type { Signals } from '../signals.ts';
import type { Track } from '../track.ts';
import { finding, mark, name, num, percent } from '../words.ts';

const limits = limitsOf('metric-impossible', {
  /** So many rows, and so large a share of them, have such a value. */
  rows: 5,
  share: 0.01,
  /** Rounding is no fault. */
  slack: 1e-3,
});

interface Range {
  readonly id: string;
  readonly least: number;
  readonly most: number;
  readonly why: string;
  readonly holds?: (run: CanonicalRun) => boolean;
}

const share = (id: string): Range => ({ id, least: 0, most: 1, why: 'it is a share, from 0 to 1' });
const size = (id: string): Range => ({
  id,
  least: 0,
  most: Number.POSITIVE_INFINITY,
  why: 'it cannot be below 0',
});

const ranges: readonly Range[] = [
  {
    id: 'value/explained_variance',
    least: Number.NEGATIVE_INFINITY,
    most: 1,
    why: 'nothing explains more than all of the variance',
  },
  {
    id: 'policy/entropy',
    least: 0,
    most: Number.POSITIVE_INFINITY,
    why: 'the entropy of a choice is never below 0; padding that is counted, or a sign, makes it so',
    // Of continuous actions it may be.
    holds: ({ actions }) => actions === 'tokens' || actions === 'discrete',
  },
  share('policy/clip_fraction'),
  share('completion/truncated'),
  share('completion/parse_rate'),
  share('reward/zero_std_groups'),
  size('policy/std'),
  size('policy/ratio_mean'),
  size('grad/norm'),
  size('reward/std'),
];

interface Broken {
  readonly track: Track;
  readonly range: Range;
  readonly count: number;
  readonly worst: number;
  readonly from: number;
}

function brokenOf(run: CanonicalRun, signals: Signals, range: Range): Broken | undefined {
  const track = signals.get(range.id);
  if (track === undefined || range.holds?.(run) === false) return undefined;
  const off = (v: number): number => Math.max(range.least - v, v - range.most);
  let [count, worst, from] = [0, 0, Number.NaN];
  for (let i = 0; i < track.n; i++) {
    if (!(off(track.v[i]) > limits.slack)) continue;
    if (count++ === 0) [worst, from] = [track.v[i], track.x[i]];
    else if (off(track.v[i]) > off(worst)) worst = track.v[i];
  }
  if (count < limits.rows || count < limits.share * track.n) return undefined;
  return { track, range, count, worst, from };
}

export const metricImpossible: Rule = {
  code: 'metric-impossible',
  title: 'A metric has values that it cannot have',
  looksAt: ranges.map(({ id }) => id),
  causes: ['metric-broken'],
  text: {
    means:
      'A number in the log is not what its name says: it is computed wrongly in this version of the trainer, or in another unit. Nothing should be concluded from it, by people or by rules.',
    seen: `${limits.rows} rows and ${percent(limits.share)} of them or more with a share outside of 0 and 1, an explained variance above 1, a size below 0, or an entropy below 0 where actions are choices; by more than ${num(limits.slack)}. It is information: the run may be well.`,
    todo: 'Update the trainer, or leave the metric out. A share that goes to 100 is in percent.',
    silent:
      'For entropies of continuous actions, which may be below 0, and KLs, which have a rule of their own.',
    references: ['huggingface/trl#2281', 'thunlp/JustRL#5', 'DLR-RM/stable-baselines3#149'],
  },
  check(run, signals) {
    return ranges
      .map(range => brokenOf(run, signals, range))
      .filter(one => one !== undefined)
      .map(({ track, range, count, worst, from }) =>
        finding('metric-impossible', {
          severity: 'info',
          title: say`${name(track)} is ${cite(track, worst < range.least ? 'least' : 'most')}, which it cannot be`,
          cause: 'metric-broken',
          confidence: 0.8,
          evidence: [
            say`${citeCount('values that the metric cannot have', count, whole, track)} of ${cite(track, 'rows')} values of ${name(track)} are impossible, ${cite(track, worst < range.least ? 'least' : 'most')} the furthest: ${quoted(range.why)}`,
          ],
          fix: [`conclude nothing from ${name(track)}: it is computed wrongly, or in another unit`],
          marks: [mark(track, from, signals.to)],
        }),
      );
  },
};
