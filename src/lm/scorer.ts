/**
 * Scoring given tokens: log-probabilities, entropies and exact KLs of completions, all in one pass over each.
 *
 * Sequences are prompt and completion, filled up at the end; several completions of one prompt can share its reading. Only what
 * predicts a completion's token goes through the output layer, which is a third of the work of a GPT-2 small.
 */

import type { Graph, Tensor } from '../engine/graph.ts';
import { expand, mul } from '../engine/ops/elementwise.ts';
import { gather, takeAlong } from '../engine/ops/gather.ts';
import { concat, reshape, slice, split } from '../engine/ops/shape.ts';
import { logSoftmax } from '../engine/ops/softmax.ts';
import { entropyFromLogProbs } from '../kl/distributions/categorical.ts';
import type { GptGroups } from '../nn/gpt.ts';
import { fail } from './errors.ts';
import { type LanguageModel, weightInputs } from './model.ts';

/**
 * What a program is compiled for: sequences, tokens of each that are read (all but the last, which predicts nothing), and tokens of
 * each completion. With `copies` above 1 so many completions follow each prompt, `length` counts tokens of prompts alone, and a
 * prompt is read once.
 */
export interface BatchShape {
  readonly rows: number;
  readonly length: number;
  readonly newTokens: number;
  readonly copies: number;
}

/** A prompt and its completion, as tokens. */
export interface ScoredSequence {
  readonly prompt: readonly number[];
  readonly tokens: readonly number[];
}

/** Sequences as a program takes them. Completion tokens of all rows are one list, (rows · newTokens). */
export type PackedBatch = {
  readonly tokens: BigInt64Array; // (rows, length), or (rows / copies, length) prompts
  /** Which row of the last layer's output predicts each completion token; of grouped ones, the first of each prompt's. */
  readonly places: BigInt64Array; // (rows · newTokens), or (rows / copies)
  readonly targets: BigInt64Array; // (rows · newTokens, 1)
} & (
  | object
  | {
      readonly completions: BigInt64Array; // (rows, newTokens)
      readonly positions: BigInt64Array; // (rows, newTokens)
      readonly promptMask: Float32Array; // (rows / copies, 1, length)
    }
);

/** The smallest shape of these steps that holds all sequences, `copies` of each prompt. */
export function shapeFor(
  sequences: readonly ScoredSequence[],
  rows: number,
  context: number,
  { step = 16, copies = 1 }: { readonly step?: number; readonly copies?: number } = {},
): BatchShape {
  let [length, newTokens, longest] = [1, 1, 1];
  for (const { prompt, tokens } of sequences) {
    length = Math.max(length, prompt.length + (copies > 1 ? 0 : Math.max(0, tokens.length - 1)));
    newTokens = Math.max(newTokens, tokens.length);
    longest = Math.max(longest, prompt.length + tokens.length);
  }
  if (longest > context)
    fail(
      `a sequence has ${longest} tokens, the context holds ${context}: use shorter prompts or completions`,
    );
  const up = (value: number): number => Math.min(context, Math.ceil(value / step) * step);
  return { rows, length: up(length), newTokens: up(newTokens), copies };
}

/** What keeps attention from places that hold nothing. */
const NOTHING = -1e9;

/**
 * Packs sequences into rows; those of one prompt stand together, `copies` of them. A row that is undefined holds nothing and
 * counts for nothing.
 */
export function pack(sequences: readonly (ScoredSequence | undefined)[], shape: BatchShape): PackedBatch {
  const { rows, length, newTokens, copies } = shape;
  if (sequences.length > rows) fail(`${sequences.length} sequences for ${rows} rows: pack fewer at once`);
  const packed = {
    tokens: new BigInt64Array((rows / copies) * length),
    places: BigInt64Array.from({ length: copies > 1 ? rows / copies : rows * newTokens }, (_, place) =>
      BigInt(copies > 1 ? place * length : Math.floor(place / newTokens) * length + (place % newTokens)),
    ),
    targets: new BigInt64Array(rows * newTokens),
  };
  const grouped = copies > 1 && {
    completions: new BigInt64Array(rows * newTokens),
    positions: new BigInt64Array(rows * newTokens),
    promptMask: new Float32Array((rows / copies) * length).fill(NOTHING),
  };
  sequences.forEach((sequence, row) => {
    if (!sequence) return;
    const { prompt, tokens } = sequence;
    if (prompt.length === 0) fail('a prompt has no tokens: begin with the end token');
    const group = Math.floor(row / copies);
    const start = group * length;
    if (grouped) packed.places[group] = BigInt(start + prompt.length - 1);
    prompt.forEach((token, i) => {
      packed.tokens[start + i] = BigInt(token);
      if (grouped) grouped.promptMask[start + i] = 0;
    });
    tokens.forEach((token, i) => {
      const at = row * newTokens + i;
      packed.targets[at] = BigInt(token);
      if (grouped) {
        grouped.completions[at] = BigInt(token);
        grouped.positions[at] = BigInt(prompt.length + i);
      } else if (i < tokens.length - 1) {
        packed.tokens[start + prompt.length + i] = BigInt(token);
      }
    });
    if (!grouped) {
      // Each place reads a row of its own: those after the completion take the rows that predict none of it.
      const first = prompt.length - 1;
      for (let i = 0; i < newTokens; i++) {
        const beyond = i - tokens.length;
        const read = beyond < 0 ? first + i : beyond < first ? beyond : beyond + tokens.length;
        packed.places[row * newTokens + i] = BigInt(start + read);
      }
    }
  });
  return { ...packed, ...grouped };
}

/** The inputs of a program over a packed batch. */
export interface BatchInputs {
  readonly tokens: Tensor;
  readonly places: Tensor;
  readonly targets: Tensor;
  /** 1 / temperature: sampling divides logits by it, so scoring does. */
  readonly inverseTemperature: Tensor;
  /** Completions apart from their prompts. */
  readonly grouped: Omit<GptGroups, 'prompts'> | undefined;
}

/** Adds the inputs of a packed batch to a graph. */
export function batchInputs(g: Graph, { rows, length, newTokens, copies }: BatchShape): BatchInputs {
  return {
    tokens: g.input('tokens', [rows / copies, length], 'int64'),
    places: g.input('places', [copies === 1 ? rows * newTokens : rows / copies], 'int64'),
    targets: g.input('targets', [rows * newTokens, 1], 'int64'),
    inverseTemperature: g.input('inverseTemperature', []),
    grouped:
      copies === 1
        ? undefined
        : {
            completions: g.input('completions', [rows, newTokens], 'int64'),
            positions: g.input('positions', [rows, newTokens], 'int64'),
            promptMask: g.input('promptMask', [rows / copies, 1, length]),
          },
  };
}

/** Log-probabilities (rows · newTokens, vocabulary) of what may stand in each place of the completions. */
export function completionLogProbs(
  { gpt, layout }: Pick<LanguageModel, 'gpt' | 'layout'>,
  inputs: BatchInputs,
  given: Record<string, Tensor> | string = 'w.',
): { all: Tensor; taken: Tensor; entropy: Tensor; weights: Record<string, Tensor> } {
  const g = inputs.tokens.node.graph;
  const weights = typeof given === 'string' ? weightInputs(g, layout, given) : given;
  const rows = inputs.grouped
    ? predictors(
        gpt.hiddenOfGroups(weights, { prompts: inputs.tokens, ...inputs.grouped }),
        inputs.places,
        inputs.grouped.completions.shape,
      )
    : gather(gpt.hidden(weights, inputs.tokens).hidden, inputs.places, 0, { distinct: true });
  const all = logSoftmax(mul(gpt.logits(weights, rows), inputs.inverseTemperature));
  return {
    all,
    taken: flat(takeAlong(all, inputs.targets, 1)),
    entropy: flat(entropyFromLogProbs(all)),
    weights,
  };
}

/**
 * What predicts the tokens of grouped completions: a token is predicted by the one before it, the first by its prompt's last,
 * whose row `places` names. All by moving rows, because adding to rows by index is slow.
 */
function predictors(hidden: Tensor, places: Tensor, [rows, newTokens]: readonly number[]): Tensor {
  const [[groups], width] = [places.shape, hidden.shape[1]];
  const ofCompletions = rows * newTokens;
  const [ofPrompts, own] = split(hidden, [hidden.shape[0] - ofCompletions, ofCompletions], 0);
  const last = reshape(gather(ofPrompts, places, 0, { distinct: true }), [groups, 1, width]);
  const first = reshape(expand(last, [groups, rows / groups, width]), [rows, 1, width]);
  const others = slice(reshape(own, [rows, newTokens, width]), [0], [newTokens - 1], [1]);
  return reshape(newTokens > 1 ? concat([first, others], 1) : first, [ofCompletions, width]);
}

/** (rows, 1) as (rows). */
export function flat(t: Tensor): Tensor {
  return reshape(t, [t.shape[0]]);
}
