/**
 * The words for the KL of an update: one list of bands for the terminal, the page, the reports, the doctor and docs/kl.md.
 *
 * The bands of an ordinary run end at 1, 2, 3 and 5 times a target KL of .01. So a target moves them, and a guard cuts
 * them off: what a run is held to is its own contract. The absolute marks stay beside it.
 */
import type { Tone } from './tones.ts';

/** How an update's KL is read, from calm to alarming; `invalid` is a value that no KL can have. */
export type KlBandName =
  | 'invalid'
  | 'frozen'
  | 'small'
  | 'healthy'
  | 'ok'
  | 'warning'
  | 'problem'
  | 'critical';

/** One stretch of the scale of `kl/step`. */
export interface KlBand {
  readonly name: KlBandName;
  /** Both ends of the stretch in nats; see {@link klBand} for who owns a boundary. */
  readonly from: number;
  readonly to: number;
  /** How loud to show it. */
  readonly tone: Tone;
  /** What it means, for a tooltip. */
  readonly meaning: string;
  /** What to do, in a few words. */
  readonly action: string;
}

/** What a run holds its updates to. */
export interface KlContract {
  /** The KL that an update aims at, or is stopped at; null or absent where there is none. */
  readonly target?: number | null;
  /** The bound that no update may leave; null where it is switched off, absent where the trainer has none. */
  readonly guard?: number | null;
}

/** The ends of the bands of a run without a target: absolute marks, whatever the contract. */
export const klMarks = [0.001, 0.01, 0.02, 0.03, 0.05] as const;

/** Below this an update changed nothing. */
export const FROZEN_KL = 1e-6;

/** The target that the marks are multiples of. */
const USUAL_TARGET = 0.01;

/** A guard compares in single precision: what it let pass may be beyond its bound in the last digits. */
const GUARD_SLACK = 1e-6;

const isSet = (value: number | null | undefined): value is number =>
  value !== null && value !== undefined && value > 0 && Number.isFinite(value);

/** Without the noise of a product: .045, not .045000000000000005. */
const rounded = (value: number): number => Number(value.toPrecision(12));

const boundOf = ({ guard }: KlContract): number =>
  isSet(guard) ? Math.max(guard, FROZEN_KL) : Number.POSITIVE_INFINITY;

const frozen: KlBand = {
  name: 'frozen',
  from: 0,
  to: FROZEN_KL,
  tone: 'warn',
  meaning:
    'The update changed nothing. Once is chance, and where a schedule ends it is meant; over many updates the policy is frozen.',
  action: 'if it lasts: look at learning rate, advantages and gradient norm',
};

const frozenBySchedule: KlBand = {
  ...frozen,
  tone: 'muted',
  meaning: 'The update changed nothing, by schedule: the learning rate has gone down to nothing.',
  action: 'none',
};

/**
 * The bands of `kl/step` in a run with this contract, from 0 up, without a gap: exact KL(old‖new) of one update, in nats,
 * mean over the rollout. They hold for no other KL: not for one that is summed over a sequence, nor for the distance to a
 * reference. Bands that a guard leaves no room for are not there.
 */
export function klBandsFor(contract: KlContract = {}): readonly KlBand[] {
  const { target, guard } = contract;
  const unit = isSet(target) ? target : USUAL_TARGET;
  const bound = boundOf(contract);
  const edge = (times: number): number => Math.min(bound, Math.max(FROZEN_KL, rounded(unit * times)));
  const [small, healthy, ok, warning, problem] = [edge(0.1), edge(1), edge(2), edge(3), edge(5)];
  const all: readonly KlBand[] = [
    frozen,
    {
      name: 'small',
      from: FROZEN_KL,
      to: small,
      tone: 'muted',
      meaning: 'A very small change: usual late in training or with a small learning rate.',
      action: 'none; if learning is slow, there is room for larger steps',
    },
    {
      name: 'healthy',
      from: small,
      to: healthy,
      tone: 'good',
      meaning: 'Small, safe updates: what a healthy run shows most of the time.',
      action: 'continue',
    },
    {
      name: 'ok',
      from: healthy,
      to: ok,
      tone: 'good',
      meaning: 'Moderate updates: fine early on, worth watching later.',
      action: 'watch closely',
    },
    {
      name: 'warning',
      from: ok,
      to: warning,
      tone: 'warn',
      meaning: 'A large change: now and then is no harm, often is the beginning of instability.',
      action: 'reduce the learning rate',
    },
    {
      name: 'problem',
      from: warning,
      to: problem,
      tone: 'bad',
      meaning:
        'Larger steps than usual: several in a row are worth a look, and harm where the return stalls.',
      action: isSet(target)
        ? 'reduce the learning rate or lower the target KL'
        : 'reduce the learning rate and set a target KL',
    },
    {
      name: 'critical',
      from: problem,
      to: Number.POSITIVE_INFINITY,
      tone: 'bad',
      meaning:
        bound <= problem
          ? "Beyond the guard's bound, which holds every update: the guard was off or looser when this one was made."
          : 'One update rewrote the policy: what was learnt may be lost.',
      action: `restart from a healthy checkpoint with a lower learning rate${guard === null ? ' and the guard on' : ''}`,
    },
  ];
  return all.filter(({ from, to }) => from < to);
}

/** The bands of a run without a target and without a guard. */
export const klBands: readonly KlBand[] = klBandsFor();

const invalid: KlBand = {
  name: 'invalid',
  from: Number.NaN,
  to: Number.NaN,
  tone: 'bad',
  meaning: 'Not a KL: an exact KL is never negative and always a number.',
  action: 'look for NaN in the policy; a negative value comes from a k1 estimate',
};

/**
 * The band of one `kl/step`. A boundary belongs to the calmer side, as in "above .05 is critical", and .001 is healthy;
 * frozen is strictly below 1e-6. `bySchedule` where the learning rate has gone down to nothing: see {@link isAtRest}.
 */
export function klBand(value: number, contract: KlContract = {}, bySchedule = false): KlBand {
  if (!(value >= 0)) return invalid;
  if (value < FROZEN_KL) return bySchedule ? frozenBySchedule : frozen;
  const bands = klBandsFor(contract);
  const bound = boundOf(contract);
  const within = value > bound && value <= bound * (1 + GUARD_SLACK) ? bound : value;
  const above = bands.at(-1)!;
  // On the bound is within it, in whatever band comes before.
  if (within === bound && above.from === bound) return bands.at(-2)!;
  return bands.find(({ name, to }) => (name === 'small' || name === 'frozen' ? within < to : within <= to))!;
}

/** The KL above which a run's bands are red, as {@link klBand} reads it: on the guard's bound is within it. */
export function redAbove(contract: KlContract = {}): number {
  const { from } = klBandsFor(contract).find(({ tone }) => tone === 'bad')!;
  return from === boundOf(contract) ? from * (1 + GUARD_SLACK) : from;
}

const order: readonly KlBandName[] = ['frozen', 'small', 'healthy', 'ok', 'warning', 'problem', 'critical'];

/** Whether a band is one to look at that another is not: from warning on, the larger one; frozen and small are no alarm. */
export function isWorse({ name }: Pick<KlBand, 'name'>, than: Pick<KlBand, 'name'>): boolean {
  if (name === 'invalid' || than.name === 'invalid') return name === 'invalid' && than.name !== 'invalid';
  const at = order.indexOf(name);
  return at >= order.indexOf('warning') && at > order.indexOf(than.name);
}

/**
 * Whether a schedule has taken a learning rate down to nothing: a fiftieth of what was set, or less. `left` is the share that
 * a guard has left of it, which is no schedule.
 */
export function isAtRest(
  rate: number | null | undefined,
  set: number | null | undefined,
  left: number | null | undefined = 1,
): boolean {
  return rate !== null && rate !== undefined && isSet(set) && rate / (left ?? 1) < set / 50;
}

/** Where the updates of a run should be, for captions: `healthy to 0.01, ok to 0.02`. */
export function healthyWords(bands: readonly KlBand[]): string {
  const healthy = bands.find(({ name }) => name === 'healthy');
  const ok = bands.find(({ name }) => name === 'ok');
  if (healthy === undefined) return '';
  return `healthy to ${healthy.to}${ok === undefined ? '' : `, ok to ${ok.to}`}`;
}

/** What a plot of these bands always has on its axis, besides 0: the healthy one. */
export function healthyEnds(bands: readonly KlBand[]): readonly [number, number] | undefined {
  // A guard below all that is healthy leaves smaller steps alone.
  const band = bands.find(({ name }) => name === 'healthy') ?? bands.find(({ name }) => name === 'small');
  return band === undefined ? undefined : [band.from, band.to];
}

/**
 * Whether a plot of these bands is better logarithmic: a value of ten times the last band's edge would press all the others
 * into a line, and bands and target with it. Small values are no reason: they are seen to be small, near 0.
 */
export function dwarfsBands(largest: number, bands: readonly Pick<KlBand, 'from'>[]): boolean {
  const edge = Math.max(0, ...bands.map(band => band.from));
  return edge > 0 && largest > 10 * edge;
}

/** The lines that a run draws for itself: its target and its guard, with their words. */
export function klLevels({ target, guard }: KlContract): { value: number; label: string; tone: Tone }[] {
  return [
    ...(isSet(target) ? [{ value: target, label: `target ${target}`, tone: 'muted' as const }] : []),
    ...(isSet(guard) ? [{ value: guard, label: `guard ${guard}`, tone: 'bad' as const }] : []),
  ];
}

/** The contract that settings of Keel state. */
export function contractOf(config: Readonly<Record<string, unknown>>): KlContract {
  const { targetKl, guard } = config;
  return {
    target: typeof targetKl === 'number' ? targetKl : null,
    // An algorithm that has no guard has none to switch on.
    ...(guard === undefined ? {} : { guard: typeof guard === 'number' ? guard : null }),
  };
}

/** The band of a row of Keel's, by the settings of its run; undefined where it has no step KL. */
export function bandOfRow(
  row: Readonly<Record<string, number | undefined>>,
  config: Readonly<Record<string, unknown>>,
): KlBand | undefined {
  const kl = row['kl/step'];
  if (kl === undefined) return undefined;
  const { learningRate } = config;
  const set = typeof learningRate === 'number' ? learningRate : undefined;
  return klBand(kl, contractOf(config), isAtRest(row['train/lr'], set, row['guard/rate']));
}
