import { median } from '../statistics/order.ts';
import { spikes } from '../statistics/spikes.ts';
import type { Rule } from './rule.ts';
import type { Signals } from './signals.ts';
import { PROBLEM_KL } from './streak.ts';
import { suspectOf, unguarded } from './unstable.ts';
import { finding, mark, name, num, place, soon, stepAt } from './words.ts';

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
  return median(before) - median(after) > Math.max(4 * noise, 0.3 * size);
}

export const klSpikes: Rule = {
  code: 'kl-spikes',
  title: 'Late spikes of the KL',
  looksAt: ['kl/step', 'episode/return'],
  causes: ['learning-rate-too-high', 'too-many-epochs', 'clip-range-too-large'],
  text: {
    means:
      'Single updates jump far beyond the rest. Early in a run that is the policy finding its feet; later, growing, or followed by falling returns it is a run that comes apart.',
    seen: 'Values above 0.05, six robust deviations and three times the median of their surroundings, after the first third of the run. Three or more are critical if the return was lost, fell after one of them (in a run that still improves: after a third of them) and a setting is far from usual, a warning if none is; so are four or more that grow.',
    todo: 'Lower the learning rate or stop updates early at a target KL; in Keel, switch the guard on where it is off. Restart from before the first spike if returns did not come back.',
    silent:
      'Spikes in the first third; one or two that the return does not notice; spikes while the return improves, which may be a new strategy.',
    references: ['DLR-RM/stable-baselines3#324', 'huggingface/trl#101'],
  },
  check(run, signals) {
    const { kl, progress } = signals;
    if (kl === undefined || kl.signed || kl.track.n < 15) return [];
    const scale = run.kind === 'language-model' ? 4 : 1;
    const limits = { level: PROBLEM_KL * scale, deviations: kl.noisy ? 10 : 6, times: kl.noisy ? 5 : 3 };
    const late = spikes(kl.track.v, limits, kl.track.peak).filter(s => s.index > kl.track.n / 3);
    if (late.length < 3) return [];
    const harmful = late.filter(s => fallsAfter(signals, kl.track.x[s.index]));
    const half = Math.floor(late.length / 2);
    const grow = median(late.slice(-half).map(s => s.value)) / median(late.slice(0, half).map(s => s.value));
    // Of many spikes one or two come before a bad row by chance: in a run that gets better a third of them must.
    const hurt =
      harmful.length >= 1 &&
      (progress?.collapsed === true || (progress?.drawdown ?? 0) >= 0.5) &&
      (3 * harmful.length >= late.length || !(progress?.improved ?? false));
    const growing = late.length >= 4 && grow >= 2 && !(progress?.improving ?? false);
    if (!hurt && !growing) return [];
    const suspect = suspectOf(signals);
    const off = unguarded(run);
    const confidence = suspect.confidence - 0.1;
    // What is more likely wrong than right is no verdict.
    const severity = hurt && confidence >= 0.5 ? 'critical' : 'warning';
    const top = late.reduce((a, b) => (b.value > a.value ? b : a));
    const from = kl.track.x[late[0].index];
    return [
      finding('kl-spikes', {
        severity,
        title: `${late.length} late spikes of ${name(kl.track)}, up to ${num(top.value)} at ${stepAt(run, kl.track.x[top.index])}`,
        cause: suspect.cause,
        confidence,
        evidence: [
          `spikes stand ${num(top.value / Math.max(top.base, 1e-12))} times above the median of ${num(top.base)} around them`,
          growing ? `they grow: the later half is ${num(grow)} times the earlier` : undefined,
          harmful.length > 0
            ? `${name(progress!.track)} falls after ${harmful.length} of them, first at ${place(kl.track.x[harmful[0].index])}`
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
