/**
 * Proximal policy optimisation (Schulman et al. 2017, arXiv 1707.06347), with every update inside a KL bound.
 *
 * An update is two programs. `learn` runs all epochs and minibatches in one loop: forward, loss, backward, clipping,
 * Adam, early stop. `measure` looks at the whole rollout afterwards: the exact KL, and the guard that holds it.
 *
 * Where this leaves the paper:
 * 1. The KL that stops an update is exact, not estimated, and is looked at before a step, so no step has to be undone.
 * 2. After the update the guard bounds the mean exact KL over the whole rollout (src/kl/guard.ts).
 * 3. A minibatch with a non-finite loss or gradient changes nothing; several in a row end the update.
 * 4. Advantages whose std in a minibatch is below .01 are only centred: dividing would make noise of them.
 */

import { grad } from '../../engine/grad.ts';
import { Graph, type Tensor } from '../../engine/graph.ts';
import {
  add,
  and,
  cast,
  clip,
  div,
  equal,
  exp,
  greater,
  less,
  lessEqual,
  max,
  min,
  mul,
  neg,
  not,
  or,
  relu,
  sqrt,
  stopGradient,
  sub,
  where,
} from '../../engine/ops/elementwise.ts';
import { gather } from '../../engine/ops/gather.ts';
import { loop } from '../../engine/ops/loop.ts';
import { reduceMax, reduceMean } from '../../engine/ops/reduce.ts';
import { concat, split } from '../../engine/ops/shape.ts';
import { compile, type Program } from '../../engine/program.ts';
import { k1Graph, k3Graph, LOG_RATIO_LIMIT } from '../../kl/estimators.ts';
import { guard } from '../../kl/guard.ts';
import { highestOf, type KlOverStates } from '../../kl/over-states.ts';
import { adam, adamCorrections, clipScale, correctionsAt, ratesByGroup } from '../../nn/adam.ts';
import type { ActorCritic } from '../agents/networks/actor-critic.ts';
import { type OptimiserState, outputAll, outputState, stateFrom, stateInputs } from '../update/state.ts';
import type { PpoConfig } from './settings.ts';

/** Sizes that the programs are compiled for. */
export interface PpoSizes {
  /** Samples of a rollout: environments x steps. */
  readonly samples: number;
  readonly minibatches: number;
}

/** What an update learns from; rows are samples. */
export interface PpoBatch {
  readonly observations: Float32Array; // (samples, observationSize), normalised
  readonly actions: Float32Array; // (samples, actionSize), as sampled
  readonly oldParams: Float32Array; // (samples, paramSize), the distribution that was sampled from
  readonly oldLogProbs: Float32Array; // (samples)
  readonly oldValues: Float32Array; // (samples)
  readonly advantages: Float32Array; // (samples)
  readonly returns: Float32Array; // (samples)
}

/** What may change from update to update without compiling anew. */
export interface PpoKnobs {
  readonly actorRate: number;
  readonly criticRate: number;
  readonly clipRange: number;
  readonly klCoef: number;
  /** The KL beyond which the update stops; Infinity never stops it. */
  readonly klLimit: number;
  /** The guard's bound; Infinity switches it off. */
  readonly guard: number;
  /** Gradient steps that the run has taken, for Adam's corrections and the schedules that count them. */
  readonly stepsDone: number;
  /** Minibatches in a row that were not finite before this update. */
  readonly streak?: number;
}

/** What the loss says of a minibatch. The entropy and the KL to the reference are NaN where the loss has none. */
const MEANS = ['policyLoss', 'valueLoss', 'loss', 'entropy', 'clipFraction', 'gradNorm', 'klRef'] as const;

/** What became of an update: means over the minibatches that were finite, and how far it came. */
export interface LearnStats extends Readonly<Record<(typeof MEANS)[number], number>> {
  /** Minibatches that were looked at, the one that ended the update included. */
  readonly minibatches: number;
  /** Those that were stepped along. */
  readonly taken: number;
  /** Those in a row, at the end, that were not finite. */
  readonly streak: number;
  readonly skipped: number;
  /** The exact KL of each minibatch that was looked at, at the weights that it saw. */
  readonly kls: Float32Array;
  /** The last of them. */
  readonly lastKl: number;
  readonly stopped: 'no' | 'kl' | 'non-finite';
}

export interface PpoPrograms {
  readonly learn: Program;
  readonly measure: Program;
  /** Non-finite minibatches in a row that end an update. */
  readonly skipLimit: number;
  dispose(): void;
}

/** Compiles the two programs of an update. */
export async function compilePpo(
  model: ActorCritic,
  config: PpoConfig,
  sizes: PpoSizes,
  options: { device?: 'cpu' | 'webgpu' | 'cuda'; threads?: number } = {},
): Promise<PpoPrograms> {
  // What is not finite is for the graph to leave out and count.
  const unchecked = { ...options, checkFeeds: false };
  const [learn, measure] = await Promise.all([
    compile(learnGraph(model, config, sizes), unchecked),
    compile(measureGraph(model, sizes.samples), unchecked),
  ]);
  return {
    learn,
    measure,
    skipLimit: config.skipLimit,
    dispose() {
      learn.dispose();
      measure.dispose();
    },
  };
}

// ---- learn: all minibatches of an update ---------------------------------------------------------------------------

function learnGraph(model: ActorCritic, config: PpoConfig, { samples, minibatches }: PpoSizes): Graph {
  const { layout, distribution, observationSize } = model;
  const { paramSize, actionSize } = distribution;
  const trips = minibatches * config.epochs;
  const batch = samples / minibatches;
  const hasReference = config.reference !== 'none';

  const g = new Graph();
  const columnsOf = (name: string, width: number): Tensor => g.input(name, [samples, width]);
  const data = {
    obs: columnsOf('observations', observationSize),
    action: columnsOf('actions', actionSize),
    oldParams: columnsOf('oldParams', paramSize),
    oldLogProb: columnsOf('oldLogProbs', 1),
    returns: columnsOf('returns', 1),
    ...(config.valueClip === null ? {} : { oldValue: columnsOf('oldValues', 1) }),
  };
  const advantages = columnsOf('advantages', 1);
  const order = g.input('order', [trips, batch], 'int64');
  const state = stateInputs(g, layout.size);
  const scalar = (name: string): Tensor => g.input(name, []);
  const stepsDone = scalar('stepsDone');
  const actorRate = scalar('actorRate');
  const clipRange = scalar('clipRange');
  const klLimit = scalar('klLimit');
  const penalised = config.klCoef > 0 || config.klCoefRule !== 'fixed';
  const klCoef = penalised ? scalar('klCoef') : undefined;
  const criticRate = config.criticLearningRate === null ? actorRate : scalar('criticRate');
  const guardBound = config.guard === null ? undefined : scalar('guard');
  /** The rate of each parameter; the actor's is 0 while `policyMoves` is false. */
  const ratesWhile = (policyMoves: Tensor | undefined): Tensor => {
    if (!policyMoves && criticRate === actorRate) return actorRate;
    const actor = policyMoves ? mul(actorRate, cast(policyMoves, 'float32')) : actorRate;
    return ratesByGroup(layout, { actor, critic: criticRate });
  };

  // ---- what depends on the data alone, for all minibatches at once
  const columns = { ...data, ...(hasReference ? { refParams: referenceParams(g, model, data.obs) } : {}) };
  const widths = Object.values(columns).map(t => t.shape[1]);
  const packed = gather(concat(Object.values(columns), 1), order); // (trips, batch, width)
  const advantage = gather(advantages, order); // (trips, batch, 1)
  const share = config.normaliseAdvantages ? normalised(advantage) : advantage;
  const pieces = concat([packed, share], 2);
  const counts = add(g.constant(Float64Array.from({ length: trips }, (_, i) => i)), stepsDone); // (trips)
  const corrections = adamCorrections(add(counts, 1), { epsilon: config.adamEpsilon });
  const entropyCoefs = entropyCoefficients(config, counts);
  const refCoefs = hasReference ? referenceCoefficients(config, counts) : undefined;
  const [ratioMin, ratioMax] = [sub(1, clipRange), add(1, clipRange)];

  const result = loop({
    trips,
    carry: {
      ...state,
      taken: g.constant(0, [], 'int64'),
      streak: scalar('streak'),
      klSum: g.constant(0),
    },
    body({ iteration, carry }) {
      const parts = split(gather(pieces, iteration), [...widths, 1], 1);
      const named = Object.fromEntries(Object.keys(columns).map((name, i) => [name, parts[i]]));
      const { obs, action, oldParams, oldLogProb, returns, oldValue, refParams } = named;
      const adv = parts.at(-1)!;
      const tensors = layout.tensors(carry.weights);
      const policy = model.policy(tensors, obs);
      const value = model.value(tensors, obs);

      const logRatio = sub(distribution.graph.logProb(policy, action), oldLogProb);
      const ratio = exp(clip(logRatio, -LOG_RATIO_LIMIT, LOG_RATIO_LIMIT));
      const { loss: policyLoss, clipFraction } = clippedSurrogate(ratio, adv, ratioMin, ratioMax);
      const valueLoss = valueLossOf(config, value, returns, oldValue);
      const entropy = reduceMean(distribution.graph.entropy(policy));
      const kl = reduceMean(distribution.graph.kl(oldParams, policy));

      let loss = add(policyLoss, mul(valueLoss, config.valueCoef));
      if (entropyCoefs) loss = sub(loss, mul(entropy, gather(entropyCoefs, iteration)));
      if (config.entropyMin !== null) {
        loss = add(loss, mul(relu(sub(config.entropyMin, entropy)), config.entropyMinCoef));
      }
      if (klCoef) loss = add(loss, mul(kl, klCoef));
      const klRef = refParams ? reduceMean(distribution.graph.kl(policy, refParams)) : undefined;
      if (klRef && refCoefs) loss = add(loss, mul(klRef, gather(refCoefs, iteration)));

      const [gradient] = grad(loss, [carry.weights]);
      const { scale, norm } = clipScale(gradient, config.gradientClip ?? 1e30);
      // Neither NaN nor infinity is less than infinity; the loss is looked at as well, since a clip hides its NaN.
      const finite = less(add(norm, mul(loss, 0)), Number.POSITIVE_INFINITY);
      const { within, klSum } = withinLimit(config, {
        kl: where(finite, kl, 0),
        klLimit,
        klSum: carry.klSum,
        iteration,
        minibatches,
      });
      const apply = and(finite, config.targetKlPer === 'epoch' ? finite : within);
      const next = adam(carry, {
        gradient,
        gradientScale: scale,
        // Beyond the guard's bound the policy waits for the guard, and only the value function goes on learning: every
        // further step would be taken back, and from further away in a worse direction.
        learningRate: ratesWhile(guardBound && lessEqual(kl, guardBound)),
        // By the steps that were taken: one that was left out is no step of Adam's.
        corrections: correctionsAt(corrections, carry.taken),
        apply,
      });
      const streak = mul(add(carry.streak, 1), cast(not(finite), 'float32'));
      const goOn = and(or(within, not(finite)), less(streak, config.skipLimit));
      return {
        carry: { ...next, taken: add(carry.taken, cast(apply, 'int64')), streak, klSum },
        scan: {
          policyLoss,
          valueLoss,
          loss,
          kl,
          clipFraction,
          gradNorm: norm,
          applied: cast(apply, 'float32'),
          finite: cast(finite, 'float32'),
          ...(entropyCoefs || config.entropyMin !== null ? { entropy } : {}),
          ...(klRef ? { klRef } : {}),
        },
        goOn,
      };
    },
  });
  outputState(g, result.carry, {
    newStreak: result.carry.streak,
    iterations: result.iterations,
    ...(result.scan as Record<string, Tensor>),
  });
  return g;
}

/** To mean 0 and std 1 in each minibatch (trips, batch, 1); only centred where there is hardly any spread. */
function normalised(advantage: Tensor): Tensor {
  const axes = { axes: [1], keepDims: true };
  const centred = sub(advantage, reduceMean(advantage, axes));
  const std = sqrt(reduceMean(mul(centred, centred), axes));
  return div(centred, where(less(std, 0.01), 1, add(std, 1e-8)));
}

/** The clipped surrogate: -mean of min(ratio·adv, clipped ratio·adv). Where the clipped side is smaller, it is constant. */
function clippedSurrogate(
  ratio: Tensor,
  adv: Tensor,
  ratioMin: Tensor,
  ratioMax: Tensor,
): { loss: Tensor; clipFraction: Tensor } {
  const clipped = clip(ratio, ratioMin, ratioMax);
  const gain = min(mul(ratio, adv), stopGradient(mul(clipped, adv)));
  const outside = cast(not(equal(ratio, clipped)), 'float32');
  return { loss: neg(reduceMean(gain)), clipFraction: reduceMean(outside) };
}

/** Squared error, clipped as the policy's ratio is, and mixed with smooth L1, as the config says. */
function valueLossOf(
  config: PpoConfig,
  value: Tensor,
  returns: Tensor,
  oldValue: Tensor | undefined,
): Tensor {
  const error = sub(value, returns);
  const squared = mul(error, error);
  let loss = squared;
  if (oldValue && config.valueClip !== null) {
    const moved = clip(sub(value, oldValue), -config.valueClip, config.valueClip);
    const clippedError = sub(add(oldValue, moved), returns);
    loss = max(squared, mul(clippedError, clippedError));
  }
  if (config.valueHuber) {
    const size = max(error, neg(error));
    const smooth = where(less(size, 1), mul(squared, 0.5), sub(size, 0.5));
    loss = mul(add(loss, smooth), 0.5);
  }
  return reduceMean(loss);
}

/** The entropy bonus at each step, warm-up included; undefined where there is none. */
function entropyCoefficients(
  { entropyCoef, entropyWarmupCoef, entropyWarmupSteps }: PpoConfig,
  counts: Tensor,
) {
  if (entropyWarmupCoef === 0 || entropyWarmupSteps === 0) {
    return entropyCoef === 0 ? undefined : add(mul(counts, 0), entropyCoef);
  }
  const left = relu(sub(1, mul(counts, 1 / entropyWarmupSteps)));
  return add(mul(left, entropyWarmupCoef), entropyCoef);
}

/** The weight of the KL to the reference at each step: linear to its final value, where it stays. */
function referenceCoefficients(
  { klRefCoefInitial, klRefCoefFinal, klRefDecaySteps }: PpoConfig,
  counts: Tensor,
): Tensor {
  const done = klRefDecaySteps === 0 ? add(mul(counts, 0), 1) : clip(mul(counts, 1 / klRefDecaySteps), 0, 1);
  return add(mul(done, klRefCoefFinal - klRefCoefInitial), klRefCoefInitial);
}

/** The reference's distributions over the rollout. */
function referenceParams(g: Graph, model: ActorCritic, obs: Tensor): Tensor {
  return model.policy(model.layout.tensors(g.input('reference', [model.layout.size])), obs);
}

/** Whether the KL allows another step: of this minibatch, or, at the end of an epoch, the mean over it. */
function withinLimit(
  config: PpoConfig,
  at: { kl: Tensor; klLimit: Tensor; klSum: Tensor; iteration: Tensor; minibatches: number },
): { within: Tensor; klSum: Tensor } {
  const { kl, klLimit, klSum, iteration, minibatches } = at;
  if (config.targetKlPer === 'minibatch') return { within: lessEqual(kl, klLimit), klSum };
  const sum = add(klSum, kl);
  const position = sub(iteration, mul(div(iteration, minibatches), minibatches)); // whole-number division
  const epochEnds = equal(position, minibatches - 1);
  const over = greater(mul(sum, 1 / minibatches), klLimit);
  return { within: not(and(epochEnds, over)), klSum: mul(sum, cast(not(epochEnds), 'float32')) };
}

// ---- measure: the whole rollout after the update -------------------------------------------------------------------

function measureGraph(model: ActorCritic, samples: number): Graph {
  const { layout, distribution, observationSize } = model;
  const g = new Graph();
  const obs = g.input('observations', [samples, observationSize]);
  const actions = g.input('actions', [samples, distribution.actionSize]);
  const oldDistribution = g.input('oldParams', [samples, distribution.paramSize]);
  const oldLogProb = g.input('oldLogProbs', [samples, 1]);
  const before = g.input('before', [layout.size]);
  const after = g.input('after', [layout.size]);
  const bound = g.input('bound', []);

  const [actor, critic] = layout.groups.map(group => group.size);
  const [oldActor] = split(before, [actor, critic], 0);
  const [newActor, newCritic] = split(after, [actor, critic], 0);
  const policyOf = (part: Tensor): Tensor => model.policy(layout.tensors(concat([part, newCritic], 0)), obs);
  const guarded = guard(oldActor, newActor, bound, part =>
    reduceMean(distribution.graph.kl(oldDistribution, policyOf(part))),
  );
  const policy = policyOf(guarded.weights);
  const logRatio = sub(distribution.graph.logProb(policy, actions), oldLogProb);
  const ratio = exp(clip(logRatio, -LOG_RATIO_LIMIT, LOG_RATIO_LIMIT));
  const { weights, ...held } = guarded;
  outputAll(g, {
    weights: concat([weights, newCritic], 0),
    ...held,
    stateKls: distribution.graph.kl(oldDistribution, policy), // (samples, 1)
    k1: reduceMean(k1Graph(logRatio)),
    k3: reduceMean(k3Graph(logRatio)),
    entropy: reduceMean(distribution.graph.entropy(policy)),
    ratioMean: reduceMean(ratio),
    ratioMax: reduceMax(ratio),
    ratioMin: neg(reduceMax(neg(ratio))),
  });
  return g;
}

// ---- running the programs --------------------------------------------------------------------------------------------

type Arrays = Record<string, Float32Array>;

/** Runs a program on those of the values that it takes, which depend on the config; numbers are its scalars. */
function run(program: Program, given: Readonly<Record<string, unknown>>): Arrays {
  const feeds = program.inputs.map(({ name }) => {
    const value = given[name];
    return [name, typeof value === 'number' ? Float32Array.of(value) : value] as const;
  });
  return program.run<Arrays>(Object.fromEntries(feeds) as Arrays);
}

/** The one number of an output, whatever its type. */
const numberOf = ([value]: ArrayLike<number> & Iterable<number>): number => Number(value);

/** One update without the guard: all epochs, or as many as the KL allows. */
export function learn(
  { learn: program, skipLimit }: PpoPrograms,
  batch: PpoBatch,
  state: OptimiserState,
  order: BigInt64Array,
  knobs: PpoKnobs,
  reference?: Float32Array,
): { state: OptimiserState; stats: LearnStats } {
  const out = run(program, { ...batch, ...state, order, reference, streak: 0, ...knobs });
  const looked = numberOf(out.iterations);
  const finite = Array.from({ length: looked }, (_, i) => i).filter(i => out.finite[i] === 1);
  const mean = (name: string): number => {
    if (!out[name] || finite.length === 0) return Number.NaN;
    return finite.reduce((sum, i) => sum + out[name][i], 0) / finite.length;
  };
  const means = Object.fromEntries(MEANS.map(name => [name, mean(name)]));
  const taken = out.applied.subarray(0, looked).reduce((sum, applied) => sum + applied, 0);
  const streak = out.newStreak[0];
  const refused = out.finite[looked - 1] === 1 && (looked < out.kl.length || out.applied[looked - 1] === 0);
  return {
    state: stateFrom(out),
    stats: {
      ...(means as Record<(typeof MEANS)[number], number>),
      minibatches: looked,
      taken,
      streak,
      skipped: looked - finite.length,
      kls: out.kl.slice(0, looked),
      lastKl: out.kl[looked - 1],
      stopped: streak >= skipLimit ? 'non-finite' : refused ? 'kl' : 'no',
    },
  };
}

/** What the whole rollout says of the policy after the update. */
export type MeasureStats = KlOverStates &
  Readonly<Record<'klRaw' | 'scale' | 'backtracks' | 'k1' | 'k3' | 'entropy', number>> &
  Readonly<Record<'ratioMean' | 'ratioMax' | 'ratioMin', number>>;

/** Looks at the whole rollout under the weights that an update gave, and takes back what leaves the bound. */
export function measure(
  { measure: program }: PpoPrograms,
  batch: PpoBatch,
  before: Float32Array,
  after: Float32Array,
  bound: number,
): { weights: Float32Array; stats: MeasureStats } {
  const { weights, stateKls, ...seen } = run(program, { ...batch, before, after, bound });
  const numbers = Object.fromEntries(Object.entries(seen).map(([name, value]) => [name, numberOf(value)]));
  return { weights, stats: { ...numbers, ...highestOf(stateKls) } as MeasureStats };
}
