/**
 * The GPT-2 architecture as a graph: token and position embeddings, pre-norm blocks of causal attention and a
 * four times wider MLP, and an output that shares the token embedding's weights.
 *
 * Activations are (batch·tokens, width) matrices wherever possible, so that every linear layer is one matrix product.
 */

import type { Tensor } from '../engine/graph.ts';
import { add, gelu, mul } from '../engine/ops/elementwise.ts';
import { gather } from '../engine/ops/gather.ts';
import { linear, matmul } from '../engine/ops/matmul.ts';
import { concat, reshape, split, transpose } from '../engine/ops/shape.ts';
import { layerNorm, maskedSoftmax } from '../engine/ops/softmax.ts';
import { showShape } from '../engine/shape.ts';
import { constant, normal, zeros } from './initialise.ts';
import { type ParameterSpec, parameterNamed } from './parameters.ts';

/** Sizes of a model. */
export interface GptOptions {
  vocabulary: number;
  /** Tokens at most. */
  context: number;
  layers: number;
  width: number;
  heads: number;
  /** Added to the variance in layer norms. Default 1e-5. */
  normEpsilon?: number;
}

const optionNames: readonly string[] = ['vocabulary', 'context', 'layers', 'width', 'heads'];

/** What attention keeps of past tokens, one entry a layer: (batch·heads, tokens, width/heads) each. */
export interface GptCache {
  readonly keys: readonly Tensor[];
  readonly values: readonly Tensor[];
}

/** Prompts, and as many completions of each. */
export interface GptGroups {
  readonly prompts: Tensor; // int64 (groups, length)
  readonly completions: Tensor; // int64 (groups·copies, newTokens)
  /** Where each completion's tokens stand, counted from the prompt's beginning. */
  readonly positions: Tensor; // int64 (groups·copies, newTokens)
  /** 0 where a prompt has a token, a large negative number where it is filled up. */
  readonly promptMask: Tensor; // (groups, 1, length)
}

/** A GPT-2 network as graph functions of its parameters. */
export interface Gpt {
  readonly specs: readonly ParameterSpec[];
  /** Logits (batch·tokens, vocabulary) of what follows each of `tokens`, int64 (batch, tokens). */
  forward(weights: Record<string, Tensor>, tokens: Tensor): Tensor;
  /** The last layer's output (batch·tokens, width) for `tokens`, int64 (batch, tokens), and what a cache keeps of them. */
  hidden(weights: Record<string, Tensor>, tokens: Tensor): { hidden: Tensor; cache: GptCache };
  /**
   * The same for several completions of each of some prompts, which are read once however many there are: rows of the
   * prompts first (groups·length, width), then those of the completions (groups·copies·newTokens, width).
   */
  hiddenOfGroups(weights: Record<string, Tensor>, batch: GptGroups): Tensor;
  /** Logits (rows, vocabulary) from rows of {@link Gpt.hidden}. */
  logits(weights: Record<string, Tensor>, hidden: Tensor): Tensor;
  /**
   * One more token of each sequence: `tokens` and `positions` are int64 (batch), `cache` holds the tokens before them and
   * `mask` (batch, 1, tokens) is 0 where there is one and a large negative number where there is none. Gives the last
   * layer's output (batch, width), and keys and values of the new tokens with one token each.
   */
  decode(
    weights: Record<string, Tensor>,
    step: { tokens: Tensor; positions: Tensor; cache: GptCache; mask: Tensor },
  ): { hidden: Tensor; cache: GptCache };
}

/** A language model with GPT-2's layers and parameter names (weights as (inputs, outputs), as in the published files). */
export function gpt(options: GptOptions): Gpt {
  const { vocabulary, context, layers, width, heads, normEpsilon = 1e-5 } = options;
  for (const name of Object.keys(options)) {
    if (!optionNames.includes(name) && name !== 'normEpsilon')
      throw new RangeError(`gpt: there is no option '${name}': there are ${optionNames.join(', ')}`);
  }
  if (!(normEpsilon > 0 && normEpsilon < 1))
    throw new RangeError(`gpt: normEpsilon is ${normEpsilon}: use a small number above 0, such as 1e-5`);
  for (const name of optionNames) {
    const value = options[name as keyof GptOptions] as number;
    if (!Number.isInteger(value) || value < 1) {
      throw new RangeError(`gpt: ${name} is ${value}: a whole number of at least 1 is needed`);
    }
  }
  if (width % heads !== 0) {
    throw new RangeError(
      `gpt: width ${width} does not divide into ${heads} heads: use a multiple of ${heads}`,
    );
  }
  const specs: ParameterSpec[] = [];
  const declare = (name: string, shape: readonly number[], init = normal(0.02)): void => {
    specs.push({ name, shape, init, group: 'gpt' });
  };
  const declareNorm = (name: string): void => {
    declare(`${name}.weight`, [width], constant(1));
    declare(`${name}.bias`, [width], zeros);
  };
  const declareLinear = (name: string, inputs: number, outputs: number, std = 0.02): void => {
    declare(`${name}.weight`, [inputs, outputs], normal(std));
    declare(`${name}.bias`, [outputs], zeros);
  };
  // What is added to the residual stream starts smaller the more layers add to it.
  const residualStd = 0.02 / Math.sqrt(2 * layers);
  declare('wte.weight', [vocabulary, width]);
  declare('wpe.weight', [context, width], normal(0.01));
  for (let i = 0; i < layers; i++) {
    declareNorm(`h.${i}.ln_1`);
    declareLinear(`h.${i}.attn.c_attn`, width, 3 * width);
    declareLinear(`h.${i}.attn.c_proj`, width, width, residualStd);
    declareNorm(`h.${i}.ln_2`);
    declareLinear(`h.${i}.mlp.c_fc`, width, 4 * width);
    declareLinear(`h.${i}.mlp.c_proj`, 4 * width, width, residualStd);
  }
  declareNorm('ln_f');

  /** The layers' pieces, with the parameters at hand. */
  const layersOf = (weights: Record<string, Tensor>) => {
    const named = (name: string): Tensor => parameterNamed(weights, name);
    const norm = (name: string, x: Tensor): Tensor =>
      layerNorm(x, named(`${name}.weight`), named(`${name}.bias`), normEpsilon);
    const dense = (name: string, x: Tensor): Tensor =>
      linear(x, named(`${name}.weight`), named(`${name}.bias`));
    return {
      named,
      norm,
      embed: (tokens: Tensor, positions: Tensor): Tensor =>
        add(gather(named('wte.weight'), tokens), gather(named('wpe.weight'), positions)),
      /** All blocks; `mix` is the attention of one. */
      blocks(x: Tensor, mix: (qkv: Tensor, layer: number) => Tensor): Tensor {
        let y = x;
        for (let i = 0; i < layers; i++) {
          const mixed = mix(dense(`h.${i}.attn.c_attn`, norm(`h.${i}.ln_1`, y)), i);
          y = add(y, dense(`h.${i}.attn.c_proj`, mixed));
          const wide = gelu(dense(`h.${i}.mlp.c_fc`, norm(`h.${i}.ln_2`, y)), { approximate: 'tanh' });
          y = add(y, dense(`h.${i}.mlp.c_proj`, wide));
        }
        return y;
      },
    };
  };

  const refuseBeyondContext = (length: number): void => {
    if (length > context)
      throw new RangeError(`gpt: ${length} tokens, but the context holds ${context}: cut them`);
  };

  const model: Gpt = {
    specs,
    forward(weights, tokens) {
      return model.logits(weights, model.hidden(weights, tokens).hidden);
    },
    hidden(weights, tokens) {
      if (tokens.shape.length !== 2) {
        throw new RangeError(
          `gpt: tokens have the shape ${showShape(tokens.shape)}: (batch, tokens) is needed`,
        );
      }
      const [batch, length] = tokens.shape;
      refuseBeyondContext(length);
      const { embed, blocks } = layersOf(weights);
      const positions = firstPositions(tokens, length);
      const mask = causalMask(tokens, length);
      const [keys, values]: Tensor[][] = [[], []];
      const x = reshape(embed(tokens, positions), [batch * length, width]);
      const hidden = blocks(x, qkv => {
        const { q, k, v } = apart(qkv, { batch, length, heads, width });
        keys.push(k);
        values.push(v);
        return attention(q, k, v, { batch, length, heads, width }, mask);
      });
      return { hidden, cache: { keys, values } };
    },
    hiddenOfGroups(weights, { prompts, completions, positions, promptMask }) {
      const [groups, length] = prompts.shape;
      const [rows, newTokens] = completions.shape;
      refuseBeyondContext(length);
      const { embed, blocks } = layersOf(weights);
      const [ofPrompts, ofCompletions] = [groups * length, rows * newTokens];
      const masks = { own: causalMask(prompts, length), prompt: promptMask };
      const newMask = causalMask(completions, newTokens);
      const x = concat(
        [
          reshape(embed(prompts, firstPositions(prompts, length)), [ofPrompts, width]),
          reshape(embed(completions, positions), [ofCompletions, width]),
        ],
        0,
      );
      return blocks(x, qkv => {
        const [before, after] = split(qkv, [ofPrompts, ofCompletions], 0);
        const { q, k, v } = apart(before, { batch: groups, length, heads, width });
        const read = attention(q, k, v, { batch: groups, length, heads, width }, masks.own);
        const sizes = { groups, copies: rows / groups, length, newTokens, heads, width };
        return concat([read, groupAttention(after, { k, v }, sizes, masks.prompt, newMask)], 0);
      });
    },
    logits(weights, hidden) {
      const { named, norm } = layersOf(weights);
      return matmul(norm('ln_f', hidden), named('wte.weight'), { transposeB: true });
    },
    decode(weights, { tokens, positions, cache, mask }) {
      const [batch] = tokens.shape;
      const size = width / heads;
      const { embed, blocks } = layersOf(weights);
      const [keys, values]: Tensor[][] = [[], []];
      const hidden = blocks(embed(tokens, positions), (qkv, layer) => {
        const { q, k, v } = apart(qkv, { batch, length: 1, heads, width });
        keys.push(k);
        values.push(v);
        const past = cache.keys[layer].shape[1];
        // The new token is not in the cache yet: its own score and value stand beside those of the past.
        const scale = 1 / Math.sqrt(size);
        const seen = add(
          reshape(mul(matmul(q, cache.keys[layer], { transposeB: true }), scale), [batch, heads, past]),
          mask,
        );
        const own = reshape(mul(matmul(q, k, { transposeB: true }), scale), [batch, heads, 1]);
        const [ofPast, ofOwn] = split(maskedSoftmax(concat([seen, own], 2)), [past, 1], 2);
        const mixed = add(
          matmul(reshape(ofPast, [batch * heads, 1, past]), cache.values[layer]),
          mul(reshape(ofOwn, [batch * heads, 1, 1]), v),
        );
        return reshape(mixed, [batch, width]);
      });
      return { hidden, cache: { keys, values } };
    },
  };
  return model;
}

interface AttentionSizes {
  batch: number;
  length: number;
  heads: number;
  width: number;
}

/** Queries, keys and values (batch·heads, length, size) out of (rows, 3·width). */
function apart(
  qkv: Tensor,
  { batch, length, heads, width }: AttentionSizes,
): { q: Tensor; k: Tensor; v: Tensor } {
  const size = width / heads;
  // One transpose for all three: (3, batch, heads, length, size) comes apart without further copying.
  const turned = transpose(reshape(qkv, [batch, length, 3, heads, size]), [2, 0, 3, 1, 4]);
  const [q, k, v] = split(reshape(turned, [3, batch * heads, length, size]), [1, 1, 1], 0).map(t =>
    reshape(t, [batch * heads, length, size]),
  );
  return { q, k, v };
}

/** Each position mixes the values of those up to itself, in several heads: to (rows, width). */
function attention(
  q: Tensor,
  k: Tensor,
  v: Tensor,
  { batch, length, heads, width }: AttentionSizes,
  mask: Tensor,
): Tensor {
  const size = width / heads;
  const scores = add(mul(matmul(q, k, { transposeB: true }), 1 / Math.sqrt(size)), mask);
  const mixed = matmul(maskedSoftmax(scores), v);
  return reshape(transpose(reshape(mixed, [batch, heads, length, size]), [0, 2, 1, 3]), [
    batch * length,
    width,
  ]);
}

/**
 * Completions look at their prompt and at themselves up to each token. Heads stand before copies, so that all completions of
 * a prompt are one matrix to its keys and values: from (groups·copies·newTokens, 3·width) to (…, width).
 */
function groupAttention(
  qkv: Tensor,
  prompt: { k: Tensor; v: Tensor }, // (groups·heads, length, size)
  sizes: { groups: number; copies: number; length: number; newTokens: number; heads: number; width: number },
  promptMask: Tensor,
  causal: Tensor,
): Tensor {
  const { groups, copies, length, newTokens, heads, width } = sizes;
  const size = width / heads;
  const turned = transpose(reshape(qkv, [groups, copies, newTokens, 3, heads, size]), [3, 0, 4, 1, 2, 5]);
  const shapes = {
    own: [groups * heads * copies, newTokens, size],
    toPrompt: [groups * heads, copies * newTokens, size],
  };
  const [q, k, v] = split(reshape(turned, [3, ...shapes.own]), [1, 1, 1], 0).map(t => reshape(t, shapes.own));
  const scale = 1 / Math.sqrt(size);
  const queries = heads * copies * newTokens;
  const toPrompt = mul(matmul(reshape(q, shapes.toPrompt), prompt.k, { transposeB: true }), scale);
  const toOwn = add(mul(matmul(q, k, { transposeB: true }), scale), causal);
  const scores = concat(
    [
      add(reshape(toPrompt, [groups, queries, length]), promptMask),
      reshape(toOwn, [groups, queries, newTokens]),
    ],
    2,
  );
  const [ofPrompt, ofOwn] = split(maskedSoftmax(scores), [length, newTokens], 2);
  const mixed = add(
    reshape(matmul(reshape(ofPrompt, [groups * heads, copies * newTokens, length]), prompt.v), shapes.own),
    matmul(reshape(ofOwn, [groups * heads * copies, newTokens, newTokens]), v),
  );
  return reshape(transpose(reshape(mixed, [groups, heads, copies, newTokens, size]), [0, 2, 3, 1, 4]), [
    groups * copies * newTokens,
    width,
  ]);
}

/** 0, 1, 2, … */
function firstPositions(beside: Tensor, length: number): Tensor {
  return beside.node.graph.constant(
    Float64Array.from({ length }, (_, i) => i),
    [length],
    'int64',
  );
}

/** 0 where a position may look, a large negative number where it would look ahead. */
function causalMask(beside: Tensor, length: number): Tensor {
  const values = Float64Array.from({ length: length * length }, (_, i) =>
    i % length <= Math.floor(i / length) ? 0 : -1e9,
  );
  return beside.node.graph.constant(values, [length, length]);
}
