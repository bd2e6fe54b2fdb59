import { whole } from '../../../base/numbers.ts';
import { citeCount, citeStep, say, workOut } from '../../judge/facts.ts';
import { median } from '../../statistics/order.ts';
import { type Spike, spikes } from '../../statistics/spikes.ts';
import { fellBack } from '../course.ts';
import { limitsOf } from '../limits.ts';
import type { Rule } from '../rule.ts';
import type { Signals } from '../signals.ts';
import { finding, mark, name, num, percent, soon, stepAt, unitOf } from '../words.ts';
import { PROBLEM_KL, scaleOf } from './streak.ts';
import { suspectOf, unguarded } from './unstable.ts';

const limits = limitsOf('kl-spikes', {
  rows: 15,
  /** Before this share of the rows a spike is the start of learning. */
  settled: 1 / 3,
  /** Beyond the median of the surroundings: in robust deviations and in times; of one minibatch's KL more is asked for. */
  deviations: 6,
  times: 3,
  noisyDeviations: 10,
  noisyTimes: 5,
  /** So many, and a return that falls after this share of them where it gets better all the same. */
  count: 3,
  harmful: 1 / 3,
  /** Or so many, of which the later half is so many times the earlier. */
  growing: 4,
  growth: 2,
  /** What a fall after a spike is at least, of the whole range of the return. */
  fall: 0.3,
});

/** Late spikes, those that the return fell after, and whether they grow. */
export interface LateSpikes {
  readonly late: readonly Spike[];
  readonly harmful: readonly Spike[];
  /** Median of the later half against that of the earlier. */
  readonly growth: number;
  readonly grow: boolean;
}

/** Undefined where they are too few to say anything, or the KL is none whose single rows do. */
export function lateSpikesOf(signals: Signals): LateSpikes | undefined {
  const { kl } = signals;
  if (kl === undefined || kl.signed || kl.track.n < limits.rows) return undefined;
  const asked = {
    level: PROBLEM_KL * scaleOf(signals.run),
    deviations: kl.noisy ? limits.noisyDeviations : limits.deviations,
    times: kl.noisy ? limits.noisyTimes : limits.times,
  };
  const late = spikes(kl.track.v, asked, kl.track.peak).filter(s => s.index > kl.track.n * limits.settled);
  if (late.length < limits.count) return undefined;
  const half = Math.floor(late.length / 2);
  const growth = median(late.slice(-half).map(s => s.value)) / median(late.slice(0, half).map(s => s.value));
  return {
    late,
    harmful: late.filter(s => fallsAfter(signals, kl.track.x[s.index])),
    growth,
    grow: late.length >= limits.growing && growth >= limits.growth,
  };
}

/** Whether the return is lower in the tenth of the run after a step than in the tenth before, beyond its noise. */
function fallsAfter(signals: Signals, x: number): boolean {
  const progress = signals.progress;
  if (progress === undefined) return false;
  const { track, noise } = progress;
  const reach = 0.1 * (signals.to - signals.from);
  const before: number[] = [];
  const after: number[] = [];
  for (let i = 0; i < track.n; i++) {
    const d = track.x[i] - x;
    if (d < 0 && d >= -reach) before.push(track.v[i]);
    if (d > 0 && d <= reach) after.push(track.v[i]);
  }
  if (before.length < 2 || after.length < 2) return false;
  const size = Math.max(progress.best - progress.worst, 1e-12);
  return median(before) - median(after) > Math.max(4 * noise, limits.fall * size);
}

export const klSpikes: Rule = {
  code: 'kl-spikes',
  title: 'Late spikes of the KL',
  looksAt: ['kl/step', 'episode/return'],
  causes: ['learning-rate-too-high', 'too-many-epochs', 'clip-range-too-large'],
  text: {
    means:
      'Single updates jump far beyond the rest. Early in a run that is the policy finding its feet; later, growing, or followed by falling returns it is a run that comes apart.',
    seen: `Values above ${PROBLEM_KL}, ${limits.deviations} robust deviations and ${limits.times} times the median of their surroundings (${limits.noisyDeviations} and ${limits.noisyTimes} where the KL is of one minibatch), after the first ${percent(limits.settled)} of the rows. ${limits.count} or more are critical if the return was lost, fell after one of them (in a run that improved: after ${percent(limits.harmful)} of them) and a setting is far from usual, a warning if none is; so are ${limits.growing} or more whose later half is ${limits.growth} times the earlier, unless the return still rises.`,
    todo: 'Lower the learning rate or stop updates early at a target KL; in Keel, switch the guard on where it is off. Restart from before the first spike if returns did not come back.',
    silent:
      'Spikes early in the run; one or two that the return does not notice; spikes while the return improves, which may be a new strategy.',
    references: ['DLR-RM/stable-baselines3#324', 'huggingface/trl#101'],
  },
  check(run, signals) {
    const { kl, progress } = signals;
    const found = lateSpikesOf(signals);
    if (kl === undefined || found === undefined) return [];
    const scale = scaleOf(signals.run);
    const { late, harmful, growth, grow } = found;
    // Of many spikes one or two come before a bad row by chance: in a run that gets better a third of them must.
    const hurt =
      harmful.length >= 1 &&
      progress !== undefined &&
      fellBack(progress) &&
      (harmful.length >= limits.harmful * late.length || !progress.improved);
    const growing = grow && !(progress?.improving ?? false);
    if (!hurt && !growing) return [];
    const suspect = suspectOf(signals);
    const off = unguarded(run);
    const confidence = suspect.confidence - 0.1;
    // What is more likely wrong than right is no verdict.
    const severity = hurt && confidence >= 0.5 ? 'critical' : 'warning';
    const top = late.reduce((a, b) => (b.value > a.value ? b : a));
    const from = kl.track.x[late[0].index];
    const largest = citeCount('largest late spike', top.value, num);
    const base = citeCount('surroundings of the largest late spike', top.base, num);
    return [
      finding('kl-spikes', {
        severity,
        title: say`${citeCount('late spikes', late.length)} late spikes of ${name(kl.track)}, up to ${largest} at ${unitOf(run)} ${citeStep(kl.track, top.index)}`,
        cause: suspect.cause,
        confidence,
        evidence: [
          top.base > 0
            ? say`the largest is ${workOut('times', largest, base)} times the median of ${base} around it`
            : undefined,
          growing
            ? say`they grow: the later half is ${citeCount('growth of late spikes', growth, num)} times the earlier`
            : undefined,
          harmful.length > 0
            ? say`${name(progress!.track)} falls after ${citeCount('harmful late spikes', harmful.length, whole, progress!.track)} of them, first at ${citeStep(kl.track, harmful[0].index)}`
            : undefined,
          suspect.why,
          off?.why,
        ],
        fix: [...suspect.fix, off?.fix, `restart from a checkpoint before ${stepAt(run, from)}`],
        watch: `${soon(run, signals.to - signals.from)} no ${name(kl.track)} should exceed ${num(PROBLEM_KL * scale)}`,
        marks: [mark(kl.track, from, kl.track.x[late.at(-1)!.index])],
      }),
    ];
  },
};
