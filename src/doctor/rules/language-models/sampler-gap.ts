import type { CanonicalRun } from '../../canonical.ts';
import type { Finding } from '../../findings.ts';
import { cite, citeStep, limit, rowsBetween, rowsOf, say, settledOf } from '../../judge/facts.ts';
import type { Statistic } from '../../judge/statistics.ts';
import { median, quantile, share } from '../../statistics/order.ts';
import { limitsOf } from '../limits.ts';
import type { Rule } from '../rule.ts';
import type { Signals } from '../signals.ts';
import type { Track } from '../track.ts';
import { finding, mark, name, num, soon } from '../words.ts';

const l = limitsOf('sampler-gap', {
  rows: 5,
  /** How far the two are apart from which on it is a warning, and critical. */
  kl: 0.02,
  klFar: 0.1,
  prob: 0.04,
  probFar: 0.1,
  logp: 0.1,
  logpFar: 0.3,
  /** Of the logarithm of the ratio. */
  ratio: 0.2,
  ratioFar: 0.7,
  /** A rate of 0 in so many rows, and what moves all the same; a KL to the reference that grows so many times is learnt. */
  still: 0.9,
  clipped: 1e-3,
  moved: 1e-4,
  grown: 5,
  /** From the first row on: a mean ratio so far from 1; a KL to the reference a token and a sequence, grown less than so many times. */
  startRatio: 0.1,
  startToken: 4,
  startSequence: 12,
  startGrown: 3,
});

interface Gauge {
  readonly what: string;
  readonly find: (signals: Signals) => Track | undefined;
  /** How far a value is from agreement, on the scale of its limits. */
  readonly distance: (value: number) => number;
  /** The median of it, as it is cited. */
  readonly off: Statistic;
  readonly of: 'kl' | 'prob' | 'logp' | 'ratio';
}

/** What trainers log about the difference between the program that samples and the one that scores. */
const gauges: readonly Gauge[] = [
  {
    what: 'KL between sampler and scorer',
    find: s => s.get('kl/sampler'),
    distance: Math.abs,
    off: 'median size',
    of: 'kl',
  },
  {
    what: 'difference of probabilities',
    find: s => s.get('sampler/prob_diff'),
    distance: Math.abs,
    off: 'median size',
    of: 'prob',
  },
  {
    what: 'difference of log-probabilities',
    find: s => s.get('sampler/logp_diff'),
    distance: Math.abs,
    off: 'median size',
    of: 'logp',
  },
  {
    what: 'importance ratio',
    find: s => s.get('sampler/ratio_mean'),
    distance: v => Math.abs(Math.log(Math.max(v, 1e-6))),
    off: 'median size of the logarithm',
    of: 'ratio',
  },
];

const fix = [
  'score with what sampled: the same temperature, precision, attention kernel, chat template and weights; dropout off',
  'score the sampled token ids, never text that was decoded and tokenised again',
  'until they agree, weight samples by the truncated ratio of the two',
];

const freshen = [
  'send the new weights to the sampler after every update, and drop completions that are older than an update or two',
  'until then, weigh samples by the truncated ratio of scorer to sampler',
];

/** What tells two programs from old weights: the first are apart from the first row on, the others only once something is learnt. */
const staleLimits = limitsOf('sampler-gap/stale', {
  /** The first rows, and the share that they may have come to of what only a tenth of all rows is above. */
  rows: 3,
  share: 0.3,
});

function growsWithLearning({ kind }: CanonicalRun, far: Float64Array): boolean {
  if (kind !== 'language-model' || far.length < 4 * staleLimits.rows) return false;
  // Not of the level at the end: a policy that has learnt moves less, and old weights are then nearly the new ones.
  const peak = quantile(far, 0.9);
  return far.subarray(0, staleLimits.rows).every(distance => distance < staleLimits.share * peak);
}

export const samplerGap: Rule = {
  code: 'sampler-gap',
  title: 'Sampler and scorer disagree',
  looksAt: [
    'kl/sampler',
    'sampler/prob_diff',
    'sampler/logp_diff',
    'sampler/ratio_mean',
    'policy/ratio_mean',
    'policy/clip_fraction',
    'kl/step',
    'kl/ref',
    'train/lr',
  ],
  causes: ['sampler-mismatch', 'stale-rollouts'],
  text: {
    means:
      'The program that draws the actions and the one that scores them give different probabilities at the same weights: another temperature, precision, dropout, re-tokenised text. Every ratio is then wrong before the first step, and it looks like a KL spike.',
    seen: `A logged difference between the two (KL above ${l.kl}, probabilities by ${l.prob}, log-probabilities by ${l.logp}, an importance ratio off 1 by a factor of ${num(Math.exp(l.ratio))}); where the first rows of a language model do not have it yet, the sampler's weights are old; a clip fraction above ${l.clipped} or a KL of the update above ${num(l.moved)} at a learning rate of exactly 0; in the first row a mean ratio off 1 by ${l.startRatio}, or a KL to the reference above ${l.startToken} a token (${l.startSequence} a sequence) that does not grow to ${l.startGrown} times that.`,
    todo: 'Make both programs agree before training. Check that ratio is 1 and KL 0 before the first gradient step.',
    silent:
      'Small numeric differences are normal. A reference KL of 0.3 to 1 in the first row may be an adapter whose reference is not the starting policy. A rate that is printed as 0.000 is rounded, not 0.',
    references: ['RLinf/RLinf#1534', 'volcengine/verl#3595', 'docs/kl.md'],
  },
  check(run, signals) {
    const out: Finding[] = [];
    for (const gauge of gauges) {
      const track = gauge.find(signals);
      if (track === undefined || track.n < l.rows) continue;
      const [warn, bad] = [l[gauge.of], l[`${gauge.of}Far`]];
      const far = track.v.map(gauge.distance);
      const level = median(far.subarray(Math.floor(far.length / 2)));
      if (!(level > warn)) continue;
      const stale = growsWithLearning(run, far);
      out.push(
        finding('sampler-gap', {
          severity: level > bad ? 'critical' : 'warning',
          title: say`${name(track)} is ${cite(rowsOf(track, 0.5), 'median')}: sampler and scorer disagree${stale ? ', which they did not at first' : ''}`,
          cause: stale ? 'stale-rollouts' : 'sampler-mismatch',
          confidence: level > bad ? 0.85 : 0.65,
          evidence: [
            say`${gauge.what}, off by a median of ${cite(rowsBetween(track, Math.floor(track.n / 2)), gauge.off)} in the second half and ${cite(rowsBetween(track, 0, Math.max(1, Math.floor(track.n / 10))), gauge.off)} at the start; it should be next to ${limit(0)}`,
          ],
          fix: stale ? freshen : fix,
          watch: `${soon(run, signals.to - signals.from)} ${name(track)} should be within ${num(warn)} of agreement`,
          marks: [mark(track, signals.from, signals.to)],
        }),
      );
    }
    const still = movesWithoutRate(signals) ?? farAtStart(signals);
    if (still !== undefined) out.push(still);
    return out.slice(0, 2);
  },
};

/** The rate is exactly 0, and yet ratios leave the clip range or the KL is not 0. */
function movesWithoutRate(signals: Signals): Finding | undefined {
  const { settings, kl, progress } = signals;
  const rate = settings.lrTrack;
  if (rate === undefined || rate.n < l.rows || share(rate.v, v => v === 0) < l.still) return undefined;
  // Rounded to 0 by a printer of few digits: the run learns all the same.
  const ref = signals.get('kl/ref');
  const learns =
    progress?.improved ||
    (ref !== undefined && ref.n > l.rows && ref.last > l.grown * Math.max(1e-6, ref.first));
  if (learns) return undefined;
  const clip = signals.get('policy/clip_fraction');
  const clipped = clip !== undefined && clip.n >= l.rows && clip.median > l.clipped;
  const moved = kl !== undefined && Math.abs(kl.median) > l.moved;
  if (!clipped && !moved) return undefined;
  const track = clipped ? clip : kl!.track;
  return finding('sampler-gap', {
    severity: 'critical',
    title: say`${name(track)} is ${cite(track, 'median')} although the learning rate is ${limit(0)}`,
    cause: 'sampler-mismatch',
    confidence: 0.9,
    evidence: [
      say`${name(rate)} is exactly ${limit(0)} in ${cite(rate, 'share at', 0)} of ${cite(rate, 'rows')} rows, so the policy cannot move`,
      kl === undefined ? undefined : say`${name(kl.track)} has a median of ${cite(settledOf(kl), 'median')}`,
    ],
    fix,
    watch: `before any step ${name(track)} should be 0`,
    marks: [mark(track, signals.from, signals.to)],
  });
}

/** The first row is as far off as the rest: nothing moved there, it began so. */
function farAtStart(signals: Signals): Finding | undefined {
  const { run } = signals;
  if (run.kind !== 'language-model') return undefined;
  const ratio = signals.get('policy/ratio_mean');
  if (ratio !== undefined && ratio.n >= l.rows) {
    const off = (v: number): number => Math.abs(v - 1);
    if (off(ratio.first) > l.startRatio && median(ratio.v.map(off)) > l.startRatio) {
      return finding('sampler-gap', {
        severity: 'warning',
        title: say`${name(ratio)} is ${cite(ratio, 'first')} from the first row on`,
        cause: 'sampler-mismatch',
        confidence: 0.6,
        evidence: [
          say`${name(ratio)} has a median of ${cite(ratio, 'median')}; before any step it must be ${limit(1)}`,
        ],
        fix,
        watch: `${name(ratio)} should be 1 in the first row`,
        marks: [mark(ratio, signals.from, signals.to)],
      });
    }
  }
  const ref = signals.get('kl/ref');
  if (ref?.kl === undefined || ref.n < l.rows) return undefined;
  const far = ref.kl.per === 'sequence' ? l.startSequence : l.startToken;
  const head = Math.max(1, Math.floor(ref.n / 20));
  const first = quantile(ref.v.subarray(0, head), 0.5);
  if (!(ref.first > far && first > far && ref.median < l.startGrown * first)) return undefined;
  return finding('sampler-gap', {
    severity: 'critical',
    title: say`${name(ref)} is ${cite(ref, 'first')} in the first row, before anything was learnt`,
    cause: 'sampler-mismatch',
    confidence: 0.6,
    evidence: [
      say`${name(ref)}: ${cite(ref, 'first')} at ${citeStep(ref, 0)}, median ${cite(ref, 'median')} over the run: it began there and did not grow there`,
      'weights do not change while data is collected, so a KL before the first step is a difference between two programs, not between two policies',
    ],
    fix: [...fix, 'if the reference is another model on purpose, start from it'],
    watch: `${name(ref)} should be about 0 in the first row`,
    marks: [mark(ref, signals.from, ref.x[head - 1])],
  });
}
