/**
 * Group relative policy optimisation (Shao et al. 2024, arXiv 2402.03300), with every update inside a KL bound.
 *
 * `iterate` does one round: collect groups of completions, judge them within their groups, learn, guard, control,
 * report. All state is in plain values that `snapshot` gives and `restore` takes, so that a run that was
 * killed goes on to the same bits.
 *
 * Where this leaves the paper:
 * 1. Tokens, not texts, go from sampler to scorer, and logits are divided by the temperature in both. The two programs
 *    are compared in every batch (`kl/sampler`), and a run whose first batch disagrees does not start.
 * 2. The KL to the reference is exact over the vocabulary where it fits in memory, and ratio · k3 with a clamp otherwise
 *    (reference-kl.ts): the paper's k3 has another KL's gradient.
 * 3. A group of nearly equal rewards is divided by a floor and not by its tiny std.
 * 4. After the update the guard bounds the mean exact KL per token over the whole batch (src/kl/guard-search.ts).
 * 5. A step with a non-finite loss or gradient changes nothing; several in a row restore the weights.
 * 6. Reward warm-up scales advantages: a factor on rewards would cancel in their std.
 */

import { TrainError } from '../../base/errors.ts';
import { k1, k3, LOG_RATIO_LIMIT } from '../../kl/estimators.ts';
import { highestOf } from '../../kl/over-states.ts';
import { Decoder } from '../../lm/decoder.ts';
import type { LanguageModel } from '../../lm/model.ts';
import { shapeFor } from '../../lm/scorer.ts';
import { Rng } from '../../random/rng.ts';
import { groupAdvantages, tokenWeights } from '../../rollout/group-advantages.ts';
import type { GroupRecord } from '../../runs/completions.ts';
import type { TextTask } from '../../tasks/text-task.ts';
import type { TrainEvent } from '../events.ts';
import { type GradedCompletion, wasTruncated } from '../text/graded.ts';
import type { TextNetwork } from '../text/graphs.ts';
import type { TextTrainer } from '../text/learner.ts';
import { TextOptimiser } from '../text/optimiser.ts';
import { TextPrograms, type TokenBatch, type TokenValues } from '../text/programs.ts';
import { guardedUpdate, UNTOUCHED } from '../update/guarded.ts';
import { meansOf } from '../update/moments.ts';
import { moveReference } from '../update/reference.ts';
import { type HeldStates, holdStates, partway, stepBack } from '../update/step-back.ts';
import { stopwatch } from '../update/stopwatch.ts';
import { refuseOtherParts, TrainerState } from '../update/trainer-state.ts';
import type { GrpoSnapshot } from './checkpoint.ts';
import { collectBatch, type TextBatch } from './collect.ts';
import { completionRecords } from './completions.ts';
import { controlReference, firstCounters, type GrpoCounters, type Knobs, knobsAt } from './control.ts';
import { gradientGraph } from './graphs.ts';
import { isExact, MAX_KEPT, type RefKl, refKlOf } from './reference-kl.ts';
import { rowOf, type TokenMeans } from './row.ts';
import { compareSampler, refuseMismatch } from './sampler-gap.ts';
import { type GrpoConfig, grpoSettings } from './settings.ts';

/** What a trainer is made of. */
export interface GrpoTrainerOptions {
  readonly model: LanguageModel;
  readonly task: TextTask;
  readonly config: GrpoConfig;
}

/** GRPO of a model on a task, an iteration at a time. */
export interface GrpoTrainer extends TextTrainer<GrpoSnapshot> {
  readonly model: LanguageModel;
  readonly config: GrpoConfig;
  readonly counters: Readonly<GrpoCounters>;
  /** Some groups of the last iteration, for people to look at. */
  readonly records: readonly GroupRecord[];
}

/** Iterations in a row without a grade, after one with some: a machine that grades may be away for a while. */
const MAX_UNGRADED = 5;

const DIAGNOSIS = (skipLimit: number) => ({
  wrong: `${skipLimit} gradient steps in a row had a loss or gradient that is not finite`,
  remedy: 'lower learningRate, look at the scale of the rewards, then at klRefCoef',
});

/** A batch with everything that the update needs to know of its tokens; rows are completions. */
interface ScoredBatch extends TokenBatch {
  readonly old: TokenValues;
  /** How the KL to the reference is made, and its log-probabilities: of the whole vocabulary, or of the tokens drawn. */
  readonly refKl: RefKl;
  readonly reference: Float32Array | undefined;
  /** Tokens of each completion that count; 0 where it does not. */
  readonly lengths: Int32Array;
  readonly maxNewTokens: number;
  readonly advantages: Float64Array;
}

/** Compiles nothing yet: programs are made for the shapes that come up. */
export function createGrpoTrainer({ model, task, config }: GrpoTrainerOptions): GrpoTrainer {
  const { vocabulary, context } = model.options;
  const maxNewTokens = config.maxNewTokens ?? task.maxNewTokens;
  const batchSize = config.promptsPerIteration * config.groupSize;
  const minibatchSize = config.minibatchSize ?? batchSize;
  // Batches are whole.
  const totalSteps = Math.ceil(config.steps / batchSize) * batchSize;
  if (maxNewTokens >= context) {
    throw new TrainError(
      `maxNewTokens ${maxNewTokens} leaves no room for a prompt in a context of ${context}: use fewer, or a model with a larger context`,
    );
  }
  const microRows = Math.min(config.microbatchSize, minibatchSize);
  const keptSize = batchSize * maxNewTokens * vocabulary;
  const keepsAll = keptSize <= MAX_KEPT;
  const refKl = refKlOf(config, keptSize);
  const runtime = { device: config.device, threads: config.threads } as const;
  const programs = new TextPrograms(model, runtime);
  const decoder = new Decoder(model, runtime);
  const referenceDecoder = config.klCap === null ? undefined : new Decoder(model, runtime);

  const [promptRng, sampleRng, orderRng] = new Rng(config.seed).split(3);
  const streams = { prompt: promptRng, sample: sampleRng, order: orderRng };
  const own = new TrainerState(grpoSettings, config, firstCounters(config), streams);
  const { counters, rngs } = own;
  const optimiser = new TextOptimiser(model, programs);
  let reference = config.reference === 'none' ? undefined : model.weights.slice();
  let records: readonly GroupRecord[] = [];

  return {
    model,
    get config() {
      return own.config;
    },
    counters,
    get records() {
      return records;
    },

    async iterate() {
      const { config } = own; // as it is now
      const events: TrainEvent[] = [];
      const watch = stopwatch();

      // ---- collect: sample and grade
      const batch = await collectBatch({
        model,
        task,
        decoder,
        config,
        maxNewTokens,
        rngs,
        reference: referenceDecoder && reference && { decoder: referenceDecoder, weights: reference },
      });
      const { completions } = batch;
      noteUngraded(batch, counters, events);

      // ---- judge: within groups; what the policy and the reference gave each token; whether the sampler agrees
      const rewards = Float64Array.from(completions, completion =>
        penalised(completion, config, maxNewTokens),
      );
      const advantages = new Float64Array(batchSize);
      const { groupSize, advantage, groupStdFloor } = config;
      const groups = groupAdvantages(rewards, groupSize, advantage, groupStdFloor, advantages);
      const sequences = completions.map(({ prompt, tokens }) => ({
        prompt: batch.prompts[prompt].tokens,
        tokens,
      }));
      const shape = shapeFor(sequences, microRows, context);
      const tokens = { sequences, shape, temperature: config.temperature };
      const old = await programs.score(model.weights, tokens, keepsAll);
      const ofReference = reference && (await programs.score(reference, tokens, isExact(refKl)));
      const sampler = compareSampler(batch, old.logProbs, shape.newTokens);
      if (counters.iteration === 0)
        refuseMismatch(sampler, batch, old.logProbs, shape.newTokens, config.device);
      const scored: ScoredBatch = {
        ...tokens,
        old,
        refKl,
        reference: ofReference && (isExact(refKl) ? ofReference.all : ofReference.logProbs),
        lengths: Int32Array.from(completions, completion => countedTokens(completion, config)),
        maxNewTokens,
        advantages,
      };
      watch.lap('collect');

      // ---- learn, inside the bound
      const order = minibatchOrder(config, batchSize, minibatchSize, rngs.order);
      const measured = (weights: Float32Array) => measure(scored, weights, programs, model.weights);
      const update = await guardedUpdate(config, counters, events, {
        steps: batchSize,
        diagnosis: DIAGNOSIS(config.skipLimit),
        async attempt() {
          const knobs = knobsAt(config, counters, (counters.steps + batchSize / 2) / totalSteps);
          optimiser.begin(counters.skippedInARow);
          const learnt = await learn(scored, order, knobs, config, optimiser);
          let failed = learnt === undefined || !optimiser.draftIsFinite;
          watch.lap('update');
          let seen = await measured(failed ? model.weights : optimiser.draft);
          // Weights may be finite and compute nothing that is: without a guard, nobody else takes that back.
          if (config.guard === null && !Number.isFinite(seen.kl)) {
            failed = true;
            seen = await measured(model.weights);
          }
          watch.lap('guard');
          return {
            ...optimiser.counts,
            learningRate: knobs.learningRate,
            failed,
            kl: seen.kl,
            klBegun: 0,
            // The policy never waits, so its KL at the end says all.
            shareWithin: 1,
            knobs,
            gradNorm: learnt?.gradNorm ?? Number.NaN,
            means: learnt?.means ?? {},
            seen,
          };
        },
        async hold({ failed, kl, seen }, bound): Promise<HeldStates<TokenMeans>> {
          if (failed) return { ...UNTOUCHED, kl, seen };
          let weights = optimiser.draft;
          /** Looks on the line from the policy before to `end`. */
          const lookTowards =
            (end: Float32Array) =>
            (share: number): Promise<TokenMeans> => {
              if (weights === end) weights = new Float32Array(end.length);
              partway(model.weights, end, share, weights);
              return measured(weights);
            };
          const mean = await stepBack(seen, bound, ({ kl }) => kl, lookTowards(weights));
          const held = await holdStates(mean, config, lookTowards(weights));
          optimiser.adopt(weights);
          watch.lap('guard');
          return held;
        },
      });
      watch.lap('update');

      // ---- control: the reference, and how strongly it pulls
      const { failed, means } = update.done;
      const { klRef } = means;
      if (reference) moveReference(config, counters.iteration, reference, model.weights, klRef, events);
      if (!failed && klRef !== undefined) controlReference(config, counters, klRef, batchSize, events);

      // ---- report
      records = completionRecords({
        batch,
        task,
        model,
        config,
        counters,
        advantages,
        newTokens: shape.newTokens,
        old,
        reference: ofReference,
      });
      const row = rowOf({
        batch,
        task,
        config,
        counters,
        groups,
        rewards,
        advantages,
        sampler,
        update,
        refKl,
        minibatches: batchSize / minibatchSize,
        times: watch.columns(batchSize),
      });
      return { row, events };
    },

    snapshot() {
      return { ...optimiser.state, reference, ...own.snapshot() };
    },

    restore(snapshot) {
      const { reference: saved } = snapshot;
      refuseOtherParts({ reference: [reference, saved] });
      optimiser.restore(snapshot);
      reference = saved?.slice();
      own.restore(snapshot);
    },

    adjust(changes) {
      own.adjust(changes);
      if (typeof changes.klRefCoef === 'number') counters.klRefCoef = changes.klRefCoef;
    },

    async dispose() {
      await Promise.all([programs.dispose(), decoder.dispose(), referenceDecoder?.dispose()]);
    },
  };
}

// ---- learn -----------------------------------------------------------------------------------------------------------

/** All epochs and minibatches of an update, in the optimiser's draft; undefined where too many steps were not finite. */
async function learn(
  batch: ScoredBatch,
  order: readonly Int32Array[],
  knobs: Knobs,
  config: GrpoConfig,
  optimiser: TextOptimiser,
): Promise<{ gradNorm: number; means: Record<string, number | undefined> } | undefined> {
  const { sequences, shape, lengths, refKl } = batch;
  const { newTokens } = shape;
  const size = sequences.length * newTokens;
  const columns = {
    weights: new Float32Array(size),
    mask: new Float32Array(size),
    advantages: new Float32Array(size),
    oldLogProbs: batch.old.logProbs,
    ...(batch.reference ? { reference: batch.reference } : {}),
  };
  const entropy = config.entropyCoef > 0;
  const loss = {
    name: `${refKl} ${entropy}`,
    graph: (network: TextNetwork, part: typeof shape) => gradientGraph(network, part, { refKl, entropy }),
  };
  const scalars = {
    clipLow: config.clipLow,
    clipHigh: config.clipHigh,
    ...(refKl === 'none' ? {} : { klRefCoef: knobs.klRefCoef }),
    ...(entropy ? { entropyCoef: config.entropyCoef } : {}),
  };
  let tokensSeen = 0;
  for (const chosen of order) {
    const weights = tokenWeights(
      Array.from(chosen, row => lengths[row]),
      config.aggregation,
      batch.maxNewTokens,
      config.denominator,
    );
    let tokens = 0;
    chosen.forEach((row, i) => {
      const [start, length] = [row * newTokens, lengths[row]];
      columns.weights.fill(weights[i], start, start + length);
      columns.mask.fill(1, start, start + length);
      columns.advantages.fill(batch.advantages[row] * knobs.rewardFactor, start, start + length);
      tokens += length;
    });
    if (tokens === 0) continue; // every completion of it is masked or ungraded
    const taken = await optimiser.step({ batch, chosen, loss, columns, scalars }, knobs, config);
    if (taken) tokensSeen += tokens;
    else if (optimiser.streak >= config.skipLimit) return undefined;
  }
  const { taken, sums } = optimiser;
  return {
    gradNorm: (sums.gradNorm ?? 0) / taken,
    means: {
      loss: sums.loss / taken,
      policyLoss: sums.policyLoss / taken,
      clippedLow: sums.clippedLow / tokensSeen,
      clippedHigh: sums.clippedHigh / tokensSeen,
      klRef: sums.klRef === undefined ? undefined : sums.klRef / tokensSeen,
    },
  };
}

// ---- guard -----------------------------------------------------------------------------------------------------------

/** What the whole batch says of weights: the mean exact KL from the policy that sampled it, and more. */
async function measure(
  batch: ScoredBatch,
  weights: Float32Array,
  programs: TextPrograms,
  sampledWith: Float32Array,
): Promise<TokenMeans> {
  const { sequences, shape, old } = batch;
  const before = old.all ? { all: old.all } : { weights: sampledWith };
  const seen = await programs.measure(weights, before, batch);
  const kls = new Float32Array(sequences.length * shape.newTokens);
  const sums = { kl: 0, k1: 0, k3: 0, entropy: 0, ratio: 0 };
  let tokens = 0;
  sequences.forEach((sequence, row) => {
    for (let i = 0; i < sequence.tokens.length; i++) {
      const at = row * shape.newTokens + i;
      const logRatio = seen.logProbs[at] - old.logProbs[at];
      sums.kl += seen.kl[at];
      kls[tokens] = seen.kl[at];
      sums.k1 += k1(logRatio);
      sums.k3 += k3(logRatio);
      sums.entropy += seen.entropy[at];
      sums.ratio += Math.exp(Math.max(-LOG_RATIO_LIMIT, Math.min(LOG_RATIO_LIMIT, logRatio)));
      tokens++;
    }
  });
  return { ...meansOf(sums, tokens), ...highestOf(kls, tokens) };
}

// ---- rewards -----------------------------------------------------------------------------------------------------------

/** The reward after penalties for length and truncation; NaN where it could not be graded. */
export function penalised(
  completion: GradedCompletion,
  { lengthPenalty, lengthFree, truncated, truncatedPenalty }: GrpoConfig,
  maxNewTokens: number,
): number {
  const beyond = Math.max(0, completion.tokens.length - lengthFree) / Math.max(1, maxNewTokens - lengthFree);
  const cutOff = truncated === 'penalise' && wasTruncated(completion) ? truncatedPenalty : 0;
  return completion.reward - lengthPenalty * Math.min(1, beyond) - cutOff;
}

/** Tokens of a completion that the loss counts. */
function countedTokens(completion: GradedCompletion, { truncated }: GrpoConfig): number {
  const leftOut = Number.isNaN(completion.reward) || (truncated === 'mask' && wasTruncated(completion));
  return leftOut ? 0 : completion.tokens.length;
}

/** Counts and tells completions that could not be graded; a task that never can ends the run. */
function noteUngraded({ completions }: TextBatch, counters: GrpoCounters, events: TrainEvent[]): void {
  const failed = completions.filter(({ problem }) => problem !== undefined);
  counters.ungradedInARow = failed.length === completions.length ? counters.ungradedInARow + 1 : 0;
  if (failed.length === 0) return;
  const reason = failed[0].problem!;
  events.push({ type: 'ungraded', count: failed.length, of: completions.length, reason });
  if (counters.iteration === 0 && failed.length === completions.length)
    throw new TrainError(`no completion of the first iteration could be graded: ${reason}; correct the task`);
  if (counters.ungradedInARow >= MAX_UNGRADED) {
    throw new TrainError(
      `no completion could be graded in ${MAX_UNGRADED} iterations in a row: ${reason}; correct the task and resume`,
    );
  }
}

/** Each epoch's minibatches, in an order of its own: of whole groups where they fit, whose prompts are then read once. */
function minibatchOrder(
  { groupSize, epochs }: Pick<GrpoConfig, 'groupSize' | 'epochs'>,
  samples: number,
  size: number,
  rng: Rng,
): Int32Array[] {
  const block = size % groupSize === 0 ? groupSize : 1;
  const order: Int32Array[] = [];
  for (let epoch = 0; epoch < epochs; epoch++) {
    const blocks = rng.permutation(samples / block);
    const rows = Int32Array.from(
      { length: samples },
      (_, i) => blocks[Math.floor(i / block)] * block + (i % block),
    );
    for (let start = 0; start < samples; start += size) order.push(rows.subarray(start, start + size));
  }
  return order;
}
