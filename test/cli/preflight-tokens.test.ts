import { expect, test } from 'vitest';
import { namelessTokens, retokenised } from '../../src/algos/grpo/preflight.ts';
import { languageModel, ownTokenizer } from '../../src/lm/index.ts';
import { Rng } from '../../src/random/index.ts';

/** 26 letters, the end and the unknown token, in a vocabulary of any size. */
const modelWith = (vocabulary: number) =>
  languageModel(
    { vocabulary, context: 8, layers: 1, width: 4, heads: 1 },
    ownTokenizer('abcdefghijklmnopqrstuvwxyz'),
    { rng: new Rng(1) },
  );

test('padding to a round number is nothing to speak of; the tokenizer of a smaller model is', () => {
  expect(namelessTokens(modelWith(28))).toEqual([]);
  expect(namelessTokens(modelWith(128))).toEqual([]);
  expect(namelessTokens(modelWith(5028))).toEqual([
    "5,000 of the vocabulary's 5,028 tokens have no text: is it the tokenizer that the model was trained with?",
  ]);
});

// A fault that was here: preflight of random weights failed at the first completion with a token that has no text.
test('completions with tokens that cannot be encoded again are counted, not an error', () => {
  const model = modelWith(1000);
  const { tokenizer } = model;
  const unknown = tokenizer.piece(1);
  const nameless = tokenizer.piece(999);
  const of = (...tokens: string[]) => ({ text: tokens.join(''), tokens });
  expect(() => tokenizer.encode(unknown)).toThrow();
  expect(retokenised(model, [of('a', 'b'), of('c')])).toEqual([]);
  expect(retokenised(model, [of('a', unknown), of('a', nameless), of('b')])).toEqual([
    expect.stringMatching(/^2 of 3 completions have other tokens when encoded again/),
  ]);
});
