/**
 * The programs of one model, compiled for the shapes that come up, and run over batches of any size.
 *
 * Sequences go through in microbatches of about the same length, each in a program that is no longer than it must be.
 */
import type { Graph } from '../../engine/graph.ts';
import { weightFeeds } from '../../lm/model.ts';
import { ProgramCache, type Runtime } from '../../lm/program-cache.ts';
import { type BatchShape, type PackedBatch, pack, type ScoredSequence, shapeFor } from '../../lm/scorer.ts';
import { addInto } from '../../nn/vector-kernels.ts';
import { measureGraph, scoreGraph, type TextNetwork } from './graphs.ts';

type Arrays = Record<string, Float32Array>;

/** Sequences that go through programs together, the shape that holds them all, and the temperature of their tokens. */
export interface TokenBatch {
  readonly sequences: readonly ScoredSequence[];
  readonly shape: BatchShape;
  readonly temperature: number;
}

/** What is known of each completion token of a batch: (sequences · newTokens), filled up with 0. */
export interface TokenValues {
  readonly logProbs: Float32Array;
  readonly entropy: Float32Array;
  /** (sequences · newTokens, vocabulary), where they were kept. */
  readonly all?: Float32Array;
}

/** A loss, by a name that tells it from others, and the graph of its gradients for a shape. */
export interface TextLoss {
  readonly name: string;
  readonly graph: (network: TextNetwork, shape: BatchShape) => Graph;
}

/** What a gradient is taken of: some sequences of a batch, under a loss, with its inputs. */
export interface Minibatch {
  readonly batch: TokenBatch;
  readonly chosen: Iterable<number>;
  readonly loss: TextLoss;
  /** Values for each token of the batch. */
  readonly columns: Readonly<Record<string, Float32Array>>;
  readonly scalars?: Readonly<Record<string, number>>;
}

export class TextPrograms {
  readonly #network: TextNetwork;
  readonly #programs: ProgramCache;
  #beside: Float32Array | undefined;

  constructor(network: TextNetwork, runtime: Runtime) {
    this.#network = network;
    this.#programs = new ProgramCache(runtime);
  }

  /** Scores all sequences under weights. */
  score(weights: Float32Array, batch: TokenBatch, keepAll: boolean): Promise<TokenValues> {
    return this.#valuesOf(batch, ['logProbs', 'entropy', ...(keepAll ? ['all' as const] : [])], {
      name: `score ${keepAll}`,
      graph: shape => scoreGraph(this.#network, shape, keepAll),
      feeds: () => weightFeeds(this.#network.layout, weights),
    });
  }

  /** Exact KL(old ‖ new), log-probability and entropy of each token under new weights. */
  measure(
    weights: Float32Array,
    old: { readonly all: Float32Array } | { readonly weights: Float32Array },
    batch: TokenBatch,
  ): Promise<TokenValues & { readonly kl: Float32Array }> {
    const { layout } = this.#network;
    const how = 'all' in old ? 'kept' : 'weights';
    return this.#valuesOf(batch, ['kl', 'logProbs', 'entropy'], {
      name: `measure ${how}`,
      graph: shape => measureGraph(this.#network, shape, how),
      feeds: part => ({
        ...weightFeeds(layout, weights),
        ...('all' in old
          ? { before: gathered(part, old.all, batch) }
          : weightFeeds(layout, old.weights, 'b.')),
      }),
    });
  }

  /** What a program says of every token, part by part. */
  async #valuesOf<Name extends string>(
    batch: TokenBatch,
    names: readonly Name[],
    by: {
      readonly name: string;
      readonly graph: (shape: BatchShape) => Graph;
      readonly feeds: (part: Part) => Arrays;
    },
  ): Promise<Record<Name, Float32Array>> {
    const { context, vocabulary } = this.#network.options;
    const { sequences, shape, temperature } = batch;
    const size = sequences.length * shape.newTokens;
    const values = Object.fromEntries(
      names.map(name => [name, new Float32Array(name === 'all' ? size * vocabulary : size)]),
    ) as Record<Name, Float32Array>;
    for (const part of partsOf(sequences, sequences.keys(), shape, context)) {
      const program = await this.#programs.get(`${by.name} ${key(part.shape)}`, () => by.graph(part.shape));
      const out = program.run<Arrays>({ ...feedsOf(part, temperature), ...by.feeds(part) });
      for (const name of names) scatter(part, out[name], values[name], batch);
    }
    return values;
  }

  /** The gradient of a minibatch, added up in `into` (all of it is overwritten), and the sums of its diagnostics. */
  async gradient(
    weights: Float32Array,
    { batch, chosen, loss, columns, scalars = {} }: Minibatch,
    into: Float32Array,
  ): Promise<Record<string, number>> {
    const { layout, options } = this.#network;
    const sums: Record<string, number> = {};
    for (const [i, part] of partsOf(batch.sequences, chosen, batch.shape, options.context).entries()) {
      const program = await this.#programs.get(`gradient ${loss.name} ${key(part.shape)}`, () =>
        loss.graph(this.#network, part.shape),
      );
      // The first part writes to the sum itself, the others to a vector beside it.
      if (i > 0) this.#beside ??= new Float32Array(into.length);
      const written = i > 0 ? this.#beside! : into;
      const out = program.run<Arrays>(
        {
          ...feedsOf(part, batch.temperature),
          ...mapped(columns, values => gathered(part, values, batch)),
          ...mapped(scalars, value => Float32Array.of(value)),
          ...weightFeeds(layout, weights),
        },
        weightFeeds(layout, written, 'g.'),
      );
      if (written !== into) addInto(into, written);
      for (const [output, values] of Object.entries(out)) {
        if (!output.startsWith('g.')) sums[output] = (sums[output] ?? 0) + values[0];
      }
    }
    return sums;
  }

  dispose(): Promise<void> {
    return this.#programs.dispose();
  }
}

/** Sequences that go through a program together. */
interface Part {
  /** Which of the batch's sequences each row is; undefined where a row is empty. */
  readonly rows: readonly (number | undefined)[];
  readonly shape: BatchShape;
  readonly packed: PackedBatch;
}

/**
 * The chosen sequences in parts of at most `rows`, short ones first. Completions of one prompt (the same array) go together, so
 * that it is read once.
 */
function partsOf(
  sequences: readonly ScoredSequence[],
  chosen: Iterable<number>,
  { rows, newTokens }: BatchShape,
  context: number,
): Part[] {
  const ofPrompt = new Map<readonly number[], number[]>();
  for (const row of chosen) {
    const { prompt } = sequences[row];
    const known = ofPrompt.get(prompt);
    if (known) known.push(row);
    else ofPrompt.set(prompt, [row]);
  }
  const copies = Math.min(rows, Math.max(1, ...Array.from(ofPrompt.values(), ({ length }) => length)));
  const slots: { rows: (number | undefined)[]; tokens: number }[] = [];
  for (const own of ofPrompt.values()) {
    for (let start = 0; start < own.length; start += copies) {
      const some = own.slice(start, start + copies);
      const tokens = Math.max(
        ...some.map(row => sequences[row].prompt.length + sequences[row].tokens.length),
      );
      slots.push({ rows: Array.from({ length: copies }, (_, i) => some[i]), tokens });
    }
  }
  slots.sort((a, b) => a.tokens - b.tokens || a.rows[0]! - b.rows[0]!);
  const slotsAPart = Math.floor(rows / copies);
  const step = lengthStep(context);
  const parts: Part[] = [];
  for (let start = 0; start < slots.length; start += slotsAPart) {
    const some = slots.slice(start, start + slotsAPart).flatMap(slot => slot.rows);
    const members = some.map(row => (row === undefined ? undefined : sequences[row]));
    const present = members.filter(member => member !== undefined);
    const needed = shapeFor(present, slotsAPart * copies, context, { step, copies });
    const shape = { ...needed, newTokens: Math.min(newTokens, needed.newTokens) };
    parts.push({ rows: some, shape, packed: pack(members, shape) });
  }
  return parts;
}

/** Lengths of programs are multiples of this: few programs, each with memory of its own. */
const lengthStep = (context: number): number => 16 * Math.ceil(context / 256);

const key = ({ rows, length, newTokens, copies }: BatchShape): string =>
  `${rows}x${length}x${newTokens}x${copies}`;

function feedsOf({ packed }: Part, temperature: number): Record<string, Float32Array | BigInt64Array> {
  return { ...packed, inverseTemperature: Float32Array.of(1 / temperature) };
}

const mapped = <T, U>(values: Readonly<Record<string, T>>, to: (value: T) => U): Record<string, U> =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, to(value)]));

/** The length of a row of the batch's values, and of a part's: so many a token as the whole batch has. */
function strides({ shape }: Part, whole: Float32Array, batch: TokenBatch): { stride: number; own: number } {
  const stride = whole.length / batch.sequences.length;
  return { stride, own: (stride / batch.shape.newTokens) * shape.newTokens };
}

/** A part's values to their places in those of the whole batch. */
function scatter(part: Part, from: Float32Array, to: Float32Array, batch: TokenBatch): void {
  const { stride, own } = strides(part, to, batch);
  part.rows.forEach((row, i) => {
    if (row !== undefined) to.set(from.subarray(i * own, (i + 1) * own), row * stride);
  });
}

/** The values of a part out of those of the whole batch, filled up with 0. */
function gathered(part: Part, from: Float32Array, batch: TokenBatch): Float32Array {
  const { stride, own } = strides(part, from, batch);
  const out = new Float32Array(part.shape.rows * own);
  part.rows.forEach((row, i) => {
    if (row !== undefined) out.set(from.subarray(row * stride, row * stride + own), i * own);
  });
  return out;
}
