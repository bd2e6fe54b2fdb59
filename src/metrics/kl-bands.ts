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
  readonly tone: 'muted' | 'good' | 'warn' | 'bad';
  /** What it means, for a tooltip. */
  readonly meaning: string;
  /** What to do, in a few words. */
  readonly action: string;
}

/**
 * The bands of `kl/step`: exact KL(old‖new) of one update, in nats, mean over the rollout. They hold for no other KL:
 * not for one that is summed over a sequence, nor for the distance to a reference.
 */
export const klBands: readonly KlBand[] = [
  {
    name: 'frozen',
    from: 0,
    to: 1e-6,
    tone: 'muted',
    meaning: 'The update changed nothing. Once is chance; over many iterations the policy is frozen.',
    action: 'if it lasts: look at learning rate, advantages and gradient norm',
  },
  {
    name: 'small',
    from: 1e-6,
    to: 0.001,
    tone: 'good',
    meaning: 'A very small change: usual late in training or with a small learning rate.',
    action: 'none; if learning is slow, there is room for larger steps',
  },
  {
    name: 'healthy',
    from: 0.001,
    to: 0.01,
    tone: 'good',
    meaning: 'Small, safe updates: what a healthy run shows most of the time.',
    action: 'continue',
  },
  {
    name: 'ok',
    from: 0.01,
    to: 0.02,
    tone: 'good',
    meaning: 'Moderate updates: fine early on, worth watching later.',
    action: 'watch',
  },
  {
    name: 'warning',
    from: 0.02,
    to: 0.03,
    tone: 'warn',
    meaning: 'A large change: now and then is no harm, often is the beginning of instability.',
    action: 'reduce the learning rate',
  },
  {
    name: 'problem',
    from: 0.03,
    to: 0.05,
    tone: 'bad',
    meaning: 'The policy moves too fast to be trusted; several in a row seldom recover.',
    action: 'reduce the learning rate and set a target KL',
  },
  {
    name: 'critical',
    from: 0.05,
    to: Number.POSITIVE_INFINITY,
    tone: 'bad',
    meaning: 'One update rewrote the policy: what was learnt may be lost.',
    action: 'restart from a healthy checkpoint with a lower learning rate, or keep the guard on',
  },
];

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
 * frozen is strictly below 1e-6.
 */
export function klBand(value: number): KlBand {
  if (!(value >= 0)) return invalid;
  const [frozen, small, ...rest] = klBands;
  if (value < frozen.to) return frozen;
  if (value < small.to) return small;
  return rest.find(band => value <= band.to)!;
}
