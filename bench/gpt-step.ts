/** One training step of a GPT: forward, cross-entropy, backward, clipping, AdamW; and its matrix products alone. */
import {
  Graph,
  grad,
  logSoftmax,
  matmul,
  neg,
  reduceMean,
  slice,
  type Tensor,
  takeAlong,
} from '../src/engine/index.ts';
import { adam, adamCorrections, clipScale, type GptOptions, gpt } from '../src/nn/index.ts';

export function gptStep(options: GptOptions, batch: number, length: number): Graph {
  const g = new Graph();
  const model = gpt(options);
  const tokens = g.input('tokens', [batch, length], 'int64');
  const targets = g.input('targets', [batch * length, 1], 'int64');
  const learningRate = g.input('learningRate', []);
  const corrections = adamCorrections(g.input('step', []));
  const weights = model.specs.map(({ name, shape }) => g.input(name, shape));
  const byName = Object.fromEntries(model.specs.map(({ name }, i) => [name, weights[i]]));

  const logProbs = logSoftmax(model.forward(byName, tokens));
  const loss = neg(reduceMean(takeAlong(logProbs, targets, 1)));
  const gradients = grad(loss, weights);
  const { scale, norm } = clipScale(gradients, 1);
  model.specs.forEach(({ name, shape }, i) => {
    const state = { weights: weights[i], m: g.input(`m.${name}`, shape), v: g.input(`v.${name}`, shape) };
    const weightDecay = shape.length > 1 ? 0.1 : 0;
    const step = { gradient: gradients[i], gradientScale: scale, learningRate, corrections, weightDecay };
    const next = adam(state, step);
    g.output(`new.${name}`, next.weights);
    g.output(`new.m.${name}`, next.m);
    g.output(`new.v.${name}`, next.v);
  });
  g.output('loss', loss);
  g.output('norm', norm);
  return g;
}

/** The products of the same step with operands of the same shapes: three for each of the forward pass. */
export function gptProductsOnly(
  { vocabulary, layers, width, heads }: GptOptions,
  batch: number,
  length: number,
): Graph {
  const g = new Graph();
  const rows = batch * length;
  let count = 0;
  // One value of each result comes out, so that what is timed is the products and not the copying of outputs.
  const keep = (name: string, y: Tensor): void => {
    const rank = y.shape.length;
    g.output(name, slice(y, Array(rank).fill(0), Array(rank).fill(1)));
  };
  const product = (a: Tensor, b: Tensor, transposeB = false): void => {
    const name = `p${count++}`;
    const y = matmul(a, b, { transposeB });
    keep(name, y);
    // The derivatives by both sides, with the product itself standing in for the derivative by the product.
    keep(`${name}.a`, matmul(y, b, { transposeB: !transposeB }));
    keep(`${name}.b`, transposeB ? matmul(y, a, { transposeA: true }) : matmul(a, y, { transposeA: true }));
  };
  const input = (name: string, shape: number[]): Tensor => g.input(name, shape);
  for (let i = 0; i < layers; i++) {
    for (const [name, inputs, outputs] of [
      ['qkv', width, 3 * width],
      ['proj', width, width],
      ['fc', width, 4 * width],
      ['out', 4 * width, width],
    ] as const) {
      product(input(`x.${i}.${name}`, [rows, inputs]), input(`w.${i}.${name}`, [inputs, outputs]));
    }
    const [q, k, v] = ['q', 'k', 'v'].map(name =>
      input(`${name}.${i}`, [batch * heads, length, width / heads]),
    );
    product(q, k, true);
    product(input(`a.${i}`, [batch * heads, length, length]), v);
  }
  product(input('x', [rows, width]), input('w', [vocabulary, width]), true);
  return g;
}
