/**
 * A language so small that every expectation is a sum: four tokens, of which 0 ends, at most three of them, and logits for each
 * of the 13 contexts. Exact gradients of KLs in those logits, in float64, by formulas that share nothing with the engine.
 */
import { Rng } from '../../src/random/index.ts';

export const VOCABULARY = 4;
export const MOST_TOKENS = 3;
/** Contexts: none, each of three tokens, each pair of them. */
export const CONTEXTS = 13;
export const SIZE = CONTEXTS * VOCABULARY;

/** Logits (CONTEXTS, VOCABULARY). */
export type Table = Float32Array;

/** A whole completion: its tokens and the context that each was drawn in. */
export interface Completion {
  readonly tokens: readonly number[];
  readonly contexts: readonly number[];
}

/** The context after one more token; undefined where the completion ends with it. */
function after(context: number, token: number): number | undefined {
  if (token === 0 || context > 3) return undefined;
  return context === 0 ? token : 4 + (context - 1) * 3 + (token - 1);
}

/** All of them: 40, of one to three tokens. */
export const completions: readonly Completion[] = (function all(
  tokens: number[],
  contexts: number[],
): Completion[] {
  return Array.from({ length: VOCABULARY }, (_, token) => {
    const next = after(contexts.at(-1)!, token);
    const longer = [...tokens, token];
    return next === undefined ? [{ tokens: longer, contexts }] : all(longer, [...contexts, next]);
  }).flat();
})([], [0]);

/** A policy, what it is to stay near, and a policy of a few updates ago. */
export interface Tables {
  readonly policy: Table;
  readonly reference: Table;
  readonly older: Table;
}

export function drawTables(seed: number): Tables {
  const rng = new Rng(seed);
  const near = (table: Table, by: number): Table => table.map(value => value + by * rng.normal());
  const policy = near(new Float32Array(SIZE), 1);
  return { policy, reference: near(policy, 0.8), older: near(policy, 0.3) };
}

/** Log-probabilities (CONTEXTS, VOCABULARY) in float64. */
export function logProbsOf(table: Table): Float64Array {
  const out = Float64Array.from(table);
  for (let start = 0; start < SIZE; start += VOCABULARY) {
    const row = out.subarray(start, start + VOCABULARY);
    const log = Math.log(row.reduce((sum, value) => sum + Math.exp(value), 0));
    row.forEach((value, i) => {
      row[i] = value - log;
    });
  }
  return out;
}

/** The probability of each completion. */
export function probabilitiesOf(table: Table): Float64Array {
  const logs = logProbsOf(table);
  return Float64Array.from(completions, ({ tokens, contexts }) =>
    Math.exp(tokens.reduce((sum, token, i) => sum + logs[contexts[i] * VOCABULARY + token], 0)),
  );
}

/** The probability that a completion passes through each context. */
export function reachOf(table: Table): Float64Array {
  const reach = new Float64Array(CONTEXTS);
  const chances = probabilitiesOf(table);
  completions.forEach(({ contexts }, i) => {
    for (const context of contexts) reach[context] += chances[i];
  });
  return reach;
}

/** KL(p ‖ q) of the whole sequence. */
export function sequenceKl(p: Table, q: Table): number {
  const [own, other] = [probabilitiesOf(p), probabilitiesOf(q)];
  return own.reduce((sum, chance, i) => sum + chance * Math.log(chance / other[i]), 0);
}

/**
 * Σ reach · ∇ KL(p ‖ q) of each context, which is as often as it is: by the logit of token i, p_i (log p_i / q_i - KL).
 */
export function tokenGradient(p: Table, q: Table, reach = reachOf(p)): Float64Array {
  return gradientBy(p, reach, logRatios(p, q), () => 0);
}

/** ∇ KL(p ‖ q) of the sequence: a token also leads to the KLs of the contexts after it. */
export function sequenceGradient(p: Table, q: Table): Float64Array {
  const [logs, ratios] = [logProbsOf(p), logRatios(p, q)];
  const toGo = (context: number | undefined): number => {
    if (context === undefined) return 0;
    let sum = 0;
    for (let token = 0; token < VOCABULARY; token++) {
      const at = context * VOCABULARY + token;
      sum += Math.exp(logs[at]) * (ratios[at] + toGo(after(context, token)));
    }
    return sum;
  };
  return gradientBy(p, reachOf(p), ratios, (context, token) => toGo(after(context, token)));
}

/** Σ reach · ∇ KL(q ‖ p) of each context, p's derivative: by the logit of token i, p_i - q_i. */
export function forwardGradient(p: Table, q: Table, reach = reachOf(p)): Float64Array {
  const [own, other] = [logProbsOf(p), logProbsOf(q)];
  return own.map((log, at) => reach[Math.floor(at / VOCABULARY)] * (Math.exp(log) - Math.exp(other[at])));
}

const logRatios = (p: Table, q: Table): Float64Array => {
  const other = logProbsOf(q);
  return logProbsOf(p).map((log, at) => log - other[at]);
};

/** reach · p_i (cost_i - its mean): the gradient of the mean of a cost that does not depend on the logits, or whose own derivative averages to 0. */
function gradientBy(
  p: Table,
  reach: Float64Array,
  ratios: Float64Array,
  later: (context: number, token: number) => number,
): Float64Array {
  const chances = logProbsOf(p).map(Math.exp);
  const costs = ratios.map((ratio, at) => ratio + later(Math.floor(at / VOCABULARY), at % VOCABULARY));
  return chances.map((chance, at) => {
    const context = Math.floor(at / VOCABULARY);
    let mean = 0;
    for (let i = context * VOCABULARY; i < (context + 1) * VOCABULARY; i++) mean += chances[i] * costs[i];
    return reach[context] * chance * (costs[at] - mean);
  });
}
