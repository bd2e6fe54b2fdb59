/**
 * What all rules share: the run's tracks and a few judgements that must be made once and alike. Rules state what they
 * conclude from them; nothing here says that something is wrong.
 */
import { type CanonicalRun, objectiveOf } from '../canonical.ts';
import { median, share } from '../statistics/order.ts';
import { isPractised } from './beginning.ts';
import { type Progress, progressOf } from './progress.ts';
import { part, type Track, trackOf } from './track.ts';

/** The KL of an update, on the scale of the bands. */
export interface StepKl {
  readonly track: Track;
  /** k1 scatters around 0: its size says little, its level over many rows does. */
  readonly signed: boolean;
  /** One minibatch of the update only: single rows mean little. */
  readonly noisy: boolean;
  /** Of the rows after the first tenth, where a spike is no longer the start of learning. */
  readonly settled: Float64Array;
  readonly settledX: Float64Array;
  /** Share of the settled rows above a level. */
  above(level: number): number;
  readonly median: number;
  readonly max: number;
}

/** Settings that move a policy further or less far than is usual, where the log says them. */
export interface Settings {
  /** At the start, before a schedule takes it down. */
  readonly lr?: number;
  readonly lrTrack?: Track;
  /** The rate falls to a tenth or less by a schedule: updates that shrink at the end are meant. */
  readonly annealed: boolean;
  /** Epochs that were set; where only those that ran are known, the most that did. */
  readonly epochs?: number;
  readonly clip?: number;
  readonly targetKl?: number;
}

/** The critic's state. */
export interface Critic {
  readonly loss?: Track;
  readonly ev?: Track;
  /** Median of the explained variance over the second half; NaN where it is not logged. */
  readonly evLate: number;
  /** The best that it got to: the 90th percentile of the explained variance. */
  readonly evBest: number;
  /** Median value loss over the second half; NaN where it is not logged. */
  readonly lossLate: number;
}

export interface Signals {
  readonly run: CanonicalRun;
  /** The run's axis, from its first to its last point. */
  readonly from: number;
  readonly to: number;
  /** Points of its longest track. */
  readonly rows: number;
  /** Rows of the log: more than there are points where some stand for several. */
  readonly logged: number;
  readonly tracks: ReadonlyMap<string, Track>;
  get(id: string): Track | undefined;
  readonly kl: StepKl | undefined;
  readonly progress: Progress | undefined;
  readonly settings: Settings;
  readonly critic: Critic;
  /** Entropy as a share of its maximum over time; only for discrete actions whose maximum is known or told. */
  readonly relativeEntropy: Float64Array | undefined;
  /** Whether the policy was not random from the first rows on; undefined where nothing tells. */
  readonly practised: boolean | undefined;
}

/** Worked out when it is first asked for, and then kept. */
function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

/** Fewer finite points than this say nothing about a level or a trend. */
export const MIN_POINTS = 6;

export function signalsOf(run: CanonicalRun): Signals {
  const tracks = new Map<string, Track>();
  for (const [id, entry] of run.series) tracks.set(id, trackOf(entry));
  const get = (id: string): Track | undefined => tracks.get(id);
  let from = Number.POSITIVE_INFINITY;
  let to = Number.NEGATIVE_INFINITY;
  let rows = 0;
  for (const track of tracks.values()) {
    if (track.n === 0) continue;
    from = Math.min(from, track.x[0]);
    to = Math.max(to, track.x[track.n - 1]);
    rows = Math.max(rows, track.n);
  }
  if (!(from <= to)) from = to = 0;
  const kl = once(() => stepKlOf(tracks));
  const relativeEntropy = once(() => relativeEntropyOf(run, get));
  const practised = once(() => isPractised(run, get, relativeEntropy()));
  const progress = once(() => {
    const objective = objectiveOf(run);
    const track = objective === undefined ? undefined : get(objective.id);
    if (track === undefined || track.n === 0) return undefined;
    const told = progressOf(track, practised());
    // A step that always earns the same says nothing of what an episode does.
    const isOfSteps = run.kind === 'classic' && track.id === 'reward/mean';
    return isOfSteps && told.constant && track.median !== 0 ? undefined : told;
  });
  const settings = once(() => settingsOf(run, get));
  const critic = once(() => criticOf(get));
  return {
    run,
    from,
    to,
    rows,
    logged: [...run.series.values()].reduce((most, { series }) => Math.max(most, series.count), rows),
    tracks,
    get,
    get kl() {
      return kl();
    },
    get progress() {
      return progress();
    },
    get settings() {
      return settings();
    },
    get critic() {
      return critic();
    },
    get relativeEntropy() {
      return relativeEntropy();
    },
    get practised() {
      return practised();
    },
  };
}

/** How much a KL of the update is worth: the exact one first, k1 last. */
const worth = { exact: 4, k3: 3, k2: 2, unknown: 1, k1: 0 } as const;

/** The best KL between the policies before and after an update, per action; never one to a reference or of a sequence. */
function stepKlOf(tracks: ReadonlyMap<string, Track>): StepKl | undefined {
  const found = [...tracks.values()]
    .filter(t => t.kl?.pair === 'step' && t.kl.per !== 'sequence' && t.n > 0)
    // What the guard let stand is the policy that counts; what it held back is another rule's.
    .filter(t => t.id !== 'kl/step_raw')
    // Of the states that moved most, and no mean.
    .filter(t => t.id !== 'kl/step_p99' && t.id !== 'kl/step_max')
    .sort((a, b) => worth[b.kl!.estimator] - worth[a.kl!.estimator]);
  const track = found[0];
  if (track === undefined) return undefined;
  const skip = Math.min(Math.floor(track.n * 0.1), Math.max(0, track.n - MIN_POINTS));
  const signed = track.kl!.estimator === 'k1';
  const settled = track.v.subarray(skip);
  return {
    track,
    signed,
    noisy: track.kl!.aggregation === 'last-minibatch',
    settled,
    settledX: track.x.subarray(skip),
    above: level => share(settled, v => v > level),
    median: median(settled),
    max: settled.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY),
  };
}

function settingsOf(run: CanonicalRun, get: (id: string) => Track | undefined): Settings {
  const rate = get('train/lr');
  const lrTrack = rate !== undefined && rate.n > 0 ? rate : undefined;
  const top = lrTrack === undefined ? Number.NaN : lrTrack.q(1);
  const lr = run.config.learningRate ?? (Number.isFinite(top) ? top : undefined);
  const annealed =
    lrTrack !== undefined && lrTrack.n >= 3 && median(part(lrTrack, 0.9)) <= 0.1 * top && top > 0;
  const ran = get('train/epochs_run');
  const epochs = run.config.epochs ?? (ran === undefined || ran.n === 0 ? undefined : ran.q(0.95));
  const clipTrack = get('train/clip_range');
  const clip =
    run.config.clipRange ?? (clipTrack === undefined || clipTrack.n === 0 ? undefined : clipTrack.q(1));
  const targetKl = run.config.targetKl;
  return {
    ...(lr === undefined ? {} : { lr }),
    ...(lrTrack === undefined ? {} : { lrTrack }),
    annealed,
    ...(epochs === undefined ? {} : { epochs }),
    ...(clip === undefined ? {} : { clip }),
    ...(targetKl === undefined || targetKl <= 0 ? {} : { targetKl }),
  };
}

function criticOf(get: (id: string) => Track | undefined): Critic {
  const loss = get('loss/value');
  const ev = get('value/explained_variance');
  return {
    ...(loss === undefined || loss.n === 0 ? {} : { loss }),
    ...(ev === undefined || ev.n === 0 ? {} : { ev }),
    evLate: ev === undefined || ev.n === 0 ? Number.NaN : median(part(ev, 0.5)),
    evBest: ev === undefined || ev.n === 0 ? Number.NaN : ev.q(0.9),
    lossLate: loss === undefined || loss.n === 0 ? Number.NaN : median(part(loss, 0.5)),
  };
}

function relativeEntropyOf(
  run: CanonicalRun,
  get: (id: string) => Track | undefined,
): Float64Array | undefined {
  const given = get('policy/entropy_relative');
  if (given !== undefined && given.n > 0) return given.v;
  const entropy = get('policy/entropy');
  if (entropy === undefined || entropy.n === 0 || run.kind !== 'classic') return undefined;
  const most = run.maxEntropy;
  if (most !== undefined && most > 0) return entropy.v.map(v => v / most);
  return undefined;
}
