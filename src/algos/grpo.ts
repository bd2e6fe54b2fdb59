/**
 * Group relative policy optimisation (Shao et al. 2024, arXiv 2402.03300), with every update inside a KL bound.
 *
 * `iterate` does one round: sample groups of completions, grade them, compare them within their groups, learn, measure,
 * guard, control, report. All state is in plain values that `snapshot` gives and `restore` takes, so that a run that was
 * killed goes on to the same bits.
 *
 * Where this leaves the paper:
 * 1. Tokens, not texts, go from sampler to scorer, and logits are divided by the temperature in both. The two programs
 *    are compared in every batch (`kl/sampler`), and a run whose first batch disagrees does not start.
 * 2. The KL to the reference is exact over the vocabulary where it fits in memory, and k3 with a clamp otherwise.
 * 3. A group of nearly equal rewards is divided by a floor and not by its tiny std.
 * 4. After the update the guard bounds the mean exact KL per token over the whole batch (src/kl/guard-search.ts).
 * 5. A step with a non-finite loss or gradient changes nothing; several in a row restore the weights.
 * 6. Reward warm-up scales advantages: a factor on rewards would cancel in their std.
 */
import { nextCoefficient } from '../kl/controllers/coefficient.ts';
import { regainedFactor, slowerFactor } from '../kl/controllers/guarded-rate.ts';
import { guardSearch } from '../kl/guard-search.ts';
import { k1, k3, LOG_RATIO_LIMIT } from '../kl/index.ts';
import { Decoder, type LanguageModel, type ScoredSequence, shapeFor } from '../lm/index.ts';
import { adamW, norm } from '../nn/index.ts';
import { Rng, type RngState } from '../random/index.ts';
import type { TextTask } from '../tasks/index.ts';
import { groupAdvantages, tokenWeights } from './grpo/advantages.ts';
import { collectBatch, type TextBatch, wasTruncated } from './grpo/collect.ts';
import { completionRecords, type GroupRecord } from './grpo/completion-records.ts';
import type { GrpoConfig } from './grpo/config.ts';
import type { RefKl } from './grpo/loss.ts';
import { TextPrograms, type TokenValues } from './grpo/programs.ts';
import { grpoProblems } from './grpo/settings.ts';
import { type IterationResult, TrainError, type TrainEvent } from './ppo-trainer.ts';
import { scheduleFactor } from './schedule.ts';

export interface GrpoTrainerOptions {
  readonly model: LanguageModel;
  readonly task: TextTask;
  readonly config: GrpoConfig;
}

/** What the numbers in a checkpoint do not hold as tensors. */
export interface GrpoCounters {
  iteration: number;
  /** Completions so far. */
  envSteps: number;
  gradientSteps: number;
  /** The controller's weight on the KL to the reference, before its warm-up. */
  klRefCoef: number;
  guardedFactor: number;
  recoveryFactor: number;
  recoveries: number;
  skippedInARow: number;
  /** Iterations in a row in which no completion could be graded. */
  ungradedInARow: number;
  bestReward: number | null;
}

export interface GrpoSnapshot {
  readonly weights: Float32Array;
  readonly m: Float32Array;
  readonly v: Float32Array;
  readonly reference: Float32Array | undefined;
  readonly counters: GrpoCounters;
  readonly rng: { readonly prompt: RngState; readonly sample: RngState; readonly order: RngState };
}

export interface GrpoTrainer {
  readonly model: LanguageModel;
  readonly config: GrpoConfig;
  readonly counters: Readonly<GrpoCounters>;
  /** Some groups of the last iteration, for people to look at. */
  readonly records: readonly GroupRecord[];
  iterate(): Promise<IterationResult>;
  /** Shares its arrays with the trainer: use it before the next iteration. */
  snapshot(): GrpoSnapshot;
  restore(snapshot: GrpoSnapshot): void;
  adjust(changes: Readonly<Record<string, number | null>>): void;
  dispose(): Promise<void>;
}

/** Numbers that are kept for each batch, old and reference log-probabilities of the whole vocabulary each: 256 MB. */
const MAX_KEPT = 64_000_000;
const MAX_UNGRADED = 5;
/** How far sampler and scorer may be apart by rounding; beyond it they compute different things. */
const SAMPLER_KL_LIMIT = 1e-5;
const SAMPLER_LOG_PROB_LIMIT = 1e-2;

/** Keys that are read anew for each update. */
const adjustable: readonly (keyof GrpoConfig)[] = [
  'learningRate',
  'learningRateEnd',
  'warmupShare',
  'weightDecay',
  'gradientClip',
  'temperature',
  'topK',
  'topP',
  'clipLow',
  'clipHigh',
  'groupStdFloor',
  'rewardWarmup',
  'lengthPenalty',
  'lengthFree',
  'truncatedPenalty',
  'referenceEvery',
  'referenceDecay',
  'klRefCoef',
  'klRefCoefWarmup',
  'klRefTarget',
  'klRefHorizon',
  'klRefCoefMax',
  'guard',
  'guardRetries',
  'recoveryFactor',
  'recoveries',
  'logGroups',
];

interface OptimiserState {
  weights: Float32Array;
  m: Float32Array;
  v: Float32Array;
}

/** A batch with everything that the update needs to know of its tokens; rows are completions. */
interface ScoredBatch {
  readonly sequences: readonly ScoredSequence[];
  readonly shape: ReturnType<typeof shapeFor>;
  readonly old: TokenValues;
  /** Log-probabilities of the reference: of the whole vocabulary, or of the tokens drawn. */
  readonly reference: Float32Array | undefined;
  /** Tokens of each completion that count; 0 where it does not. */
  readonly lengths: Int32Array;
  readonly advantages: Float64Array;
}

export function createGrpoTrainer({ model, task, config: given }: GrpoTrainerOptions): GrpoTrainer {
  let config = given;
  const { layout } = model;
  const maxNewTokens = config.maxNewTokens ?? task.maxNewTokens;
  const batchSize = config.promptsPerIteration * config.groupSize;
  const minibatchSize = config.minibatchSize ?? batchSize;
  const totalIterations = Math.ceil(config.steps / batchSize);
  if (maxNewTokens >= model.options.context) {
    throw new TrainError(
      `maxNewTokens ${maxNewTokens} leaves no room for a prompt in a context of ${model.options.context}: use fewer, or a model with a larger context`,
    );
  }
  const microRows = Math.min(config.microbatchSize, minibatchSize);
  const keptSize = batchSize * maxNewTokens * model.options.vocabulary;
  const keepsAll = keptSize <= MAX_KEPT;
  const refKl: RefKl =
    config.reference === 'none'
      ? 'none'
      : config.klRefEstimator === 'auto'
        ? keepsAll
          ? 'exact'
          : 'k3'
        : config.klRefEstimator;
  if (refKl === 'exact' && !keepsAll) {
    throw new TrainError(
      `klRefEstimator exact keeps ${keptSize} numbers a batch, at most ${MAX_KEPT}: use k3, or fewer or shorter completions`,
    );
  }
  const runtime = { device: config.device, threads: config.threads } as const;
  const programs = new TextPrograms(model, runtime);
  const decoder = new Decoder(model, runtime);
  const referenceDecoder = config.klCap === null ? undefined : new Decoder(model, runtime);

  const [promptRng, sampleRng, orderRng] = new Rng(config.seed).split(3);
  let rngs = { prompt: promptRng, sample: sampleRng, order: orderRng };
  let state: OptimiserState = {
    weights: model.weights,
    m: new Float32Array(layout.size),
    v: new Float32Array(layout.size),
  };
  /** Where an update is made; changes places with `state` when it stands. */
  let draft = copyOf(state);
  const gradient = new Float32Array(layout.size);
  let reference: Float32Array | undefined = config.reference === 'none' ? undefined : state.weights.slice();
  let records: readonly GroupRecord[] = [];
  const counters: GrpoCounters = {
    iteration: 0,
    envSteps: 0,
    gradientSteps: 0,
    klRefCoef: config.klRefCoef,
    guardedFactor: 1,
    recoveryFactor: 1,
    recoveries: 0,
    skippedInARow: 0,
    ungradedInARow: 0,
    bestReward: null,
  };

  /** All epochs and minibatches of an update, from `state` into `draft`. */
  async function learn(batch: ScoredBatch, order: readonly Int32Array[], knobs: Knobs) {
    copyInto(state, draft);
    const { newTokens } = batch.shape;
    const columns = {
      weights: new Float32Array(batchSize * newTokens),
      mask: new Float32Array(batchSize * newTokens),
      advantages: new Float32Array(batchSize * newTokens),
      oldLogProbs: batch.old.logProbs,
      ...(batch.reference ? { reference: batch.reference } : {}),
    };
    const stats = { taken: 0, skipped: 0, streak: counters.skippedInARow, tokens: 0 };
    const sums: Record<string, number> = {};
    let [losses, gradNorms] = [0, 0];
    for (const chosen of order) {
      const weights = tokenWeights(
        Array.from(chosen, row => batch.lengths[row]),
        config.aggregation,
        maxNewTokens,
      );
      let tokens = 0;
      chosen.forEach((row, i) => {
        const [start, length] = [row * newTokens, batch.lengths[row]];
        columns.weights.fill(weights[i], start, start + length);
        columns.mask.fill(1, start, start + length);
        columns.advantages.fill(batch.advantages[row] * knobs.rewardFactor, start, start + length);
        tokens += length;
      });
      if (tokens === 0) continue; // every completion of it is masked or ungraded
      const found = await programs.gradient(
        draft.weights,
        batch.sequences,
        chosen,
        batch.shape,
        config.temperature,
        { refKl, entropy: config.entropyCoef > 0 },
        {
          columns,
          referenceWidth: refKl === 'exact' ? model.options.vocabulary : 1,
          scalars: {
            clipLow: config.clipLow,
            clipHigh: config.clipHigh,
            ...(refKl === 'none' ? {} : { klRefCoef: knobs.klRefCoef }),
            ...(config.entropyCoef > 0 ? { entropyCoef: config.entropyCoef } : {}),
          },
        },
        gradient,
      );
      const length = norm(gradient);
      if (!Number.isFinite(length) || !Number.isFinite(found.loss)) {
        stats.skipped++;
        stats.streak++;
        if (stats.streak >= config.skipLimit)
          return { ...stats, failed: true, means: {}, gradNorm: Number.NaN };
        continue;
      }
      stats.streak = 0;
      adamW(layout, draft, {
        gradient,
        gradientScale:
          config.gradientClip === null ? 1 : config.gradientClip / Math.max(length, config.gradientClip),
        learningRate: knobs.learningRate,
        step: counters.gradientSteps + stats.taken + 1,
        beta1: config.adamBeta1,
        beta2: config.adamBeta2,
        epsilon: config.adamEpsilon,
        weightDecay: config.weightDecay,
      });
      stats.taken++;
      stats.tokens += tokens;
      losses += found.loss;
      gradNorms += length;
      for (const [name, value] of Object.entries(found)) sums[name] = (sums[name] ?? 0) + value;
    }
    const { taken } = stats;
    return {
      ...stats,
      failed: false,
      gradNorm: gradNorms / taken,
      means: {
        loss: losses / taken,
        policyLoss: sums.policyLoss / taken,
        clippedLow: sums.clippedLow / stats.tokens,
        clippedHigh: sums.clippedHigh / stats.tokens,
        klRef: sums.klRef === undefined ? undefined : sums.klRef / stats.tokens,
      } as Record<string, number | undefined>,
    };
  }

  /** What the whole batch says of weights: the mean exact KL from the policy that sampled it, and more. */
  async function measure(batch: ScoredBatch, weights: Float32Array) {
    const old = batch.old.all ? { all: batch.old.all } : { weights: state.weights };
    const seen = await programs.measure(weights, old, batch.sequences, batch.shape, config.temperature);
    const sums = { kl: 0, k1: 0, k3: 0, entropy: 0, ratio: 0 };
    let tokens = 0;
    batch.sequences.forEach((sequence, row) => {
      for (let i = 0; i < sequence.tokens.length; i++) {
        const at = row * batch.shape.newTokens + i;
        const logRatio = seen.logProbs[at] - batch.old.logProbs[at];
        sums.kl += seen.kl[at];
        sums.k1 += k1(logRatio);
        sums.k3 += k3(logRatio);
        sums.entropy += seen.entropy[at];
        sums.ratio += Math.exp(Math.max(-LOG_RATIO_LIMIT, Math.min(LOG_RATIO_LIMIT, logRatio)));
        tokens++;
      }
    });
    const mean = (value: number): number => value / tokens;
    return {
      kl: mean(sums.kl),
      k1: mean(sums.k1),
      k3: mean(sums.k3),
      entropy: mean(sums.entropy),
      ratio: mean(sums.ratio),
    };
  }

  return {
    model,
    get config() {
      return config;
    },
    counters,
    get records() {
      return records;
    },

    async iterate() {
      const events: TrainEvent[] = [];
      const started = performance.now();

      // ---- sample and grade
      const batch = await collectBatch({
        model,
        task,
        decoder,
        config,
        maxNewTokens,
        promptRng: rngs.prompt,
        sampleRng: rngs.sample,
        reference: referenceDecoder && reference && { decoder: referenceDecoder, weights: reference },
      });
      const { completions } = batch;
      noteUngraded(batch, counters, events);

      // ---- compare within groups
      const rewards = Float64Array.from(completions, completion =>
        penalised(completion, config, maxNewTokens),
      );
      const advantages = new Float64Array(batchSize);
      const groups = groupAdvantages(
        rewards,
        config.groupSize,
        config.advantage,
        config.groupStdFloor,
        advantages,
      );

      // ---- score: what the policy and the reference gave each token, and whether the sampler agrees
      const sequences = completions.map(({ prompt, tokens }) => ({
        prompt: batch.prompts[prompt].tokens,
        tokens,
      }));
      const shape = shapeFor(sequences, microRows, model.options.context);
      const { temperature } = config;
      const old = await programs.score(state.weights, sequences, shape, temperature, keepsAll);
      const ofReference =
        reference && (await programs.score(reference, sequences, shape, temperature, refKl === 'exact'));
      const sampler = compareSampler(batch, old.logProbs, shape.newTokens);
      if (counters.iteration === 0) refuseMismatch(sampler);
      const scored: ScoredBatch = {
        sequences,
        shape,
        old,
        reference: ofReference && (refKl === 'exact' ? ofReference.all : ofReference.logProbs),
        lengths: Int32Array.from(completions, completion =>
          Number.isNaN(completion.reward) || (config.truncated === 'mask' && wasTruncated(completion))
            ? 0
            : completion.tokens.length,
        ),
        advantages,
      };
      const collectedAt = performance.now();

      // ---- learn, and where the update left the bound, again and slower
      const order = minibatchOrder(batchSize, minibatchSize, config.epochs, rngs.order);
      let guardSeconds = 0;
      const attempt = async () => {
        const knobs = knobsAt(config, counters, totalIterations);
        const learnt = await learn(scored, order, knobs);
        // A step may overflow what was finite before it.
        const stats = { ...learnt, failed: learnt.failed || !Number.isFinite(norm(draft.weights)) };
        const learntAt = performance.now();
        const seen = await measure(scored, stats.failed ? state.weights : draft.weights);
        guardSeconds += (performance.now() - learntAt) / 1000;
        return { knobs, stats, seen };
      };
      const bound = config.guard ?? Number.POSITIVE_INFINITY;
      let done = await attempt();
      const klRaw = done.seen.kl;
      let retries = 0;
      while (!done.stats.failed && !(done.seen.kl <= bound) && retries < config.guardRetries) {
        if (!slowDown(counters, done.knobs, bound, events)) break;
        retries++;
        done = await attempt();
      }
      const { knobs, stats } = done;
      const { failed } = stats;
      if (!failed && klRaw <= bound) counters.guardedFactor = regainedFactor(counters.guardedFactor);

      // ---- what stands: the update as the guard left it, or, of one that failed, nothing
      let seen = done.seen;
      let [scale, backtracks] = [1, 0];
      if (!failed) {
        const guardedAt = performance.now();
        const raw = draft.weights;
        const tried = { weights: raw, seen, share: 1 };
        const found = await guardSearch(seen.kl, bound, async share => {
          if (tried.weights === raw) tried.weights = new Float32Array(layout.size);
          between(state.weights, raw, share, tried.weights);
          tried.seen = await measure(scored, tried.weights);
          tried.share = share;
          return tried.seen.kl;
        });
        ({ scale, backtracks } = found);
        if (backtracks > 0) {
          if (tried.share !== scale) {
            between(state.weights, raw, scale, tried.weights);
            tried.seen = await measure(scored, tried.weights);
          }
          draft.weights = tried.weights;
          seen = tried.seen;
        }
        guardSeconds += (performance.now() - guardedAt) / 1000;
        [state, draft] = [draft, state];
        model.weights = state.weights;
      }
      const guardedAt = performance.now();
      counters.iteration++;
      counters.envSteps += batchSize;
      counters.gradientSteps += failed ? 0 : stats.taken;
      counters.skippedInARow = failed ? 0 : stats.streak;
      if (failed) restoreRate(counters, config, knobs, events);
      else if (stats.skipped > 0) events.push({ type: 'skipped', count: stats.skipped });
      if (backtracks > 0 || retries > 0) {
        events.push({
          type: 'guard',
          klBefore: finiteOr(klRaw, 1e30),
          klAfter: seen.kl,
          bound,
          retries,
          backtracks,
          scale,
        });
      }

      // ---- control: the reference, and how strongly it pulls
      const klRef = stats.means.klRef;
      reference = nextReference(config, counters, reference, state.weights, klRef, events);
      if (!failed && klRef !== undefined) controlReference(config, counters, klRef, batchSize, events);

      // ---- report
      records = completionRecords({
        batch,
        task,
        model,
        iteration: counters.iteration,
        step: counters.envSteps,
        groups: config.logGroups,
        groupSize: config.groupSize,
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
        seen,
        stats,
        knobs,
      });
      Object.assign(row, {
        'kl/step': seen.kl,
        'kl/step_raw': klRaw,
        'guard/retries': retries,
        'guard/backtracks': backtracks,
        'guard/scale': scale,
        'train/epochs_run': stats.taken / (batchSize / minibatchSize),
      });
      if (klRef !== undefined) {
        row[refKl === 'exact' ? 'kl/ref' : 'kl/ref_k3'] = klRef;
        row['kl/ref_coef'] = knobs.klRefCoef;
      }
      row['time/collect_s'] = (collectedAt - started) / 1000;
      row['time/update_s'] = (guardedAt - collectedAt) / 1000 - guardSeconds;
      row['time/guard_s'] = guardSeconds;
      row['time/steps_per_second'] = batchSize / ((guardedAt - started) / 1000);
      return { row, events };
    },

    snapshot() {
      return {
        ...state,
        reference,
        counters: { ...counters },
        rng: { prompt: rngs.prompt.state(), sample: rngs.sample.state(), order: rngs.order.state() },
      };
    },

    restore(snapshot) {
      for (const name of ['weights', 'm', 'v', 'reference'] as const) {
        const tensor = snapshot[name];
        if (tensor && tensor.length !== layout.size) {
          throw new TrainError(
            `the checkpoint's ${name} has ${tensor.length} values, this model ${layout.size}: use the config it was trained with`,
          );
        }
      }
      if ((snapshot.reference === undefined) !== (reference === undefined)) {
        throw new TrainError(
          `the checkpoint has ${snapshot.reference ? 'a' : 'no'} reference, this config ${reference ? 'one' : 'none'}: use the config it was trained with`,
        );
      }
      state = { weights: snapshot.weights.slice(), m: snapshot.m.slice(), v: snapshot.v.slice() };
      model.weights = state.weights;
      reference = snapshot.reference?.slice();
      Object.assign(counters, snapshot.counters);
      rngs = {
        prompt: Rng.fromState(snapshot.rng.prompt),
        sample: Rng.fromState(snapshot.rng.sample),
        order: Rng.fromState(snapshot.rng.order),
      };
    },

    adjust(changes) {
      for (const key of Object.keys(changes)) {
        if (!adjustable.includes(key as keyof GrpoConfig))
          throw new TrainError(`${key} cannot change in a run that is under way: start a new run with it`);
        const [problem] = grpoProblems({ [key]: changes[key] });
        if (problem !== undefined) throw new TrainError(problem);
      }
      config = { ...config, ...changes } as GrpoConfig;
      if (typeof changes.klRefCoef === 'number') counters.klRefCoef = changes.klRefCoef;
    },

    async dispose() {
      await Promise.all([programs.dispose(), decoder.dispose(), referenceDecoder?.dispose()]);
    },
  };
}

// ---- rewards -----------------------------------------------------------------------------------------------------------

/** The reward after penalties for length and truncation; NaN where it could not be graded. */
export function penalised(
  completion: TextBatch['completions'][number],
  { lengthPenalty, lengthFree, truncated, truncatedPenalty }: GrpoConfig,
  maxNewTokens: number,
): number {
  const beyond = Math.max(0, completion.tokens.length - lengthFree) / Math.max(1, maxNewTokens - lengthFree);
  const cutOff = truncated === 'penalise' && wasTruncated(completion) ? truncatedPenalty : 0;
  return completion.reward - lengthPenalty * Math.min(1, beyond) - cutOff;
}

/** Counts and tells completions that could not be graded; a task that never can ends the run. */
function noteUngraded({ completions }: TextBatch, counters: GrpoCounters, events: TrainEvent[]): void {
  const failed = completions.filter(({ problem }) => problem !== undefined);
  counters.ungradedInARow = failed.length === completions.length ? counters.ungradedInARow + 1 : 0;
  if (failed.length === 0) return;
  const reason = failed[0].problem!;
  events.push({ type: 'ungraded', count: failed.length, of: completions.length, reason });
  if (counters.ungradedInARow >= MAX_UNGRADED) {
    throw new TrainError(
      `no completion could be graded in ${MAX_UNGRADED} iterations in a row: ${reason}; correct the task and resume`,
    );
  }
}

// ---- sampler against scorer --------------------------------------------------------------------------------------------

interface SamplerGap {
  kl: number;
  logProbDiff: number;
  logProbDiffMax: number;
  ratioMean: number;
}

/** How the scorer's log-probabilities differ from the sampler's, with the same truncation. */
function compareSampler({ completions }: TextBatch, scored: Float32Array, newTokens: number): SamplerGap {
  const gap = { kl: 0, logProbDiff: 0, logProbDiffMax: 0, ratioMean: 0 };
  let tokens = 0;
  completions.forEach(({ logProbs, logKept }, row) => {
    logProbs.forEach((logProb, i) => {
      const logRatio = scored[row * newTokens + i] - logKept[i] - logProb;
      gap.kl += k3(logRatio);
      gap.logProbDiff += Math.abs(logRatio);
      gap.logProbDiffMax = Math.max(gap.logProbDiffMax, Math.abs(logRatio));
      gap.ratioMean += Math.exp(Math.max(-LOG_RATIO_LIMIT, Math.min(LOG_RATIO_LIMIT, logRatio)));
      tokens++;
    });
  });
  return {
    ...gap,
    kl: gap.kl / tokens,
    logProbDiff: gap.logProbDiff / tokens,
    ratioMean: gap.ratioMean / tokens,
  };
}

/** With the weights that sampled, the scorer must give what the sampler gave: ratio 1, KL 0. */
function refuseMismatch({ kl, logProbDiffMax }: SamplerGap): void {
  if (kl < SAMPLER_KL_LIMIT && logProbDiffMax < SAMPLER_LOG_PROB_LIMIT) return;
  throw new TrainError(
    `before the first step sampler and scorer differ by a KL of ${kl.toExponential(1)} and a log-probability of ${logProbDiffMax.toExponential(1)}, which must be 0: another temperature, precision, dropout or re-tokenised text in one of them could be why`,
  );
}

// ---- KL control: everything that decides how far an update may go, in one place ----------------------------------------

interface Knobs {
  readonly learningRate: number;
  readonly klRefCoef: number;
  readonly rewardFactor: number;
}

/** This update's rate, pull of the reference and reward factor. */
function knobsAt(config: GrpoConfig, counters: GrpoCounters, totalIterations: number): Knobs {
  const { learningRateSchedule: schedule, learningRateEnd: end, warmupShare: warmup } = config;
  // In the middle of this update's share of the run: neither 0 nor 1.
  const progress = (counters.iteration + 0.5) / totalIterations;
  const risen = (iterations: number): number =>
    iterations === 0 ? 1 : Math.min(1, counters.iteration / iterations);
  return {
    learningRate:
      config.learningRate *
      counters.recoveryFactor *
      counters.guardedFactor *
      scheduleFactor({ schedule, end, warmup }, progress),
    klRefCoef: counters.klRefCoef * risen(config.klRefCoefWarmup),
    rewardFactor: config.rewardWarmup === 0 ? 1 : Math.min(1, (counters.iteration + 1) / config.rewardWarmup),
  };
}

/** After an update that left the bound: a lower rate for another attempt. False where it cannot be lower. */
function slowDown(counters: GrpoCounters, knobs: Knobs, bound: number, events: TrainEvent[]): boolean {
  const from = counters.guardedFactor;
  counters.guardedFactor = slowerFactor(from, 0);
  if (counters.guardedFactor === from) return false;
  events.push({
    type: 'rate-change',
    what: 'learningRate',
    from: knobs.learningRate,
    to: (knobs.learningRate * counters.guardedFactor) / from,
    why: `the update left the bound of ${bound}`,
  });
  return true;
}

/** After steps that were not finite: a lower rate, or the end. */
function restoreRate(counters: GrpoCounters, config: GrpoConfig, knobs: Knobs, events: TrainEvent[]): void {
  counters.recoveries++;
  if (counters.recoveries > config.recoveries) {
    throw new TrainError(
      `${config.skipLimit} gradient steps in a row had a loss or gradient that is not finite, after ${config.recoveries} restores with the learning rate cut to ${knobs.learningRate.toExponential(1)}: lower learningRate, look at the scale of the rewards, then at klRefCoef`,
    );
  }
  counters.recoveryFactor *= config.recoveryFactor;
  events.push({
    type: 'restored',
    attempt: counters.recoveries,
    attempts: config.recoveries,
    lrFrom: knobs.learningRate,
    lrTo: knobs.learningRate * config.recoveryFactor,
  });
}

/** The reference for the next update. */
function nextReference(
  config: GrpoConfig,
  counters: GrpoCounters,
  reference: Float32Array | undefined,
  weights: Float32Array,
  kl: number | undefined,
  events: TrainEvent[],
): Float32Array | undefined {
  if (!reference) return undefined;
  switch (config.reference) {
    case 'none':
    case 'frozen':
      return reference;
    case 'refreshed':
      if (counters.iteration % config.referenceEvery !== 0) return reference;
      events.push({ type: 'reference', ...(kl === undefined ? {} : { kl }) });
      reference.set(weights);
      return reference;
    case 'averaged': {
      const keep = config.referenceDecay;
      for (let i = 0; i < reference.length; i++) reference[i] = keep * reference[i] + (1 - keep) * weights[i];
      return reference;
    }
    default:
      return config.reference satisfies never;
  }
}

/** What the KL to the reference changes of its weight. */
function controlReference(
  config: GrpoConfig,
  counters: GrpoCounters,
  kl: number,
  completions: number,
  events: TrainEvent[],
): void {
  if (config.klRefCoefRule === 'fixed') return;
  const { klRefTarget: target, klRefHorizon: horizon, klRefCoefMax: max } = config;
  const from = counters.klRefCoef;
  counters.klRefCoef = nextCoefficient(
    config.klRefCoefRule === 'adaptive' ? { kind: 'adaptive', target } : { kind: 'horizon', target, horizon },
    from,
    kl,
    completions,
    { max },
  );
  if (counters.klRefCoef === from) return;
  events.push({
    type: 'rate-change',
    what: 'klRefCoef',
    from,
    to: counters.klRefCoef,
    why: `the KL to the reference is ${kl.toExponential(2)}`,
  });
}

// ---- the row -----------------------------------------------------------------------------------------------------------

function rowOf(parts: {
  batch: TextBatch;
  task: TextTask;
  config: GrpoConfig;
  counters: GrpoCounters;
  groups: ReturnType<typeof groupAdvantages>;
  rewards: Float64Array;
  advantages: Float64Array;
  sampler: SamplerGap;
  seen: { k1: number; k3: number; entropy: number; ratio: number };
  stats: { taken: number; skipped: number; gradNorm: number; means: Record<string, number | undefined> };
  knobs: Knobs;
}): Record<string, number> {
  const { batch, task, config, counters, groups, rewards, advantages, sampler, seen, stats, knobs } = parts;
  const { completions } = batch;
  const graded = completions.filter(({ problem }) => problem === undefined);
  const reward = momentsOf(graded.map(completion => completion.reward));
  const { mean: advMean, std: advStd } = momentsOf(advantages);
  const lengths = completions.map(({ tokens }) => tokens.length);
  const shareOf = (holds: (completion: (typeof completions)[number]) => boolean): number =>
    completions.filter(holds).length / completions.length;
  const { means } = stats;
  const row: Record<string, number> = {
    'train/iteration': counters.iteration,
    'train/step': counters.envSteps,
    'kl/step_k1': seen.k1,
    'kl/step_k3': seen.k3,
    'kl/sampler': sampler.kl,
    'loss/policy': means.policyLoss ?? Number.NaN,
    'loss/total': means.loss ?? Number.NaN,
    'policy/entropy': seen.entropy,
    'policy/ratio_mean': seen.ratio,
    'policy/clip_fraction': (means.clippedLow ?? Number.NaN) + (means.clippedHigh ?? Number.NaN),
    'policy/clip_fraction_low': means.clippedLow ?? Number.NaN,
    'policy/clip_fraction_high': means.clippedHigh ?? Number.NaN,
    'adv/mean': advMean,
    'adv/std': advStd,
    'adv/max': advantages.reduce((a, b) => Math.max(a, b)),
    'adv/min': advantages.reduce((a, b) => Math.min(a, b)),
    'reward/ungraded': completions.length - graded.length,
    'grad/norm': stats.gradNorm,
    'train/lr': knobs.learningRate,
    'train/minibatches_run': stats.taken,
    'train/skipped': stats.skipped,
    'completion/length': momentsOf(lengths).mean,
    'completion/length_min': lengths.reduce((a, b) => Math.min(a, b)),
    'completion/length_max': lengths.reduce((a, b) => Math.max(a, b)),
    'completion/truncated': shareOf(wasTruncated),
    'completion/prompt_length': momentsOf(batch.prompts.map(({ tokens }) => tokens.length)).mean,
    'completion/prompts_skipped': batch.promptsSkipped,
    'sampler/logp_diff': sampler.logProbDiff,
    'sampler/logp_diff_max': sampler.logProbDiffMax,
    'sampler/ratio_mean': sampler.ratioMean,
  };
  if (config.klCap !== null) row['completion/kl_capped'] = shareOf(({ end }) => end === 'kl');
  if (config.entropyCoef > 0) row['train/entropy_coef'] = config.entropyCoef;
  if (config.rewardWarmup > 0) row['train/reward_factor'] = knobs.rewardFactor;
  if (graded.length === 0) return row;
  counters.bestReward = Math.max(
    counters.bestReward ?? Number.NEGATIVE_INFINITY,
    ...graded.map(c => c.reward),
  );
  row['reward/mean'] = reward.mean;
  row['reward/std'] = reward.std;
  row['reward/group_std'] = groups.groupStd;
  row['reward/zero_std_groups'] = groups.zeroStdGroups;
  if (config.lengthPenalty > 0 || config.truncated === 'penalise')
    row['reward/penalised'] = momentsOf(rewards.filter(value => !Number.isNaN(value))).mean;
  row['episode/return'] = reward.mean;
  row['episode/return_best'] = counters.bestReward;
  row['episode/count'] = graded.length;
  row['completion/parse_rate'] = graded.filter(({ parsed }) => parsed).length / graded.length;
  task.rewardParts.forEach((name, i) => {
    row[`reward/part/${name}`] = momentsOf(graded.map(completion => completion.parts[i])).mean;
  });
  task.metricNames.forEach((name, i) => {
    const known = graded.map(completion => completion.metrics[i]).filter(value => !Number.isNaN(value));
    if (known.length > 0) row[`env/${name}`] = momentsOf(known).mean;
  });
  return row;
}

// ---- small helpers -----------------------------------------------------------------------------------------------------

function copyOf({ weights, m, v }: OptimiserState): OptimiserState {
  return { weights: weights.slice(), m: m.slice(), v: v.slice() };
}

function copyInto(from: OptimiserState, to: OptimiserState): void {
  to.weights.set(from.weights);
  to.m.set(from.m);
  to.v.set(from.v);
}

/** The point at `share` of the way from `a` to `b`. */
function between(a: Float32Array, b: Float32Array, part: number, out: Float32Array): void {
  for (let i = 0; i < out.length; i++) out[i] = part === 0 ? a[i] : a[i] + (b[i] - a[i]) * part;
}

/** Each epoch's minibatches, in an order of its own. */
function minibatchOrder(samples: number, size: number, epochs: number, rng: Rng): Int32Array[] {
  const order: Int32Array[] = [];
  for (let epoch = 0; epoch < epochs; epoch++) {
    const rows = rng.permutation(samples);
    for (let start = 0; start < samples; start += size) order.push(rows.subarray(start, start + size));
  }
  return order;
}

const finiteOr = (value: number, other: number): number => (Number.isFinite(value) ? value : other);

function momentsOf(values: ArrayLike<number>): { mean: number; std: number } {
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += values[i];
  const mean = sum / values.length;
  let squares = 0;
  for (let i = 0; i < values.length; i++) squares += (values[i] - mean) ** 2;
  return { mean, std: Math.sqrt(squares / values.length) };
}
