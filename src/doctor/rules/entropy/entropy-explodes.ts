import { type Cited, citeCount, citeSetting, say, workOut } from '../../judge/facts.ts';
import { courseOf, rises } from '../../judge/trends.ts';
import { median } from '../../statistics/order.ts';
import { courseSaid } from '../course.ts';
import { citeEarly, citeLate, early, firstAndLast, late, long } from '../language-models/levels.ts';
import { limitsOf } from '../limits.ts';
import type { Rule } from '../rule.ts';
import type { Signals } from '../signals.ts';
import type { Track } from '../track.ts';
import { change, finding, mark, name, num, percent, round, type Said, soon } from '../words.ts';

const limits = limitsOf('entropy-explodes', {
  rows: 20,
  /** A weight of the entropy up to which it is none. */
  bonus: 1e-3,
  /** A std that surely rises, over its start. */
  growth: 2,
  /** From where on it is sick. */
  vast: 5,
  /** Of discrete actions: as sure as this it had been, as shares of the largest entropy, and so random it is at the end. */
  sure: 0.5,
  random: 0.9,
});

interface Grown {
  readonly track: Track;
  readonly times: number;
  readonly grows: Cited;
  readonly text: Said;
}

/** A spread of continuous actions that grows. */
function spreadOf(signals: Signals): Grown | undefined {
  const std = long(signals.get('policy/std'), limits.rows);
  if (std === undefined) return undefined;
  const [begins, ends] = [early(std), late(std)];
  if (!(begins > 0 && ends >= limits.growth * begins) || !rises(courseOf(std.v))) return undefined;
  return {
    track: std,
    times: ends / begins,
    grows: workOut('times', citeLate(std), citeEarly(std)),
    text: firstAndLast(std),
  };
}

/** A policy of discrete actions that was sure of what it did and is random again. */
function randomAgain(signals: Signals): Grown | undefined {
  const shares = signals.relativeEntropy;
  const entropy = signals.get('policy/entropy_relative') ?? signals.get('policy/entropy');
  if (shares === undefined || entropy === undefined || shares.length < limits.rows) return undefined;
  const least = shares.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY);
  const end = median(shares.subarray(Math.floor(0.8 * shares.length)));
  if (!(least <= limits.sure && end >= limits.random)) return undefined;
  const lowest = citeCount('least relative entropy', least, percent, entropy);
  const ends = citeCount('relative entropy of the last fifth', end, percent, entropy);
  return {
    track: entropy,
    times: end / least,
    grows: workOut('times', ends, lowest),
    text: say`${name(entropy)} was down to ${lowest} of its maximum, and is at ${ends} in the last fifth of the rows`,
  };
}

export const entropyExplodes: Rule = {
  code: 'entropy-explodes',
  title: 'The policy becomes random, and no bonus asks for it',
  looksAt: ['policy/std', 'policy/entropy', 'train/entropy_coef', 'episode/return'],
  causes: ['entropy-explosion'],
  text: {
    means:
      'Nothing pays for randomness, and the policy becomes more random all the same. Updates that overshoot push it there, or log-probabilities that are not those of the actions which the environment saw (actions that were cut off or scaled before they were stored).',
    seen: `An entropy coefficient that is known and below ${num(limits.bonus)}, and, over ${limits.rows} rows or more, a std that surely rises to ${limits.growth} times its start, or an entropy of discrete actions that was below ${percent(limits.sure)} of its maximum and ends above ${percent(limits.random)}, with a return that does not improve or was lost; critical from ${limits.vast} times the std on.`,
    todo: 'Lower the learning rate, bound the log-std, and store the action that the policy drew, not the one that was cut off.',
    silent:
      'Where the return rises, where a bonus explains it (another rule), or where the coefficient is not known.',
    references: ['volcengine/verl#2738', 'ray-project/ray#8889'],
  },
  check(run, signals) {
    const { progress, settings } = signals;
    const coef = run.config.entropyCoef;
    if (run.kind !== 'classic' || progress === undefined || coef === undefined) return [];
    if (!(Math.abs(coef) < limits.bonus) || progress.track.n < limits.rows) return [];
    if ((progress.improved && !progress.collapsed) || progress.saturated || progress.improving) return [];
    const grown = run.actions === 'discrete' ? randomAgain(signals) : spreadOf(signals);
    if (grown === undefined) return [];
    const { track, times, grows, text } = grown;
    return [
      finding('entropy-explodes', {
        severity: run.actions !== 'discrete' && times >= limits.vast ? 'critical' : 'warning',
        title: say`${name(track)} grows ${grows} times without a bonus for it`,
        cause: 'entropy-explosion',
        confidence: 0.65,
        evidence: [
          text,
          say`the entropy coefficient is ${citeSetting('entropyCoef', coef)}`,
          courseSaid(progress),
        ],
        fix: [
          change(
            run,
            settings.lr === undefined ? {} : { learningRate: round(settings.lr / 3) },
            'divide the learning rate by 3',
          ),
          'store the action that was drawn, not the one that was cut off or scaled for the environment',
        ],
        watch: `${soon(run, signals.to - signals.from)} ${name(track)} should stop rising`,
        marks: [mark(track, signals.from, signals.to), mark(progress.track, signals.from, signals.to)],
      }),
    ];
  },
};
