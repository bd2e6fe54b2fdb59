/** Small models, and GPT-2 in plain float64 loops to compare them with. */
import { type LanguageModel, languageModel, ownTokenizer } from '../../src/lm/index.ts';
import type { GptOptions } from '../../src/nn/index.ts';
import { Rng } from '../../src/random/index.ts';

const LETTERS = 'abcdefghijklmnop';

/** A model with weights as large as those of a trained one: at the start attention is nearly uniform. */
export function smallModel(seed = 1, options: Partial<GptOptions> = {}): LanguageModel {
  const tokenizer = ownTokenizer(LETTERS);
  const model = languageModel(
    { vocabulary: tokenizer.size, context: 24, layers: 2, width: 16, heads: 2, ...options },
    tokenizer,
    { rng: new Rng(seed) },
  );
  const rng = new Rng(seed + 100);
  const views = model.layout.views(model.weights);
  for (const { name } of model.layout.specs) {
    const centre = /ln_\w+\.weight$/.test(name) ? 1 : 0;
    for (let i = 0; i < views[name].length; i++) views[name][i] = centre + 0.25 * rng.normal();
  }
  return model;
}

/** Log-probabilities of what follows each token: GPT-2 one sequence at a time, in float64, written for this test alone. */
export function plainLogProbs(
  { options, layout }: Pick<LanguageModel, 'options' | 'layout'>,
  weights: ArrayLike<number>,
  sequence: readonly number[],
  temperature = 1,
): Float64Array[] {
  const { layers, width, heads, vocabulary, normEpsilon = 1e-5 } = options;
  const at = new Map(layout.specs.map(({ name, offset }) => [name, offset]));
  const get = (name: string, i: number): number => weights[at.get(name)! + i];
  const norm = (name: string, x: Float64Array): Float64Array => {
    let [mean, variance] = [0, 0];
    for (const value of x) mean += value / width;
    for (const value of x) variance += (value - mean) ** 2 / width;
    return x.map(
      (v, i) =>
        ((v - mean) / Math.sqrt(variance + normEpsilon)) * get(`${name}.weight`, i) + get(`${name}.bias`, i),
    );
  };
  const dense = (name: string, x: Float64Array, outputs: number): Float64Array => {
    const [weight, bias] = [at.get(`${name}.weight`)!, at.get(`${name}.bias`)!];
    return Float64Array.from({ length: outputs }, (_, o) => {
      let sum = weights[bias + o];
      for (let i = 0; i < x.length; i++) sum += x[i] * weights[weight + i * outputs + o];
      return sum;
    });
  };
  const gelu = (x: number): number =>
    0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));
  const plus = (a: Float64Array, b: Float64Array): Float64Array => a.map((v, i) => v + b[i]);
  const size = width / heads;
  let xs: Float64Array[] = sequence.map((token, t) =>
    Float64Array.from(
      { length: width },
      (_, i) => get('wte.weight', token * width + i) + get('wpe.weight', t * width + i),
    ),
  );
  for (let layer = 0; layer < layers; layer++) {
    const qkv = xs.map(x => dense(`h.${layer}.attn.c_attn`, norm(`h.${layer}.ln_1`, x), 3 * width));
    xs = xs.map((x, t) => {
      const mixed = new Float64Array(width);
      for (let h = 0; h < heads; h++) {
        const scores = Array.from({ length: t + 1 }, (_, s) => {
          let dot = 0;
          for (let i = 0; i < size; i++) dot += qkv[t][h * size + i] * qkv[s][width + h * size + i];
          return Math.exp(dot / Math.sqrt(size));
        });
        const total = scores.reduce((a, b) => a + b);
        for (let s = 0; s <= t; s++)
          for (let i = 0; i < size; i++)
            mixed[h * size + i] += (scores[s] / total) * qkv[s][2 * width + h * size + i];
      }
      const middle = plus(x, dense(`h.${layer}.attn.c_proj`, mixed, width));
      const wide = dense(`h.${layer}.mlp.c_fc`, norm(`h.${layer}.ln_2`, middle), 4 * width).map(gelu);
      return plus(middle, dense(`h.${layer}.mlp.c_proj`, wide, width));
    });
  }
  return xs.map(x => {
    const last = norm('ln_f', x);
    const logits = Float64Array.from({ length: vocabulary }, (_, token) => {
      let sum = 0;
      const row = at.get('wte.weight')! + token * width;
      for (let i = 0; i < width; i++) sum += last[i] * weights[row + i];
      return sum / temperature;
    });
    const largest = Math.max(...logits);
    const total = logits.reduce((sum, v) => sum + Math.exp(v - largest), 0);
    return logits.map(v => v - largest - Math.log(total));
  });
}
