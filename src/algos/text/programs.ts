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

/** What is known of each completion token of a batch: (sequences · newTokens), filled up with 0. */
export interface TokenValues {
  readonly logProbs: Float32Array;
  readonly entropy: Float32Array;
  /** (sequences · newTokens, vocabulary), where they were kept. */
  readonly all?: Float32Array;
}

/** Inputs of a gradient, by token of the batch, and its scalars. */
export interface GradientFeeds {
  /** By token: `weights`, `mask`, `advantages`, `oldLogProbs`, and `reference` with `referenceWidth` values each. */
  readonly columns: Readonly<Record<string, Float32Array>>;
  readonly referenceWidth: number;
  readonly scalars: Readonly<Record<string, number>>;
}

/** A loss, by a name that tells it from others, and the graph of its gradients for a shape. */
export interface TextLoss {
  readonly name: string;
  readonly graph: (network: TextNetwork, shape: BatchShape) => Graph;
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
  async score(
    weights: Float32Array,
    sequences: readonly ScoredSequence[],
    shape: BatchShape,
    temperature: number,
    keepAll: boolean,
  ): Promise<TokenValues> {
    const { layout, options } = this.#network;
    const size = sequences.length * shape.newTokens;
    const values = {
      logProbs: new Float32Array(size),
      entropy: new Float32Array(size),
      ...(keepAll ? { all: new Float32Array(size * options.vocabulary) } : {}),
    };
    for (const part of partsOf(sequences, sequences.keys(), shape, options.context)) {
      const program = await this.#programs.get(`score ${key(part.shape)} ${keepAll}`, () =>
        scoreGraph(this.#network, part.shape, keepAll),
      );
      const out = program.run<Arrays>({ ...feedsOf(part, temperature), ...weightFeeds(layout, weights) });
      scatter(part, out.logProbs, values.logProbs, shape);
      scatter(part, out.entropy, values.entropy, shape);
      if (values.all) scatter(part, out.all, values.all, shape, options.vocabulary);
    }
    return values;
  }

  /** Exact KL(old ‖ new), log-probability and entropy of each token under new weights. */
  async measure(
    weights: Float32Array,
    old: { readonly all: Float32Array } | { readonly weights: Float32Array },
    sequences: readonly ScoredSequence[],
    shape: BatchShape,
    temperature: number,
  ): Promise<TokenValues & { readonly kl: Float32Array }> {
    const how = 'all' in old ? 'kept' : 'weights';
    const { layout, options } = this.#network;
    const size = sequences.length * shape.newTokens;
    const values = {
      kl: new Float32Array(size),
      logProbs: new Float32Array(size),
      entropy: new Float32Array(size),
    };
    for (const part of partsOf(sequences, sequences.keys(), shape, options.context)) {
      const program = await this.#programs.get(`measure ${key(part.shape)} ${how}`, () =>
        measureGraph(this.#network, part.shape, how),
      );
      const out = program.run<Arrays>({
        ...feedsOf(part, temperature),
        ...weightFeeds(layout, weights),
        ...('all' in old
          ? { before: gathered(part, old.all, shape, options.vocabulary) }
          : weightFeeds(layout, old.weights, 'b.')),
      });
      for (const name of ['kl', 'logProbs', 'entropy'] as const)
        scatter(part, out[name], values[name], shape);
    }
    return values;
  }

  /**
   * The gradient of a minibatch, added up in `into` (all of it is overwritten), and the sums of its diagnostics. `chosen`
   * are the sequences of the batch that it is made of.
   */
  async gradient(
    weights: Float32Array,
    sequences: readonly ScoredSequence[],
    chosen: Iterable<number>,
    shape: BatchShape,
    temperature: number,
    loss: TextLoss,
    feeds: GradientFeeds,
    into: Float32Array,
  ): Promise<Record<string, number>> {
    const { layout, options } = this.#network;
    const sums: Record<string, number> = {};
    const scalars = Object.fromEntries(
      Object.entries(feeds.scalars).map(([scalar, value]) => [scalar, Float32Array.of(value)]),
    );
    for (const [i, part] of partsOf(sequences, chosen, shape, options.context).entries()) {
      const program = await this.#programs.get(`gradient ${key(part.shape)} ${loss.name}`, () =>
        loss.graph(this.#network, part.shape),
      );
      const columns = Object.entries(feeds.columns).map(([column, values]) => {
        const width = column === 'reference' ? feeds.referenceWidth : 1;
        return [column, gathered(part, values, shape, width)] as const;
      });
      // The first part writes to the sum itself, the others to a vector beside it.
      if (i > 0) this.#beside ??= new Float32Array(into.length);
      const written = i > 0 ? this.#beside! : into;
      const out = program.run<Arrays>(
        {
          ...feedsOf(part, temperature),
          ...Object.fromEntries(columns),
          ...scalars,
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

/** A part's values, `width` a token, to their places in those of the whole batch. */
function scatter(
  { rows, shape }: Part,
  from: Float32Array,
  to: Float32Array,
  batch: BatchShape,
  width = 1,
): void {
  const [own, stride] = [shape.newTokens * width, batch.newTokens * width];
  rows.forEach((row, i) => {
    if (row !== undefined) to.set(from.subarray(i * own, (i + 1) * own), row * stride);
  });
}

/** The values of a part out of those of the whole batch, filled up with 0. */
function gathered({ rows, shape }: Part, from: Float32Array, batch: BatchShape, width = 1): Float32Array {
  const [own, stride] = [shape.newTokens * width, batch.newTokens * width];
  const out = new Float32Array(shape.rows * own);
  rows.forEach((row, i) => {
    if (row !== undefined) out.set(from.subarray(row * stride, row * stride + own), i * own);
  });
  return out;
}
