import { afterAll, expect, test } from 'vitest';
import {
  Decoder,
  generate,
  languageModel,
  TokenDrawer,
  tokenizerFrom,
  upToStop,
} from '../../src/lm/index.ts';
import { Rng } from '../../src/random/index.ts';
import { plainLogProbs, smallModel } from './support.ts';

const model = smallModel();
const decoder = new Decoder(model);
afterAll(() => decoder.dispose());
const prompts = [[0, 3, 4], [0, 5, 6, 7, 8, 9, 2, 3], [0]];
const plain = {
  temperature: 1,
  topK: 0,
  topP: 1,
  stop: [] as string[],
  copies: 6,
  maxNewTokens: 12,
  prompts,
};

test('every token has the log-probability that plain float64 loops give it, after temperature and truncation', async () => {
  for (const sampling of [
    { temperature: 0.7, topK: 0, topP: 1 },
    { temperature: 1.3, topK: 5, topP: 0.8 },
  ]) {
    const completions = await generate(model, decoder, model.weights, {
      ...plain,
      ...sampling,
      rng: new Rng(7),
    });
    expect(completions).toHaveLength(18);
    let worst = 0;
    for (const { prompt, tokens, logProbs, logKept } of completions) {
      const sequence = [...prompts[prompt], ...tokens];
      const expected = plainLogProbs(model, model.weights, sequence, sampling.temperature);
      tokens.forEach((token, i) => {
        const row = expected[prompts[prompt].length - 1 + i];
        // The kept set, found by sorting everything.
        const order = Array.from(row.keys())
          .sort((a, b) => row[b] - row[a])
          .slice(0, sampling.topK || undefined);
        const mass = order.reduce((sum, id) => sum + Math.exp(row[id]), 0);
        let sum = 0;
        const kept = order.filter(id => {
          const before = sum;
          sum += Math.exp(row[id]);
          return before < sampling.topP * mass;
        });
        const keptMass = kept.reduce((total, id) => total + Math.exp(row[id]), 0);
        expect(kept).toContain(token);
        worst = Math.max(worst, Math.abs(logProbs[i] - (row[token] - Math.log(keptMass))));
        worst = Math.max(worst, Math.abs(logKept[i] - Math.log(keptMass)));
      });
    }
    expect(worst).toBeLessThan(1e-4);
  }
});

test('the same seed gives the same tokens; the most likely ones need no chance', async () => {
  const run = (seed: number, temperature: number) =>
    generate(model, decoder, model.weights, { ...plain, temperature, rng: new Rng(seed) });
  const [a, b, c] = [await run(1, 1), await run(1, 1), await run(2, 1)];
  expect(a).toEqual(b);
  expect(a).not.toEqual(c);
  const [greedy] = await run(1, 0);
  const row = plainLogProbs(model, model.weights, prompts[0]).at(-1)!;
  expect(greedy.tokens[0]).toBe(row.indexOf(Math.max(...row)));
  expect(await run(1, 0)).toEqual(await run(9, 0));
});

test('completions end at the end token, a stop string or the limit, and say so', async () => {
  const all = await generate(model, decoder, model.weights, {
    ...plain,
    copies: 32,
    stop: ['ab', 'c'],
    rng: new Rng(3),
  });
  const ends = new Set(all.map(({ end }) => end));
  expect(ends).toEqual(new Set(['end', 'stop', 'length']));
  for (const { tokens, end, text } of all) {
    const whole = model.tokenizer.decode(tokens);
    if (end === 'end') expect(tokens.at(-1)).toBe(model.tokenizer.end);
    if (end === 'length') expect(tokens).toHaveLength(12);
    if (end === 'stop') expect(whole.endsWith('ab') || whole.endsWith('c')).toBe(true);
    else expect(whole).not.toMatch(/ab|c/);
    expect(text).toBe(upToStop(whole, ['ab', 'c']));
    expect(text).not.toMatch(/ab|c/);
  }
  // A stop string of two tokens is among them.
  expect(all.some(({ tokens }) => model.tokenizer.decode(tokens).endsWith('ab'))).toBe(true);
});

test('a text ends before the first of its stop strings, in whatever order they are named', () => {
  for (const stop of [
    ['ab', 'c'],
    ['c', 'ab'],
  ]) {
    expect(upToStop('xaby c', stop)).toBe('x');
    expect(upToStop('xcab', stop)).toBe('x');
    expect(upToStop('none', stop)).toBe('none');
  }
});

test.each([1, 0.5, 2])('a KL cap is of what is drawn from, at temperature %d', async temperature => {
  const other = smallModel(2);
  const reference = new Decoder(other);
  const cap = 1 / temperature;
  const capped = await generate(model, decoder, model.weights, {
    ...plain,
    temperature,
    rng: new Rng(3),
    klCap: { cap, decoder: reference, weights: other.weights },
  });
  await reference.dispose();
  for (const { prompt, tokens, end } of capped) {
    const [mine, theirs] = [model, other].map(m =>
      plainLogProbs(m, m.weights, [...prompts[prompt], ...tokens], temperature),
    );
    const kls = tokens.map((_, i) => {
      const at = prompts[prompt].length - 1 + i;
      return mine[at].reduce((sum, p, id) => sum + Math.exp(p) * (p - theirs[at][id]), 0);
    });
    const total = kls.reduce((a, b) => a + b);
    if (end === 'kl') expect(total).toBeGreaterThan(cap - 1e-4);
    expect(total - kls.at(-1)!).toBeLessThan(cap + 1e-4);
  }
  expect(capped.some(({ end }) => end === 'kl')).toBe(true);
});

test('a stop string whose characters are several tokens each ends a completion', async () => {
  // The two bytes of é, as GPT-2's files spell them.
  const tokens = ['Ã', '©', 'a', '<|endoftext|>'];
  const bytes = tokenizerFrom(
    {
      version: '1.0',
      normalizer: null,
      post_processor: null,
      added_tokens: [{ id: 3, content: '<|endoftext|>', special: true }],
      pre_tokenizer: { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true },
      decoder: { type: 'ByteLevel', add_prefix_space: true, trim_offsets: true },
      model: { type: 'BPE', vocab: Object.fromEntries(tokens.map((token, id) => [token, id])), merges: [] },
    },
    'test',
  );
  const own = languageModel({ vocabulary: 4, context: 24, layers: 1, width: 8, heads: 1 }, bytes, {
    rng: new Rng(1),
  });
  const ownDecoder = new Decoder(own);
  const all = await generate(own, ownDecoder, own.weights, {
    ...plain,
    prompts: [[3]],
    copies: 32,
    stop: ['é'],
    rng: new Rng(5),
  });
  await ownDecoder.dispose();
  expect(all.some(({ end }) => end === 'stop')).toBe(true);
  for (const { tokens: drawn, end, text } of all) {
    expect(bytes.decode(drawn).indexOf('é')).toBe(end === 'stop' ? text.length : -1);
    if (end === 'stop') expect(drawn.slice(-2)).toEqual([0, 1]);
  }
});

test('what cannot be is refused: a context that overflows, empty prompts, wrong options, weights that are not numbers', async () => {
  const run = (options: object, weights = model.weights) =>
    generate(model, decoder, weights, { ...plain, rng: new Rng(1), ...options });
  await expect(run({ maxNewTokens: 17 })).rejects.toThrow(
    /8 tokens with 17 new ones does not fit the context of 24/,
  );
  await expect(run({ prompts: [[]] })).rejects.toThrow(/a prompt has no tokens/);
  await expect(run({ topP: 0 })).rejects.toThrow(/topP 0/);
  await expect(run({ temperature: Number.NaN })).rejects.toThrow(/temperature NaN/);
  await expect(run({ stop: [''] })).rejects.toThrow(/a stop string is empty/);
  await expect(
    run(
      {},
      model.weights.map(() => Number.NaN),
    ),
  ).rejects.toThrow(/logits that are not finite/);
});

test('a draw from known probabilities: frequencies, and only what is kept', () => {
  const probabilities = [0.5, 0.25, 0.15, 0.1];
  const logits = Float32Array.from(probabilities, Math.log);
  const drawer = new TokenDrawer(4);
  const rng = new Rng(5);
  const frequencies = (options: { topK: number; topP: number }): number[] => {
    const counts = [0, 0, 0, 0];
    for (let i = 0; i < 20_000; i++)
      counts[drawer.from(logits, 0, { temperature: 1, ...options }, rng.uniform()).token]++;
    return counts.map(n => n / 20_000);
  };
  frequencies({ topK: 0, topP: 1 }).forEach((f, i) => {
    expect(Math.abs(f - probabilities[i])).toBeLessThan(0.015);
  });
  expect(frequencies({ topK: 2, topP: 1 }).slice(2)).toEqual([0, 0]);
  expect(frequencies({ topK: 0, topP: 0.5 })).toEqual([1, 0, 0, 0]);
  expect(frequencies({ topK: 0, topP: 0.76 })[3]).toBe(0);
  const { logProb, logKept } = drawer.from(logits, 0, { temperature: 1, topK: 2, topP: 1 }, 0);
  expect(logProb).toBeCloseTo(Math.log(2 / 3), 6);
  expect(logKept).toBeCloseTo(Math.log(0.75), 6);
});

test('top-p keeps no more than it must: a share that the likeliest have exactly is enough', () => {
  // Weights of exactly 1, 1/2 and 1/2.
  const temperature = 1 / Math.LN2;
  const logits = Float32Array.of(0, -1, -1);
  const drawer = new TokenDrawer(3);
  for (const uniform of [0, 0.6, 0.99])
    expect(drawer.from(logits, 0, { temperature, topK: 0, topP: 0.5 }, uniform)).toEqual({
      token: 0,
      logProb: 0,
      logKept: Math.log(0.5),
    });
  // A little more takes the next two, which are equally likely.
  expect(drawer.from(logits, 0, { temperature, topK: 0, topP: 0.51 }, 0.99).token).toBe(2);
});
