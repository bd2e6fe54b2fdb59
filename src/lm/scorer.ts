/**
 * Scoring given tokens: log-probabilities, entropies and exact KLs of completions, all in one pass over each.
 *
 * Sequences are prompt and completion, filled up at the end. Only what predicts a completion's token goes through the
 * output layer, which is a third of the work of a GPT-2 small.
 */
import { type Graph, gather, logSoftmax, mul, reshape, type Tensor, takeAlong } from '../engine/index.ts';
import { entropyFromLogProbs } from '../kl/distributions/categorical.ts';
import { fail } from './errors.ts';
import { type LanguageModel, weightInputs } from './model.ts';

/** What a program is compiled for: sequences, tokens of each, and tokens of each completion. */
export interface BatchShape {
  readonly rows: number;
  readonly length: number;
  readonly newTokens: number;
}

export interface ScoredSequence {
  readonly prompt: readonly number[];
  readonly tokens: readonly number[];
}

/** Sequences as a program takes them. Completion tokens of all rows are one list, (rows · newTokens). */
export interface PackedBatch {
  readonly tokens: BigInt64Array; // (rows, length)
  /** Which place of (rows · length) predicts each completion token. */
  readonly places: BigInt64Array; // (rows · newTokens)
  readonly targets: BigInt64Array; // (rows · newTokens, 1)
  /** 1 where there is a completion token, 0 where it is filled up. */
  readonly mask: Float32Array; // (rows · newTokens)
}

/** The smallest shape of these steps that holds all sequences. */
export function shapeFor(
  sequences: readonly ScoredSequence[],
  rows: number,
  context: number,
  step = 16,
): BatchShape {
  let [length, newTokens] = [1, 1];
  for (const { prompt, tokens } of sequences) {
    length = Math.max(length, prompt.length + tokens.length);
    newTokens = Math.max(newTokens, tokens.length);
  }
  if (length > context)
    fail(`a sequence has ${length} tokens, the context holds ${context}: use shorter prompts or completions`);
  const up = (value: number): number => Math.min(context, Math.ceil(value / step) * step);
  return { rows, length: up(length), newTokens: up(newTokens) };
}

/** Packs sequences; rows that are left over repeat nothing and count for nothing. */
export function pack(
  sequences: readonly ScoredSequence[],
  { rows, length, newTokens }: BatchShape,
): PackedBatch {
  if (sequences.length > rows) fail(`${sequences.length} sequences for ${rows} rows: pack fewer at once`);
  const packed = {
    tokens: new BigInt64Array(rows * length),
    places: new BigInt64Array(rows * newTokens),
    targets: new BigInt64Array(rows * newTokens),
    mask: new Float32Array(rows * newTokens),
  };
  sequences.forEach(({ prompt, tokens }, row) => {
    if (prompt.length === 0) fail('a prompt has no tokens: begin with the end token');
    const start = row * length;
    prompt.forEach((token, i) => {
      packed.tokens[start + i] = BigInt(token);
    });
    tokens.forEach((token, i) => {
      const at = row * newTokens + i;
      packed.tokens[start + prompt.length + i] = BigInt(token);
      packed.places[at] = BigInt(start + prompt.length - 1 + i);
      packed.targets[at] = BigInt(token);
      packed.mask[at] = 1;
    });
  });
  return packed;
}

/** The inputs of a program over a packed batch. */
export interface BatchInputs {
  readonly tokens: Tensor;
  readonly places: Tensor;
  readonly targets: Tensor;
  /** 1 / temperature: sampling divides logits by it, so scoring does. */
  readonly inverseTemperature: Tensor;
}

export function batchInputs(g: Graph, { rows, length, newTokens }: BatchShape): BatchInputs {
  return {
    tokens: g.input('tokens', [rows, length], 'int64'),
    places: g.input('places', [rows * newTokens], 'int64'),
    targets: g.input('targets', [rows * newTokens, 1], 'int64'),
    inverseTemperature: g.input('inverseTemperature', []),
  };
}

/** Log-probabilities (rows · newTokens, vocabulary) of what may stand in each place of the completions. */
export function completionLogProbs(
  { gpt, layout }: Pick<LanguageModel, 'gpt' | 'layout'>,
  inputs: BatchInputs,
  weights: Record<string, Tensor> | string = 'w.',
): { all: Tensor; taken: Tensor; entropy: Tensor; weights: Record<string, Tensor> } {
  const g = inputs.tokens.node.graph;
  const params = typeof weights === 'string' ? weightInputs(g, layout, weights) : weights;
  const rows = gather(gpt.hidden(params, inputs.tokens).hidden, inputs.places);
  const all = logSoftmax(mul(gpt.logits(params, rows), inputs.inverseTemperature));
  return {
    all,
    taken: flat(takeAlong(all, inputs.targets, 1)),
    entropy: flat(entropyFromLogProbs(all)),
    weights: params,
  };
}

/** (rows, 1) as (rows). */
export function flat(t: Tensor): Tensor {
  return reshape(t, [t.shape[0]]);
}
