import { whole } from '../../../base/numbers.ts';
import { cite, citeCount, citeEnd, citeStep, limit, quoted, rowsBetween, say } from '../../judge/facts.ts';
import { limitsOf } from '../limits.ts';
import type { Rule } from '../rule.ts';
import type { Signals } from '../signals.ts';
import { PROBLEM_KL } from '../steps/streak.ts';
import type { Track } from '../track.ts';
import {
  change,
  type Draft,
  finding,
  mark,
  name,
  percent,
  place,
  type Said,
  soon,
  stepAt,
  unitOf,
} from '../words.ts';

/** What must always be a number. Explained variance is none of them: it is NaN whenever returns do not vary. */
const core = [
  'loss/policy',
  'loss/value',
  'loss/total',
  'kl/step',
  'kl/step_k1',
  'kl/step_k3',
  'kl/step_raw',
  'kl/ref',
  'policy/entropy',
  'policy/std',
  'policy/ratio_mean',
  'grad/norm',
  'value/mean',
  'return/mean',
  'adv/mean',
  'adv/std',
] as const;

const rewards = ['reward/mean', 'episode/return'] as const;

/** An error text that names what is not a number. */
const named = /\bnan\b|\binf\b|not finite|non-?finite|infinit|invalid values|constraint.*real/i;

const l = limitsOf('non-finite', {
  /** Rewards that stay broken at the end: rows of the return, broken rows, and the share of all that they are. */
  rewardRows: 10,
  rewards: 5,
  rewardShare: 0.05,
  /** What never was a number: rows without which it may only not have begun. */
  never: 3,
  /** A larger share of broken rows lasts, even if it recovers. */
  lasting: 0.05,
  /** Cells that end empty: rows of the series, empty rows, their share of all, and how often there was a value before. */
  blankRows: 10,
  empty: 5,
  emptyShare: 0.05,
  before: 0.8,
  /** What goes on: how much of the rest of the run, with fewer empty rows than this. */
  rest: 0.7,
  few: 3,
});

/** Before it: rows of the KL, and the share of them in which it was large. */
const before = limitsOf('non-finite/before', { rows: 3, high: 0.2 });

/** Rewards are NaN until the first episode ends, and between episodes: only what stays broken at the end counts. */
function brokenRewards(track: Track): boolean {
  return track.n >= l.rewardRows && track.broken.trailing >= Math.max(l.rewards, l.rewardShare * track.rows);
}

/** Infinity is never a placeholder for an episode that has not ended: after a finite return it is what it says. */
function infiniteRewards(track: Track): boolean {
  return track.n > 0 && track.broken.infinite > 0 && track.broken.points > track.broken.leading;
}

function brokenCore(track: Track): boolean {
  // A few rows before the first update have no losses yet, and some trainers write NaN for that.
  const after = track.n === 0 ? track.rows : track.broken.points - track.broken.leading;
  return after > 0 && (track.n > 0 || track.rows >= l.never);
}

export const nonFinite: Rule = {
  code: 'non-finite',
  title: 'Values that are not finite',
  looksAt: [...core, ...rewards],
  causes: ['non-finite'],
  text: {
    means:
      'NaN or infinity entered the loss, the gradient, the policy or the rewards. Everything computed from it is lost, and an optimiser that took the step has lost its parameters.',
    seen: `A loss, KL, entropy, std, ratio or gradient norm that is NaN or infinite after it had been finite, a return that is infinite, or an error text beside the log that says so. Also losses whose cells are null or empty from some row to the end, two or more together, though ${percent(l.before)} of the rows before had them and other numbers of the updates go on. Rows that recover are a warning; values that stay so, or are so in more than ${percent(l.lasting)} of the rows, are critical.`,
    todo: 'Find the first row. If KL or the gradient norm grew before it, lower the learning rate. If it came out of a calm run, look for the observation, reward or division that made it: an advantage normalised over one sample, log of 0, an outlier of the physics. Go back to the last checkpoint before it.',
    silent:
      'A reward that is NaN before the first episode ends is missing, not broken. Explained variance may be NaN or -infinity when returns do not vary. Rows of evaluations have no losses. What is logged now and then may end empty; where all that updates write ends at once, training ended there.',
    references: [
      'DLR-RM/rl-baselines3-zoo#156',
      'DLR-RM/stable-baselines3#440',
      'ray-project/ray#21297',
      'volcengine/verl#891',
      'leggedrobotics/rsl_rl#190',
      'isaac-sim/IsaacLab#1999',
      'modelscope/ms-swift#8123',
    ],
  },
  check(run, signals) {
    const broken = core
      .map(id => signals.get(id))
      .filter((t): t is Track => t !== undefined && brokenCore(t));
    const others = run.kind === 'language-model' || broken.length > 0;
    for (const id of rewards) {
      const track = signals.get(id);
      if (track === undefined || track.n === 0) continue;
      if (infiniteRewards(track) || (others && brokenRewards(track))) broken.push(track);
    }
    const gone = blankEnd(signals);
    const crash = run.error !== undefined && named.test(run.error) ? run.error : undefined;
    if (broken.length === 0 && gone !== undefined) return [vanished(signals, gone)];
    if (broken.length === 0 && crash === undefined) return [];
    if (broken.length === 0) return [crashed(signals, crash!)];

    const onset = Math.min(...broken.map(t => t.broken.from));
    const stays = broken.filter(t => t.broken.trailing > 0 || t.n === 0);
    const worst = Math.max(...broken.map(t => t.broken.points / Math.max(1, t.rows)));
    const lasting = stays.length > 0 || worst > l.lasting || crash !== undefined;
    const onlyGradient = broken.every(t => t.id === 'grad/norm');
    const severity = lasting ? 'critical' : onlyGradient ? 'info' : 'warning';
    const first = broken.filter(t => t.broken.from === onset);
    return [
      finding('non-finite', {
        severity,
        title: lasting
          ? say`${first.map(name).join(', ')} is not finite from ${unitOf(run)} ${brokenFrom(first[0])}`
          : say`${first.map(name).join(', ')} is not finite now and then, first at ${unitOf(run)} ${brokenFrom(first[0])}`,
        cause: 'non-finite',
        confidence: lasting ? 0.9 : 0.5,
        evidence: [
          ...broken
            .slice(0, 6)
            .map(
              t =>
                say`${name(t)}: ${citeCount('rows that are not finite', t.broken.points, whole, t)} of ${citeCount('rows that there are', t.rows, whole, t)} rows are ${t.broken.infinite > 0 ? 'infinite' : 'NaN'}, the first at ${brokenFrom(t)}${t.broken.trailing > 0 ? say`, and the last ${citeCount('rows at the end that are not finite', t.broken.trailing, whole, t)} of the log` : ''}`,
            ),
          crash === undefined ? undefined : say`the log came with an error: ${quoted(crash.slice(0, 160))}`,
          calm(signals, onset),
        ],
        fix: fixes(signals, onset),
        watch: `${soon(run, signals.to - signals.from)} of a restart no row of ${name(first[0])} should be NaN or infinite`,
        marks: broken.map(t => mark(t, t.broken.from, Math.max(t.broken.to, t.broken.from))),
      }),
    ];
  },
};

/** What an update writes besides its losses: with these going on the update still runs. */
const ofUpdates = [
  'train/lr',
  'train/clip_range',
  'train/epochs_run',
  'train/entropy_coef',
  'policy/clip_fraction',
  'value/explained_variance',
] as const;

interface BlankEnds {
  readonly tracks: readonly Track[];
  /** What goes on: of the updates, or else returns. */
  readonly alive: Track;
  readonly updates: boolean;
}

/**
 * Losses whose cells are empty from some row to the end, though they had a value in nearly every row before. Tables are
 * written so from values that are not numbers: pandas leaves them out, JSON has null for them. A phase without training
 * ends all that updates write at once, so something of theirs has to go on; returns alone are a weaker sign.
 */
function blankEnd(signals: Signals): BlankEnds | undefined {
  const of = (ids: readonly string[]): Track[] =>
    ids.map(id => signals.get(id)).filter((t): t is Track => t !== undefined && t.n >= l.blankRows);
  const all = of(core);
  const tracks = all.filter(
    ({ blank, rows }) =>
      blank !== undefined &&
      blank.rows >= Math.max(l.empty, l.emptyShare * (blank.before + blank.rows)) &&
      rows >= l.before * blank.before - 1,
  );
  if (tracks.length === 0 || (tracks.length === 1 && all.length > 1)) return undefined;
  const onset = Math.min(...tracks.map(t => t.blank!.from));
  const goesOn = (t: Track): boolean =>
    !tracks.includes(t) &&
    t.n > 0 &&
    t.x[t.n - 1] >= onset + l.rest * (signals.to - onset) &&
    (t.blank?.rows ?? 0) < l.few;
  // Without them returns alone may be those of an evaluation after training.
  const updates = [...of(ofUpdates), ...all].find(goesOn);
  const returns = of(rewards).find(goesOn);
  const alive = updates ?? returns;
  return alive === undefined ? undefined : { tracks, alive, updates: updates !== undefined };
}

function vanished(signals: Signals, { tracks, alive, updates }: BlankEnds): ReturnType<typeof finding> {
  const { run } = signals;
  const onset = Math.min(...tracks.map(t => t.blank!.from));
  const isNull = tracks.every(t => t.blank!.kind === 'null');
  return finding('non-finite', {
    severity: updates ? 'critical' : isNull ? 'warning' : 'info',
    title: say`${tracks.slice(0, 3).map(name).join(', ')} ${tracks.length === 1 ? 'has' : 'have'} no value from ${unitOf(run)} ${citeCount('step of the first empty cell', onset, place)} on`,
    cause: updates || isNull ? 'non-finite' : null,
    confidence: updates ? 0.8 : 0.5,
    evidence: [
      ...tracks
        .slice(0, 6)
        .map(
          t =>
            say`${name(t)} had a value in ${citeCount('rows that there are', t.rows, whole, t)} of ${citeCount('rows before its cells are empty', t.blank!.before, whole, t)} rows, and is ${t.blank!.kind} in the last ${citeCount('rows with an empty cell', t.blank!.rows, whole, t)}`,
        ),
      say`${name(alive)} goes on to ${citeStep(alive, alive.n - 1)}: ${isNull ? 'null is how JSON writes' : 'an empty cell is how tables write'} what is not a number`,
      calm(signals, onset),
    ],
    fix: fixes(signals, onset),
    watch: `${soon(run, signals.to - signals.from)} of a restart every row should have ${name(tracks[0])}`,
    marks: tracks.map(t => mark(t, onset, signals.to)),
  });
}

function crashed(signals: Signals, text: string): ReturnType<typeof finding> {
  const { run } = signals;
  const track = signals.kl?.track ?? [...signals.tracks.values()].find(t => t.n > 0);
  return finding('non-finite', {
    severity: 'critical',
    title: say`The run stopped at ${unitOf(run)} ${citeEnd(signals)} on a value that is not finite`,
    cause: 'non-finite',
    confidence: 0.9,
    evidence: [say`the log came with an error: ${quoted(text.slice(0, 200))}`, calm(signals, signals.to)],
    fix: fixes(signals, signals.to),
    watch: `${soon(run, signals.to - signals.from)} of a restart no loss should be NaN`,
    marks: track === undefined ? [] : [mark(track, signals.to, signals.to)],
    from: signals.to,
    to: signals.to,
  });
}

/** Where a series first is not finite. */
const brokenFrom = (track: Track): Said =>
  citeCount('step of the first row that is not finite', track.broken.from, place, track);

/** What KL did before: the reader wants to know whether it came out of the blue. */
function calm(signals: Signals, onset: number): Said | undefined {
  const kl = signals.kl?.track;
  if (kl === undefined || signals.run.kind !== 'classic') return undefined;
  let rows = 0;
  let high = 0;
  for (let i = 0; i < kl.n && kl.x[i] < onset; i++) {
    rows++;
    if (kl.v[i] > PROBLEM_KL) high++;
  }
  if (rows < before.rows) return undefined;
  const large = cite(rowsBetween(kl, 0, rows), 'share above', PROBLEM_KL);
  return high / rows > before.high
    ? say`before that ${name(kl)} was above ${limit(PROBLEM_KL)} in ${large} of the rows: the updates were too large already`
    : say`before that ${name(kl)} was calm (${high === 0 ? say`at most ${cite(rowsBetween(kl, 0, rows), 'most')}` : say`above ${limit(PROBLEM_KL)} in ${large} of the rows`}): look at the data, not at the learning rate`;
}

function fixes(signals: Signals, onset: number): Draft['fix'] {
  const { run } = signals;
  return [
    `look at observations, rewards and advantages just before ${stepAt(run, onset)}: assert that they are finite before they are used`,
    change(run, { maxGradNorm: 0.5 }, 'clip the gradient norm at 0.5'),
    'restart from the last checkpoint before it',
  ];
}
