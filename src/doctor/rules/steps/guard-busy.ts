import { klMarks } from '../../../metrics/registry.ts';
import type { CanonicalRun } from '../../canonical.ts';
import type { Finding } from '../../findings.ts';
import type { Fix } from '../../fixes.ts';
import { cite, citeCount, citeSetting, citeStep, quoted, rowsBetween, say } from '../../judge/facts.ts';
import { median } from '../../statistics/order.ts';
import { limitsOf } from '../limits.ts';
import type { Rule } from '../rule.ts';
import { MIN_POINTS, type Signals } from '../signals.ts';
import type { Track } from '../track.ts';
import { change, finding, mark, name, num, percent, round, type Said, soon } from '../words.ts';
import { suspectOf } from './unstable.ts';

const limits = limitsOf('guard-busy', {
  rows: 10,
  /** The guard is for now and then: in this share of the updates it is what sets the pace. */
  often: 1 / 3,
  /** Rows of the rate that the guard has left, and the share below which it has, for good, made another one of it. */
  rateRows: MIN_POINTS,
  left: 0.1,
});

/** Above this share of a bound on single states a KL is at it. */
const boundLimits = limitsOf('guard-busy/bound', { near: 0.8 });
/** A larger bound than this is no advice. */
const WIDEST = klMarks.at(-1)!;

/** How the guard acts on a row: what is logged of it, and what that is where it did nothing. */
const acts: readonly { readonly id: string; readonly acted: (value: number) => boolean }[] = [
  { id: 'guard/retries', acted: v => v > 0 },
  { id: 'guard/backtracks', acted: v => v > 0 },
  { id: 'guard/scale', acted: v => v < 1 },
];

export const guardBusy: Rule = {
  code: 'guard-busy',
  title: 'The KL guard does the work of a lower learning rate',
  looksAt: [
    'guard/retries',
    'guard/backtracks',
    'guard/scale',
    'guard/rate',
    'kl/step_raw',
    'kl/step_p99',
    'kl/step_max',
    'kl/step',
  ],
  causes: ['learning-rate-too-high', 'too-many-epochs', 'clip-range-too-large'],
  text: {
    means:
      'Update after update leaves its bound, and the guard does it again at a lower rate or takes it back. Training is safe, but much of the work is thrown away, and the raw KL shows what would have happened without the guard.',
    seen: `Retries, backtracks or a scale below 1 in ${percent(limits.often)} of the rows or more of the second half of the run; or a rate of which the guard has left less than ${percent(limits.left)} there.`,
    todo: `Lower the learning rate or the epochs, or stop updates at a target KL below the bound, until the guard acts now and then. A bound below ${WIDEST} may also be raised, and so may those on single states.`,
    silent:
      'When the guard acts in fewer of the recent rows: that is what it is for. What it did in the first half is over.',
    references: ['docs/ppo.md', 'docs/kl.md'],
  },
  check(run, signals) {
    const seen = acts.flatMap(({ id, acted }) => {
      const track = signals.get(id);
      return track === undefined || track.n === 0 ? [] : [{ track, acted }];
    });
    const rows = Math.max(0, ...seen.map(({ track }) => track.n));
    if (rows < limits.rows) return [];
    const middle = signals.from + (signals.to - signals.from) / 2;
    const recent = new Set(seen.flatMap(({ track }) => [...track.x].filter(x => x > middle)));
    const busy = new Set(
      seen.flatMap(({ track, acted }) => [...track.x].filter((x, i) => x > middle && acted(track.v[i]))),
    );
    const often = recent.size === 0 ? 0 : busy.size / recent.size;
    if (often < limits.often) return rateTaken(run, signals, middle);
    const suspect = suspectOf(signals);
    const held = boundThatActs(run, signals, middle);
    const raw = signals.get('kl/step_raw');
    const [loudest] = seen.toSorted((a, b) => share(b, busy) - share(a, busy));
    return [
      finding('guard-busy', {
        severity: 'warning',
        title: say`The guard acted in ${citeCount('updates in which the guard acted', often, percent)} of the updates of the second half (${name(loudest.track)})`,
        cause: suspect.cause,
        confidence: Math.max(0.6, suspect.confidence),
        evidence: [
          raw === undefined || raw.n === 0
            ? undefined
            : say`${name(raw)} before the guard: median ${cite(raw, 'median')}, largest ${cite(raw, 'most')}${held?.key === 'guard' ? say`; the bound is ${citeSetting('guard', held.bound)}` : ''}`,
          held?.track === undefined || held.key === 'guard'
            ? undefined
            : say`what acts is ${quoted(run.wording.nameOf(held.key) ?? held.key)}, the bound of ${citeSetting(held.key, held.bound)} on single states: ${name(held.track)} has a median of ${cite(held.track, 'median')}`,
          left(signals, middle),
          suspect.why,
        ],
        fix: [...suspect.fix, held === undefined ? undefined : raised(run, held)],
        watch: `${soon(run, signals.to - signals.from)} the guard should act in few updates (${name(loudest.track)})`,
        marks: [mark(loudest.track, middle, signals.to)],
      }),
    ];
  },
};

/** The guard is quiet, but by a small share of the learning rate: what it had cut never came back. */
function rateTaken(run: CanonicalRun, signals: Signals, from: number): Finding[] {
  const left = signals.get('guard/rate');
  const recent = left?.v.filter((_, i) => left.x[i] > from) ?? [];
  if (left === undefined || recent.length < limits.rateRows || !(median(recent) < limits.left)) return [];
  const { learningRate, guard } = run.config;
  const late = rowsBetween(left, left.n - recent.length);
  const fitting = learningRate === undefined ? undefined : round(learningRate * median(recent));
  return [
    finding('guard-busy', {
      severity: 'warning',
      title: say`The guard has left ${cite(late, 'median', undefined, percent)} of the learning rate in the second half (${name(left)})`,
      cause: 'learning-rate-too-high',
      confidence: 0.6,
      evidence: [
        say`${name(left)}: median ${cite(late, 'median')} since ${citeStep(left, left.n - recent.length)}${guard !== undefined && Number.isFinite(guard) ? say`; the bound is ${citeSetting('guard', guard)}` : ''}`,
        'every update that left the bound has cut the rate, and too few calm ones have won it back',
      ],
      fix: [
        fitting === undefined
          ? undefined
          : change(
              run,
              { learningRate: fitting },
              `set the learning rate to what fits the bound, ${num(fitting)}`,
            ),
      ],
      watch: `${soon(run, signals.to - signals.from)} ${name(left)} should be near 1`,
      marks: [mark(left, from, signals.to)],
    }),
  ];
}

/** A bound that updates run into, and what shows it. */
interface Acting {
  readonly key: 'guard' | 'guardP99' | 'guardMax';
  readonly bound: number;
  readonly track: Track | undefined;
}

/** The bound that updates run into: that of the mean where their raw KL is beyond it, else one on single states. */
function boundThatActs(run: CanonicalRun, signals: Signals, from: number): Acting | undefined {
  const shareOf = (track: Track, holds: (value: number) => boolean): number =>
    share({ track, acted: holds }, new Set([...track.x].filter(x => x > from)));
  const { guard, guardP99, guardMax } = run.config;
  const candidates = (
    [
      ['guard', guard, 'kl/step_raw', 1],
      ['guardP99', guardP99, 'kl/step_p99', boundLimits.near],
      ['guardMax', guardMax, 'kl/step_max', boundLimits.near],
    ] as const
  ).flatMap(([key, bound, id, at]) => {
    if (bound === undefined || !Number.isFinite(bound)) return [];
    const track = signals.get(id);
    // Without what would show it, the bound of the mean is the one that acts.
    const rows = track === undefined ? 0 : shareOf(track, v => v > at * bound);
    return key === 'guard' || rows > 0 ? [{ key, bound, track, rows }] : [];
  });
  return candidates.toSorted((a, b) => b.rows - a.rows)[0];
}

/** A wider bound: of the mean no wider than an ordinary one; those of single states have no such limit. */
function raised(run: CanonicalRun, { key, bound }: Acting): Fix | undefined {
  const to = key === 'guard' ? Math.min(WIDEST, round(2 * bound)) : round(2 * bound);
  if (!(to > bound)) return undefined;
  return change(
    run,
    { [key]: to },
    `raise ${key === 'guard' ? 'the bound of the guard' : `the bound on single states (${key})`} to ${num(to)}`,
  );
}

interface Seen {
  readonly track: Track;
  acted(value: number): boolean;
}

/** How many of these rows a track says it of. */
const share = ({ track, acted }: Seen, rows: ReadonlySet<number>): number =>
  track.x.filter((x, i) => rows.has(x) && acted(track.v[i])).length;

/** What is left of the updates that the guard took back. */
function left(signals: Signals, from: number): Said | undefined {
  const scale = signals.get('guard/scale');
  const cut = scale?.v.filter((v, i) => v < 1 && scale.x[i] > from);
  if (scale === undefined || cut === undefined || cut.length === 0) return undefined;
  return say`of the updates that it took back, ${citeCount('scale of updates that the guard took back', median(cut), percent)} is left (median of ${name(scale)})`;
}
