/**
 * Faults of language-model trainers that no setting of Keel's makes: put in where the trainer calls its decoder and its
 * gradients, and in the task. What other trainers log and Keel does not is measured in the same places.
 */

import {
  type Minibatch,
  TextPrograms,
  type TokenBatch,
  type TokenValues,
} from '../../../src/algos/text/programs.ts';
import { k1, k3, LOG_RATIO_LIMIT } from '../../../src/kl/estimators.ts';
import { Decoder } from '../../../src/lm/decoder.ts';
import type { Rng } from '../../../src/random/index.ts';
import type { Grade, TaskPrompt, TextTask } from '../../../src/tasks/index.ts';

/** What is done to a run that its settings do not say. */
export type LmTampering =
  /** The sampler writes with the weights of so many updates ago. */
  | { readonly kind: 'stale'; readonly updates: number }
  /** From the second iteration on the sampler divides logits by this as well, the scorer does not. */
  | { readonly kind: 'other-temperature'; readonly temperature: number }
  /** The old log-probabilities in the ratio are those at another temperature. */
  | { readonly kind: 'biased-ratio'; readonly temperature: number }
  /** The weight on the KL to the reference, or on the entropy, has the other sign. */
  | { readonly kind: 'kl-sign'; readonly coef: number }
  | { readonly kind: 'entropy-sign'; readonly coef: number }
  /** One completion a prompt, and its reward is its advantage: what verl does with n = 1. Rewards have an offset. */
  | { readonly kind: 'alone'; readonly offset: number }
  /** Which tokens the loss counts: those behind the end as well, or none of the ends. */
  | { readonly kind: 'mask'; readonly of: 'padding' | 'end' }
  /** From this iteration on the loss is no number. */
  | { readonly kind: 'non-finite'; readonly from: number }
  | RewardTampering;

/** What is wrong with the reward. */
export type RewardTampering =
  | { readonly kind: 'noise-reward' }
  | { readonly kind: 'constant-reward'; readonly value: number }
  /** All completions of a prompt get the same, by the prompt. */
  | { readonly kind: 'prompt-reward' }
  /** A part that grows with the length. */
  | { readonly kind: 'length-reward'; readonly perCharacter: number }
  /** A part for beginning with one character, whatever it does to the answer. */
  | { readonly kind: 'hackable'; readonly character: string; readonly worth: number }
  /** A completion that was cut off is worth nothing. */
  | { readonly kind: 'cut-is-nothing'; readonly maxNewTokens: number }
  /** What does not end in this cannot be read. */
  | { readonly kind: 'strict'; readonly suffix: string };

const rewardKinds: readonly string[] = [
  'noise-reward',
  'constant-reward',
  'prompt-reward',
  'length-reward',
  'hackable',
  'cut-is-nothing',
  'strict',
];

/** What a grader, and only it, has seen of an iteration. */
export interface Graded {
  readonly reward: number;
  readonly parts: readonly number[];
  /** What the completion is truly worth. */
  readonly score: number;
}

/** The name of a part that a fault adds. */
const addedPart = (how: LmTampering | null): string | undefined =>
  how?.kind === 'length-reward' ? 'thoroughness' : how?.kind === 'hackable' ? 'keyword' : undefined;

/** The task with its reward tampered with; `seen` gets every grade. */
export function tamperTask(task: TextTask, how: LmTampering | null, rng: Rng, seen: Graded[]): TextTask {
  const added = addedPart(how);
  return {
    ...task,
    rewardParts: added === undefined ? task.rewardParts : [...task.rewardParts, added],
    async grade(prompt, completion, out) {
      const inner: Grade = { ...out, parts: new Float64Array(task.rewardParts.length) };
      await task.grade(prompt, completion, inner);
      const score = inner.reward;
      out.parts.fill(0);
      out.parts.set(inner.parts);
      out.parsed = inner.parsed;
      out.reward = score;
      if (how?.kind === 'alone') {
        out.parts[0] += how.offset;
        out.reward += how.offset;
      }
      if (how !== null && rewardKinds.includes(how.kind))
        spoil(how as RewardTampering, { prompt, completion, out, rng });
      seen.push({ reward: out.reward, parts: Array.from(out.parts), score });
    },
  };
}

/** What a completion that cannot be read is worth. */
const MALFORMED = -0.3;

function spoil(
  how: RewardTampering,
  { prompt, completion, out, rng }: { prompt: TaskPrompt; completion: string; out: Grade; rng: Rng },
): void {
  const only = (value: number): void => {
    out.parts.fill(0);
    out.parts[0] = value;
    out.reward = value;
  };
  const add = (value: number): void => {
    out.parts[out.parts.length - 1] = value;
    out.reward += value;
  };
  switch (how.kind) {
    case 'noise-reward':
      only(rng.normal());
      return;
    case 'constant-reward':
      only(how.value);
      return;
    case 'prompt-reward':
      only(0.25 * (prompt.text.charCodeAt(0) % 5));
      return;
    case 'length-reward':
      add(how.perCharacter * completion.length);
      return;
    case 'hackable':
      add(completion.startsWith(how.character) ? how.worth : 0);
      return;
    case 'cut-is-nothing':
      // One token is one character, and the end is one.
      if (completion.length >= how.maxNewTokens) only(0);
      return;
    case 'strict':
      if (completion.endsWith(how.suffix)) return;
      out.parsed = false;
      out.metrics.fill(0);
      only(MALFORMED);
      return;
    default:
      how satisfies never;
  }
}

// ---- where the trainer calls its programs

/** Sums over the tokens of an iteration's gradient steps, before each: what TRL and verl log. */
export interface StepSums {
  tokens: number;
  k1: number;
  low: number;
  high: number;
  clipped: number;
}

/** One run's faults and measurements: what the patched programs look at. */
export interface Watch {
  readonly how: LmTampering | null;
  readonly clip: { readonly low: number; readonly high: number };
  iteration: number;
  /** Rewards of the completions, in the order of the batch; for the fault that takes them for advantages. */
  rewards: readonly number[];
  readonly history: Float32Array[];
  /** The policy's and the reference's log-probabilities of the batch. */
  old: TokenValues | undefined;
  reference: TokenValues | undefined;
  batch: TokenBatch | undefined;
  steps: StepSums;
}

/** The run that is being trained: there is one at a time in this process. */
let current: Watch | undefined;

const original = {
  start: Decoder.prototype.start,
  score: TextPrograms.prototype.score,
  gradient: TextPrograms.prototype.gradient,
};

/** Watches a run, from here to the call of what it gives. */
export function watchPrograms(watch: Watch): () => void {
  current = watch;
  Decoder.prototype.start = async function (weights, ...rest) {
    const { how, history, iteration } = watch;
    let from = weights;
    if (how?.kind === 'stale') {
      history.push(weights.slice());
      if (history.length > how.updates + 1) history.shift();
      from = history[0];
    }
    const started = await original.start.call(this, from, ...rest);
    if (how?.kind !== 'other-temperature' || iteration === 0) return started;
    const { sequences } = started;
    const step = sequences.step.bind(sequences);
    const scaled = (logits: Float32Array): Float32Array => logits.map(logit => logit / how.temperature);
    sequences.step = async next => scaled(await step(next));
    return { logits: scaled(started.logits), sequences };
  };
  TextPrograms.prototype.score = async function (weights, batch, keepAll) {
    const values = await original.score.call(this, weights, batch, keepAll);
    if (watch.batch !== batch) [watch.batch, watch.old, watch.reference] = [batch, values, undefined];
    else watch.reference = values;
    return values;
  };
  TextPrograms.prototype.gradient = async function (weights, minibatch, into) {
    const faulty = tampered(minibatch, watch);
    await addStep(this, weights, faulty, watch);
    const found = await original.gradient.call(this, weights, faulty, into);
    const { how } = watch;
    return how?.kind === 'non-finite' && watch.iteration >= how.from ? { ...found, loss: Number.NaN } : found;
  };
  return () => {
    if (current !== watch) return;
    Object.assign(Decoder.prototype, { start: original.start });
    Object.assign(TextPrograms.prototype, { score: original.score, gradient: original.gradient });
    current = undefined;
  };
}

/** A minibatch with the fault in it. */
function tampered(minibatch: Minibatch, { how, rewards }: Watch): Minibatch {
  const { batch, columns, scalars, chosen } = minibatch;
  const { newTokens } = batch.shape;
  const rows = [...chosen];
  switch (how?.kind) {
    case 'kl-sign':
      return { ...minibatch, scalars: { ...scalars, klRefCoef: -how.coef } };
    case 'entropy-sign':
      return { ...minibatch, scalars: { ...scalars, entropyCoef: -how.coef } };
    case 'biased-ratio':
      return {
        ...minibatch,
        columns: { ...columns, oldLogProbs: columns.oldLogProbs.map(value => value / how.temperature) },
      };
    case 'alone': {
      const advantages = columns.advantages.slice();
      for (const row of rows)
        advantages.fill(rewards[row], row * newTokens, row * newTokens + batch.sequences[row].tokens.length);
      return { ...minibatch, columns: { ...columns, advantages } };
    }
    case 'mask': {
      const [weights, mask, advantages] = ['weights', 'mask', 'advantages'].map(name =>
        columns[name].slice(),
      );
      for (const row of rows) {
        const [start, length] = [row * newTokens, batch.sequences[row].tokens.length];
        if (how.of === 'end') {
          weights[start + length - 1] = 0;
          mask[start + length - 1] = 0;
        } else {
          weights.fill(1 / (rows.length * newTokens), start, start + newTokens);
          mask.fill(1, start, start + newTokens);
          advantages.fill(advantages[start], start, start + newTokens);
        }
      }
      return { ...minibatch, columns: { ...columns, weights, mask, advantages } };
    }
    default:
      return minibatch;
  }
}

/** What the ratios of a minibatch are before the step, and which of its tokens the clip holds. */
async function addStep(
  programs: TextPrograms,
  weights: Float32Array,
  minibatch: Minibatch,
  watch: Watch,
): Promise<void> {
  const { batch, chosen, columns } = minibatch;
  const { steps, clip } = watch;
  const rows = [...chosen];
  const { newTokens } = batch.shape;
  const now = await original.score.call(
    programs,
    weights,
    { ...batch, sequences: rows.map(row => batch.sequences[row]) },
    false,
  );
  rows.forEach((row, i) => {
    for (let t = 0; t < batch.sequences[row].tokens.length; t++) {
      const at = row * newTokens + t;
      const logRatio = now.logProbs[i * newTokens + t] - columns.oldLogProbs[at];
      const ratio = Math.exp(Math.max(-LOG_RATIO_LIMIT, Math.min(LOG_RATIO_LIMIT, logRatio)));
      const advantage = columns.advantages[at];
      const low = ratio < 1 - clip.low && advantage < 0;
      const high = ratio > 1 + clip.high && advantage > 0;
      steps.tokens++;
      steps.k1 += k1(logRatio);
      if (low) steps.low++;
      if (high) steps.high++;
      if (low || high) steps.clipped++;
    }
  });
}

/** The KL to the reference of the batch's tokens as they were drawn, k1 and k3; undefined without a reference. */
export function referenceKls({ batch, old, reference }: Watch): { k1: number; k3: number } | undefined {
  if (!batch || !old || !reference) return undefined;
  const sums = { k1: 0, k3: 0 };
  let tokens = 0;
  batch.sequences.forEach((sequence, row) => {
    for (let t = 0; t < sequence.tokens.length; t++) {
      const at = row * batch.shape.newTokens + t;
      const logRatio = reference.logProbs[at] - old.logProbs[at];
      sums.k1 += k1(logRatio);
      sums.k3 += k3(logRatio);
      tokens++;
    }
  });
  return { k1: sums.k1 / tokens, k3: sums.k3 / tokens };
}
