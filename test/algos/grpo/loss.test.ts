/** The loss and its gradient against float64 loops written for this test alone. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { gradientGraph as cloneGraph } from '../../../src/algos/clone/text/graphs.ts';
import { gradientGraph, type LossOptions } from '../../../src/algos/grpo/graphs.ts';
import { isExact } from '../../../src/algos/grpo/reference-kl.ts';
import { TextPrograms } from '../../../src/algos/text/programs.ts';
import { compile, Graph } from '../../../src/engine/index.ts';
import { shapeFor } from '../../../src/lm/index.ts';
import { adam, adamCorrections, adamW, type Parameters, parameters } from '../../../src/nn/index.ts';
import { Rng } from '../../../src/random/index.ts';
import { plainLogProbs, smallModel } from '../../lm/support.ts';

const model = smallModel(1, { layers: 1, width: 8 });
const other = smallModel(2, { layers: 1, width: 8 });
const sequences = [
  { prompt: [0, 3], tokens: [4, 5, 0] },
  { prompt: [0, 6, 7], tokens: [8] },
  { prompt: [0], tokens: [9, 10, 11, 12] },
];
const temperature = 0.8;
// Three sequences by two rows: two microbatches, the second of them filled up.
const shape = { ...shapeFor(sequences, 2, 24, { step: 4 }) };
const programs = new TextPrograms(model, {});
const cloning = { name: 'clone', graph: cloneGraph };
const [clipLow, clipHigh, klRefCoef, entropyCoef] = [0.1, 0.3, 0.05, 0.02];
const advantages = [1.5, -2, 0.7];
const V = model.options.vocabulary;
const N = shape.newTokens;
const mask = new Float32Array(3 * N);
const weights = new Float32Array(3 * N);
const tokenAdvantages = new Float32Array(3 * N);
// Where there is no token a program leaves what it likes, and no two of them the same.
const oldLogProbs = new Float32Array(3 * N).fill(-2);
const reference = new Float32Array(3 * N * V).fill(-1);
const rng = new Rng(4);
sequences.forEach(({ prompt, tokens }, row) => {
  const mine = plainLogProbs(model, model.weights, [...prompt, ...tokens], temperature);
  const theirs = plainLogProbs(other, other.weights, [...prompt, ...tokens], temperature);
  tokens.forEach((token, i) => {
    const at = row * N + i;
    mask[at] = 1;
    weights[at] = 1 / 8 + row * 0.01;
    tokenAdvantages[at] = advantages[row];
    // Ratios on both sides of both clips.
    oldLogProbs[at] = mine[prompt.length - 1 + i][token] + 0.4 * rng.normal();
    reference.set(theirs[prompt.length - 1 + i], at * V);
  });
});
const referenceTaken = Float32Array.from({ length: 3 * N }, (_, at) => {
  const token = sequences[Math.floor(at / N)].tokens[at % N];
  return token === undefined ? -1 : reference[at * V + token];
});

/** The exact KL to the reference at a token, in float64. */
const exactKl = (logProbs: ArrayLike<number>, at: number): number =>
  Array.from(logProbs).reduce((sum, p, id) => sum + Math.exp(p) * (p - reference[at * V + id]), 0);

/** The loss at some weights, in float64; what is held constant is that of the model's own. */
function plainLoss(values: ArrayLike<number>, { refKl, entropy }: LossOptions): number {
  let loss = 0;
  sequences.forEach(({ prompt, tokens }, row) => {
    const all = plainLogProbs(model, values, [...prompt, ...tokens], temperature);
    const held = plainLogProbs(model, model.weights, [...prompt, ...tokens], temperature);
    const afterwards = (from: number, of: (at: number, logProbs: ArrayLike<number>) => number): number =>
      tokens.reduce((sum, _, s) => (s < from ? sum : sum + of(row * N + s, held[prompt.length - 1 + s])), 0);
    tokens.forEach((token, i) => {
      const at = row * N + i;
      const logProbs = all[prompt.length - 1 + i];
      const ratio = Math.exp(logProbs[token] - oldLogProbs[at]);
      const clipped = Math.min(1 + clipHigh, Math.max(1 - clipLow, ratio));
      let advantage = advantages[row];
      if (refKl === 'k1-advantage')
        advantage -= klRefCoef * afterwards(i, here => oldLogProbs[here] - referenceTaken[here]);
      let value = -Math.min(ratio * advantage, clipped * advantage);
      if (refKl === 'exact' || refKl === 'exact-sequence') value += klRefCoef * exactKl(logProbs, at);
      if (refKl === 'exact-sequence') {
        const heldRatio = Math.exp(held[prompt.length - 1 + i][token] - oldLogProbs[at]);
        value += klRefCoef * (ratio - heldRatio) * afterwards(i + 1, (here, those) => exactKl(those, here));
      }
      const r = referenceTaken[at] - logProbs[token];
      if (refKl === 'k3') value += klRefCoef * (Math.exp(r) - 1 - r);
      if (refKl === 'ratio-k3') value += klRefCoef * ratio * (Math.exp(r) - 1 - r);
      if (refKl === 'k2') value += (klRefCoef * r * r) / 2;
      if (entropy) value += entropyCoef * logProbs.reduce((sum, p) => sum + Math.exp(p) * p, 0);
      loss += weights[at] * value;
    });
  });
  return loss;
}

/** What the loss tells of itself, in float64: sums over the tokens that count. */
function plainInfo({ refKl }: LossOptions) {
  const info = { clippedLow: 0, clippedHigh: 0, klRef: 0 };
  sequences.forEach(({ prompt, tokens }, row) => {
    const all = plainLogProbs(model, model.weights, [...prompt, ...tokens], temperature);
    tokens.forEach((token, i) => {
      const at = row * N + i;
      const logProbs = all[prompt.length - 1 + i];
      const ratio = Math.exp(logProbs[token] - oldLogProbs[at]);
      if (ratio < 1 - clipLow) info.clippedLow++;
      if (ratio > 1 + clipHigh) info.clippedHigh++;
      const r = referenceTaken[at] - logProbs[token];
      info.klRef += isExact(refKl) ? exactKl(logProbs, at) : Math.exp(r) - 1 - r;
    });
  });
  return info;
}

const run = (options: LossOptions, into: Float32Array) =>
  programs.gradient(
    model.weights,
    {
      batch: { sequences, shape, temperature },
      chosen: [0, 1, 2],
      loss: {
        name: JSON.stringify(options),
        graph: (network, part) => gradientGraph(network, part, options),
      },
      columns: {
        weights,
        mask,
        advantages: tokenAdvantages,
        oldLogProbs,
        ...(options.refKl === 'none'
          ? {}
          : { reference: isExact(options.refKl) ? reference : referenceTaken }),
      },
      scalars: {
        clipLow,
        clipHigh,
        ...(options.refKl === 'none' ? {} : { klRefCoef }),
        ...(options.entropy ? { entropyCoef } : {}),
      },
    },
    into,
  );

let directions: Float64Array[] = [];
beforeAll(() => {
  const draw = new Rng(9);
  directions = Array.from({ length: 4 }, () =>
    Float64Array.from({ length: model.layout.size }, () => draw.normal()),
  );
});
afterAll(() => programs.dispose());

test.each([
  { refKl: 'none', entropy: false },
  { refKl: 'exact', entropy: true },
  { refKl: 'exact-sequence', entropy: false },
  { refKl: 'ratio-k3', entropy: false },
  { refKl: 'k2', entropy: false },
  { refKl: 'k1-advantage', entropy: true },
  { refKl: 'k3', entropy: false },
] as const)('loss and gradient are those of float64 loops: $refKl, entropy $entropy', async options => {
  const gradient = new Float32Array(model.layout.size);
  const { loss, clippedLow, clippedHigh, klRef } = await run(options, gradient);
  expect(loss).toBeCloseTo(plainLoss(model.weights, options), 4);
  // Of the tokens that count alone: those that fill a microbatch up have ratios and KLs as well.
  const plain = plainInfo(options);
  expect([clippedLow, clippedHigh]).toEqual([plain.clippedLow, plain.clippedHigh]);
  expect(Math.min(plain.clippedLow, plain.clippedHigh)).toBeGreaterThan(0);
  if (options.refKl === 'none') expect(klRef).toBeUndefined();
  else expect(klRef).toBeCloseTo(plain.klRef, 3);
  for (const direction of directions) {
    const step = 1e-5;
    const at = (sign: number) => Float64Array.from(model.weights, (w, i) => w + sign * step * direction[i]);
    const slope = (plainLoss(at(1), options) - plainLoss(at(-1), options)) / (2 * step);
    const dot = gradient.reduce((sum, g, i) => sum + g * direction[i], 0);
    expect(Math.abs(dot - slope)).toBeLessThan(1e-3 * Math.max(1, Math.abs(slope)));
  }
});

test('scoring and measuring: log-probabilities, and the exact KL from kept ones and from old weights', async () => {
  const batch = { sequences, shape, temperature };
  const old = await programs.score(other.weights, batch, true);
  const kept = await programs.measure(model.weights, { all: old.all! }, batch);
  const again = await programs.measure(model.weights, { weights: other.weights }, batch);
  sequences.forEach(({ prompt, tokens }, row) => {
    const now = plainLogProbs(model, model.weights, [...prompt, ...tokens], temperature);
    tokens.forEach((token, i) => {
      const at = row * N + i;
      const place = prompt.length - 1 + i;
      const before = reference.subarray(at * V, (at + 1) * V);
      const kl = before.reduce((sum, p, id) => sum + Math.exp(p) * (p - now[place][id]), 0);
      expect(kept.kl[at]).toBeCloseTo(kl, 4);
      expect(again.kl[at]).toBeCloseTo(kl, 4);
      expect(kept.logProbs[at]).toBeCloseTo(now[place][token], 4);
      expect(old.logProbs[at]).toBeCloseTo(before[token], 4);
    });
  });
  const same = await programs.measure(other.weights, { all: old.all! }, batch);
  expect(Math.max(...same.kl)).toBeLessThan(1e-7);
});

test('short and long sequences go through programs of their own lengths, and give what one program gives', async () => {
  const wide = smallModel(3, { layers: 1, width: 8, context: 160 });
  const draw = new Rng(6);
  const some = [3, 100, 5, 70].map(length => ({
    prompt: Array.from({ length: 4 + draw.integer(40) }, () => draw.integer(18)),
    tokens: Array.from({ length }, () => draw.integer(18)),
  }));
  const results = await Promise.all(
    [4, 1].map(async rows => {
      const own = new TextPrograms(wide, {});
      const size = shapeFor(some, rows, 160, { step: 4 });
      const batch = { sequences: some, shape: size, temperature: 1 };
      const scored = await own.score(wide.weights, batch, true);
      const columns = { weights: new Float32Array(4 * size.newTokens) };
      some.forEach(({ tokens }, row) => {
        columns.weights.fill(1 / 178, row * size.newTokens, row * size.newTokens + tokens.length);
      });
      const into = new Float32Array(wide.layout.size);
      const { loss } = await own.gradient(
        wide.weights,
        { batch, chosen: [0, 1, 2, 3], loss: cloning, columns },
        into,
      );
      const same = await own.measure(wide.weights, { all: scored.all! }, batch);
      await own.dispose();
      return { size, scored, loss, into, same };
    }),
  );
  const [together, apart] = results;
  expect(apart.loss).toBeCloseTo(together.loss, 5);
  apart.into.forEach((value, i) => {
    expect(Math.abs(value - together.into[i])).toBeLessThan(1e-5);
  });
  some.forEach(({ prompt, tokens }, row) => {
    const plain = plainLogProbs(wide, wide.weights, [...prompt, ...tokens]);
    tokens.forEach((token, i) => {
      for (const { size, scored, same } of results) {
        const at = row * size.newTokens + i;
        expect(scored.logProbs[at]).toBeCloseTo(plain[prompt.length - 1 + i][token], 4);
        expect(scored.all![at * 18 + token]).toBe(scored.logProbs[at]);
        expect(same.kl[at]).toBeLessThan(1e-6);
      }
    });
  });
});

test('completions of one prompt share its reading, and give what they give alone', async () => {
  const wide = smallModel(5, { layers: 2, width: 16, context: 64 });
  const draw = new Rng(8);
  const random = (length: number) => Array.from({ length }, () => draw.integer(18));
  const prompts = [random(3), random(19), random(8)];
  // Groups of three and two, one completion by itself; lengths from one token on.
  const some = [0, 0, 0, 1, 1, 2].map((prompt, i) => ({
    prompt: prompts[prompt],
    tokens: random([4, 1, 20, 7, 2, 5][i]),
  }));
  const N = 32;
  const weights = new Float32Array(6 * N);
  some.forEach(({ tokens }, row) => {
    weights.fill(1 / 39, row * N, row * N + tokens.length);
  });
  const [shared, split, apart] = await Promise.all(
    [
      { rows: 6, sequences: some },
      // A part of two completions: the group of three comes apart.
      { rows: 2, sequences: some },
      // Prompts that are equal but not the same are read for each.
      { rows: 6, sequences: some.map(({ prompt, tokens }) => ({ prompt: [...prompt], tokens })) },
    ].map(async ({ rows, sequences: own }) => {
      const size = { rows, length: 48, newTokens: N, copies: 1 };
      const ownPrograms = new TextPrograms(wide, {});
      const into = new Float32Array(wide.layout.size);
      const batch = { sequences: own, shape: size, temperature };
      const scored = await ownPrograms.score(wide.weights, batch, true);
      const { loss } = await ownPrograms.gradient(
        wide.weights,
        { batch, chosen: own.keys(), loss: cloning, columns: { weights } },
        into,
      );
      const { kl } = await ownPrograms.measure(wide.weights, { all: scored.all! }, batch);
      await ownPrograms.dispose();
      return { scored, loss, into, kl };
    }),
  );
  some.forEach(({ prompt, tokens }, row) => {
    const plain = plainLogProbs(wide, wide.weights, [...prompt, ...tokens], temperature);
    tokens.forEach((token, i) => {
      for (const { scored, kl } of [shared, split, apart]) {
        expect(scored.logProbs[row * N + i]).toBeCloseTo(plain[prompt.length - 1 + i][token], 4);
        expect(scored.all![(row * N + i) * 18 + token]).toBe(scored.logProbs[row * N + i]);
        expect(kl[row * N + i]).toBeLessThan(1e-6);
      }
    });
  });
  for (const { loss, into } of [shared, split]) {
    expect(loss).toBeCloseTo(apart.loss, 5);
    into.forEach((value, i) => {
      expect(Math.abs(value - apart.into[i])).toBeLessThan(1e-5);
    });
  }
});

test("AdamW in place is the graph's", async () => {
  const layout: Parameters = parameters([
    { name: 'w', shape: [3, 2], init: () => {}, group: 'g' },
    { name: 'b', shape: [4], init: () => {}, group: 'g' },
  ]);
  const draw = new Rng(1);
  const random = () => Float32Array.from({ length: 10 }, () => draw.normal());
  const state = { weights: random(), m: new Float32Array(10), v: new Float32Array(10) };
  const g = new Graph();
  const [weights, m, v, gradient] = ['weights', 'm', 'v', 'gradient'].map(name => g.input(name, [6]));
  const corrections = adamCorrections(g.input('step', []), { beta1: 0.8, beta2: 0.9 });
  const next = adam(
    { weights, m, v },
    { gradient, gradientScale: 0.5, learningRate: 0.1, corrections, weightDecay: 0.2 },
  );
  for (const [name, tensor] of Object.entries(next)) g.output(`new.${name}`, tensor);
  const program = await compile(g);
  let graph: Record<'weights' | 'm' | 'v', Float32Array> = {
    weights: state.weights.slice(0, 6),
    m: new Float32Array(6),
    v: new Float32Array(6),
  };
  for (let step = 1; step <= 3; step++) {
    const gradients = random();
    const bias = state.weights.slice(6);
    adamW(layout, state, {
      gradient: gradients,
      gradientScale: 0.5,
      learningRate: 0.1,
      step,
      beta1: 0.8,
      beta2: 0.9,
      weightDecay: 0.2,
    });
    const out = program.run<Record<string, Float32Array>>({
      ...graph,
      gradient: gradients.slice(0, 6),
      step: Float32Array.of(step),
    });
    graph = { weights: out['new.weights'], m: out['new.m'], v: out['new.v'] };
    graph.weights.forEach((value, i) => {
      expect(state.weights[i]).toBeCloseTo(value, 5);
    });
    // Biases do not decay: with equal gradients they would go the same way.
    expect(Array.from(state.weights.slice(6))).not.toEqual(Array.from(bias));
  }
  program.dispose();
});
