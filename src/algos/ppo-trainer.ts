/**
 * PPO from rollout to rollout: collect, estimate advantages, learn, guard, control, report.
 *
 * `iterate` does one round and returns its row. All state is in plain values that `snapshot` gives and `restore` takes,
 * so that a run that was killed goes on to the same bits.
 */
import { compile, Graph } from '../engine/index.ts';
import type { VectorEnv, VectorState } from '../envs/index.ts';
import { regainedFactor } from '../kl/controllers/guarded-rate.ts';
import { parameters } from '../nn/index.ts';
import { Rng, type RngState } from '../random/index.ts';
import { createRollout } from '../rollout/buffer.ts';
import { type Act, collect, type Evaluate } from '../rollout/collect.ts';
import { gae } from '../rollout/gae.ts';
import { ActionNoise } from '../rollout/noise.ts';
import {
  type MomentsState,
  ObservationNormaliser,
  RewardNormaliser,
  type RewardNormaliserState,
} from '../rollout/normalise.ts';
import type { ActorCritic } from './actor-critic.ts';
import { settingProblems } from './explain-settings.ts';
import type { IterationResult, TrainEvent } from './iteration.ts';
import { unevenMinibatches } from './minibatches.ts';
import { networkFor } from './network.ts';
import { compilePpo, learn, measure, type PpoPrograms, type PpoState } from './ppo.ts';
import type { PpoConfig } from './ppo-config.ts';
import { control, holdLogStd, knobsAt, lowerLogStd, slowDown, type TrainerCounters } from './ppo-control.ts';
import { rowOf } from './ppo-row.ts';
import { cutRate } from './recovery.ts';
import { moveReference } from './reference-policy.ts';
import { TrainError } from './train-error.ts';

export interface PpoTrainerOptions {
  envs: VectorEnv;
  config: PpoConfig;
  seed: number;
  /** Environment steps of the whole run, for the schedules. */
  totalSteps: number;
  rewardScale?: number;
  device?: 'cpu' | 'webgpu' | 'cuda';
  threads?: number;
}

export interface PpoSnapshot {
  readonly tensors: Record<'params' | 'm' | 'v', Float32Array> & { reference?: Float32Array };
  readonly counters: TrainerCounters;
  readonly rng: { readonly act: RngState; readonly order: RngState };
  readonly observationNormaliser: MomentsState | null;
  readonly rewardNormaliser: RewardNormaliserState | null;
  readonly actionNoise: readonly number[] | null;
  readonly envs: VectorState;
}

export interface PpoTrainer {
  readonly model: ActorCritic;
  readonly config: PpoConfig;
  readonly samplesPerIteration: number;
  readonly counters: Readonly<TrainerCounters>;
  readonly observationNormaliser: ObservationNormaliser | undefined;
  readonly params: Float32Array;
  /** Starts the environments; a restored trainer does not need it. */
  start(): Promise<void>;
  /**
   * Begins from these parameters instead of random ones, and from what their observations were normalised by; they become
   * the reference as well, where there is one.
   */
  warmStart(params: Float32Array, observationMoments?: MomentsState): void;
  iterate(): Promise<IterationResult>;
  snapshot(): Promise<PpoSnapshot>;
  restore(snapshot: PpoSnapshot): Promise<void>;
  /** Another learning rate, target or bound from now on. */
  adjust(changes: Partial<PpoConfig>): void;
  dispose(): void;
}

/** Keys that are read anew for each update; the others are part of the compiled programs. */
const adjustable: readonly (keyof PpoConfig)[] = [
  'gamma',
  'gaeLambda',
  'learningRate',
  'criticLearningRate',
  'learningRateSchedule',
  'learningRateEnd',
  'warmupShare',
  'clipRange',
  'clipRangeSchedule',
  'clipRangeEnd',
  'targetKl',
  'targetKlFactor',
  'klCoef',
  'klCoefTarget',
  'klCoefHorizon',
  'klCoefMax',
  'adaptiveRate',
  'adaptiveRateTarget',
  'adaptiveRateMin',
  'adaptiveRateMax',
  'guard',
  'guardRetries',
  'referenceEvery',
  'referenceDecay',
  'recoveryFactor',
  'recoveries',
];

/** Compiles everything for one task. */
export async function createPpoTrainer(options: PpoTrainerOptions): Promise<PpoTrainer> {
  const { envs, seed, totalSteps } = options;
  let { config } = options;
  const { envCount } = envs;
  const samples = envCount * config.stepsPerRollout;
  const uneven = unevenMinibatches(envCount, config.stepsPerRollout, config.minibatchSize);
  if (uneven) throw new TrainError(uneven);
  const minibatches = samples / config.minibatchSize;
  const model = networkFor(config, envs.observationSpace, envs.actionSpace);
  const { distribution } = model;
  const runtime = { device: options.device ?? 'cpu', threads: options.threads ?? 1 } as const;
  const unchecked = { ...runtime, checkFeeds: false };
  const [programs, acting, valuing, valuingAll] = await Promise.all([
    compilePpo(model, config, { samples, minibatches }, runtime),
    compile(networkGraph(model, 'actor', envCount), unchecked),
    compile(networkGraph(model, 'critic', envCount), unchecked),
    compile(networkGraph(model, 'critic', samples), unchecked),
  ]);

  const [initRng, actRng, orderRng] = new Rng(seed).split(3);
  let rngs = { act: actRng, order: orderRng };
  let state: PpoState = {
    params: model.layout.initialise(initRng),
    m: new Float32Array(model.layout.size),
    v: new Float32Array(model.layout.size),
  };
  let reference: Float32Array | undefined = config.reference === 'none' ? undefined : state.params.slice();
  const rollout = createRollout(config.stepsPerRollout, envCount, {
    observationSize: envs.obsSize,
    actionSize: envs.actionSize,
    paramSize: distribution.paramSize,
  });
  const order = new BigInt64Array(minibatches * config.epochs * config.minibatchSize);
  const observationNormaliser = config.normaliseObservations
    ? new ObservationNormaliser(envs.obsSize)
    : undefined;
  const rewardNormaliser = config.normaliseRewards ? new RewardNormaliser(envCount, config.gamma) : undefined;
  const actionNoise = new ActionNoise(distribution, envCount, config.noiseCorrelation);
  const counters: TrainerCounters = {
    iteration: 0,
    envSteps: 0,
    gradientSteps: 0,
    klCoef: config.klCoef,
    adaptiveFactor: 1,
    guardedFactor: 1,
    recoveryFactor: 1,
    recoveries: 0,
    skippedInARow: 0,
    bestReturn: null,
  };
  // The same array again is cheaper to hand to a program than an equal one.
  let network = { of: state.params, ...partsOf(model, state.params) };
  const currentNetwork = () => {
    if (network.of !== state.params) network = { of: state.params, ...partsOf(model, state.params) };
    return network;
  };
  const act: Act = (observations, params) => {
    acting.run({ params: currentNetwork().actor, observations }, { out: params });
  };
  const evaluate: Evaluate = (observations, values) => {
    const program = values.length === envCount ? valuing : valuingAll;
    program.run({ params: currentNetwork().critic, observations }, { out: values });
  };

  const trainer: PpoTrainer = {
    model,
    get config() {
      return config;
    },
    samplesPerIteration: samples,
    counters,
    observationNormaliser,
    get params() {
      return state.params;
    },

    async start() {
      await envs.reset({ seed });
    },

    warmStart(params, moments) {
      if (params.length !== model.layout.size) {
        throw new TrainError(
          `the parameters to start from have ${params.length} values, this network ${model.layout.size}: use the same hidden layers and network`,
        );
      }
      state = {
        params: params.slice(),
        m: new Float32Array(model.layout.size),
        v: new Float32Array(model.layout.size),
      };
      if (reference) reference = params.slice();
      if (moments) observationNormaliser?.moments.restore(moments);
    },

    async iterate() {
      const events: TrainEvent[] = [];
      const started = performance.now();
      envs.setProgress(Math.min(1, counters.envSteps / totalSteps));
      const collected = await collect(rollout, {
        envs,
        act,
        evaluate,
        distribution,
        rng: rngs.act,
        actionNoise,
        observationNormaliser,
        rewardNormaliser,
        rewardScale: options.rewardScale ?? 1,
      });
      const { gamma, gaeLambda: lambda } = config;
      gae(rollout, { gamma, lambda }, rollout);
      const batch = {
        ...rollout,
        oldParams: rollout.params,
        oldLogProbs: rollout.logProbs,
        oldValues: rollout.values,
      };
      if (counters.iteration === 0) refuseMismatch(programs, batch, state.params);
      const collectedAt = performance.now();

      // ---- learn
      // In the middle of this update's share of the run, which ends with a whole rollout: neither 0 nor 1.
      const progress = (counters.envSteps + samples / 2) / (Math.ceil(totalSteps / samples) * samples);
      fillOrder(order, samples, config.epochs, rngs.order);
      const before = state;
      let guardSeconds = 0;
      const attempt = () => {
        const knobs = knobsAt(config, counters, progress);
        const { state: learnt, stats } = learn(programs, batch, before, order, knobs, reference);
        const learntAt = performance.now();
        const failed = stats.stopped === 'non-finite';
        const after = failed ? before : learnt;
        // Before the KL is measured: the guard's bound holds for what this changes as well.
        if (!failed) lowerLogStd(model, before.params, after.params, config, progress);
        const { params, stats: seen } = measure(programs, batch, before.params, after.params, knobs.guard);
        guardSeconds += (performance.now() - learntAt) / 1000;
        return { knobs, stats, failed, after, params, seen };
      };
      const tooFar = ({ failed, seen }: ReturnType<typeof attempt>): boolean =>
        !failed && config.guard !== null && !(seen.klRaw <= config.guard);
      let done = attempt();
      const klRaw = done.seen.klRaw;
      let retries = 0;
      // ---- too far: again, slower
      while (tooFar(done) && retries < config.guardRetries) {
        const { knobs, stats } = done;
        const slower = slowDown(counters, knobs, stats.kls, order.length / config.minibatchSize, events);
        if (!slower) break;
        retries++;
        done = attempt();
      }
      const { knobs, stats, failed, after, params, seen } = done;
      if (!failed && klRaw <= knobs.guard) counters.guardedFactor = regainedFactor(counters.guardedFactor);

      // ---- what stands: the update as the guard left it, or, of one that failed, nothing
      holdLogStd(model, params, config);
      state = { ...after, params };
      const guardedAt = performance.now();
      counters.iteration++;
      counters.envSteps += samples;
      counters.gradientSteps += failed ? 0 : stats.taken;
      counters.skippedInARow = failed ? 0 : stats.streak;
      if (failed) {
        const diagnosis = {
          wrong: `${config.skipLimit} minibatches in a row had a loss or gradient that is not finite`,
          remedy:
            'look at the scale of rewards and observations (normaliseRewards, normaliseObservations), then at learningRate',
        };
        cutRate(counters, config, knobs.actorRate, diagnosis, events);
      } else if (stats.skipped > 0) events.push({ type: 'skipped', count: stats.skipped });
      if (stats.stopped === 'kl') {
        const last = stats.minibatches - 1;
        const kl =
          config.targetKlPer === 'epoch' ? epochKl(stats.kls.subarray(-minibatches)) : stats.kls[last];
        const epoch = Math.floor(last / minibatches);
        events.push({ type: 'early-stop', kl, limit: knobs.klLimit, epoch, minibatch: last % minibatches });
      }
      if (seen.backtracks > 0 || retries > 0) {
        const { kl: klAfter, backtracks, scale } = seen;
        events.push({
          type: 'guard',
          klBefore: klRaw,
          klAfter,
          bound: knobs.guard,
          retries,
          backtracks,
          scale,
        });
      }
      const refKl = stats.klRef;
      if (reference) moveReference(config, counters.iteration, reference, state.params, refKl, events);
      // What the update wanted, not what the guard left of it; a restored one says nothing.
      if (!failed) control(config, counters, knobs, seen.klRaw, samples, events);

      const row = rowOf({
        rollout,
        collected,
        stats,
        seen,
        klRaw,
        retries,
        knobs,
        config,
        counters,
        minibatches,
        model,
        params: state.params,
        envs,
      });
      const elapsed = (guardedAt - started) / 1000;
      row['time/collect_s'] = (collectedAt - started) / 1000;
      row['time/env_s'] = collected.envSeconds;
      row['time/update_s'] = (guardedAt - collectedAt) / 1000 - guardSeconds;
      row['time/guard_s'] = guardSeconds;
      row['time/steps_per_second'] = samples / elapsed;
      return { row, events };
    },

    async snapshot() {
      return {
        // The reference is written in place.
        tensors: { ...state, ...(reference ? { reference: reference.slice() } : {}) },
        counters: { ...counters },
        rng: { act: rngs.act.state(), order: rngs.order.state() },
        observationNormaliser: observationNormaliser?.moments.state() ?? null,
        rewardNormaliser: rewardNormaliser?.state() ?? null,
        actionNoise: actionNoise.state(),
        envs: await envs.state(),
      };
    },

    async restore(snapshot) {
      const { params, m, v } = snapshot.tensors;
      for (const [name, tensor] of Object.entries(snapshot.tensors)) {
        if (tensor.length !== model.layout.size) {
          throw new TrainError(
            `the checkpoint's ${name} has ${tensor.length} values, this network ${model.layout.size}: use the config it was trained with`,
          );
        }
      }
      const needs: [string, boolean, boolean][] = [
        ['reference', reference !== undefined, snapshot.tensors.reference !== undefined],
        [
          'observation normaliser',
          observationNormaliser !== undefined,
          snapshot.observationNormaliser !== null,
        ],
        ['reward normaliser', rewardNormaliser !== undefined, snapshot.rewardNormaliser !== null],
      ];
      for (const [name, wanted, there] of needs) {
        if (wanted === there) continue;
        throw new TrainError(
          `the checkpoint has ${there ? 'a' : 'no'} ${name}, this config ${wanted ? 'one' : 'none'}: use the config it was trained with`,
        );
      }
      state = { params: params.slice(), m: m.slice(), v: v.slice() };
      reference = snapshot.tensors.reference?.slice();
      Object.assign(counters, snapshot.counters);
      rngs = { act: Rng.fromState(snapshot.rng.act), order: Rng.fromState(snapshot.rng.order) };
      if (observationNormaliser && snapshot.observationNormaliser) {
        observationNormaliser.moments.restore(snapshot.observationNormaliser);
      }
      if (rewardNormaliser && snapshot.rewardNormaliser) rewardNormaliser.restore(snapshot.rewardNormaliser);
      actionNoise.restore(snapshot.actionNoise);
      await envs.restore(snapshot.envs);
    },

    adjust(changes) {
      for (const key of Object.keys(changes) as (keyof PpoConfig)[]) {
        const compiledIn =
          !adjustable.includes(key) ||
          (key === 'criticLearningRate' &&
            (config.criticLearningRate === null) !== (changes.criticLearningRate === null)) ||
          (key === 'klCoef' && config.klCoef === 0 && config.klCoefRule === 'fixed');
        if (compiledIn)
          throw new TrainError(`${key} cannot change in a run that is under way: start a new run with it`);
        const [problem] = settingProblems({ [key]: changes[key] });
        if (problem !== undefined) throw new TrainError(problem);
      }
      config = { ...config, ...changes };
      if (changes.gamma !== undefined && rewardNormaliser) rewardNormaliser.gamma = changes.gamma;
      if (changes.klCoef !== undefined) counters.klCoef = changes.klCoef;
    },

    dispose() {
      programs.dispose();
      for (const program of [acting, valuing, valuingAll]) program.dispose();
    },
  };
  return trainer;
}

type Network = 'actor' | 'critic';

/** One of the two networks on so many observations. */
function networkGraph(model: ActorCritic, which: Network, rows: number): Graph {
  const g = new Graph();
  const layout = parameters(model.layout.specs.filter(({ group }) => group === which));
  const tensors = layout.tensors(g.input('params', [layout.size]));
  const observations = g.input('observations', [rows, model.observationSize]);
  g.output(
    'out',
    which === 'actor' ? model.policy(tensors, observations) : model.value(tensors, observations),
  );
  return g;
}

/** Each network's own parameters, without copying. */
function partsOf({ layout }: ActorCritic, flat: Float32Array): Record<Network, Float32Array> {
  const part = (which: Network): Float32Array => {
    const { offset, size } = layout.groups.find(({ name }) => name === which)!;
    return flat.subarray(offset, offset + size);
  };
  return { actor: part('actor'), critic: part('critic') };
}

/**
 * Before the first gradient step the program that scores must agree with the one that sampled: ratio 1, KL 0. If not,
 * every later update would learn from a difference between programs.
 */
function refuseMismatch(
  programs: PpoPrograms,
  batch: Parameters<typeof measure>[1],
  params: Float32Array,
): void {
  const { stats } = measure(programs, batch, params, params, Number.POSITIVE_INFINITY);
  const ratioError = Math.max(Math.abs(stats.ratioMin - 1), Math.abs(stats.ratioMax - 1));
  if (stats.klRaw < 1e-5 && ratioError < 1e-3) return;
  const cause =
    stats.klRaw >= 1e-5
      ? 'the policy that scores has other parameters or another network, or another temperature, than the one that sampled'
      : 'the actions that are scored are not those that were sampled (clipped, rounded or reordered), or were sampled at another temperature';
  throw new TrainError(
    `before the first step the ratio is off 1 by ${ratioError.toExponential(1)} and the KL is ${stats.klRaw.toExponential(1)}, which must be 0: ${cause}`,
  );
}

/** Each epoch's samples in an order of its own. */
function fillOrder(order: BigInt64Array, samples: number, epochs: number, rng: Rng): void {
  for (let epoch = 0; epoch < epochs; epoch++) {
    const rows = rng.permutation(samples);
    for (let i = 0; i < samples; i++) order[epoch * samples + i] = BigInt(rows[i]);
  }
}

/** The mean that the update stopped on: a minibatch that was skipped moved nothing and counts as 0. */
function epochKl(kls: Float32Array): number {
  return kls.reduce((sum, kl) => sum + (Number.isFinite(kl) ? kl : 0), 0) / kls.length;
}
