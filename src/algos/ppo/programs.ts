/** Compiling and running PPO's graphs: the policy and the value function in turn, or side by side on two threads. */

import type { Program } from '../../engine/program.ts';
import { type Aside, openAside } from '../../engine/wasm/aside.ts';
import type { WasmProgram } from '../../engine/wasm/program.ts';
import { heldLimit } from '../../kl/guard.ts';
import { highestOf, type KlOverStates } from '../../kl/over-states.ts';
import { partsOf } from '../agents/actor.ts';
import type { ActorCritic } from '../agents/networks/actor-critic.ts';
import { compileFor, compileWhenAsked, isWasm, type Runtime } from '../agents/runtime.ts';
import { type OptimiserState, stateFrom } from '../update/state.ts';
import { guardGraph, measureGraph, type PpoSizes, policyGraph, valueGraph } from './graphs.ts';
import type { PpoConfig } from './settings.ts';

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

/** PPO's programs for one task. */
export interface PpoPrograms {
  readonly model: ActorCritic;
  readonly policy: Program;
  readonly value: ValueProgram;
  readonly measure: Program;
  /** Compiled when an update first leaves its bound, where that takes no waiting. */
  readonly guard: () => Program;
  readonly valueCoef: number;
  /** Minibatches of a whole update. */
  readonly trips: number;
  /** Non-finite minibatches in a row that end an update. */
  readonly skipLimit: number;
  dispose(): void;
}

/** Compiles the programs of an update. */
export async function compilePpo(
  model: ActorCritic,
  config: PpoConfig,
  sizes: PpoSizes,
  runtime: Runtime = {},
): Promise<PpoPrograms> {
  const trips = sizes.minibatches * config.epochs;
  const [policy, value, measure, guard] = await Promise.all([
    compileFor(model, 'learn', policyGraph(model, config, sizes), runtime),
    compileFor(model, 'learn', valueGraph(model, config, sizes), runtime, { shared: true }),
    compileFor(model, 'learn', measureGraph(model, sizes.samples), runtime),
    compileWhenAsked(model, 'learn', () => guardGraph(model, sizes.samples), runtime),
  ]);
  const learning = valueProgram(value, trips);
  return {
    model,
    policy,
    value: learning,
    measure,
    guard: guard.program,
    valueCoef: config.valueCoef,
    trips,
    skipLimit: config.skipLimit,
    dispose() {
      for (const program of [policy, learning, measure, guard]) program.dispose();
    },
  };
}

type Arrays = Record<string, Float32Array>;
type Given = Readonly<Record<string, unknown>>;

/** Those of the values that a program takes, which depend on the config; numbers are its scalars. */
function feedsOf(program: Program, given: Given): Arrays {
  const feeds = program.inputs.map(({ name, dtype }) => {
    const value = given[name];
    if (typeof value !== 'number') return [name, value] as const;
    return [name, dtype === 'int64' ? BigInt64Array.of(BigInt(value)) : Float32Array.of(value)] as const;
  });
  return Object.fromEntries(feeds) as Arrays;
}

const run = (program: Program, given: Given): Arrays => program.run<Arrays>(feedsOf(program, given));

/** The one number of an output, whatever its type. */
const numberOf = ([value]: ArrayLike<number> & Iterable<number>): number => Number(value);

// ---- the value function, here or aside -----------------------------------------------------------------------------

/**
 * The value function learns as many minibatches as the policy does, which is known when that one is through. In this thread
 * it comes after the policy. On a thread of its own it runs at the same time towards all of them and is told where to
 * stop; if it was already beyond, it learns once more, up to there. So both ways end in the same bits.
 */
export interface ValueProgram {
  begin(given: Given): void;
  /** Of `count` minibatches the first `limit` were stepped along. */
  end(count: number, limit: number): Arrays;
  /** Goes on in a thread of its own as soon as that is there, where it can. */
  useThread(): void;
  readonly isAside: boolean;
  dispose(): void;
}

function valueProgram(program: Program, trips: number): ValueProgram {
  let aside: Aside | undefined;
  let given: Given = {};
  /** The program while its thread is at work. */
  let running: WasmProgram | undefined;
  const executeHere = (count: number, limit: number): Arrays => run(program, { ...given, count, limit });
  return {
    get isAside() {
      return aside?.isReady === true;
    },
    useThread() {
      if (isWasm(program)) aside ??= openAside(program);
    },
    begin(values) {
      given = values;
      if (!aside?.isReady || !isWasm(program)) return;
      program.write(feedsOf(program, { ...given, count: trips, limit: trips }));
      running = program;
      aside.begin();
    },
    end(count, limit) {
      if (!running || !aside) return executeHere(count, limit);
      // It looks at these before every minibatch.
      running.write({ limit: BigInt64Array.of(BigInt(limit)), count: BigInt64Array.of(BigInt(count)) });
      const finished = running;
      running = undefined;
      aside.end();
      const out = finished.read() as Arrays;
      const wentTooFar =
        numberOf(out.iterations) > count || out.applied.subarray(limit, count).some(applied => applied === 1);
      return wentTooFar ? executeHere(count, limit) : out;
    },
    dispose() {
      aside?.dispose();
      program.dispose();
    },
  };
}

// ---- an update -----------------------------------------------------------------------------------------------------

/** One update without the guard: all epochs, or as many as the KL allows. */
export function learn(
  programs: PpoPrograms,
  batch: PpoBatch,
  state: OptimiserState,
  order: Int32Array,
  knobs: PpoKnobs,
  reference?: Float32Array,
): { state: OptimiserState; stats: LearnStats } {
  const { model, trips, skipLimit, valueCoef } = programs;
  const parts = {
    weights: partsOf(model, state.weights),
    m: partsOf(model, state.m),
    v: partsOf(model, state.v),
  };
  const stateOf = (which: 'actor' | 'critic') => ({
    weights: parts.weights[which],
    m: parts.m[which],
    v: parts.v[which],
  });
  // A minibatch that is not finite for one network alone is left out by both, and changes what follows: then all is done again.
  const allowed = new Float32Array(trips).fill(1);
  for (;;) {
    const given = { ...batch, order, streak: 0, ...knobs, allowed };
    programs.value.begin({ ...given, ...stateOf('critic') });
    let policy: Arrays;
    try {
      policy = run(programs.policy, {
        ...given,
        ...stateOf('actor'),
        reference: reference && partsOf(model, reference).actor,
      });
    } catch (error) {
      programs.value.end(0, 0); // nothing may write into memory that is in use
      throw error;
    }
    const looked = numberOf(policy.iterations);
    const last = looked - 1;
    const isLastUsable = policy.finite[last] === 1 && allowed[last] === 1;
    const refused = isLastUsable && (looked < trips || policy.applied[last] === 0);
    const value = programs.value.end(looked, isLastUsable && policy.applied[last] === 0 ? last : looked);
    if (leaveOut(allowed.subarray(0, looked), policy.finite, value.finite)) continue;
    const counted = Array.from({ length: looked }, (_, i) => i).filter(i => allowed[i] === 1);
    const mean = (of: (i: number) => number): number =>
      counted.length === 0 ? Number.NaN : counted.reduce((sum, i) => sum + of(i), 0) / counted.length;
    const meanOf = (scan: Float32Array | undefined): number => (scan ? mean(i => scan[i]) : Number.NaN);
    const streak = policy.newStreak[0];
    const joined = (name: keyof OptimiserState, one: Float32Array, other: Float32Array): Float32Array => {
      const flat = new Float32Array(state[name].length);
      const { actor, critic } = partsOf(model, flat);
      actor.set(one);
      critic.set(other);
      return flat;
    };
    const [actor, critic] = [stateFrom(policy), stateFrom(value)];
    return {
      state: {
        weights: joined('weights', actor.weights, critic.weights),
        m: joined('m', actor.m, critic.m),
        v: joined('v', actor.v, critic.v),
      },
      stats: {
        policyLoss: meanOf(policy.policyLoss),
        valueLoss: meanOf(value.valueLoss),
        loss: mean(i => policy.loss[i] + valueCoef * value.valueLoss[i]),
        entropy: meanOf(policy.entropy),
        clipFraction: meanOf(policy.clipFraction),
        gradNorm: mean(i => Math.hypot(policy.gradNorm[i], value.gradNorm[i])),
        klRef: meanOf(policy.klRef),
        minibatches: looked,
        taken: policy.applied.subarray(0, looked).reduce((sum, applied) => sum + applied, 0),
        streak,
        skipped: looked - counted.length,
        kls: policy.kl.slice(0, looked),
        lastKl: policy.kl[last],
        stopped: streak >= skipLimit ? 'non-finite' : refused ? 'kl' : 'no',
      },
    };
  }
}

/**
 * Marks the minibatches that were not finite, up to the first that was so for one network alone: true if there is one. Where both
 * had it so, both have left it out already.
 */
function leaveOut(allowed: Float32Array, policy: Float32Array, value: Float32Array): boolean {
  for (let i = 0; i < allowed.length; i++) {
    if (allowed[i] === 0 || (policy[i] === 1 && value[i] === 1)) continue;
    allowed[i] = 0;
    if (policy[i] !== value[i]) return true;
  }
  return false;
}

/** What the whole rollout says of the policy after the update. */
export type MeasureStats = KlOverStates &
  Readonly<Record<'klRaw' | 'scale' | 'backtracks' | 'k1' | 'k3' | 'entropy', number>> &
  Readonly<Record<'ratioMean' | 'ratioMax' | 'ratioMin', number>>;

/** Looks at the whole rollout under the weights that an update gave, and takes back what leaves the bound. */
export function measure(
  { model, measure: program, guard }: PpoPrograms,
  batch: PpoBatch,
  before: Float32Array,
  after: Float32Array,
  bound: number,
): { weights: Float32Array; stats: MeasureStats } {
  const look = (weights: Float32Array): Omit<MeasureStats, 'klRaw' | 'scale' | 'backtracks'> => {
    const { stateKls, ...seen } = run(program, { ...batch, weights });
    const numbers = Object.fromEntries(Object.entries(seen).map(([name, value]) => [name, numberOf(value)]));
    return { ...numbers, ...highestOf(stateKls) } as MeasureStats;
  };
  const wanted = partsOf(model, after).actor;
  const seen = look(wanted);
  const { kl: klRaw } = seen;
  if (klRaw <= heldLimit(bound))
    return { weights: after, stats: { ...seen, klRaw, scale: 1, backtracks: 0 } };
  const held = run(guard(), { ...batch, before: partsOf(model, before).actor, after: wanted, bound });
  const weights = after.slice();
  partsOf(model, weights).actor.set(held.weights);
  const [kl, scale, backtracks] = [held.kl, held.scale, held.backtracks].map(numberOf);
  return { weights, stats: { ...look(held.weights), kl, klRaw, scale, backtracks } };
}
