/** Largest seed: every integer up to it is exact in a JavaScript number, a manifest and a command line. */
export const MAX_SEED = Number.MAX_SAFE_INTEGER;

/** Largest `n` of `integer(n)`: one draw has 32 bits. */
export const MAX_INTEGER_RANGE = 2 ** 32;

const STATE_VERSION = 1;
const ALGORITHM = 'xoshiro128**';

/**
 * All there is to know about a generator, as plain JSON (a checkpoint's `state.json` holds it).
 * Every method leaves its whole memory in these four words: nothing is cached beside them.
 */
export interface RngState {
  readonly version: typeof STATE_VERSION;
  readonly algorithm: typeof ALGORITHM;
  /** Four integers in 0..2^32-1, not all zero. */
  readonly words: readonly [number, number, number, number];
}

/** Anything whose numbers can be exchanged in place. */
interface MutableNumbers {
  readonly length: number;
  [index: number]: number;
}

/**
 * The only source of randomness: xoshiro128** (Blackman & Vigna 2021, "Scrambled linear pseudorandom number
 * generators"; https://prng.di.unimi.it/xoshiro128starstar.c), period 2^128 - 1.
 *
 * 32-bit words because `Math.imul` and shifts are one instruction each in JavaScript, where a 64-bit generator would
 * need BigInt. Methods on numbers and typed arrays allocate nothing.
 *
 * The same seed gives the same bits on every machine that runs V8: beyond integers only `normal()` uses
 * `Math.exp`/`Math.log`, which V8 computes in software (fdlibm), not in the processor's library.
 */
export class Rng {
  // A typed array and not four fields: the words use all 32 bits, which fields would box on engines with 31-bit integers.
  readonly #words = new Int32Array(4);

  constructor(seed: number) {
    if (!Number.isInteger(seed) || seed < 0 || seed > MAX_SEED) {
      throw new RangeError(`seed ${show(seed)} is not an integer in 0..${MAX_SEED}: use one, such as 0`);
    }
    // Neighbouring seeds must give unrelated streams, so both halves go through a full-avalanche mix for each word.
    const low = seed | 0;
    const high = Math.floor(seed / 2 ** 32);
    const words = this.#words;
    for (let i = 0; i < 4; i++) words[i] = mix32(mix32(low + Math.imul(GOLDEN, i + 1)) + high);
    escapeZero(words);
  }

  /** Restores a generator bit for bit from what `state()` gave; checks it, because it comes from a file. */
  static fromState(state: unknown): Rng {
    const words = checkedWords(state);
    const rng = new Rng(0);
    rng.#words.set(words); // conversion to Int32 keeps the bits
    return rng;
  }

  /** A JSON-serialisable copy of the state: `Rng.fromState(JSON.parse(JSON.stringify(rng.state())))` continues the stream. */
  state(): RngState {
    const [a, b, c, d] = this.#words;
    return { version: STATE_VERSION, algorithm: ALGORITHM, words: [a >>> 0, b >>> 0, c >>> 0, d >>> 0] };
  }

  /**
   * `count` generators independent of each other and of what this one gives next: `const [envRng, actRng] = rng.split(2)`.
   *
   * Advances this generator by four draws a child, so the i-th child does not depend on `count` (a consumer added at the
   * end leaves the others' streams alone) and a second `split` gives other children. Children are seeded from mixed
   * output and not by jumping ahead: with jumps, the first grandchild of one child would be the next child itself.
   */
  split(count: number): Rng[] {
    if (!Number.isInteger(count) || count < 1) {
      throw new RangeError(`split(${show(count)}): the count must be an integer of at least 1, try split(2)`);
    }
    return Array.from({ length: count }, () => {
      const child = new Rng(0);
      const words = child.#words;
      // A chained mix: every word depends on all the draws before it, so the map from draws to state stays one to one.
      let previous = 0;
      for (let i = 0; i < 4; i++) {
        previous = mix32((this.nextUint32() ^ previous) + Math.imul(GOLDEN, i + 1));
        words[i] = previous;
      }
      escapeZero(words);
      return child;
    });
  }

  /** 32 random bits, as an integer in 0..2^32-1. */
  nextUint32(): number {
    const s = this.#words;
    const s1 = s[1];
    const times5 = Math.imul(s1, 5);
    const result = Math.imul((times5 << 7) | (times5 >>> 25), 9);
    const s2 = s[2] ^ s[0];
    const s3 = s[3] ^ s1;
    s[1] = s1 ^ s2;
    s[0] = s[0] ^ s3;
    s[2] = s2 ^ (s1 << 9);
    s[3] = (s3 << 11) | (s3 >>> 21);
    return result >>> 0;
  }

  /** Uniform in [0, 1): a multiple of 2^-53, never 1. Two draws. */
  uniform(): number {
    const high = this.nextUint32() >>> 5; // 27 bits
    const low = this.nextUint32() >>> 6; // 26 bits
    return (high * 2 ** 26 + low) * 2 ** -53;
  }

  /** Uniform integer in 0..n-1 for n in 1..2^32, exactly: draws beyond n are refused, not folded back (no modulo bias). */
  integer(n: number): number {
    if (!Number.isInteger(n) || n < 1 || n > MAX_INTEGER_RANGE) {
      throw new RangeError(
        `integer(${show(n)}): n must be an integer in 1..${MAX_INTEGER_RANGE}; results are 0..n-1`,
      );
    }
    if (n === 1) return 0;
    // As many high bits as n - 1 has: refused less than half of the time, and integer arithmetic throughout.
    const shift = Math.clz32(n - 1);
    let value = this.nextUint32() >>> shift;
    while (value >= n) value = this.nextUint32() >>> shift;
    return value;
  }

  /**
   * Standard normal, by a ziggurat of 256 layers (Marsaglia & Tsang 2000). Layer, sign and position use different bits:
   * the paper's shortcut of sharing them correlates size with layer (Doornik 2005). Exact in the tails, no cached
   * spare, so the state stays four words.
   */
  normal(): number {
    for (;;) {
      const bits = this.nextUint32();
      const layer = bits & 0xff;
      const negative = (bits & 0x100) !== 0;
      const position = (this.nextUint32() * 2 ** 20 + (bits >>> 12)) * 2 ** -52; // [0, 1)
      const x = position * ZIGGURAT_X[layer];
      // Inside the rectangle that lies wholly under the curve: 98.8% of the time.
      if (x < ZIGGURAT_X[layer + 1]) return negative ? -x : x;
      if (layer === 0) {
        const tail = this.#normalTail();
        return negative ? -tail : tail;
      }
      const low = ZIGGURAT_Y[layer];
      const high = ZIGGURAT_Y[layer + 1];
      if (low + (high - low) * this.uniform() < Math.exp(-0.5 * x * x)) return negative ? -x : x;
    }
  }

  /** |z| given |z| > ZIGGURAT_R (Marsaglia 1964). 1 - uniform() is in (0, 1]: its logarithm is finite. */
  #normalTail(): number {
    for (;;) {
      const a = -Math.log(1 - this.uniform()) / ZIGGURAT_R;
      const b = -Math.log(1 - this.uniform());
      if (2 * b > a * a) return ZIGGURAT_R + a;
    }
  }

  /** Fills `out` with standard normals. */
  fillNormal(out: Float32Array | Float64Array): void {
    for (let i = 0; i < out.length; i++) out[i] = this.normal();
  }

  /**
   * Fills `out` with uniforms in [0, 1). A Float32Array gets multiples of 2^-24 (one draw each): a 53-bit uniform would
   * round up to 1 once in 2^25, and 1 as noise selects past the last category.
   */
  fillUniform(out: Float32Array | Float64Array): void {
    if (out instanceof Float32Array) {
      for (let i = 0; i < out.length; i++) out[i] = (this.nextUint32() >>> 8) * 2 ** -24;
    } else {
      for (let i = 0; i < out.length; i++) out[i] = this.uniform();
    }
  }

  /**
   * An index drawn with the given probabilities (inverse CDF); never one whose probability is 0. The sum may be off 1 by
   * what float32 rounding leaves (1e-3); the draw is scaled to it.
   */
  categorical(probs: ArrayLike<number>): number {
    let sum = 0;
    for (let i = 0; i < probs.length; i++) {
      const p = probs[i];
      if (!(p >= 0 && p < Number.POSITIVE_INFINITY)) {
        throw new RangeError(
          `categorical: probability ${show(p)} at index ${i} is not a number in 0..1: pass softmax output, not logits`,
        );
      }
      sum += p;
    }
    if (!(Math.abs(sum - 1) <= 1e-3)) {
      throw new RangeError(
        `categorical: the ${probs.length} probabilities sum to ${sum}, not to 1 within 0.001: divide them by their sum`,
      );
    }
    const target = this.uniform() * sum;
    let cumulative = 0;
    let index = -1;
    for (let i = 0; i < probs.length; i++) {
      if (probs[i] === 0) continue;
      index = i; // the last possible index, should rounding keep the cumulative sum at the target
      cumulative += probs[i];
      if (cumulative > target) break;
    }
    return index;
  }

  /** Shuffles the numbers in place (Fisher-Yates): every order is equally likely. */
  shuffle(values: MutableNumbers): void {
    for (let i = values.length - 1; i > 0; i--) {
      const j = this.integer(i + 1);
      const swap = values[i];
      values[i] = values[j];
      values[j] = swap;
    }
  }

  /** A random order of 0..n-1, in `out` where given (its length must be n). */
  permutation(n: number, out?: Int32Array): Int32Array {
    if (!Number.isInteger(n) || n < 0 || n > MAX_PERMUTATION) {
      throw new RangeError(
        `permutation(${show(n)}): n must be an integer in 0..${MAX_PERMUTATION}, the range of Int32Array`,
      );
    }
    if (out && out.length !== n) {
      throw new RangeError(
        `permutation(${n}): out has ${out.length} numbers, not ${n}: pass an Int32Array of ${n}, or none`,
      );
    }
    const order = out ?? new Int32Array(n);
    for (let i = 0; i < n; i++) order[i] = i;
    this.shuffle(order);
    return order;
  }
}

const MAX_PERMUTATION = 2 ** 31 - 1;

/** 2^32 / golden ratio: steps that spread consecutive integers evenly over the words. */
const GOLDEN = 0x9e3779b9 | 0;

/** The finaliser of MurmurHash3 (Appleby): a bijection of 32-bit words in which each input bit flips half of the output. */
function mix32(word: number): number {
  let h = word | 0;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return h ^ (h >>> 16);
}

/** All zero is the one state that xoshiro never leaves. No seed is known to give it; one chance in 2^128 remains. */
function escapeZero(words: Int32Array): void {
  if ((words[0] | words[1] | words[2] | words[3]) === 0) words[0] = GOLDEN;
}

function checkedWords(state: unknown): number[] {
  const where = 'random generator state';
  const remedy = 'pass what Rng.state() returned';
  if (typeof state !== 'object' || state === null) {
    throw new TypeError(`${where} is ${show(state)}, not an object: ${remedy}`);
  }
  const { version, algorithm, words } = state as Record<string, unknown>;
  if (version !== STATE_VERSION) {
    throw new RangeError(
      `${where} has version ${show(version)}, this Keel reads version ${STATE_VERSION}: resume with the Keel that wrote it`,
    );
  }
  if (algorithm !== ALGORITHM) {
    throw new RangeError(`${where} has algorithm ${show(algorithm)}, not "${ALGORITHM}": ${remedy}`);
  }
  if (!Array.isArray(words) || words.length !== 4) {
    throw new TypeError(`${where} has words ${show(words)}, not an array of four integers: ${remedy}`);
  }
  for (const word of words as unknown[]) {
    if (typeof word !== 'number' || !Number.isInteger(word) || word < 0 || word > 0xffffffff) {
      throw new RangeError(`${where} has the word ${show(word)}, not an integer in 0..4294967295: ${remedy}`);
    }
  }
  if (words.every(word => word === 0)) {
    throw new RangeError(
      `${where} is all zero, from which only zeros follow: ${remedy}, or start from a seed`,
    );
  }
  return words as number[];
}

/** A value for an error message: one line, short, and NaN and -0 as they are (JSON would print null and 0). */
function show(value: unknown): string {
  if (typeof value === 'number') return Object.is(value, -0) ? '-0' : String(value);
  if (typeof value === 'bigint') return `${value}n`;
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}

// The ziggurat's right edge for 256 layers, and the area of each: R f(R) + the tail's integral, with f(x) = exp(-x^2/2).
// Computed in float64 (Python's math.erfc); the recursion below closes at f = 1 + 3e-15.
const ZIGGURAT_R = 3.654152885361009;
const ZIGGURAT_AREA = 0.004928673233974658;

/** Layer i spans x in [0, X[i]) and y in [Y[i], Y[i+1]); layer 0 is the base with the tail, as wide as its area needs. */
const ZIGGURAT_X = new Float64Array(257);
const ZIGGURAT_Y = new Float64Array(257);
ZIGGURAT_X[0] = ZIGGURAT_AREA / Math.exp(-0.5 * ZIGGURAT_R * ZIGGURAT_R);
ZIGGURAT_X[1] = ZIGGURAT_R;
for (let i = 1; i <= 256; i++) {
  ZIGGURAT_Y[i] = Math.exp(-0.5 * ZIGGURAT_X[i] * ZIGGURAT_X[i]);
  if (i < 255) ZIGGURAT_X[i + 1] = Math.sqrt(-2 * Math.log(ZIGGURAT_AREA / ZIGGURAT_X[i] + ZIGGURAT_Y[i]));
}
