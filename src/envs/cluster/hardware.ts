/**
 * What a replica runs on: how long an iteration takes, and how many tokens its memory holds.
 *
 * An iteration over n tokens takes the time of all operators but attention, fitted to measurements, and that of attention.
 * A token that decodes reads the keys and values of its context: their bytes over the memory's bandwidth. A prefill computes
 * as well: see `prefillAttentionSeconds`.
 */
import { didYouMean } from '../../base/nearest.ts';
import { fail, show } from '../errors.ts';

/** Tokens that one block of key-value memory holds. */
export const BLOCK_TOKENS = 16;
/** Share of the memory that weights and keys and values may use. */
const MEMORY_SHARE = 0.9;

/** A kind of machine that serves the model: how fast and how large. */
export interface Hardware {
  readonly name: string;
  /** What it is, for people. */
  readonly title: string;
  /** Milliseconds of an iteration over few tokens: the weights are read once, whatever the batch. */
  readonly floorMs: number;
  /** Milliseconds for each token of a large batch, which computing bounds. */
  readonly perTokenMs: number;
  /** How sharp the turn from one to the other is: the exponent of the norm that joins them. */
  readonly sharpness: number;
  /** Bytes of the keys and values of one token. */
  readonly kvBytesPerToken: number;
  /** Operations of attention for one pair of a token and one that it attends to: 4 · layers · width. */
  readonly attentionFlopsPerPair: number;
  /** Bytes a second, over all of the replica's devices. */
  readonly bandwidth: number;
  /** Operations a second at most, in 16 bits, dense, over all of the replica's devices. */
  readonly flops: number;
  readonly memoryBytes: number;
  readonly weightBytes: number;
  /** An assumed price; costs are for comparing, so its ratio to the others is what matters. */
  readonly dollarsPerHour: number;
}

/**
 * Fitted by least squares of relative errors to measured iteration times of 1 to 4,096 tokens (those of Vidur's
 * simulator, Agrawal et al. 2024); test/envs/cluster/hardware.test.ts holds the fit to the table.
 */
const known: readonly Hardware[] = [
  {
    name: 'h100',
    title: 'Llama-2-7B on an H100',
    floorMs: 5.6,
    perTokenMs: 0.0192,
    sharpness: 1.525,
    kvBytesPerToken: 524_288,
    attentionFlopsPerPair: 4 * 32 * 4096,
    bandwidth: 3.35e12,
    flops: 989e12,
    memoryBytes: 80e9,
    weightBytes: 13.5e9,
    dollarsPerHour: 4,
  },
  {
    name: 'a100',
    title: 'Llama-2-7B on an A100',
    floorMs: 9.25,
    perTokenMs: 0.0642,
    sharpness: 2.26,
    kvBytesPerToken: 524_288,
    attentionFlopsPerPair: 4 * 32 * 4096,
    bandwidth: 2.04e12,
    flops: 312e12,
    memoryBytes: 80e9,
    weightBytes: 13.5e9,
    dollarsPerHour: 2.2,
  },
  {
    name: 'a40',
    title: 'Llama-2-7B on an A40',
    floorMs: 24.8,
    perTokenMs: 0.1259,
    sharpness: 1.61,
    kvBytesPerToken: 524_288,
    attentionFlopsPerPair: 4 * 32 * 4096,
    bandwidth: 0.696e12,
    flops: 150e12,
    memoryBytes: 48e9,
    weightBytes: 13.5e9,
    dollarsPerHour: 0.8,
  },
  {
    name: 'a100-8b',
    title: 'Llama-3-8B on an A100',
    floorMs: 9.94,
    perTokenMs: 0.0687,
    sharpness: 2.09,
    kvBytesPerToken: 131_072,
    attentionFlopsPerPair: 4 * 32 * 4096,
    bandwidth: 2.04e12,
    flops: 312e12,
    memoryBytes: 80e9,
    weightBytes: 16.1e9,
    dollarsPerHour: 2.2,
  },
  {
    name: 'a100x4-70b',
    title: 'Llama-3-70B on four A100',
    floorMs: 24.6,
    perTokenMs: 0.1668,
    sharpness: 1.85,
    kvBytesPerToken: 327_680,
    attentionFlopsPerPair: 4 * 80 * 8192,
    bandwidth: 4 * 2.04e12,
    flops: 4 * 312e12,
    memoryBytes: 4 * 80e9,
    weightBytes: 141e9,
    dollarsPerHour: 8.8,
  },
];

/** Names that replicas may have. */
export const hardwareNames: readonly string[] = known.map(({ name }) => name);

/** The hardware of that name. */
export function hardwareNamed(name: string): Hardware {
  const found = known.find(hardware => hardware.name === name);
  return (
    found ??
    fail(
      'option-invalid',
      `the hardware ${show(name)} is unknown: ${didYouMean(name, hardwareNames) || `there is ${hardwareNames.join(', ')}`}`,
    )
  );
}

/** A list such as `h100,2*a100,a40`, in its order. */
export function hardwareList(text: string): Hardware[] {
  const parts = text
    .split(',')
    .map(part => part.trim())
    .filter(part => part !== '');
  if (parts.length === 0)
    fail('option-invalid', `a cluster needs a replica, ${show(text)} names none: try h100,2*a100,a40`);
  const replicas = parts.flatMap(part => {
    const [, count, name] = /^(?:(\d{1,4})\s*[*x]\s*)?(.+)$/.exec(part)!;
    const times = count === undefined ? 1 : Number(count);
    if (times < 1) fail('option-invalid', `${show(part)} is no replica at all: use at least 1*${name}`);
    return Array.from({ length: times }, () => hardwareNamed(name));
  });
  if (replicas.length > MAX_REPLICAS)
    fail('option-invalid', `${replicas.length} replicas are too many: at most ${MAX_REPLICAS}`);
  return replicas;
}

const MAX_REPLICAS = 256;

/** Milliseconds of an iteration over so many tokens, attention left out. */
export function iterationMs({ floorMs, perTokenMs, sharpness }: Hardware, tokens: number): number {
  return (floorMs ** sharpness + (perTokenMs * tokens) ** sharpness) ** (1 / sharpness);
}

/** Seconds that attention takes for each token of context in the batch. */
export function attentionSecondsPerToken({ kvBytesPerToken, bandwidth }: Hardware): number {
  return kvBytesPerToken / bandwidth;
}

/**
 * Seconds that attention takes for a prefill's piece of so many tokens, after those whose keys and values are there already.
 *
 * Attention is causal: of n tokens after c, the i-th attends to c + i, itself included, which are c·n + n(n + 1)/2 pairs. In
 * each layer a pair takes 2 · width operations for the product of query and key, and as many to add the value, weighted: 4 ·
 * layers · width in all, which is 4 · 32 · 4,096 for Llama-2-7B. A whole prompt of 4,096 tokens is 8.4 million pairs, 4.4e12
 * operations, 14 ms of an A100's 312e12 a second. That is its peak, so this is the least that it takes; and it is no less than
 * reading the keys and values of the context once, which bounds a small piece after a long context, as it does decoding.
 */
export function prefillAttentionSeconds(hardware: Hardware, cachedTokens: number, tokens: number): number {
  const pairs = tokens * (cachedTokens + (tokens + 1) / 2);
  const computing = (pairs * hardware.attentionFlopsPerPair) / hardware.flops;
  return Math.max(computing, (cachedTokens + tokens) * attentionSecondsPerToken(hardware));
}

/** Blocks of keys and values that fit beside the weights. */
export function blocksOf({ memoryBytes, weightBytes, kvBytesPerToken }: Hardware): number {
  return Math.floor((memoryBytes * MEMORY_SHARE - weightBytes) / (kvBytesPerToken * BLOCK_TOKENS));
}

/** {@link iterationMs} in seconds as a table, since it is asked for at every iteration. */
class IterationTable {
  readonly #seconds = new Float64Array(TABLE_TOKENS + 1);
  readonly #hardware: Hardware;

  constructor(hardware: Hardware) {
    this.#hardware = hardware;
    for (let n = 0; n <= TABLE_TOKENS; n++) this.#seconds[n] = iterationMs(hardware, n) / 1000;
  }

  /** Seconds of an iteration over a whole number of tokens. */
  seconds(tokens: number): number {
    return tokens <= TABLE_TOKENS ? this.#seconds[tokens] : iterationMs(this.#hardware, tokens) / 1000;
  }
}

const TABLE_TOKENS = 8192;

const tables = new Map<string, IterationTable>();

/** The table of a hardware; made once. */
export function iterationTable(hardware: Hardware): IterationTable {
  const key = `${hardware.floorMs}/${hardware.perTokenMs}/${hardware.sharpness}`;
  let table = tables.get(key);
  if (table === undefined) {
    table = new IterationTable(hardware);
    tables.set(key, table);
  }
  return table;
}
