/**
 * The GPT-2 architecture as a graph: token and position embeddings, pre-norm blocks of causal attention and a
 * four times wider MLP, and an output that shares the token embedding's weights.
 *
 * Activations are (batch·tokens, width) matrices wherever possible, so that every linear layer is one matrix product.
 */
import {
  add,
  gather,
  gelu,
  layerNorm,
  linear,
  matmul,
  mul,
  reshape,
  showShape,
  softmax,
  split,
  type Tensor,
  transpose,
} from '../engine/index.ts';
import { constant, normal, zeros } from './initialise.ts';
import { type ParameterSpec, parameterNamed } from './parameters.ts';

export interface GptOptions {
  vocabulary: number;
  /** Tokens at most. */
  context: number;
  layers: number;
  width: number;
  heads: number;
}

const optionNames: readonly string[] = ['vocabulary', 'context', 'layers', 'width', 'heads'];

export interface Gpt {
  readonly specs: readonly ParameterSpec[];
  /** Logits (batch·tokens, vocabulary) of what follows each of `tokens`, int64 (batch, tokens). */
  forward(params: Record<string, Tensor>, tokens: Tensor): Tensor;
}

/** A language model with GPT-2's layers and parameter names (weights as (inputs, outputs), as in the published files). */
export function gpt(options: GptOptions): Gpt {
  const { vocabulary, context, layers, width, heads } = options;
  for (const name of Object.keys(options)) {
    if (!optionNames.includes(name))
      throw new RangeError(`gpt: there is no option '${name}': there are ${optionNames.join(', ')}`);
  }
  for (const name of optionNames) {
    const value = options[name as keyof GptOptions];
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

  return {
    specs,
    forward(params, tokens) {
      if (tokens.shape.length !== 2) {
        throw new RangeError(
          `gpt: tokens have the shape ${showShape(tokens.shape)}: (batch, tokens) is needed`,
        );
      }
      const [batch, length] = tokens.shape;
      if (length > context)
        throw new RangeError(`gpt: ${length} tokens, but the context holds ${context}: cut them`);
      const named = (name: string): Tensor => parameterNamed(params, name);
      const norm = (name: string, x: Tensor): Tensor =>
        layerNorm(x, named(`${name}.weight`), named(`${name}.bias`));
      const dense = (name: string, x: Tensor): Tensor =>
        linear(x, named(`${name}.weight`), named(`${name}.bias`));
      const { graph } = tokens.node;
      const positions = graph.constant(
        Float64Array.from({ length }, (_, i) => i),
        [length],
        'int64',
      );
      const mask = causalMask(tokens, length);
      const embedded = add(gather(named('wte.weight'), tokens), gather(named('wpe.weight'), positions));
      let x = reshape(embedded, [batch * length, width]);
      for (let i = 0; i < layers; i++) {
        const qkv = dense(`h.${i}.attn.c_attn`, norm(`h.${i}.ln_1`, x));
        const mixed = attention(qkv, { batch, length, heads, width }, mask);
        x = add(x, dense(`h.${i}.attn.c_proj`, mixed));
        const wide = gelu(dense(`h.${i}.mlp.c_fc`, norm(`h.${i}.ln_2`, x)), { approximate: 'tanh' });
        x = add(x, dense(`h.${i}.mlp.c_proj`, wide));
      }
      return matmul(norm('ln_f', x), named('wte.weight'), { transposeB: true });
    },
  };
}

/** Each position mixes the values of those up to itself, in several heads: (rows, 3·width) to (rows, width). */
function attention(
  qkv: Tensor,
  { batch, length, heads, width }: { batch: number; length: number; heads: number; width: number },
  mask: Tensor,
): Tensor {
  const size = width / heads;
  // One transpose for all three: (3, batch, heads, length, size) comes apart without further copying.
  const apart = transpose(reshape(qkv, [batch, length, 3, heads, size]), [2, 0, 3, 1, 4]);
  const [q, k, v] = split(reshape(apart, [3, batch * heads, length, size]), [1, 1, 1], 0).map(t =>
    reshape(t, [batch * heads, length, size]),
  );
  const scores = add(mul(matmul(q, k, { transposeB: true }), 1 / Math.sqrt(size)), mask);
  const mixed = matmul(softmax(scores), v);
  return reshape(transpose(reshape(mixed, [batch, heads, length, size]), [0, 2, 1, 3]), [
    batch * length,
    width,
  ]);
}

/** 0 where a position may look, a large negative number where it would look ahead. */
function causalMask(beside: Tensor, length: number): Tensor {
  const values = Float64Array.from({ length: length * length }, (_, i) =>
    i % length <= Math.floor(i / length) ? 0 : -1e9,
  );
  return beside.node.graph.constant(values, [length, length]);
}
