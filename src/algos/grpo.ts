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
import { regainedFactor } from '../kl/controllers/guarded-rate.ts';
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
import { controlReference, type GrpoCounters, type Knobs, knobsAt, slowDown } from './grpo/control.ts';
import type { RefKl } from './grpo/loss.ts';
import { TextPrograms, type TokenValues } from './grpo/programs.ts';
import { rowOf } from './grpo/row.ts';
import { compareSampler, refuseMismatch } from './grpo/sampler-gap.ts';
import { grpoProblems } from './grpo/settings.ts';
import type { IterationResult, TrainEvent } from './iteration.ts';
import { cutRate } from './recovery.ts';
import { moveReference } from './reference-policy.ts';
import { TrainError } from './train-error.ts';

export interface GrpoTrainerOptions {
  readonly model: LanguageModel;
  readonly task: TextTask;
  readonly config: GrpoConfig;
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
  'klRefCoefMin',
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
  // Batches are whole.
  const totalSteps = Math.ceil(config.steps / batchSize) * batchSize;
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
      if (counters.iteration === 0)
        refuseMismatch(sampler, batch, old.logProbs, shape.newTokens, config.device);
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
      const order = minibatchOrder(config, batchSize, minibatchSize, rngs.order);
      let guardSeconds = 0;
      const attempt = async () => {
        const knobs = knobsAt(config, counters, (counters.envSteps + batchSize / 2) / totalSteps);
        const learnt = await learn(scored, order, knobs);
        // A step may overflow what was finite before it.
        const stats = { ...learnt, failed: learnt.failed || !Number.isFinite(norm(draft.weights)) };
        const learntAt = performance.now();
        let seen = await measure(scored, stats.failed ? state.weights : draft.weights);
        // Weights may be finite and compute nothing that is: without a guard, nobody else takes that back.
        if (config.guard === null && !Number.isFinite(seen.kl)) {
          stats.failed = true;
          seen = await measure(scored, state.weights);
        }
        guardSeconds += (performance.now() - learntAt) / 1000;
        return { knobs, stats, seen };
      };
      const bound = config.guard ?? Number.POSITIVE_INFINITY;
      let done = await attempt();
      const klRaw = done.seen.kl;
      let retries = 0;
      while (!done.stats.failed && !(done.seen.kl <= bound) && retries < config.guardRetries) {
        if (!slowDown(counters, done.knobs, done.seen.kl, bound, events)) break;
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
      if (failed) {
        const diagnosis = {
          wrong: `${config.skipLimit} gradient steps in a row had a loss or gradient that is not finite`,
          remedy: 'lower learningRate, look at the scale of the rewards, then at klRefCoef',
        };
        cutRate(counters, config, knobs.learningRate, diagnosis, events);
      } else if (stats.skipped > 0) events.push({ type: 'skipped', count: stats.skipped });
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
      if (reference) moveReference(config, counters.iteration, reference, state.weights, klRef, events);
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

const finiteOr = (value: number, other: number): number => (Number.isFinite(value) ? value : other);
