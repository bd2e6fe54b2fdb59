/** A scorer that computes something else than the sampler did, in each of the ways that have happened elsewhere. */
import { expect, test } from 'vitest';
import { compareSampler, likelyCause, refuseMismatch } from '../../../src/algos/grpo/sampler-gap.ts';
import { TextPrograms } from '../../../src/algos/text/programs.ts';
import { Decoder, generate, shapeFor } from '../../../src/lm/index.ts';
import { Rng } from '../../../src/random/index.ts';
import { smallModel } from '../../lm/support.ts';

const model = smallModel();
const prompts = [[0, 3, 4], [0, 5, 6, 7], [0]];
const temperature = 0.8;
const decoder = new Decoder(model);
const completions = await generate(model, decoder, model.weights, {
  prompts,
  copies: 8,
  maxNewTokens: 12,
  temperature,
  topK: 8,
  topP: 0.95,
  stop: [],
  rng: new Rng(1),
});
await decoder.dispose();
const programs = new TextPrograms(model, {});

/** What a scorer with these weights, temperature and tokens makes of it. */
async function scoredWith({
  weights = model.weights,
  at = temperature,
  tokensOf = (tokens: readonly number[]) => tokens,
}: {
  weights?: Float32Array;
  at?: number;
  tokensOf?: (tokens: readonly number[]) => readonly number[];
}) {
  const sequences = completions.map(({ prompt, tokens }) => ({
    prompt: prompts[prompt],
    tokens: tokensOf(tokens),
  }));
  const shape = shapeFor(sequences, 8, model.options.context);
  const { logProbs } = await programs.score(weights, { sequences, shape, temperature: at }, false);
  const gap = compareSampler({ completions }, logProbs, shape.newTokens);
  return { gap, logProbs, newTokens: shape.newTokens };
}

test('the same weights, temperature and tokens agree, truncation and all', async () => {
  const { gap, logProbs, newTokens } = await scoredWith({});
  expect(gap.kl).toBeLessThan(1e-9);
  expect(gap.ratioMean).toBeCloseTo(1, 5);
  expect(() => refuseMismatch(gap, { completions }, logProbs, newTokens)).not.toThrow();
});

const rng = new Rng(7);
test.each([
  ['temperature', { at: 1.1 }],
  ['temperature', { at: 0.6 }],
  // bfloat16, which keeps eight bits.
  [
    'precision',
    {
      weights: model.weights.map(w => {
        const unit = 2 ** (Math.floor(Math.log2(Math.abs(w) || 1)) - 7);
        return Math.round(w / unit) * unit;
      }),
    },
  ],
  ['dropout', { weights: model.weights.map(w => (rng.uniform() < 0.1 ? 0 : w / 0.9)) }],
  // From the fifth token on the text was cut otherwise.
  [
    're-tokenised text',
    { tokensOf: (tokens: readonly number[]) => tokens.map((t, i) => (i < 4 ? t : ((t + 5) % 16) + 2)) },
  ],
])('%s in one of them: refused, and said', async (cause, change) => {
  const { gap, logProbs, newTokens } = await scoredWith(change);
  expect(likelyCause({ completions }, logProbs, newTokens)).toMatch(new RegExp(`^${cause} is the likeliest`));
  expect(() => refuseMismatch(gap, { completions }, logProbs, newTokens)).toThrow(
    new RegExp(`which must be 0: .*${cause} is the likeliest`),
  );
});

test('one token far off is enough, and so is a little at every token', () => {
  const refuse = (kl: number, logProbDiffMax: number) => () =>
    refuseMismatch(
      { kl, logProbDiff: 0, logProbDiffMax, ratioMean: 1 },
      { completions: [] },
      new Float32Array(0),
      1,
    );
  expect(refuse(1e-9, 1e-4)).not.toThrow();
  expect(refuse(1e-9, 2e-3)).toThrow(/sampler and scorer differ/);
  expect(refuse(2e-8, 1e-4)).toThrow(/sampler and scorer differ/);
  expect(refuse(Number.NaN, Number.NaN)).toThrow(/sampler and scorer differ/);
});
