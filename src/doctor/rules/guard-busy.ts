import { klMarks } from '../../metrics/registry.ts';
import { median } from '../statistics/order.ts';
import type { Rule } from './rule.ts';
import { MIN_POINTS, type Signals } from './signals.ts';
import type { Track } from './track.ts';
import { suspectOf } from './unstable.ts';
import { change, finding, mark, name, num, percent, round, soon } from './words.ts';

/** The guard is for now and then: in a third of the updates it is what sets the pace. */
const OFTEN = 1 / 3;
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
  looksAt: ['guard/retries', 'guard/backtracks', 'guard/scale', 'kl/step_raw', 'kl/step'],
  causes: ['learning-rate-too-high', 'too-many-epochs', 'clip-range-too-large'],
  text: {
    means:
      'Update after update leaves its bound, and the guard does it again at a lower rate or takes it back. Training is safe, but much of the work is thrown away, and the raw KL shows what would have happened without the guard.',
    seen: 'Retries, backtracks or a scale below 1 in a third of the rows or more of the second half of the run.',
    todo: 'Lower the learning rate or the epochs, or stop updates at a target KL below the bound, until the guard acts now and then. A bound below 0.05 may also be raised.',
    silent:
      'When the guard acts in less than a third of the recent rows: that is what it is for. What it did in the first half is over.',
    references: ['docs/ppo.md', 'docs/kl.md'],
  },
  check(run, signals) {
    const seen = acts.flatMap(({ id, acted }) => {
      const track = signals.get(id);
      return track === undefined || track.n === 0 ? [] : [{ track, acted }];
    });
    const rows = Math.max(0, ...seen.map(({ track }) => track.n));
    if (rows < Math.max(10, MIN_POINTS)) return [];
    const middle = signals.from + (signals.to - signals.from) / 2;
    const recent = new Set(seen.flatMap(({ track }) => [...track.x].filter(x => x > middle)));
    const busy = new Set(
      seen.flatMap(({ track, acted }) => [...track.x].filter((x, i) => x > middle && acted(track.v[i]))),
    );
    const often = recent.size === 0 ? 0 : busy.size / recent.size;
    if (often < OFTEN) return [];
    const suspect = suspectOf(signals);
    const bound = run.config.guard;
    const raw = signals.get('kl/step_raw');
    const [loudest] = seen.toSorted((a, b) => share(b, busy) - share(a, busy));
    return [
      finding('guard-busy', {
        severity: 'warning',
        title: `The guard acted in ${percent(often)} of the updates of the second half (${name(loudest.track)})`,
        cause: suspect.cause,
        confidence: Math.max(0.6, suspect.confidence),
        evidence: [
          raw === undefined || raw.n === 0
            ? undefined
            : `${name(raw)} before the guard: median ${num(raw.median)}, largest ${num(raw.q(1))}${bound === undefined ? '' : `; the bound is ${num(bound)}`}`,
          left(signals, middle),
          suspect.why,
        ],
        fix: [
          ...suspect.fix,
          bound !== undefined && bound < WIDEST
            ? change(
                run,
                { guard: Math.min(WIDEST, round(2 * bound)) },
                `raise the bound of the guard to ${num(Math.min(WIDEST, round(2 * bound)))}`,
              )
            : undefined,
        ],
        watch: `${soon(run, signals.to - signals.from)} the guard should act in few updates (${name(loudest.track)})`,
        marks: [mark(loudest.track, middle, signals.to)],
      }),
    ];
  },
};

interface Seen {
  readonly track: Track;
  acted(value: number): boolean;
}

/** How many of these rows a track says it of. */
const share = ({ track, acted }: Seen, rows: ReadonlySet<number>): number =>
  track.x.filter((x, i) => rows.has(x) && acted(track.v[i])).length;

/** What is left of the updates that the guard took back. */
function left(signals: Signals, from: number): string | undefined {
  const scale = signals.get('guard/scale');
  const cut = scale?.v.filter((v, i) => v < 1 && scale.x[i] > from);
  if (scale === undefined || cut === undefined || cut.length === 0) return undefined;
  return `of the updates that it took back, ${percent(median(cut))} is left (median of ${name(scale)})`;
}
