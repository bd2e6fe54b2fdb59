/** How an episode came to where it is: from its seed, or a state, by its actions. Enough to go there again, in another process. */
import { fail } from '../errors.ts';
import { type Json, numberFromJson, numberToJson } from '../plain-data.ts';

/** Beyond so many numbers an episode is not kept; it can then not be repeated. */
const MOST_NUMBERS = 2 ** 18;

export class Episode {
  /** The seed that it began from. */
  readonly seed: number;
  /** The state that it was restored to, if it was; then `seed` says nothing. */
  readonly base: string | null;
  /** Steps since the seed or the state. */
  steps = 0;
  /** Sum of their rewards, in order. */
  sum = 0;
  /** (obsSize) The newest observation. */
  readonly last: Float32Array;
  readonly #actionSize: number;
  #actions = new Float32Array(256);

  constructor(
    seed: number,
    base: string | null,
    sizes: { readonly obsSize: number; readonly actionSize: number },
  ) {
    this.seed = seed;
    this.base = base;
    this.last = new Float32Array(sizes.obsSize);
    this.#actionSize = sizes.actionSize;
  }

  /** Whether it has all of its actions. */
  get isWhole(): boolean {
    return this.steps * this.#actionSize <= MOST_NUMBERS;
  }

  /** (steps, actionSize) */
  get actions(): Float32Array {
    return this.#actions.subarray(0, this.isWhole ? this.steps * this.#actionSize : 0);
  }

  add(action: Float32Array, reward: number, observation: Float32Array): void {
    const at = this.steps * this.#actionSize;
    this.steps++;
    this.sum += reward;
    this.last.set(observation);
    if (!this.isWhole) return;
    if (at + action.length > this.#actions.length) {
      const larger = new Float32Array(2 * (at + action.length));
      larger.set(this.#actions);
      this.#actions = larger;
    }
    this.#actions.set(action, at);
  }

  /** Whether a repetition has come to the same: to the bit. */
  agrees(observation: Float32Array, sum: number): boolean {
    return Object.is(sum, this.sum) && observation.every((value, i) => Object.is(value, this.last[i]));
  }

  toJson(): Json {
    const { seed, base, steps, sum, last } = this;
    return {
      seed,
      base,
      steps,
      sum: numberToJson(sum),
      last: toText(last),
      actions: toText(this.actions),
    };
  }

  /** Checks it, because it comes from a file. */
  static fromJson(saved: unknown, sizes: { readonly obsSize: number; readonly actionSize: number }): Episode {
    const fields = (typeof saved === 'object' ? saved : null) as Readonly<Record<string, unknown>> | null;
    const { seed, base, steps, last, actions, sum } = fields ?? {};
    const isCount = (value: unknown): value is number =>
      Number.isSafeInteger(value) && (value as number) >= 0;
    if (!isCount(seed) || !isCount(steps) || !(base === null || typeof base === 'string'))
      return fail('state-invalid', 'the saved episode is damaged: pass what state() gave');
    const episode = new Episode(seed, base, sizes);
    episode.steps = steps;
    episode.sum = numberFromJson(sum, 'sum');
    const taken = fromText(actions);
    const seen = fromText(last);
    if (seen.length !== sizes.obsSize || taken.length !== (episode.isWhole ? steps * sizes.actionSize : 0))
      fail(
        'state-invalid',
        'the saved episode is of other spaces: resume with the environment that it was saved with',
      );
    episode.last.set(seen);
    episode.#actions = taken;
    return episode;
  }
}

const toText = (values: Float32Array): string =>
  Buffer.from(values.buffer, values.byteOffset, values.byteLength).toString('base64');

function fromText(text: unknown): Float32Array<ArrayBuffer> {
  if (typeof text !== 'string' || text.length > 2 ** 25)
    return fail('state-invalid', 'the saved episode has no numbers: pass what state() gave');
  const bytes = Buffer.from(text, 'base64');
  const values = new Float32Array(Math.floor(bytes.length / 4));
  new Uint8Array(values.buffer).set(bytes.subarray(0, values.byteLength));
  return values;
}
