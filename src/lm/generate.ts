/**
 * Completions of prompts: batched, with a cache, and with the log-probability of every token under the distribution that
 * it was drawn from. Tokens are kept as they were drawn: nothing is decoded and encoded again.
 */
import type { Rng } from '../random/rng.ts';
import type { Decoder, Sequences } from './decoder.ts';
import { fail } from './errors.ts';
import type { LanguageModel } from './model.ts';
import { NO_TEXT } from './tokenizer.ts';
import { type SamplingOptions, TokenDrawer } from './truncation.ts';

/** Why a completion ended: an end token, a stop string, its length, or its distance from the reference. */
export type CompletionEnd = 'end' | 'stop' | 'length' | 'kl';

/** What a model wrote after a prompt. */
export interface Completion {
  /** Which of the prompts it continues. */
  readonly prompt: number;
  /** As drawn, the end token included. */
  readonly tokens: readonly number[];
  /** Of each token, after temperature and truncation. */
  readonly logProbs: readonly number[];
  /** What truncation kept at each token, as a log of probability. */
  readonly logKept: readonly number[];
  readonly end: CompletionEnd;
  /** Without the end token, and up to a stop string. */
  readonly text: string;
}

/** What to complete, how often, and when to stop. */
export interface GenerateOptions extends SamplingOptions {
  readonly prompts: readonly (readonly number[])[];
  /** Completions of each prompt. */
  readonly copies: number;
  readonly maxNewTokens: number;
  readonly stop: readonly string[];
  readonly rng: Rng;
  /** Ends a completion whose summed KL to a reference passes `cap`, with a decoder and weights of the reference. */
  readonly klCap?: { readonly cap: number; readonly decoder: Decoder; readonly weights: Float32Array };
}

/** A character of UTF-8 has at most so many bytes, and a token has at least one. */
const CHARACTER_BYTES = 4;

/** Draws completions; those of prompt `p` are at p·copies and after. */
export async function generate(
  model: Pick<LanguageModel, 'options' | 'tokenizer'>,
  decoder: Decoder,
  weights: Float32Array,
  options: GenerateOptions,
): Promise<Completion[]> {
  const { prompts, copies, maxNewTokens, stop, rng, klCap } = options;
  checkSampling(options);
  const { tokenizer } = model;
  const { vocabulary } = model.options;
  const drawer = new TokenDrawer(vocabulary);
  const drafts = Array.from({ length: prompts.length * copies }, (_, i) => ({
    prompt: Math.floor(i / copies),
    tokens: [] as number[],
    logProbs: [] as number[],
    logKept: [] as number[],
    end: undefined as CompletionEnd | undefined,
    tail: '',
    /** Tokens that are not yet a whole character. */
    part: [] as number[],
    kl: 0,
  }));
  const tailLength = stop.reduce((most, text) => Math.max(most, text.length), 0);
  const started = await decoder.start(weights, prompts, copies, maxNewTokens);
  const referred = klCap && (await klCap.decoder.start(klCap.weights, prompts, copies, maxNewTokens));
  const { sequences } = started;
  let [logits, referenceLogits] = [started.logits, referred?.logits];
  // What follows a prompt is the same for all its copies.
  let rowOf = (slot: number): number => Math.floor(slot / copies);
  let next = new Int32Array(sequences.slots);
  for (let step = 0; step < maxNewTokens; step++) {
    let living = 0;
    for (let slot = 0; slot < sequences.slots; slot++) {
      const sequence = sequences.inSlot[slot];
      if (sequence < 0) continue;
      const draft = drafts[sequence];
      const at = rowOf(slot) * vocabulary;
      const { token, logProb, logKept } = drawer.from(logits, at, options, rng.uniform());
      draft.tokens.push(token);
      draft.logProbs.push(logProb);
      draft.logKept.push(logKept);
      next[slot] = token;
      if (klCap && referenceLogits)
        draft.kl += rowKl(logits, referenceLogits, at, vocabulary, options.temperature);
      if (token === tokenizer.end) draft.end = 'end';
      else if (tailLength > 0) {
        draft.part.push(token);
        const piece = draft.part.length === 1 ? tokenizer.piece(token) : tokenizer.decode(draft.part);
        if (!piece.endsWith(NO_TEXT) || draft.part.length === CHARACTER_BYTES) {
          draft.part = [];
          draft.tail += piece;
          if (stop.some(text => draft.tail.includes(text))) draft.end = 'stop';
          draft.tail = draft.tail.slice(-tailLength);
        }
      }
      if (draft.end === undefined && klCap && draft.kl > klCap.cap) draft.end = 'kl';
      if (draft.end === undefined && step === maxNewTokens - 1) draft.end = 'length';
      if (draft.end === undefined) living++;
      else {
        sequences.inSlot[slot] = -1;
        if (referred) referred.sequences.inSlot[slot] = -1;
      }
    }
    if (living === 0) break;
    next = moved(next, sequences, referred?.sequences);
    rowOf = slot => slot;
    logits = await sequences.step(next);
    if (referred) referenceLogits = await referred.sequences.step(next);
  }
  return drafts.map(({ prompt, tokens, logProbs, logKept, end }) => ({
    prompt,
    tokens,
    logProbs,
    logKept,
    end: end ?? 'length',
    text: upToStop(tokenizer.decode(tokens), stop),
  }));
}

/** The tokens to go on with, after the living have moved together. */
function moved(
  next: Int32Array,
  sequences: Sequences,
  others: Sequences | undefined,
): Int32Array<ArrayBuffer> {
  const from = sequences.compact();
  others?.compact();
  return from ? from.map(slot => (slot < 0 ? 0 : next[slot])) : Int32Array.from(next);
}

/** Exact KL(policy ‖ reference) of the next token. */
function rowKl(p: Float32Array, q: Float32Array, at: number, size: number, temperature: number): number {
  const inverse = 1 / (temperature === 0 ? 1 : temperature);
  const [sumP, sumQ] = [logSum(p, at, size, inverse), logSum(q, at, size, inverse)];
  let kl = 0;
  for (let i = at; i < at + size; i++) {
    const logP = p[i] * inverse - sumP;
    kl += Math.exp(logP) * (logP - (q[i] * inverse - sumQ));
  }
  return kl;
}

function logSum(logits: Float32Array, at: number, size: number, inverse: number): number {
  let largest = Number.NEGATIVE_INFINITY;
  for (let i = at; i < at + size; i++) if (logits[i] > largest) largest = logits[i];
  let sum = 0;
  for (let i = at; i < at + size; i++) sum += Math.exp((logits[i] - largest) * inverse);
  return largest * inverse + Math.log(sum);
}

/** A text before the first of the stop strings in it. */
export function upToStop(text: string, stop: readonly string[]): string {
  let end = text.length;
  for (const word of stop) {
    const at = text.indexOf(word);
    if (at >= 0 && at < end) end = at;
  }
  return text.slice(0, end);
}

function checkSampling({
  temperature,
  topK,
  topP,
  copies,
  maxNewTokens,
  stop,
  prompts,
}: GenerateOptions): void {
  if (!(temperature >= 0 && temperature <= 100))
    fail(`temperature ${temperature}: use a number from 0 to 100`);
  if (!Number.isInteger(topK) || topK < 0) fail(`topK ${topK}: use a whole number from 0, which is all`);
  if (!(topP > 0 && topP <= 1)) fail(`topP ${topP}: use a number above 0 and up to 1, which is all`);
  if (!Number.isInteger(copies) || copies < 1) fail(`copies ${copies}: use a whole number from 1`);
  if (!Number.isInteger(maxNewTokens) || maxNewTokens < 1)
    fail(`maxNewTokens ${maxNewTokens}: use a whole number from 1`);
  if (stop.includes('')) fail('a stop string is empty: leave it out');
  if (prompts.length === 0) fail('generate: there are no prompts: give at least one');
}
