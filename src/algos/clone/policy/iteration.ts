/**
 * Behaviour cloning: a policy that acts as an environment's demonstrators do, and a value function of their returns, as a
 * run that training can begin from (`train({ from })`).
 *
 * The actor learns the demonstrators' actions by cross-entropy, or the odds that they give to each action where they say
 * (`logits`); the critic learns the discounted rewards that followed, in the scale that training uses, so that the first
 * advantages mean something.
 *
 * `iterate` does one epoch: collect (once), learn, recover, report. Demonstrations follow from the seed, so a run that was
 * killed records them again and goes on to the same bits.
 */
import type { Program } from '../../../engine/program.ts';
import { Rng } from '../../../random/rng.ts';
import type { Demonstrations } from '../../../rollout/demonstrations.ts';
import { ObservationNormaliser, RunningMoments } from '../../../rollout/normalise.ts';
import type { ActorCritic } from '../../agents/networks/actor-critic.ts';
import { compileFor, runtimeOf } from '../../agents/runtime.ts';
import type { IterationResult } from '../../algorithm.ts';
import type { TrainEvent } from '../../events.ts';
import { guardedUpdate, newCounters, UNBOUNDED, UNTOUCHED } from '../../update/guarded.ts';
import { moments } from '../../update/moments.ts';
import { copyOf, newState, stateFrom } from '../../update/state.ts';
import { stopwatch } from '../../update/stopwatch.ts';
import { TrainerState } from '../../update/trainer-state.ts';
import type { ClonePolicySnapshot } from './checkpoint.ts';
import { rateAt, ratesOfEpoch, unguarded } from './control.ts';
import { epochGraph } from './graphs.ts';
import { rowOf } from './row.ts';
import { type ClonePolicyConfig, clonePolicySettings } from './settings.ts';

/** What a cloner is made of. */
export interface ClonePolicyOptions {
  readonly model: ActorCritic;
  readonly config: ClonePolicyConfig;
  /** How many demonstrations there will be, and how they are recorded. */
  readonly count: number;
  readonly record: () => Promise<Demonstrations>;
}

const DIAGNOSIS = {
  wrong: 'the weights were not finite after an epoch',
  remedy: 'use a lower learningRate, then look at the scale of observations and rewards (rewardScale)',
};

/** Cloning of demonstrators, an epoch at a time. Compiles nothing and records nothing before the first. */
export function createClonePolicyTrainer(options: ClonePolicyOptions) {
  const { model, config, count } = options;
  const batch = Math.min(config.batchSize, count);
  const trips = Math.floor(count / batch);
  const [initRng, orderRng] = new Rng(config.seed).split(2);
  const own = new TrainerState(clonePolicySettings, config, newCounters(), { order: orderRng });
  const { counters, rngs } = own;
  let state = newState(model.layout.initialise(initRng));
  const normaliser = config.normaliseObservations
    ? new ObservationNormaliser(model.observationSize)
    : undefined;
  let data: Demonstrations | undefined;
  let program: Program | undefined;

  async function prepare(): Promise<{ data: Demonstrations; program: Program }> {
    data ??= normalised(await options.record(), normaliser);
    program ??= await compileFor(
      model,
      'learn',
      epochGraph(model, config, { count, batch, trips, hasLogits: data.logits !== undefined }),
      runtimeOf(config),
    );
    return { data, program };
  }

  return {
    counters,
    normaliser,
    get weights() {
      return state.weights;
    },
    /** Once the first epoch is done. */
    get demonstrations() {
      return data;
    },

    async iterate(): Promise<IterationResult> {
      const events: TrainEvent[] = [];
      const watch = stopwatch();

      // ---- collect: once
      const ready = await prepare();
      watch.lap('collect');

      // ---- learn
      const rows = rngs.order.permutation(count);
      const epochsBefore = counters.steps / count;
      const update = await guardedUpdate(unguarded, counters, events, {
        steps: count,
        diagnosis: DIAGNOSIS,
        attempt() {
          const { observations, actions, returns, logits } = ready.data;
          const out = ready.program.run<Record<string, Float32Array>>({
            observations,
            actions,
            returns,
            ...(logits ? { logits } : {}),
            order: BigInt64Array.from({ length: trips * batch }, (_, i) => BigInt(rows[i])),
            stepsDone: Float32Array.of(counters.gradientSteps),
            rates: ratesOfEpoch(config, epochsBefore * trips, trips),
            ...state,
          });
          const mean = (name: string): number => moments(out[name]).mean;
          return {
            learningRate: rateAt(config, (epochsBefore + 0.5) / config.epochs),
            failed: out.newWeights.some(value => !Number.isFinite(value)),
            ...UNBOUNDED,
            taken: trips,
            skipped: 0,
            streak: 0,
            losses: { policy: mean('policyLoss'), value: mean('valueLoss'), accuracy: mean('accuracy') },
            next: stateFrom(out),
          };
        },
        hold({ next }) {
          state = next;
          return UNTOUCHED;
        },
      });
      watch.lap('update');

      // ---- report
      return { row: rowOf(counters, update.done, watch.columns(count)), events };
    },

    snapshot(): ClonePolicySnapshot {
      return {
        ...state,
        reference: undefined,
        ...own.snapshot(),
        observationNormaliser: normaliser?.moments.state() ?? null,
      };
    },

    restore(snapshot: ClonePolicySnapshot) {
      state = copyOf(snapshot);
      // A fork saves its beginning before demonstrations are recorded again, whose moments then take their place.
      if (snapshot.observationNormaliser) normaliser?.moments.restore(snapshot.observationNormaliser);
      own.restore(snapshot);
    },

    dispose: () => program?.dispose(),
  };
}

/** Observations as the policy will see them: by what all of them say together. */
function normalised(data: Demonstrations, normaliser: ObservationNormaliser | undefined): Demonstrations {
  if (normaliser === undefined) return data;
  normaliser.moments.restore(new RunningMoments(normaliser.moments.size).state());
  normaliser.moments.update(data.observations);
  normaliser.apply(data.observations, data.observations);
  return data;
}
