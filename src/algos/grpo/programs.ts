/** The programs of one model, compiled for the shapes that come up, and run over batches of any size. */
import {
  type BatchShape,
  type PackedBatch,
  ProgramCache,
  pack,
  type Runtime,
  type ScoredSequence,
  weightFeeds,
} from '../../lm/index.ts';
import {
  cloneGraph,
  gradientGraph,
  type LossOptions,
  measureGraph,
  type Network,
  scoreGraph,
} from './loss.ts';

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

export class TextPrograms {
  readonly #network: Network;
  readonly #programs: ProgramCache;

  constructor(network: Network, runtime: Runtime) {
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
    const program = await this.#programs.get(`score ${key(shape)} ${keepAll}`, () =>
      scoreGraph(this.#network, shape, keepAll),
    );
    const { newTokens } = shape;
    const { vocabulary } = this.#network.options;
    const values = {
      logProbs: new Float32Array(sequences.length * newTokens),
      entropy: new Float32Array(sequences.length * newTokens),
      ...(keepAll ? { all: new Float32Array(sequences.length * newTokens * vocabulary) } : {}),
    };
    this.#over(sequences, shape, (packed, start, rows) => {
      const out = program.run<Arrays>({
        ...feedsOf(packed, temperature),
        ...weightFeeds(this.#network.layout, weights),
      });
      copyRows(out.logProbs, values.logProbs, start, rows, newTokens);
      copyRows(out.entropy, values.entropy, start, rows, newTokens);
      if (values.all) copyRows(out.all, values.all, start, rows, newTokens * vocabulary);
    });
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
    const program = await this.#programs.get(`measure ${key(shape)} ${how}`, () =>
      measureGraph(this.#network, shape, how),
    );
    const { layout, options } = this.#network;
    const { newTokens } = shape;
    const width = newTokens * options.vocabulary;
    const size = sequences.length * newTokens;
    const values = {
      kl: new Float32Array(size),
      logProbs: new Float32Array(size),
      entropy: new Float32Array(size),
    };
    this.#over(sequences, shape, (packed, start, rows) => {
      const out = program.run<Arrays>({
        ...feedsOf(packed, temperature),
        ...weightFeeds(layout, weights),
        ...('all' in old
          ? { before: rowsFrom(old.all, start, rows, shape.rows, width) }
          : weightFeeds(layout, old.weights, 'b.')),
      });
      for (const name of ['kl', 'logProbs', 'entropy'] as const)
        copyRows(out[name], values[name], start, rows, newTokens);
    });
    return values;
  }

  /**
   * The gradient of a minibatch, added up in `into` (all of it is overwritten), and the sums of its diagnostics. `chosen`
   * are the sequences of the batch that it is made of.
   */
  async gradient(
    weights: Float32Array,
    sequences: readonly ScoredSequence[],
    chosen: ArrayLike<number>,
    shape: BatchShape,
    temperature: number,
    loss: LossOptions | 'clone',
    feeds: GradientFeeds,
    into: Float32Array,
  ): Promise<Record<string, number>> {
    const name = loss === 'clone' ? 'clone' : `${loss.refKl} ${loss.entropy}`;
    const program = await this.#programs.get(`gradient ${key(shape)} ${name}`, () =>
      loss === 'clone' ? cloneGraph(this.#network, shape) : gradientGraph(this.#network, shape, loss),
    );
    const { layout } = this.#network;
    const { newTokens } = shape;
    const sums: Record<string, number> = {};
    const scalars = Object.fromEntries(
      Object.entries(feeds.scalars).map(([scalar, value]) => [scalar, Float32Array.of(value)]),
    );
    const views = layout.views(into);
    for (let start = 0; start < chosen.length; start += shape.rows) {
      const rows: number[] = [];
      for (let i = start; i < Math.min(chosen.length, start + shape.rows); i++) rows.push(chosen[i]);
      const packed = feedsOf(
        pack(
          rows.map(row => sequences[row]),
          shape,
        ),
        temperature,
      );
      const columns = Object.entries(feeds.columns).map(([column, values]) => {
        const width = newTokens * (column === 'reference' ? feeds.referenceWidth : 1);
        const out = new Float32Array(shape.rows * width);
        rows.forEach((row, i) => {
          out.set(values.subarray(row * width, (row + 1) * width), i * width);
        });
        return [column, out] as const;
      });
      const out = program.run<Arrays>({
        ...packed,
        ...Object.fromEntries(columns),
        ...scalars,
        ...weightFeeds(layout, weights),
      });
      for (const { name: parameter } of layout.specs) {
        const gradient = out[`g.${parameter}`];
        const sum = views[parameter];
        if (start === 0) sum.set(gradient);
        else for (let i = 0; i < sum.length; i++) sum[i] += gradient[i];
      }
      for (const [output, values] of Object.entries(out)) {
        if (!output.startsWith('g.')) sums[output] = (sums[output] ?? 0) + values[0];
      }
    }
    return sums;
  }

  dispose(): Promise<void> {
    return this.#programs.dispose();
  }

  #over(
    sequences: readonly ScoredSequence[],
    shape: BatchShape,
    run: (packed: PackedBatch, start: number, rows: number) => void,
  ): void {
    for (let start = 0; start < sequences.length; start += shape.rows) {
      const part = sequences.slice(start, start + shape.rows);
      run(pack(part, shape), start, part.length);
    }
  }
}

const key = ({ rows, length, newTokens }: BatchShape): string => `${rows}x${length}x${newTokens}`;

function feedsOf(
  { tokens, places, targets }: PackedBatch,
  temperature: number,
): Record<string, Float32Array | BigInt64Array> {
  return { tokens, places, targets, inverseTemperature: Float32Array.of(1 / temperature) };
}

function copyRows(from: Float32Array, to: Float32Array, start: number, rows: number, width: number): void {
  to.set(from.subarray(0, rows * width), start * width);
}

/** Rows of a table for a program that takes `size` of them: as they lie where they are as many, else with 0 after them. */
function rowsFrom(
  from: Float32Array,
  start: number,
  rows: number,
  size: number,
  width: number,
): Float32Array {
  const part = from.subarray(start * width, (start + rows) * width);
  if (rows === size) return part;
  const out = new Float32Array(size * width);
  out.set(part);
  return out;
}
