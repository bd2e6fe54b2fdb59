/** A language model: sizes, weights and tokenizer. */
import type { Graph, Tensor } from '../engine/graph.ts';
import { type Gpt, type GptOptions, gpt } from '../nn/gpt.ts';
import { type Parameters, parameters } from '../nn/parameters.ts';
import type { Rng } from '../random/rng.ts';
import { fail } from './errors.ts';
import type { TextTokenizer } from './tokenizer.ts';

/** A network with its weights and tokenizer: all that it takes to write text. */
export interface LanguageModel {
  readonly options: GptOptions;
  readonly gpt: Gpt;
  readonly layout: Parameters;
  readonly tokenizer: TextTokenizer;
  /** All weights, as the layout places them. */
  weights: Float32Array;
}

/** Puts the parts together; without weights it starts from random ones. */
export function languageModel(
  options: GptOptions,
  tokenizer: TextTokenizer,
  start: { readonly weights: Float32Array } | { readonly rng: Rng },
): LanguageModel {
  if (tokenizer.size > options.vocabulary) {
    fail(
      `the tokenizer has ${tokenizer.size} tokens, the model's vocabulary ${options.vocabulary}: use the tokenizer that it was trained with`,
    );
  }
  const network = gpt(options);
  const layout = parameters(network.specs);
  const weights = 'weights' in start ? start.weights : layout.initialise(start.rng);
  if (weights.length !== layout.size)
    fail(`${weights.length} weights, but a model of these sizes has ${layout.size}: use its own config`);
  return { options, gpt: network, layout, tokenizer, weights };
}

const feedsOf = new WeakMap<Float32Array, Map<string, Record<string, Float32Array>>>();

/** Weights as the feeds of a program, under a prefix, without copying; the same objects for the same array. */
export function weightFeeds(
  layout: Parameters,
  weights: Float32Array,
  prefix = 'w.',
): Record<string, Float32Array> {
  const known = feedsOf.get(weights) ?? new Map<string, Record<string, Float32Array>>();
  feedsOf.set(weights, known);
  let feeds = known.get(prefix);
  if (!feeds) {
    feeds = Object.fromEntries(
      Object.entries(layout.views(weights)).map(([name, view]) => [prefix + name, view]),
    );
    known.set(prefix, feeds);
  }
  return feeds;
}

/** Weights as inputs of a graph, under a prefix. */
export function weightInputs(g: Graph, layout: Parameters, prefix = 'w.'): Record<string, Tensor> {
  return Object.fromEntries(layout.specs.map(({ name, shape }) => [name, g.input(prefix + name, shape)]));
}
