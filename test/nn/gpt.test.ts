import { beforeAll, describe, expect, it } from 'vitest';
import {
  compile,
  EngineError,
  evaluate,
  Graph,
  grad,
  logSoftmax,
  neg,
  type Program,
  reduceMean,
  type Tensor,
  takeAlong,
} from '../../src/engine/index.ts';
import { type GptOptions, gpt } from '../../src/nn/gpt.ts';
import { type Parameters, parameters } from '../../src/nn/parameters.ts';
import { Rng } from '../../src/random/index.ts';
import { derivativeAtZero, expectClose, runCompiled } from '../engine/support/check.ts';

const small: GptOptions = { vocabulary: 11, context: 7, layers: 2, width: 16, heads: 2 };
const [batch, length] = [2, 5];
const tokens = [3, 0, 10, 3, 7, 1, 1, 9, 4, 2];

function layoutOf(options: GptOptions): Parameters {
  return parameters(gpt(options).specs);
}

/** Values as large as those of a trained model: at the start attention is nearly uniform, and much would go unseen. */
function trainedLike(layout: Parameters, seed: number): Float32Array {
  const rng = new Rng(seed);
  const flat = new Float32Array(layout.size);
  const views = layout.views(flat);
  for (const { name } of layout.specs) {
    const isScale = /ln_\w+\.weight$/.test(name);
    for (let i = 0; i < views[name].length; i++)
      views[name][i] = isScale ? 1 + 0.3 * rng.normal() : 0.3 * rng.normal();
  }
  return flat;
}

function graphOf(
  options: GptOptions,
  rows = batch,
  columns = length,
): { g: Graph; flat: Tensor; logits: Tensor } {
  const model = gpt(options);
  const layout = parameters(model.specs);
  const g = new Graph();
  const flat = g.input('flat', [layout.size]);
  const logits = model.forward(layout.tensors(flat), g.input('tokens', [rows, columns], 'int64'));
  return { g, flat, logits };
}

/** GPT-2 in plain loops, one sequence at a time; logits (tokens, vocabulary). */
function referenceLogits(
  { vocabulary, layers, width, heads }: GptOptions,
  layout: Parameters,
  flat: ArrayLike<number>,
  sequence: readonly number[],
): number[][] {
  const values = Float64Array.from(flat);
  const parts = new Map(
    layout.specs.map(({ name, offset, shape }) => [
      name,
      values.subarray(offset, offset + shape.reduce((a, b) => a * b, 1)),
    ]),
  );
  const get = (name: string): Float64Array => parts.get(name)!;
  const [wte, wpe] = [get('wte.weight'), get('wpe.weight')];
  const norm = (name: string, x: number[]): number[] => {
    const [scale, bias] = [get(`${name}.weight`), get(`${name}.bias`)];
    const mean = x.reduce((a, b) => a + b) / x.length;
    const variance = x.reduce((a, b) => a + (b - mean) ** 2, 0) / x.length;
    return x.map((v, i) => ((v - mean) / Math.sqrt(variance + 1e-5)) * scale[i] + bias[i]);
  };
  const dense = (name: string, x: number[]): number[] => {
    const [weight, bias] = [get(`${name}.weight`), get(`${name}.bias`)];
    return Array.from(bias, (b, o) => x.reduce((sum, v, i) => sum + v * weight[i * bias.length + o], b));
  };
  const gelu = (x: number): number =>
    0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));

  let xs = sequence.map((token, t) =>
    Array.from({ length: width }, (_, i) => wte[token * width + i] + wpe[t * width + i]),
  );
  for (let layer = 0; layer < layers; layer++) {
    const qkv = xs.map(x => dense(`h.${layer}.attn.c_attn`, norm(`h.${layer}.ln_1`, x)));
    const size = width / heads;
    const mixed = xs.map((_, t) => {
      const out: number[] = [];
      for (let head = 0; head < heads; head++) {
        const part = (which: number, at: number, i: number): number =>
          qkv[at][which * width + head * size + i];
        const weights: number[] = [];
        for (let s = 0; s <= t; s++) {
          let score = 0;
          for (let i = 0; i < size; i++) score += part(0, t, i) * part(1, s, i);
          weights.push(Math.exp(score / Math.sqrt(size)));
        }
        const total = weights.reduce((a, b) => a + b);
        for (let i = 0; i < size; i++)
          out.push(weights.reduce((sum, w, s) => sum + (w / total) * part(2, s, i), 0));
      }
      return out;
    });
    xs = xs.map((x, t) => {
      const attended = dense(`h.${layer}.attn.c_proj`, mixed[t]);
      const middle = x.map((v, i) => v + attended[i]);
      const wide = dense(`h.${layer}.mlp.c_fc`, norm(`h.${layer}.ln_2`, middle)).map(gelu);
      const added = dense(`h.${layer}.mlp.c_proj`, wide);
      return middle.map((v, i) => v + added[i]);
    });
  }
  return xs.map(x => {
    const last = norm('ln_f', x);
    return Array.from({ length: vocabulary }, (_, token) =>
      last.reduce((sum, v, i) => sum + v * wte[token * width + i], 0),
    );
  });
}

function referenceBatch(
  options: GptOptions,
  layout: Parameters,
  flat: ArrayLike<number>,
  columns = length,
): number[] {
  const out: number[] = [];
  for (let at = 0; at < tokens.length; at += columns)
    out.push(...referenceLogits(options, layout, flat, tokens.slice(at, at + columns)).flat());
  return out;
}

describe('logits', () => {
  const layout = layoutOf(small);

  it('are those of plain loops', async () => {
    const { g, logits } = graphOf(small);
    expect(logits.shape).toEqual([batch * length, 11]);
    g.output('logits', logits);
    const flat = trainedLike(layout, 1);
    const expected = referenceBatch(small, layout, flat);
    expect(Math.max(...expected) - Math.min(...expected)).toBeGreaterThan(2);
    expectClose('float64', evaluate(g, { flat, tokens }).logits.data, expected, 1e-10);
    expectClose('float32', (await runCompiled(g, { flat, tokens })).logits, expected, 1e-4);
  });

  it.each<{ options: Partial<GptOptions>; columns: number }>([
    { options: { heads: 1 }, columns: 5 },
    { options: { heads: 16, layers: 1 }, columns: 2 },
    { options: { heads: 4, context: 10 }, columns: 10 },
    { options: { width: 1, heads: 1 }, columns: 5 },
    { options: { context: 1 }, columns: 1 },
  ])('are those of plain loops with $options and $columns tokens', async ({ options, columns }) => {
    const all = { ...small, ...options };
    const { g, logits } = graphOf(all, tokens.length / columns, columns);
    g.output('logits', logits);
    const own = layoutOf(all);
    const flat = trainedLike(own, 2);
    const expected = referenceBatch(all, own, flat, columns);
    expectClose('float64', evaluate(g, { flat, tokens }).logits.data, expected, 1e-10);
    expectClose('float32', (await runCompiled(g, { flat, tokens })).logits, expected, 1e-4);
  });
});

describe('causality', () => {
  const layout = layoutOf(small);
  const flat = trainedLike(layout, 3);
  let program: Program;
  const run = (sequence: readonly number[]): Float32Array =>
    program.run({ flat, tokens: BigInt64Array.from(sequence, BigInt) }).logits as Float32Array;
  beforeAll(async () => {
    const { g, logits } = graphOf(small);
    g.output('logits', logits);
    program = await compile(g);
    return () => program.dispose();
  });

  it('a token changes what follows it, and nothing before it or in other sequences', () => {
    const before = run(tokens);
    for (let at = 0; at < tokens.length; at++) {
      const after = run(tokens.with(at, (tokens[at] + 5) % 11));
      for (let row = 0; row < tokens.length; row++) {
        const same = before
          .subarray(row * 11, row * 11 + 11)
          .every((v, i) => Object.is(v, after[row * 11 + i]));
        const follows = Math.floor(row / length) === Math.floor(at / length) && row >= at;
        expect(same, `token ${at} changed, row ${row}`).toBe(!follows);
      }
    }
  });

  it('position counts: the same token in another place has other logits', () => {
    const out = run(Array(10).fill(4));
    expect(Array.from(out.subarray(0, 11))).not.toEqual(Array.from(out.subarray(11, 22)));
    expect(Array.from(out.subarray(0, 55))).toEqual(Array.from(out.subarray(55)));
  });

  it('a token outside of the vocabulary is an error', () => {
    expect(() => run(tokens.with(0, 11))).toThrow(EngineError);
  });
});

describe('derivatives of the cross-entropy', () => {
  it('are those of finite differences, also where weights serve both ends', async () => {
    const layout = layoutOf(small);
    const { g, flat: parametersIn, logits } = graphOf(small);
    const targets = [...tokens.slice(1), 5];
    const picked = takeAlong(logSoftmax(logits), g.input('targets', [batch * length, 1], 'int64'), 1);
    const loss = neg(reduceMean(picked));
    g.output('loss', loss);
    g.output('gradient', grad(loss, [parametersIn])[0]);
    const flat = trainedLike(layout, 4);
    const feeds = { flat, tokens, targets };
    const exact = evaluate(g, feeds);
    const rounded = await runCompiled(g, feeds);
    const largest = exact.gradient.data.reduce((a, v) => Math.max(a, Math.abs(v)), 0);
    expectClose('compiled', rounded.gradient, exact.gradient.data, 1e-5, largest);

    const lossAt = (values: ArrayLike<number>): number => {
      const rows = referenceBatch(small, layout, values);
      return (
        targets.reduce((sum, target, r) => {
          const row = rows.slice(r * 11, r * 11 + 11);
          return sum + Math.log(row.reduce((a, v) => a + Math.exp(v), 0)) - row[target];
        }, 0) / targets.length
      );
    };
    expectClose('loss', exact.loss.data, [lossAt(flat)], 1e-11);

    const at = (name: string, index: number): number => {
      const { offset, shape } = layout.specs.find(s => s.name === name)!;
      return offset + (index % shape.reduce((a, b) => a * b, 1));
    };
    const places = [
      // Token 3 is read twice and is a target; 6 is neither: only the output end sees it; 5 is a target only.
      ...[3, 6, 5, 10].flatMap(token => [at('wte.weight', token * 16), at('wte.weight', token * 16 + 9)]),
      // Position 6 is beyond the tokens.
      ...[0, 4, 6].map(position => at('wpe.weight', position * 16 + 2)),
      // A few values of every other tensor.
      ...layout.specs.slice(2).flatMap(({ name }) => [at(name, 5), at(name, 777)]),
    ];
    const values = Float64Array.from(flat);
    for (const place of places) {
      const { value } = derivativeAtZero(t => lossAt(values.with(place, values[place] + t)));
      const found = exact.gradient.data[place];
      expect(Math.abs(found - value), `at ${place}: ${found} instead of ${value}`).toBeLessThan(1e-8);
    }
    expect(exact.gradient.data[at('wte.weight', 6 * 16)]).not.toBe(0);
    expect(exact.gradient.data[at('wpe.weight', 6 * 16 + 2)]).toBe(0);
  });
});

describe('specs', () => {
  it.each<GptOptions>([
    small,
    { vocabulary: 7, context: 3, layers: 1, width: 4, heads: 4 },
    // GPT-2 small, 124 million.
    { vocabulary: 50257, context: 1024, layers: 12, width: 768, heads: 12 },
  ])('of %j are as many as the formula says', options => {
    const { vocabulary, context, layers, width } = options;
    const size = gpt(options).specs.reduce((sum, { shape }) => sum + shape.reduce((a, b) => a * b, 1), 0);
    expect(size).toBe(
      vocabulary * width + context * width + layers * (12 * width ** 2 + 13 * width) + 2 * width,
    );
    if (layers === 12) expect(size).toBe(124_439_808);
  });

  it('have the names and shapes of the published files', () => {
    const { specs } = gpt({ ...small, layers: 1 });
    expect(Object.fromEntries(specs.map(({ name, shape }) => [name, shape]))).toEqual({
      'wte.weight': [11, 16],
      'wpe.weight': [7, 16],
      'h.0.ln_1.weight': [16],
      'h.0.ln_1.bias': [16],
      'h.0.attn.c_attn.weight': [16, 48],
      'h.0.attn.c_attn.bias': [48],
      'h.0.attn.c_proj.weight': [16, 16],
      'h.0.attn.c_proj.bias': [16],
      'h.0.ln_2.weight': [16],
      'h.0.ln_2.bias': [16],
      'h.0.mlp.c_fc.weight': [16, 64],
      'h.0.mlp.c_fc.bias': [64],
      'h.0.mlp.c_proj.weight': [64, 16],
      'h.0.mlp.c_proj.bias': [16],
      'ln_f.weight': [16],
      'ln_f.bias': [16],
    });
  });

  it('start as GPT-2 does: narrow weights, narrower into the residual stream', () => {
    const options = { vocabulary: 300, context: 100, layers: 2, width: 64, heads: 2 };
    const layout = layoutOf(options);
    const views = layout.views(layout.initialise(new Rng(1)));
    for (const { name } of layout.specs) {
      const values = Array.from(views[name]);
      if (name.endsWith('bias')) expect(values.every(v => v === 0)).toBe(true);
      else if (name.includes('ln_')) expect(values.every(v => v === 1)).toBe(true);
      else {
        const std = Math.sqrt(values.reduce((sum, v) => sum + v * v, 0) / values.length);
        const wanted = name === 'wpe.weight' ? 0.01 : name.includes('c_proj') ? 0.02 / Math.sqrt(4) : 0.02;
        expect(std / wanted, name).toBeGreaterThan(0.95);
        expect(std / wanted, name).toBeLessThan(1.05);
      }
    }
  });
});

describe('what is refused', () => {
  it('a width that the heads do not divide', () => {
    expect(() => gpt({ ...small, heads: 3 })).toThrow(RangeError);
    expect(() => gpt({ ...small, heads: 3 })).toThrow(
      'gpt: width 16 does not divide into 3 heads: use a multiple of 3',
    );
  });

  it.each(
    (['vocabulary', 'context', 'layers', 'width', 'heads'] as const).flatMap(name =>
      [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY].map(value => ({ name, value })),
    ),
  )('$name $value', ({ name, value }) => {
    expect(() => gpt({ ...small, [name]: value })).toThrow(RangeError);
    expect(() => gpt({ ...small, [name]: value })).toThrow(
      `gpt: ${name} is ${value}: a whole number of at least 1 is needed`,
    );
  });

  it('more tokens than the context holds', () => {
    expect(() => graphOf(small, 1, 7)).not.toThrow();
    expect(() => graphOf(small, 1, 8)).toThrow(RangeError);
    expect(() => graphOf(small, 1, 8)).toThrow('gpt: 8 tokens, but the context holds 7: cut them');
  });

  it('tokens that are not integers', () => {
    const model = gpt(small);
    const layout = parameters(model.specs);
    const g = new Graph();
    const weights = layout.tensors(g.input('flat', [layout.size]));
    expect(() => model.forward(weights, g.input('tokens', [2, 5]))).toThrow(EngineError);
    expect(() => model.forward(weights, g.input('more', [2, 5]))).toThrow(/float32.*int64/);
  });

  it.each(['vocabulary', 'context', 'layers', 'width', 'heads'])('options without %s', name => {
    const { [name as keyof GptOptions]: _, ...rest } = small;
    expect(() => gpt(rest as GptOptions)).toThrow(new RegExp(`gpt: ${name} is undefined`));
  });

  it('options that there are not', () => {
    expect(() => gpt({ ...small, dropout: 1 } as GptOptions)).toThrow(/dropout/);
  });

  it.each([[[10]], [[2, 5, 1]]])('tokens of the shape %j, with what is needed', shape => {
    const model = gpt(small);
    const layout = parameters(model.specs);
    const g = new Graph();
    const weights = layout.tensors(g.input('flat', [layout.size]));
    expect(() => model.forward(weights, g.input('tokens', shape, 'int64'))).toThrow(
      /gpt: .*\(batch, tokens\)/,
    );
  });
});
