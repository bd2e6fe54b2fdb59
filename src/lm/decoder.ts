/**
 * Decoding with a key-value cache: one program run a token, for many sequences at once.
 *
 * The cache lives in this process's memory, where programs read it without copying; a run returns only the keys and
 * values of the new tokens, which are written to their places here. Each sequence has its own length. When half of the
 * sequences have ended, the others move together and a program for fewer goes on.
 */
import { Graph } from '../engine/graph.ts';
import { gather } from '../engine/ops/gather.ts';
import { reshape } from '../engine/ops/shape.ts';
import type { Program } from '../engine/program.ts';
import { fail } from './errors.ts';
import { type LanguageModel, weightFeeds, weightInputs } from './model.ts';
import { ProgramCache, type Runtime } from './program-cache.ts';

type Network = Pick<LanguageModel, 'gpt' | 'layout' | 'options'>;

/** Lengths are rounded up to these, so that few programs serve all. */
const PROMPT_STEP = 16;
const CACHE_STEP = 32;
/** Fewer sequences than this are not worth another program. */
const SMALLEST_BATCH = 4;
const HIDDEN = -1e9;

const roundUp = (value: number, step: number): number => Math.ceil(value / step) * step;

/** Programs for one model, whatever its weights. */
export class Decoder {
  readonly #network: Network;
  readonly #programs: ProgramCache;
  #caches: Float32Array[] = [];
  #mask = new Float32Array(0);

  constructor(network: Network, runtime: Runtime = {}) {
    this.#network = network;
    this.#programs = new ProgramCache(runtime);
  }

  /**
   * Reads prompts, `copies` sequences each, with room for `newTokens` more. Sequence `i` continues prompt
   * ⌊i / copies⌋. Gives the logits (prompts, vocabulary) of what follows each prompt.
   */
  async start(
    weights: Float32Array,
    prompts: readonly (readonly number[])[],
    copies: number,
    newTokens: number,
  ): Promise<{ logits: Float32Array; sequences: Sequences }> {
    const { context } = this.#network.options;
    const longest = Math.max(...prompts.map(prompt => prompt.length));
    if (prompts.some(prompt => prompt.length === 0)) fail('a prompt has no tokens: begin with the end token');
    if (longest + newTokens > context) {
      fail(
        `a prompt of ${longest} tokens with ${newTokens} new ones does not fit the context of ${context}: allow fewer new tokens, or use shorter prompts`,
      );
    }
    const length = Math.min(context, roundUp(longest, PROMPT_STEP));
    const program = await this.#programs.get(`prefill ${prompts.length} ${length}`, () =>
      prefillGraph(this.#network, prompts.length, length),
    );
    const tokens = new BigInt64Array(prompts.length * length);
    const last = new BigInt64Array(prompts.length);
    prompts.forEach((prompt, row) => {
      prompt.forEach((token, i) => {
        tokens[row * length + i] = BigInt(token);
      });
      last[row] = BigInt(row * length + prompt.length - 1);
    });
    const out = program.run<Record<string, Float32Array>>({
      tokens,
      last,
      ...weightFeeds(this.#network.layout, weights),
    });
    const capacity = Math.min(context, roundUp(longest + newTokens, CACHE_STEP));
    const batch = prompts.length * copies;
    this.#reserve(batch, capacity);
    const sequences = new Sequences(this, this.#network, {
      weights,
      caches: this.#caches,
      mask: this.#mask,
      batch,
      capacity,
    });
    sequences.fill(out, prompts, copies, length);
    return { logits: out.logits, sequences };
  }

  /** @internal The program of one more token for so many sequences. */
  stepProgram(batch: number, capacity: number): Promise<Program> {
    return this.#programs.get(`decode ${batch} ${capacity}`, () =>
      decodeGraph(this.#network, batch, capacity),
    );
  }

  async dispose(): Promise<void> {
    await this.#programs.dispose();
    this.#caches = [];
  }

  #reserve(batch: number, capacity: number): void {
    const { layers, width } = this.#network.options;
    const size = batch * capacity * width;
    if (this.#caches[0]?.length !== size)
      this.#caches = Array.from({ length: 2 * layers }, () => new Float32Array(size));
    if (this.#mask.length !== batch * capacity) this.#mask = new Float32Array(batch * capacity);
    this.#mask.fill(HIDDEN);
  }
}

interface SequenceState {
  readonly weights: Float32Array;
  /** Keys of every layer, then values: (batch·heads, capacity, size) each. */
  readonly caches: readonly Float32Array[];
  readonly mask: Float32Array; // (batch, 1, capacity)
  readonly batch: number;
  readonly capacity: number;
}

/** Sequences under way, in slots that ended ones leave to others. */
export class Sequences {
  readonly #decoder: Decoder;
  readonly #network: Network;
  readonly #weights: Float32Array;
  readonly #capacity: number;
  #caches: readonly Float32Array[];
  #mask: Float32Array;
  #slots: number;
  #tokens: BigInt64Array;
  #positions: BigInt64Array;
  /** Tokens in the cache, for each slot. */
  readonly #lengths: Int32Array;

  /** Which sequence is in which slot; -1 where it has ended. */
  readonly inSlot: Int32Array;

  constructor(decoder: Decoder, network: Network, state: SequenceState) {
    this.#decoder = decoder;
    this.#network = network;
    this.#weights = state.weights;
    this.#capacity = state.capacity;
    this.#caches = state.caches;
    this.#mask = state.mask;
    this.#slots = state.batch;
    this.#tokens = new BigInt64Array(state.batch);
    this.#positions = new BigInt64Array(state.batch);
    this.#lengths = new Int32Array(state.batch);
    this.inSlot = Int32Array.from({ length: state.batch }, (_, i) => i);
  }

  get slots(): number {
    return this.#slots;
  }

  /** @internal Writes what a prefill gave to every copy's place. */
  fill(
    out: Record<string, Float32Array>,
    prompts: readonly (readonly number[])[],
    copies: number,
    length: number,
  ): void {
    const { layers, heads, width } = this.#network.options;
    const size = width / heads;
    for (let layer = 0; layer < layers; layer++) {
      for (const [which, name] of [`k.${layer}`, `v.${layer}`].entries()) {
        const from = out[name];
        const to = this.#caches[which * layers + layer];
        prompts.forEach((prompt, row) => {
          for (let head = 0; head < heads; head++) {
            const at = (row * heads + head) * length * size;
            const part = from.subarray(at, at + prompt.length * size);
            for (let copy = 0; copy < copies; copy++)
              to.set(part, ((row * copies + copy) * heads + head) * this.#capacity * size);
          }
        });
      }
    }
    prompts.forEach((prompt, row) => {
      for (let slot = row * copies; slot < (row + 1) * copies; slot++) {
        this.#lengths[slot] = prompt.length;
        this.#mask.fill(0, slot * this.#capacity, slot * this.#capacity + prompt.length);
      }
    });
  }

  /** One more token in each slot: the logits (slots, vocabulary) of what follows it. Slots of ended ones are ignored. */
  async step(next: ArrayLike<number>): Promise<Float32Array> {
    const { layers, heads, width } = this.#network.options;
    const program = await this.#decoder.stepProgram(this.#slots, this.#capacity);
    for (let slot = 0; slot < this.#slots; slot++) {
      const lives = this.inSlot[slot] >= 0;
      this.#tokens[slot] = lives ? BigInt(next[slot]) : 0n;
      this.#positions[slot] = lives ? BigInt(this.#lengths[slot]) : 0n;
    }
    const feeds: Record<string, Float32Array | BigInt64Array> = {
      tokens: this.#tokens,
      positions: this.#positions,
      mask: this.#mask,
      ...weightFeeds(this.#network.layout, this.#weights),
    };
    for (let layer = 0; layer < layers; layer++) {
      feeds[`past.k.${layer}`] = this.#caches[layer];
      feeds[`past.v.${layer}`] = this.#caches[layers + layer];
    }
    const out = program.run<Record<string, Float32Array>>(feeds);
    const size = width / heads;
    for (let layer = 0; layer < layers; layer++) {
      this.#append(out[`k.${layer}`], this.#caches[layer], heads, size);
      this.#append(out[`v.${layer}`], this.#caches[layers + layer], heads, size);
    }
    for (let slot = 0; slot < this.#slots; slot++) {
      if (this.inSlot[slot] < 0) continue;
      this.#mask[slot * this.#capacity + this.#lengths[slot]] = 0;
      this.#lengths[slot]++;
    }
    return out.logits;
  }

  #append(from: Float32Array, to: Float32Array, heads: number, size: number): void {
    for (let slot = 0; slot < this.#slots; slot++) {
      if (this.inSlot[slot] < 0) continue;
      for (let head = 0; head < heads; head++) {
        const source = (slot * heads + head) * size;
        const target = ((slot * heads + head) * this.#capacity + this.#lengths[slot]) * size;
        for (let i = 0; i < size; i++) to[target + i] = from[source + i];
      }
    }
  }

  /**
   * Moves the living together where they fill half of the slots or less. Gives for each slot now the slot that it was
   * before, or undefined where nothing moved: whoever keeps something by slot moves it too.
   */
  compact(): Int32Array | undefined {
    const living: number[] = [];
    for (let slot = 0; slot < this.#slots; slot++) if (this.inSlot[slot] >= 0) living.push(slot);
    let wanted = this.#slots;
    while (wanted % 2 === 0 && wanted / 2 >= Math.max(SMALLEST_BATCH, living.length)) wanted /= 2;
    if (wanted === this.#slots) return undefined;
    const from = new Int32Array(wanted).fill(-1);
    const rows = this.#caches[0].length / this.#slots;
    living.forEach((slot, to) => {
      from[to] = slot;
      if (slot === to) return;
      for (const cache of this.#caches) cache.copyWithin(to * rows, slot * rows, (slot + 1) * rows);
      this.#mask.copyWithin(to * this.#capacity, slot * this.#capacity, (slot + 1) * this.#capacity);
      this.inSlot[to] = this.inSlot[slot];
      this.#lengths[to] = this.#lengths[slot];
    });
    this.inSlot.fill(-1, living.length, this.#slots);
    this.#caches = this.#caches.map(cache => cache.subarray(0, wanted * rows));
    this.#mask = this.#mask.subarray(0, wanted * this.#capacity);
    this.#tokens = new BigInt64Array(wanted);
    this.#positions = new BigInt64Array(wanted);
    this.#slots = wanted;
    return from;
  }
}

/** Whole prompts: the logits after each one's last token, and all keys and values. */
function prefillGraph({ gpt, layout }: Network, prompts: number, length: number): Graph {
  const g = new Graph();
  const weights = weightInputs(g, layout);
  const { hidden, cache } = gpt.hidden(weights, g.input('tokens', [prompts, length], 'int64'));
  g.output('logits', gpt.logits(weights, gather(hidden, g.input('last', [prompts], 'int64'))));
  cache.keys.forEach((t, i) => {
    g.output(`k.${i}`, t);
  });
  cache.values.forEach((t, i) => {
    g.output(`v.${i}`, t);
  });
  return g;
}

/** One more token of each of `batch` sequences. */
function decodeGraph({ gpt, layout, options }: Network, batch: number, capacity: number): Graph {
  const { layers, heads, width } = options;
  const g = new Graph();
  const weights = weightInputs(g, layout);
  const past = (name: string) =>
    Array.from({ length: layers }, (_, i) =>
      g.input(`past.${name}.${i}`, [batch * heads, capacity, width / heads]),
    );
  const { hidden, cache } = gpt.decode(weights, {
    tokens: g.input('tokens', [batch], 'int64'),
    positions: g.input('positions', [batch], 'int64'),
    cache: { keys: past('k'), values: past('v') },
    mask: g.input('mask', [batch, 1, capacity]),
  });
  g.output('logits', gpt.logits(weights, hidden));
  cache.keys.forEach((t, i) => {
    g.output(`k.${i}`, reshape(t, [batch * heads, width / heads]));
  });
  cache.values.forEach((t, i) => {
    g.output(`v.${i}`, reshape(t, [batch * heads, width / heads]));
  });
  return g;
}
