import type { CanonicalRun } from '../../canonical.ts';
import { cite, citeCount, citeSetting, say, workOut } from '../../judge/facts.ts';
import { trend } from '../../statistics/trend.ts';
import { courseSaid } from '../course.ts';
import { limitsOf } from '../limits.ts';
import type { Rule } from '../rule.ts';
import type { Track } from '../track.ts';
import { change, finding, mark, name, num, soon } from '../words.ts';
import { impliedEntropyCoef } from './entropy-stuck.ts';

/** Entropy of one dimension with std 1. */
const unit = 0.5 * Math.log(2 * Math.PI * Math.E);

const limits = limitsOf('std-growing', {
  rows: 10,
  /** Standard scores of the trend. */
  score: 3,
  /** How many times as large: to be looked at, clearly, and whatever the return does. */
  growth: 1.5,
  clear: 2,
  vast: 5,
  /** An entropy coefficient that explains it: told, or implied by the losses. */
  coef: 0.05,
  implied: 0.1,
  /** Where nobody says what the actions are, one that nobody would choose. */
  absurd: 0.2,
});

/** Actions whose entropy has no maximum; where nothing tells, a coefficient that nobody would choose is reason to look. */
function growable({ actions, config }: CanonicalRun): boolean {
  return actions === 'continuous' || (actions === 'unknown' && (config.entropyCoef ?? 0) >= limits.absurd);
}

export const stdGrowing: Rule = {
  code: 'std-growing',
  title: 'Exploration grows without end',
  looksAt: ['policy/std', 'policy/entropy', 'episode/return'],
  causes: ['entropy-bonus-too-large'],
  text: {
    means:
      'The spread of continuous actions grows row after row. The entropy of a Gaussian has no maximum, so a bonus for it can always be had by being more random; an environment that rescales actions makes that free.',
    seen: `A std (or an entropy, counted for each dimension) that rises steadily to ${limits.growth} times its start or more while the return does not improve: a warning, and critical from ${limits.clear} times on, or with an entropy coefficient of ${limits.coef} or more (${limits.implied}, if the losses imply it). To ${limits.vast} times it is told whatever the return does, and critical unless that still rises.`,
    todo: 'Set the entropy coefficient to 0 for continuous actions, bound the log-std, and check that the environment does not normalise actions.',
    silent:
      'When std falls again, grows less, or the entropy coefficient is 0. An entropy that does not begin at that of a std of 1 is not read: how many dimensions share it, nobody can tell. Discrete actions have a maximum: another rule.',
    references: ['volcengine/verl#781', 'DLR-RM/stable-baselines3#2240'],
  },
  check(run, signals) {
    if (run.kind !== 'classic' || run.actions === 'discrete') return [];
    const { progress } = signals;
    const std = signals.get('policy/std');
    const entropy = signals.get('policy/entropy');
    let track: Track | undefined;
    let growth = 0;
    let z = 0;
    if (std !== undefined && std.n >= limits.rows) {
      const over = trend(std.v);
      track = std;
      growth = over.end / over.start;
      z = over.z;
    } else if (entropy !== undefined && entropy.n >= limits.rows && growable(run)) {
      const over = trend(entropy.v);
      // Policies begin with a std of 1. Of one that did not, the log does not tell how many dimensions share the entropy.
      const dimensions = Math.round(entropy.first / unit);
      if (dimensions >= 1) {
        track = entropy;
        growth = Math.exp((over.end - over.start) / dimensions);
        z = over.z;
      }
    }
    if (track === undefined || z < limits.score || !(growth >= limits.growth)) return [];
    const bad = progress !== undefined && !progress.improved && !progress.saturated;
    const coef = run.config.entropyCoef;
    const implied = impliedEntropyCoef(signals);
    const large = (coef ?? 0) >= limits.coef || (coef === undefined && (implied ?? 0) >= limits.implied);
    if (coef === 0) return [];
    const ends = progress !== undefined && !progress.improving;
    const severity =
      (growth >= limits.vast && ends) || (growth >= limits.clear && bad) || (large && bad)
        ? 'critical'
        : bad || growth >= limits.vast || (large && (ends || growth >= limits.clear))
          ? 'warning'
          : undefined;
    if (severity === undefined) return [];
    const times =
      track === std
        ? workOut('times', cite(track, 'trend end'), cite(track, 'trend start'))
        : citeCount('growth of the std that the entropy implies', growth, num, track);
    return [
      finding('std-growing', {
        severity,
        title:
          track === std
            ? say`${name(track)} grows ${times} times over the run`
            : say`${name(track)} grows until a std is ${times} times as large`,
        cause: 'entropy-bonus-too-large',
        confidence: large ? 0.93 : growth >= 3 ? 0.85 : 0.65,
        evidence: [
          track === std
            ? say`${name(track)} goes from ${cite(track, 'trend start')} to ${cite(track, 'trend end')}, steadily (a trend of ${cite(track, 'trend score')} standard scores)`
            : say`${name(track)} goes from ${cite(track, 'trend start')} to ${cite(track, 'trend end')} nats: a std ${times} times as large`,
          coef === undefined
            ? (implied ?? 0) > 0.05
              ? say`the losses imply an entropy coefficient of at least ${citeCount('least entropy coefficient', implied!, num)}`
              : undefined
            : say`the entropy coefficient is ${citeSetting('entropyCoef', coef)}`,
          progress === undefined ? undefined : courseSaid(progress),
        ],
        fix: [
          change(run, { entropyCoef: 0 }, 'set the entropy coefficient to 0'),
          'check that the environment does not rescale the action vector, which makes its size free',
        ],
        watch: `${soon(run, signals.to - signals.from)} ${name(track)} should stop rising`,
        marks: [mark(track, signals.from, signals.to)],
      }),
    ];
  },
};
