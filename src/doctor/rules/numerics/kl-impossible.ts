import type { Finding } from '../../findings.ts';
import { cite, limit, quoted, say } from '../../judge/facts.ts';
import { blockMedians } from '../../statistics/blocks.ts';
import { median, share } from '../../statistics/order.ts';
import { limitsOf } from '../limits.ts';
import type { Rule } from '../rule.ts';
import type { Track } from '../track.ts';
import { finding, mark, name, percent, soon } from '../words.ts';

const limits = limitsOf('kl-impossible', {
  rows: 8,
  /** Below 0 by less than this, or than this share of its size, is float noise of a KL that is 0. */
  noise: 1e-5,
  ofSize: 0.01,
  /** Rows below 0, and their share. */
  negative: 3,
  often: 0.02,
  /** Of what takes many rows to see. */
  longRows: 20,
  /** A sum over a sequence: below this in this share of its blocks, and its median below the other. */
  below: -0.5,
  mostly: 0.7,
  median: -1,
  /** What was cut off at 0 is exactly 0 in so many of the rows, no fewer and no more, and begins or ends to be so as often. */
  zeros: 0.15,
  most: 0.9,
  changes: 0.15,
});

/** Estimators that cannot be negative, whatever the samples. */
const nonNegative = ['exact', 'k2', 'k3'];

/** The share of the rows that are below 0. */
function negative(track: Track): number {
  const floor = Math.max(limits.noise, limits.ofSize * median(track.v.map(Math.abs)));
  return share(track.v, v => v < -floor);
}

function impossible(track: Track): boolean {
  const often = negative(track);
  return often * track.n >= limits.negative && often > limits.often;
}

/** The sum over a sequence is negative for long, beyond what sampling noise does. */
function belowZero(track: Track): boolean {
  if (track.n < limits.longRows) return false;
  const blocks = blockMedians(track.v, limits.longRows);
  return share(blocks, v => v < limits.below) >= limits.mostly && median(track.v) < limits.median;
}

/** k1 scatters around the KL, so it is negative now and then; one that never is, with many exact zeros, was cut off at 0. */
function clamped(track: Track): boolean {
  if (track.n < limits.longRows || share(track.v, v => v < 0) > 0) return false;
  const zeros = share(track.v, v => v === 0);
  if (zeros < limits.zeros || zeros > limits.most) return false;
  let changes = 0;
  for (let i = 1; i < track.n; i++) if ((track.v[i] === 0) !== (track.v[i - 1] === 0)) changes++;
  // Zeros all over the run, not a stretch of them.
  return changes >= limits.changes * track.n;
}

export const klImpossible: Rule = {
  code: 'kl-impossible',
  title: 'A KL that cannot be one',
  looksAt: ['kl/step', 'kl/step_k1', 'kl/ref'],
  causes: ['kl-estimator-broken'],
  text: {
    means:
      'The values that are logged as KL are impossible for what they are said to be: negative where the estimator cannot be, cut off at 0, or negative for long over whole sequences. An early stop or penalty that uses them is fooled, and so is every threshold.',
    seen: `An exact, k2 or k3 estimate below 0 beyond float noise in more than ${percent(limits.often)} of the rows; a k1 estimate that is never negative and exactly 0 in ${percent(limits.zeros)} to ${percent(limits.most)} of the rows, all over the run; a KL of sequences below ${limits.median} in the median and below ${limits.below} in ${percent(limits.mostly)} of its blocks.`,
    todo: 'Log k3, exp(r) - 1 - r with r = log new - log old, or the exact KL of the distributions. For sequences check top-k, minimum length and padding of the sampler. Never clamp k1.',
    silent:
      'k1 may be negative in single rows, and the KL of a sequence between -1 and 0 is noise. A KL that is 0 in every row means that there is no KL term. All other rules ignore a KL that this one has found broken.',
    references: ['DLR-RM/stable-baselines3#417', 'huggingface/trl#235', 'docs/kl.md'],
  },
  check(run, signals) {
    const out: Finding[] = [];
    for (const track of signals.tracks.values()) {
      if (track.kl === undefined || track.n < limits.rows) continue;
      const { estimator, per } = track.kl;
      const hard = nonNegative.includes(estimator) && per !== 'sequence' && impossible(track);
      const long = per === 'sequence' && belowZero(track);
      const cut = (estimator === 'k1' || estimator === 'unknown') && clamped(track);
      if (!hard && !long && !cut) continue;
      out.push(
        finding('kl-impossible', {
          severity: hard || long ? 'critical' : 'warning',
          title: hard
            ? say`${name(track)} is negative in ${cite(track, 'share below', 0)} of the rows, which ${estimator === 'exact' ? 'an exact KL' : quoted(estimator)} cannot be`
            : long
              ? say`${name(track)} is negative for long (median ${cite(track, 'median')})`
              : say`${name(track)} is cut off at ${limit(0)}`,
          cause: 'kl-estimator-broken',
          confidence: hard ? 0.85 : long ? 0.75 : 0.65,
          evidence: [
            say`${name(track)}: smallest ${cite(track, 'least')}, median ${cite(track, 'median')}, largest ${cite(track, 'most')}`,
            cut
              ? say`${cite(track, 'share at', 0)} of the rows are exactly ${limit(0)} and none is negative: log-ratios scatter around ${limit(0)}, so they were clamped`
              : undefined,
            long
              ? 'top-k, a minimum length or padding in the sampler makes sampled sequences likelier than the policy says'
              : undefined,
          ],
          fix: [
            'log k3: (exp(r) - 1 - r).mean() with r = log_prob_new - log_prob_old, or the exact KL of the two distributions',
            cut ? 'remove the clamp at 0' : undefined,
            long ? 'sample with top_k=0, top_p=1, no minimum length, and mask padding' : undefined,
          ],
          watch: `${soon(run, signals.to - signals.from)} ${name(track)} should be small and positive`,
          marks: [mark(track, signals.from, signals.to)],
        }),
      );
    }
    return out.slice(0, 2);
  },
};
