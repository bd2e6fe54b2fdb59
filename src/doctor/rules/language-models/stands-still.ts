import { cite, citeSetting, say } from '../../judge/facts.ts';
import { limitsOf } from '../limits.ts';
import type { Rule } from '../rule.ts';
import type { Signals } from '../signals.ts';
import { leastRate } from '../steps/unstable.ts';
import { change, finding, mark, name, num, round, soon } from '../words.ts';
import { citeLate, endsSaid, late, long } from './levels.ts';
import { referenceOutweighsLimits } from './reference-outweighs.ts';

const l = limitsOf('stands-still', {
  rows: 30,
  /** The KL to the reference that the policy has come to, per token. */
  moved: 1e-4,
  /** A share of groups without spread from which on it is they that teach nothing. */
  flat: 0.8,
  /** A reward that has risen by so many times what so small a KL can bring has risen by chance. */
  luck: 2,
});

/**
 * How far the mean reward can move with so small a KL a token: for small KLs the deviation of the reward times √(2 KL) of a
 * whole completion. Infinite where the log does not tell.
 */
function reachOf(signals: Signals, kl: number): number {
  const spread = signals.get('reward/std');
  const length = signals.get('completion/length');
  if (spread === undefined || spread.n === 0 || length === undefined || length.n === 0) return Infinity;
  return spread.median * Math.sqrt(2 * Math.abs(kl) * length.median);
}

export const standsStill: Rule = {
  code: 'stands-still',
  title: 'The policy is where it began',
  looksAt: [
    'kl/ref',
    'reward/mean',
    'reward/std',
    'completion/length',
    'train/lr',
    'grad/norm',
    'reward/zero_std_groups',
  ],
  causes: ['learning-rate-too-low'],
  text: {
    means:
      'There is a gradient, and nothing comes of it: after many updates the policy is as good as the reference that it began as, and the reward is where it was.',
    seen: `A KL to the reference below ${num(l.moved)} a token at the end of ${l.rows} rows or more, with a gradient above 0 and a reward that does not improve, or that rises by more than ${l.luck} times what such a KL can bring.`,
    todo: `Raise the learning rate tenfold, to ${num(leastRate.others)} at least, until the KL to the reference grows.`,
    silent: `Where the weight of the KL is ${num(referenceOutweighsLimits.weight)} or more, ${num(100 * l.flat)}% of the groups or more have no spread, or rewards are all the same.`,
    references: ['docs/grpo.md'],
  },
  check(run, signals) {
    const ref = long(signals.get('kl/ref'), l.rows);
    const { progress, settings } = signals;
    if (run.kind !== 'language-model' || ref === undefined || ref.kl?.per === 'sequence') return [];
    if (progress === undefined || progress.saturated || progress.constant) return [];
    const { improved } = progress;
    if (improved && progress.end - progress.start < l.luck * reachOf(signals, late(ref))) return [];
    if ((run.config.refCoef ?? 0) >= referenceOutweighsLimits.weight || !(Math.abs(late(ref)) < l.moved))
      return [];
    const zero = signals.get('reward/zero_std_groups');
    const gradient = signals.get('grad/norm');
    if (zero !== undefined && zero.n > 0 && zero.median >= l.flat) return [];
    if (gradient !== undefined && gradient.n > 0 && gradient.median < 1e-6) return [];
    const { lr } = settings;
    return [
      finding('stands-still', {
        severity: 'warning',
        title: say`${name(ref)} is ${citeLate(ref)} after ${cite(ref, 'rows')} rows${improved ? say`, too little to have brought the rise of ${name(progress.track)}` : say` and ${name(progress.track)} does not improve`}`,
        cause: 'learning-rate-too-low',
        confidence: 0.85,
        evidence: [
          lr === undefined ? undefined : say`the learning rate is ${citeSetting('learningRate', lr)}`,
          endsSaid(progress),
        ],
        fix: [
          change(
            run,
            lr === undefined ? {} : { learningRate: Math.max(round(10 * lr), leastRate.others) },
            'multiply the learning rate by 10',
          ),
        ],
        watch: `${soon(run, signals.to - signals.from)} ${name(ref)} should be above ${num(l.moved)}`,
        marks: [mark(ref, signals.from, signals.to), mark(progress.track, signals.from, signals.to)],
      }),
    ];
  },
};
