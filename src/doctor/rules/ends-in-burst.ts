import { median, spread } from '../statistics/index.ts';
import type { Rule } from './rule.ts';
import { finding, mark, name, num, place, soon } from './words.ts';

/** Whether a total of one or two digits (60,000) lies within the last row's steps: what people type as a length. */
function isRoundEnd(previous: number, last: number): boolean {
  const unit = 10 ** Math.floor(Math.log10(Math.max(last, 1)));
  for (const step of [unit, unit / 2]) {
    const round = Math.floor(last / step) * step;
    if (round > previous && round <= last) return true;
  }
  return false;
}

export const endsInBurst: Rule = {
  code: 'ends-in-burst',
  title: 'The log ends in a burst',
  looksAt: ['kl/step', 'policy/clip_fraction'],
  causes: ['non-finite'],
  text: {
    means:
      'After a calm run the very last row has a KL and a clip fraction far outside everything before, and then the log stops in the middle of the run. Trainers that check their distributions (Stable-Baselines3, CleanRL) die on the first NaN before they can log it, and this is what is left.',
    seen: 'The last KL is above 0.05, at least 8 times the median of the rows before and far outside their spread, the last clip fraction is above 0.3 and at least 4 times its median, and the run ends neither at the length that was configured nor at a round number of steps.',
    todo: 'Look at the error message of the run. Check observations and rewards for NaN, and restart from the last checkpoint.',
    silent:
      'With fewer than 15 rows; when the run reached its length; when KL had been above 0.03 before, which is another rule.',
    references: ['DLR-RM/stable-baselines3#440', 'DLR-RM/rl-baselines3-zoo#156'],
  },
  check(run, signals) {
    const kl = signals.kl?.track;
    const clip = signals.get('policy/clip_fraction');
    if (run.kind !== 'classic' || kl === undefined || clip === undefined) return [];
    if (kl.n < 15 || clip.n < 15 || run.unit !== 'steps') return [];
    const before = kl.v.subarray(0, kl.n - 1);
    const base = median(before);
    if (!(kl.last > 0.05 && kl.last > 8 * base && kl.last > base + 10 * spread(before))) return [];
    if (before.some(v => v > 0.03)) return [];
    if (!(clip.last > 0.3 && clip.last > 4 * median(clip.v.subarray(0, clip.n - 1)))) return [];
    const total = run.config.totalSteps;
    const previous = signals.progress?.track.x.at(-2) ?? kl.x[kl.n - 2]!;
    if (total === undefined ? isRoundEnd(previous, signals.to) : signals.to >= 0.95 * total) return [];
    return [
      finding('ends-in-burst', {
        severity: 'critical',
        title: `The log stops at ${run.unit} ${place(signals.to)}, one row after its first large update`,
        cause: 'non-finite',
        confidence: 0.55,
        evidence: [
          `the last ${name(kl)} is ${num(kl.last)}, ${num(kl.last / base)} times the median of the ${before.length} rows before it`,
          `the last ${name(clip)} is ${num(clip.last)}`,
          total === undefined
            ? `${place(signals.to)} is no length that one would ask for: the run did not end by itself`
            : `the run was to take ${place(total)} steps`,
        ],
        fix: [
          'read the error message of the run: a NaN ends a run before it can be logged',
          'check observations and rewards for NaN and infinity',
          'restart from the last checkpoint',
        ],
        watch: `${soon(run, signals.to - signals.from)} of a restart ${name(kl)} should stay below 0.02`,
        marks: [mark(kl, kl.x[kl.n - 1]!, signals.to), mark(clip, clip.x[clip.n - 1]!, signals.to)],
      }),
    ];
  },
};
