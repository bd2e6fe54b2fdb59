/**
 * PPO from rollout to rollout: collect, judge, learn, guard, control, report.
 *
 * `iterate` does one round and returns its row. All state is in plain values that `snapshot` gives and `restore` takes,
 * so that a run that was killed goes on to the same bits. The mathematics of the update is in graphs.ts, how it is run in
 * programs.ts.
 */

import { availableParallelism } from 'node:os';
import { MismatchError, TrainError } from '../../base/errors.ts';
import type { VectorEnv } from '../../envs/vector/vector.ts';
import { Rng } from '../../random/rng.ts';
import { createRollout } from '../../rollout/buffer.ts';
import { gae } from '../../rollout/gae.ts';
import { type MomentsState, ObservationNormaliser } from '../../rollout/normalise.ts';
import type { ActorCritic } from '../agents/networks/actor-critic.ts';
import { networkFor } from '../agents/networks/network.ts';
import { runtimeOf } from '../agents/runtime.ts';
import type { IterationResult } from '../algorithm.ts';
import type { TrainEvent } from '../events.ts';
import { guardedUpdate } from '../update/guarded.ts';
import { moveReference } from '../update/reference.ts';
import { copyOf, newState, type OptimiserState, refuseOtherSizes } from '../update/state.ts';
import { holdStates, partway } from '../update/step-back.ts';
import { stopwatch } from '../update/stopwatch.ts';
import { refuseOtherParts, TrainerState } from '../update/trainer-state.ts';
import type { PpoSnapshot } from './checkpoint.ts';
import { shardedCollector, wholeCollector } from './collector.ts';
import {
  control,
  firstCounters,
  holdLogStd,
  knobsAt,
  lowerLogStd,
  type PpoCounters,
  shareWithin,
} from './control.ts';
import {
  compilePpo,
  type LearnStats,
  learn,
  type MeasureStats,
  measure,
  type PpoPrograms,
} from './programs.ts';
import { type PpoAttempt, rowOf } from './row.ts';
import { type PpoConfig, ppoSettings, unevenMinibatches } from './settings.ts';
import type { ShardPlace } from './shards/place.ts';

/** What a trainer is made of: environments, and a whole config for them. */
export interface PpoTrainerOptions {
  /** All of them; with shards, those of one. */
  readonly envs: VectorEnv;
  readonly config: PpoConfig;
  /** Where shards are collected; in this thread unless told. Whoever opened it closes it. */
  readonly place?: ShardPlace | undefined;
}

/** PPO on some environments, an iteration at a time. */
export interface PpoTrainer {
  readonly model: ActorCritic;
  readonly config: PpoConfig;
  readonly samplesPerIteration: number;
  readonly counters: Readonly<PpoCounters>;
  readonly observationNormaliser: ObservationNormaliser | undefined;
  /** Those of both networks, flat. */
  readonly weights: Float32Array;
  /** Starts the environments; a restored trainer does not need it. */
  start(): Promise<void>;
  /**
   * Begins from these weights instead of random ones, and from what their observations were normalised by; they become
   * the reference as well, where there is one.
   */
  warmStart(weights: Float32Array, observationMoments?: MomentsState): void;
  iterate(): Promise<IterationResult>;
  snapshot(): Promise<PpoSnapshot>;
  restore(snapshot: PpoSnapshot): Promise<void>;
  /** Another learning rate, target or bound from now on. */
  adjust(changes: Partial<PpoConfig>): void;
  dispose(): void;
}

const DIAGNOSIS = (skipLimit: number) => ({
  wrong: `${skipLimit} minibatches in a row had a loss or gradient that is not finite`,
  remedy:
    'look at the scale of rewards and observations (normaliseRewards, normaliseObservations), then at learningRate',
});

/** Seconds of learning after which a second thread is worth starting. */
const WORTH_THREAD = 0.5;

function isWorthThread({ threads }: PpoConfig, learningSeconds: number): boolean {
  return learningSeconds > WORTH_THREAD && (threads === 'auto' ? availableParallelism() : threads) > 1;
}

/** Compiles everything for one task. */
export async function createPpoTrainer({ envs, config, place }: PpoTrainerOptions): Promise<PpoTrainer> {
  const envCount = envs.envCount * config.shards;
  const { seed, steps: totalSteps } = config;
  const samples = envCount * config.stepsPerRollout;
  const uneven = unevenMinibatches({ ...config, envs: envCount });
  if (uneven) throw new TrainError(uneven);
  const minibatches = samples / config.minibatchSize;
  const model = networkFor(config, envs.observationSpace, envs.actionSpace);
  const { layout, distribution } = model;
  const runtime = runtimeOf(config);
  const programs = await compilePpo(model, config, { samples, minibatches }, runtime);

  const [initRng, actRng, orderRng, shardRng] = new Rng(seed).split(4);
  const own = new TrainerState(ppoSettings, config, firstCounters(config), { act: actRng, order: orderRng });
  const { counters, rngs } = own;
  let state = newState(layout.initialise(initRng));
  let reference = config.reference === 'none' ? undefined : state.weights.slice();
  const rollout = createRollout(config.stepsPerRollout, envCount, {
    observationSize: envs.obsSize,
    actionSize: envs.actionSize,
    paramSize: distribution.paramSize,
  });
  const order = new Int32Array(minibatches * config.epochs * config.minibatchSize);
  const observationNormaliser = config.normaliseObservations
    ? new ObservationNormaliser(envs.obsSize)
    : undefined;
  const parts = { envs, model, config, observationNormaliser };
  const collector =
    config.shards === 1 ? await wholeCollector(parts, rngs) : shardedCollector(parts, shardRng, place);
  /** At the start and after every resume: the two programs may have come from different machines or versions. */
  let isChecked = false;
  let learningSeconds = 0;

  return {
    model,
    get config() {
      return own.config;
    },
    samplesPerIteration: samples,
    counters,
    observationNormaliser,
    get weights() {
      return state.weights;
    },

    async start() {
      await collector.start();
    },

    warmStart(weights, moments) {
      if (weights.length !== layout.size) {
        throw new TrainError(
          `the weights to start from are ${weights.length} values, this network has ${layout.size}: use the same hidden layers and network`,
        );
      }
      state = newState(weights.slice());
      if (reference) reference = weights.slice();
      if (moments) observationNormaliser?.moments.restore(moments);
    },

    async iterate() {
      const { config } = own; // as it is now
      const events: TrainEvent[] = [];
      const watch = stopwatch();

      // ---- collect
      const collected = await collector.collect(rollout, {
        config,
        iteration: counters.iteration,
        weights: state.weights,
        progress: Math.min(1, counters.steps / totalSteps),
        events: {
          onLost: (shard, why) =>
            events.push({
              type: 'note',
              text: `shard ${shard} is collected again: its worker died (${why})`,
            }),
        },
      });

      for (const text of envs.takeNotices?.() ?? []) events.push({ type: 'note', text });

      // ---- judge
      gae(rollout, { gamma: config.gamma, lambda: config.gaeLambda }, rollout);
      const batch = {
        ...rollout,
        oldParams: rollout.params,
        oldLogProbs: rollout.logProbs,
        oldValues: rollout.values,
      };
      if (!isChecked) refuseMismatch(programs, batch, state.weights);
      isChecked = true;
      watch.lap('collect');

      // ---- learn, inside the bound
      // In the middle of this update's share of the run, which ends with a whole rollout: neither 0 nor 1.
      const progress = (counters.steps + samples / 2) / (Math.ceil(totalSteps / samples) * samples);
      fillOrder(order, samples, config.epochs, rngs.order);
      const before = state;
      const update = await guardedUpdate(config, counters, events, {
        steps: samples,
        diagnosis: DIAGNOSIS(config.skipLimit),
        attempt(): PpoAttempt & { after: OptimiserState } {
          const knobs = knobsAt(config, counters, progress);
          // Before the first step, so that the early stop and the guard see what this changes; and after the last one, which
          // may have raised it again.
          const lower = (weights: Float32Array): void =>
            lowerLogStd(model, before.weights, weights, config, { ...knobs, progress });
          const start = config.logStdEnd === null ? before : { ...before, weights: before.weights.slice() };
          lower(start.weights);
          const begunAt = performance.now();
          const { state: learnt, stats } = learn(programs, batch, start, order, knobs, reference);
          learningSeconds += (performance.now() - begunAt) / 1000;
          const failed = stats.stopped === 'non-finite';
          const after = failed ? before : learnt;
          if (!failed) lower(after.weights);
          watch.lap('update');
          const { weights, stats: seen } = measure(
            programs,
            batch,
            before.weights,
            after.weights,
            knobs.guard,
          );
          watch.lap('guard');
          return {
            learningRate: knobs.actorRate,
            failed,
            kl: seen.klRaw,
            klBegun: Number.isFinite(stats.kls[0]) ? stats.kls[0] : 0,
            shareWithin: shareWithin(stats.kls, knobs.guard),
            taken: stats.taken,
            skipped: stats.skipped,
            streak: stats.streak,
            stop: earlyStop(config, stats, knobs.klLimit, minibatches),
            knobs,
            stats,
            seen,
            after: { ...after, weights },
          };
        },
        // The program that measures has stepped back already, for the mean.
        async hold({ seen, after }) {
          state = after;
          const look = (share: number): MeasureStats => {
            const back = actorPartway(model, before.weights, after.weights, share);
            const looked = measure(programs, batch, before.weights, back, Number.POSITIVE_INFINITY);
            state = { ...after, weights: looked.weights };
            return looked.stats;
          };
          const held = await holdStates({ seen, ...seen }, config, look);
          holdLogStd(model, state.weights, config);
          return held;
        },
      });
      watch.lap('update');

      // The bits are the same with one thread and with two: short runs are spared the second.
      if (isWorthThread(config, learningSeconds)) programs.value.useThread();

      // ---- control: what the update wanted, not what the guard left of it; a failed one says nothing
      const { knobs, stats, seen, failed } = update.done;
      if (reference) moveReference(config, counters.iteration, reference, state.weights, stats.klRef, events);
      if (!failed) control(config, counters, knobs, seen.klRaw, samples, events);

      // ---- report
      const row = rowOf({
        rollout,
        collected,
        update,
        config,
        counters,
        minibatches,
        model,
        weights: state.weights,
        envs,
        times: watch.columns(samples),
      });
      return { row, events };
    },

    async snapshot() {
      return {
        ...state,
        // It is written in place.
        reference: reference?.slice(),
        ...own.snapshot(),
        ...(await collector.state()),
      };
    },

    async restore(snapshot) {
      const { weights, m, v, reference: savedReference } = snapshot;
      refuseOtherSizes({ weights, m, v, reference: savedReference }, layout.size, 'network');
      refuseOtherParts({
        reference: [reference, savedReference],
        'observation normaliser': [observationNormaliser, snapshot.observationNormaliser],
        'reward normaliser': [config.normaliseRewards || undefined, snapshot.rewardNormaliser],
      });
      state = copyOf(snapshot);
      reference = savedReference?.slice();
      isChecked = false;
      own.restore(snapshot);
      await collector.restore(snapshot);
    },

    adjust(changes) {
      own.adjust(changes);
      if (changes.klCoef !== undefined) counters.klCoef = changes.klCoef;
    },

    dispose() {
      for (const part of [programs, collector]) part.dispose();
    },
  };
}

/** The actor at `share` of the way from `before` to `after`; the critic stays where it is. */
function actorPartway(
  { layout }: ActorCritic,
  before: Float32Array,
  after: Float32Array,
  share: number,
): Float32Array {
  const [actor] = layout.groups;
  const weights = after.slice();
  partway(before, after, share, weights.subarray(0, actor.size));
  return weights;
}

/** Says where the KL stopped an update, where it did. */
function earlyStop(
  { targetKlPer }: PpoConfig,
  stats: LearnStats,
  limit: number,
  minibatches: number,
): TrainEvent | undefined {
  if (stats.stopped !== 'kl') return undefined;
  const last = stats.minibatches - 1;
  const kl = targetKlPer === 'epoch' ? epochKl(stats.kls.subarray(-minibatches)) : stats.kls[last];
  const epoch = Math.floor(last / minibatches);
  return { type: 'early-stop', kl, limit, epoch, minibatch: last % minibatches };
}

/** The largest KL between sampler and scorer, and how far a ratio may be off 1. */
const MOST_KL = 1e-5;
const MOST_RATIO_ERROR = 1e-3;
/** Up to this KL two programs may differ by nothing but the last digits of their means. */
const ROUNDING_KL = 1e-6;

/**
 * How far ratios may be off 1. Wide networks act and learn in different programs, whose means differ in the last digits: of a
 * narrow policy (log-std -5) that is a thousandth of its width. The KL tells by how much, √(2 KL) widths in the mean, and
 * actions lie within some eight of them.
 */
const ratioTolerance = (kl: number): number =>
  MOST_RATIO_ERROR + (kl > 0 && kl < ROUNDING_KL ? 8 * Math.sqrt(2 * kl) : 0);

/**
 * Before the first gradient step the program that scores must agree with the one that sampled: ratio 1, KL 0. If not,
 * every later update would learn from a difference between programs.
 */
function refuseMismatch(
  programs: PpoPrograms,
  batch: Parameters<typeof measure>[1],
  weights: Float32Array,
): void {
  const { stats } = measure(programs, batch, weights, weights, Number.POSITIVE_INFINITY);
  const ratioError = Math.max(Math.abs(stats.ratioMin - 1), Math.abs(stats.ratioMax - 1));
  if (stats.klRaw < MOST_KL && ratioError < ratioTolerance(stats.klRaw)) return;
  const cause =
    stats.klRaw >= MOST_KL
      ? 'the policy that scores has other parameters or another network, or another temperature, than the one that sampled'
      : 'the actions that are scored are not those that were sampled (clipped, rounded or reordered), or were sampled at another temperature';
  throw new MismatchError(
    `before the first step the ratio is off 1 by ${ratioError.toExponential(1)} and the KL is ${stats.klRaw.toExponential(1)}, which must be 0: ${cause}`,
  );
}

/** Each epoch's samples in an order of its own. */
function fillOrder(order: Int32Array, samples: number, epochs: number, rng: Rng): void {
  for (let epoch = 0; epoch < epochs; epoch++)
    rng.permutation(samples, order.subarray(epoch * samples, (epoch + 1) * samples));
}

/** The mean that the update stopped on: a minibatch that was skipped moved nothing and counts as 0. */
function epochKl(kls: Float32Array): number {
  return kls.reduce((sum, kl) => sum + (Number.isFinite(kl) ? kl : 0), 0) / kls.length;
}
