import { fixOf } from '../../fixes.ts';
import { cite, citeAt, citeCount, type Rows, rowAt, rowsBetween, say } from '../../judge/facts.ts';
import { jitter } from '../../statistics/blocks.ts';
import { median } from '../../statistics/order.ts';
import { limitsOf } from '../limits.ts';
import type { Rule } from '../rule.ts';
import type { Signals } from '../signals.ts';
import { split, type Track } from '../track.ts';
import { finding, mark, name, num, percent, type Said, soon, stepAt, unitOf } from '../words.ts';

const limits = limitsOf('state-lost', {
  /** Rows before the resume, and after it: right after it the first episodes to end are the short ones. */
  before: 10,
  after: 5,
  /** The fall, in the noise of the rows before, and as a share of what had been gained. */
  noise: 5,
  share: 0.5,
  /** From so many rows after it on, one that has not come back is sick. */
  lasting: 20,
});

/** Signs of what was lost: a rate over the one before, an explained variance below it, a KL over it. */
const signs = limitsOf('state-lost/signs', { rate: 1.5, explained: 0.3, kl: 5 });

/** The last rows before a step, and the first from it on. */
const beforeAt = (track: Track, x: number, rows: number): Rows =>
  rowsBetween(track, rowAt(track, x) - rows, rowAt(track, x));
const afterAt = (track: Track, x: number): Rows =>
  rowsBetween(track, rowAt(track, x), rowAt(track, x) + limits.after);

/** Their levels. */
function around(track: Track | undefined, x: number): readonly [before: number, after: number] | undefined {
  if (track === undefined) return undefined;
  const [before, after] = split(track, x);
  if (before.length < limits.after || after.length < limits.after) return undefined;
  return [median(before.subarray(-limits.after)), median(after.subarray(0, limits.after))];
}

interface Lost {
  readonly x: number;
  readonly had: number;
  readonly has: number;
  readonly share: number;
  readonly back: boolean;
  readonly rowsAfter: number;
}

/** The first resume at which the return was lost at once. */
function lostAt(track: Track, restarts: readonly number[]): Lost | undefined {
  for (const x of restarts) {
    const [before, after] = split(track, x);
    if (before.length < limits.before || after.length < limits.after) continue;
    const recent = before.subarray(-limits.before);
    const had = median(recent);
    const has = median(after.subarray(0, limits.after));
    const began = median(before.subarray(0, limits.after));
    const gained = had - began;
    if (!(gained > 0 && had - has > limits.noise * jitter(recent) && had - has >= limits.share * gained))
      continue;
    const end = median(after.subarray(-limits.after));
    return {
      x,
      had,
      has,
      share: (had - has) / gained,
      back: had - end < limits.share * gained,
      rowsAfter: after.length,
    };
  }
  return undefined;
}

/** What else changed at the resume, and what that says was lost. */
function signsAt(signals: Signals, x: number): (Said | undefined)[] {
  const sign = (
    track: Track | undefined,
    holds: (before: number, after: number) => boolean,
    lost: string,
  ): Said | undefined => {
    const at = around(track, x);
    return at === undefined || !holds(...at)
      ? undefined
      : say`${name(track!)} goes from ${cite(beforeAt(track!, x, limits.after), 'median')} to ${cite(afterAt(track!, x), 'median')} there: ${lost}`;
  };
  return [
    sign(
      signals.settings.lrTrack,
      (before, after) => after >= signs.rate * before,
      'its schedule began anew',
    ),
    sign(
      signals.critic.ev,
      (before, after) => before - after >= signs.explained,
      'the critic, or what normalises observations and rewards, is not what it was',
    ),
    sign(
      signals.kl === undefined || signals.kl.signed ? undefined : signals.kl.track,
      (before, after) => after >= signs.kl * before,
      'updates are larger, as with an optimiser that begins anew',
    ),
  ];
}

export const stateLost: Rule = {
  code: 'state-lost',
  title: 'The run was resumed without all of its state',
  looksAt: ['episode/return', 'train/lr', 'value/explained_variance', 'kl/step'],
  causes: ['state-not-restored'],
  text: {
    means:
      'The run was taken up again, and from the first rows on the policy is much worse than it was when it was stopped. Weights alone are not the state of a run: statistics that normalise observations, the optimiser, schedules and the replay buffer belong to it.',
    seen: `A log that goes back or begins anew, and a return whose first ${limits.after} rows from there on have lost ${percent(limits.share)} of what had been gained by then, ${limits.noise} times the noise of the last ${limits.before} rows before or more. It is critical where ${limits.lasting} rows later it is still lost. A learning rate that jumps ${signs.rate} times, an explained variance that falls by ${signs.explained} or a KL ${signs.kl} times as large are told as signs of what was lost.`,
    todo: 'Save and load all of it: normaliser (`VecNormalize` has a file of its own), optimiser, schedules, replay buffer, generator of random numbers. Then look whether the first evaluation gives the return from before.',
    silent: 'Where the scale of the rewards changed at the same place, and where a resume cost little.',
    references: [
      'ray-project/ray#22444',
      'DLR-RM/stable-baselines3#1256',
      'DLR-RM/stable-baselines3#435',
      'google/brax#655',
    ],
  },
  check(run, signals, found) {
    const { progress } = signals;
    if (run.kind !== 'classic' || progress === undefined || run.restarts.length === 0) return [];
    // Another scale of rewards is another return, whatever the policy does.
    if (found.some(({ code }) => code === 'reward-scale-changed')) return [];
    const { track } = progress;
    const lost = lostAt(track, run.restarts);
    if (lost === undefined) return [];
    return [
      finding('state-lost', {
        severity: !lost.back && lost.rowsAfter >= limits.lasting ? 'critical' : 'warning',
        title: say`${name(track)} was ${cite(beforeAt(track, lost.x, limits.before), 'median')} before the run was resumed at ${unitOf(run)} ${citeAt(track, lost.x)}, and ${cite(afterAt(track, lost.x), 'median')} right after`,
        cause: 'state-not-restored',
        confidence: 0.7,
        evidence: [
          say`${citeCount('share of the gain that a resume lost', Math.min(1, lost.share), percent, track)} of what ${name(track)} had gained is gone at once`,
          ...signsAt(signals, lost.x),
        ],
        fix: [
          run.trainer === 'stable-baselines3'
            ? fixOf({
                code: "env = VecNormalize.load('vecnormalize.pkl', env)",
                aside: 'where it normalises',
              })
            : undefined,
          'save and load what normalises observations and rewards, the optimiser, schedules and the replay buffer with the weights',
          `go on from the checkpoint before ${stepAt(run, lost.x)} with all of its state`,
        ],
        watch: `${soon(run, signals.to - signals.from)} of a resume ${name(track)} should be near ${num(lost.had)}`,
        marks: [mark(track, lost.x, signals.to)],
      }),
    ];
  },
};
