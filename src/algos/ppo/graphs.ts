/**
 * Proximal policy optimisation (Schulman et al. 2017, arXiv 1707.06347), with every update inside a KL bound: its
 * mathematics. programs.ts runs it.
 *
 * The policy and the value function share nothing, so each learns in a loop of its own over all epochs and minibatches:
 * forward, loss, backward, clipping, Adam; the policy's also has the early stop. `measureGraph` looks at the whole
 * rollout afterwards, and `guardGraph` takes back what went too far.
 *
 * Where this leaves the paper:
 * 1. The KL that stops an update is exact, not estimated, and is looked at before a step, so no step has to be undone.
 * 2. After the update the guard bounds the mean exact KL over the whole rollout (src/kl/guard.ts).
 * 3. A minibatch with a non-finite loss or gradient changes nothing, in neither network; several in a row end the update.
 * 4. Advantages whose std in a minibatch is below .01 are only centred: dividing would make noise of them.
 * 5. Each network's gradient is clipped by its own norm (docs/ppo.md, Clipping).
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
import { k1Graph, k3Graph, LOG_RATIO_LIMIT } from '../../kl/estimators.ts';
import { guard } from '../../kl/guard.ts';
import { type AdamState, adam, adamCorrections, clipScale, correctionsAt } from '../../nn/adam.ts';
import { layoutOf } from '../agents/actor.ts';
import type { ActorCritic } from '../agents/networks/actor-critic.ts';
import { outputAll, outputState, stateInputs } from '../update/state.ts';
import type { PpoConfig } from './settings.ts';

/** Sizes that the programs are compiled for. */
export interface PpoSizes {
  /** Samples of a rollout: environments x steps. */
  readonly samples: number;
  readonly minibatches: number;
}

// ---- what both loops have ------------------------------------------------------------------------------------------

type Carried = Record<keyof AdamState | 'taken' | 'streak', Tensor>;

/** Inputs that a network learns with, whichever it is. */
function learningInputs(g: Graph, config: PpoConfig, { samples, minibatches }: PpoSizes, size: number) {
  const trips = minibatches * config.epochs;
  const batch = samples / minibatches;
  const scalar = (name: string): Tensor => g.input(name, []);
  const order = g.input('order', [trips, batch], 'int32');
  /** 0 for a minibatch that was not finite for the other network: neither learns from it. */
  const allowed = g.input('allowed', [trips]);
  const state = stateInputs(g, size);
  const counts = add(g.constant(Float64Array.from({ length: trips }, (_, i) => i)), scalar('stepsDone')); // (trips)
  const corrections = adamCorrections(add(counts, 1), { epsilon: config.adamEpsilon });
  const carry: Carried = { ...state, taken: g.constant(0, [], 'int64'), streak: scalar('streak') };
  return {
    trips,
    batch,
    scalar,
    counts,
    corrections,
    carry,
    columnOf: (name: string, width: number): Tensor => g.input(name, [samples, width]),
    /** The rows of a minibatch. */
    rowsAt: (iteration: Tensor) => {
      const rows = gather(order, iteration);
      return (column: Tensor): Tensor => gather(column, rows);
    },
    isAllowed: (iteration: Tensor): Tensor => greater(gather(allowed, iteration), 0),
  };
}

/** One step down the gradient of a loss; none where it, or the loss, is not finite. */
function gradientStep(
  config: PpoConfig,
  carry: Carried,
  at: {
    readonly loss: Tensor;
    readonly rate: Tensor;
    readonly allowed: Tensor;
    readonly corrections: ReturnType<typeof adamCorrections>;
    /** Whether a step that could be taken is taken. */
    readonly isTaken: (usable: Tensor) => Tensor;
  },
) {
  const [gradient] = grad(at.loss, [carry.weights]);
  const { scale, norm } = clipScale(gradient, config.gradientClip ?? 1e30);
  // Neither NaN nor infinity is less than infinity; the loss is looked at as well, since a clip hides its NaN.
  const finite = less(add(norm, mul(at.loss, 0)), Number.POSITIVE_INFINITY);
  const usable = and(finite, at.allowed);
  const apply = at.isTaken(usable);
  const next = adam(carry, {
    gradient,
    gradientScale: scale,
    learningRate: at.rate,
    // By the steps that were taken: one that was left out is no step of Adam's.
    corrections: correctionsAt(at.corrections, carry.taken),
    apply,
  });
  const streak = mul(add(carry.streak, 1), cast(not(usable), 'float32'));
  return {
    usable,
    carry: { ...next, taken: add(carry.taken, cast(apply, 'int64')), streak },
    isPatient: less(streak, config.skipLimit),
    scan: { gradNorm: norm, applied: cast(apply, 'float32'), finite: cast(finite, 'float32') },
  };
}

// ---- the policy ----------------------------------------------------------------------------------------------------

/** All minibatches of an update for the policy, until the KL or too many that are not finite end it. */
export function policyGraph(model: ActorCritic, config: PpoConfig, sizes: PpoSizes): Graph {
  const { distribution, observationSize } = model;
  const { paramSize, actionSize } = distribution;
  const { minibatches } = sizes;
  const layout = layoutOf(model, 'actor');

  const g = new Graph();
  const inputs = learningInputs(g, config, sizes, layout.size);
  const { scalar, columnOf, counts, corrections } = inputs;
  const data = {
    obs: columnOf('observations', observationSize),
    action: columnOf('actions', actionSize),
    oldParams: columnOf('oldParams', paramSize),
    oldLogProb: columnOf('oldLogProbs', 1),
    advantage: columnOf('advantages', 1),
  };
  const refParams =
    config.reference === 'none'
      ? undefined
      : model.policy(layout.tensors(g.input('reference', [layout.size])), data.obs);
  const rate = scalar('actorRate');
  const clipRange = scalar('clipRange');
  const klLimit = scalar('klLimit');
  const klCoef = config.klCoef > 0 || config.klCoefRule !== 'fixed' ? scalar('klCoef') : undefined;
  const guardBound = config.guard === null ? undefined : scalar('guard');
  const entropyCoefs = entropyCoefficients(config, counts);
  const refCoefs = refParams ? referenceCoefficients(config, counts) : undefined;
  const [ratioMin, ratioMax] = [sub(1, clipRange), add(1, clipRange)];

  const result = loop({
    trips: inputs.trips,
    carry: { ...inputs.carry, klSum: g.constant(0) },
    body({ iteration, carry }) {
      const rows = inputs.rowsAt(iteration);
      const oldParams = rows(data.oldParams);
      const policy = model.policy(layout.tensors(carry.weights), rows(data.obs));
      const advantage = rows(data.advantage);
      const adv = config.normaliseAdvantages ? normalised(advantage) : advantage;

      const logRatio = sub(distribution.graph.logProb(policy, rows(data.action)), rows(data.oldLogProb));
      const ratio = exp(clip(logRatio, -LOG_RATIO_LIMIT, LOG_RATIO_LIMIT));
      const { loss: policyLoss, clipFraction } = clippedSurrogate(ratio, adv, ratioMin, ratioMax);
      const entropy = reduceMean(distribution.graph.entropy(policy));
      const kl = reduceMean(distribution.graph.kl(oldParams, policy));

      let loss = policyLoss;
      if (entropyCoefs) loss = sub(loss, mul(entropy, gather(entropyCoefs, iteration)));
      if (config.entropyMin !== null) {
        loss = add(loss, mul(relu(sub(config.entropyMin, entropy)), config.entropyMinCoef));
      }
      if (klCoef) loss = add(loss, mul(kl, klCoef));
      const klRef = refParams ? reduceMean(distribution.graph.kl(policy, rows(refParams))) : undefined;
      if (klRef && refCoefs) loss = add(loss, mul(klRef, gather(refCoefs, iteration)));

      let within: Tensor | undefined;
      let klSum = carry.klSum;
      const step = gradientStep(config, carry, {
        loss,
        // Beyond the guard's bound the policy waits for the guard, and only the value function goes on learning: every
        // further step would be taken back, and from further away in a worse direction.
        rate: guardBound ? mul(rate, cast(lessEqual(kl, guardBound), 'float32')) : rate,
        allowed: inputs.isAllowed(iteration),
        corrections,
        isTaken(usable) {
          const seen = where(usable, kl, 0);
          ({ within, klSum } = withinLimit(config, { kl: seen, klLimit, klSum, iteration, minibatches }));
          return and(usable, config.targetKlPer === 'epoch' ? usable : within);
        },
      });
      return {
        carry: { ...step.carry, klSum },
        scan: {
          policyLoss,
          loss,
          kl,
          clipFraction,
          ...step.scan,
          ...(entropyCoefs || config.entropyMin !== null ? { entropy } : {}),
          ...(klRef ? { klRef } : {}),
        },
        goOn: and(or(within!, not(step.usable)), step.isPatient),
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

// ---- the value function --------------------------------------------------------------------------------------------

/** `count` minibatches of an update for the value function, of which the first `limit` are stepped along. */
export function valueGraph(model: ActorCritic, config: PpoConfig, sizes: PpoSizes): Graph {
  const layout = layoutOf(model, 'critic');
  const g = new Graph();
  const inputs = learningInputs(g, config, sizes, layout.size);
  const obs = inputs.columnOf('observations', model.observationSize);
  const returns = inputs.columnOf('returns', 1);
  const oldValues = config.valueClip === null ? undefined : inputs.columnOf('oldValues', 1);
  const rate = inputs.scalar('criticRate');
  const [count, limit] = ['count', 'limit'].map(name => g.input(name, [], 'int64'));
  const result = loop({
    trips: { count, atMost: inputs.trips },
    carry: inputs.carry,
    body({ iteration, carry }) {
      const rows = inputs.rowsAt(iteration);
      const value = model.value(layout.tensors(carry.weights), rows(obs));
      const valueLoss = valueLossOf(config, value, rows(returns), oldValues && rows(oldValues));
      const step = gradientStep(config, carry, {
        loss: mul(valueLoss, config.valueCoef),
        rate,
        allowed: inputs.isAllowed(iteration),
        corrections: inputs.corrections,
        isTaken: usable => and(usable, less(iteration, limit)),
      });
      return { carry: step.carry, scan: { valueLoss, ...step.scan }, goOn: step.isPatient };
    },
  });
  outputState(g, result.carry, {
    iterations: result.iterations,
    ...(result.scan as Record<string, Tensor>),
  });
  return g;
}

/** To mean 0 and std 1 in a minibatch (batch, 1); only centred where there is hardly any spread. */
function normalised(advantage: Tensor): Tensor {
  const centred = sub(advantage, reduceMean(advantage));
  const std = sqrt(reduceMean(mul(centred, centred)));
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

// ---- the whole rollout after the update ----------------------------------------------------------------------------

/** What a rollout holds of the policy that collected it. */
function collectedInputs(g: Graph, { distribution, observationSize }: ActorCritic, samples: number) {
  return {
    obs: g.input('observations', [samples, observationSize]),
    oldDistribution: g.input('oldParams', [samples, distribution.paramSize]),
  };
}

/** The whole rollout under a policy's weights: the exact KL in every state, and the ratios. */
export function measureGraph(model: ActorCritic, samples: number): Graph {
  const { distribution } = model;
  const layout = layoutOf(model, 'actor');
  const g = new Graph();
  const { obs, oldDistribution } = collectedInputs(g, model, samples);
  const actions = g.input('actions', [samples, distribution.actionSize]);
  const oldLogProb = g.input('oldLogProbs', [samples, 1]);
  const policy = model.policy(layout.tensors(g.input('weights', [layout.size])), obs);
  const logRatio = sub(distribution.graph.logProb(policy, actions), oldLogProb);
  const ratio = exp(clip(logRatio, -LOG_RATIO_LIMIT, LOG_RATIO_LIMIT));
  const stateKls = distribution.graph.kl(oldDistribution, policy); // (samples, 1)
  outputAll(g, {
    kl: reduceMean(stateKls),
    stateKls,
    k1: reduceMean(k1Graph(logRatio)),
    k3: reduceMean(k3Graph(logRatio)),
    entropy: reduceMean(distribution.graph.entropy(policy)),
    ratioMean: reduceMean(ratio),
    ratioMax: reduceMax(ratio),
    ratioMin: neg(reduceMax(neg(ratio))),
  });
  return g;
}

/** What the guard leaves of an update that went beyond its bound. */
export function guardGraph(model: ActorCritic, samples: number): Graph {
  const { distribution } = model;
  const layout = layoutOf(model, 'actor');
  const g = new Graph();
  const { obs, oldDistribution } = collectedInputs(g, model, samples);
  const [before, after] = ['before', 'after'].map(name => g.input(name, [layout.size]));
  const { weights, kl, scale, backtracks } = guard(before, after, g.input('bound', []), candidate =>
    reduceMean(distribution.graph.kl(oldDistribution, model.policy(layout.tensors(candidate), obs))),
  );
  outputAll(g, { weights, kl, scale, backtracks });
  return g;
}
