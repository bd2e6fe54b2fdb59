/**
 * Behaviour cloning of text: a model learns to write a task's demonstrations, token by token (cross-entropy over the
 * tokens of completions, their end included). It makes the model that GRPO starts from: groups are worth comparing only
 * when some completions are better than others.
 */
import { type LanguageModel, type ScoredSequence, shapeFor } from '../lm/index.ts';
import { adamW, norm } from '../nn/index.ts';
import { Rng, type RngState } from '../random/index.ts';
import { drawDemonstration, drawPrompt, type TextTask } from '../tasks/index.ts';
import { tokenWeights } from './grpo/advantages.ts';
import { type CloneConfig, cloneProblems } from './grpo/clone-config.ts';
import { promptTokens } from './grpo/collect.ts';
import { TextPrograms } from './grpo/programs.ts';
import type { IterationResult, TrainEvent } from './iteration.ts';
import { cutRate } from './recovery.ts';
import { scheduleFactor } from './schedule.ts';
import { TrainError } from './train-error.ts';

/** What the numbers in a checkpoint do not hold as tensors. */
export interface CloneCounters {
  iteration: number;
  /** Demonstrations so far. */
  envSteps: number;
  gradientSteps: number;
  recoveryFactor: number;
  recoveries: number;
  skippedInARow: number;
}

export interface CloneSnapshot {
  readonly weights: Float32Array;
  readonly m: Float32Array;
  readonly v: Float32Array;
  readonly reference: undefined;
  readonly counters: CloneCounters;
  readonly rng: { readonly prompt: RngState };
}

export interface CloneTrainer {
  readonly model: LanguageModel;
  readonly config: CloneConfig;
  readonly counters: Readonly<CloneCounters>;
  iterate(): Promise<IterationResult>;
  /** Shares its arrays with the trainer: use it before the next iteration. */
  snapshot(): CloneSnapshot;
  restore(snapshot: CloneSnapshot): void;
  adjust(changes: Readonly<Record<string, number | null>>): void;
  dispose(): Promise<void>;
}

const MAX_TOO_LONG = 100;
const adjustable: readonly (keyof CloneConfig)[] = [
  'learningRate',
  'learningRateEnd',
  'warmupShare',
  'weightDecay',
  'gradientClip',
  'recoveryFactor',
  'recoveries',
];

export function createCloneTrainer({
  model,
  task,
  config: given,
}: {
  readonly model: LanguageModel;
  readonly task: TextTask;
  readonly config: CloneConfig;
}): CloneTrainer {
  let config = given;
  if (!task.demonstration)
    throw new TrainError(`${task.name} has no demonstrations to clone: give the task a demonstration()`);
  const { layout, tokenizer, options } = model;
  const programs = new TextPrograms(model, { device: config.device, threads: config.threads });
  let rng = new Rng(config.seed).split(1)[0];
  let state: Record<'weights' | 'm' | 'v', Float32Array> = {
    weights: model.weights,
    m: new Float32Array(layout.size),
    v: new Float32Array(layout.size),
  };
  let draft: typeof state = { weights: state.weights.slice(), m: state.m.slice(), v: state.v.slice() };
  const gradient = new Float32Array(layout.size);
  const counters: CloneCounters = {
    iteration: 0,
    envSteps: 0,
    gradientSteps: 0,
    recoveryFactor: 1,
    recoveries: 0,
    skippedInARow: 0,
  };
  const perIteration = config.batchSize * config.batchesPerIteration;
  const totalSteps = Math.ceil(config.steps / perIteration) * perIteration;

  /** Demonstrations that fit; those that do not are counted. */
  async function draw(count: number): Promise<{ sequences: ScoredSequence[]; skipped: number }> {
    const sequences: ScoredSequence[] = [];
    let [skipped, inARow] = [0, 0];
    while (sequences.length < count) {
      const prompt = await drawPrompt(task, rng);
      const prefix = promptTokens(model, prompt);
      const tokens = [...tokenizer.encode(drawDemonstration(task, prompt, rng)), tokenizer.end];
      if (prefix.length + tokens.length <= options.context) {
        sequences.push({ prompt: prefix, tokens });
        inARow = 0;
        continue;
      }
      skipped++;
      if (++inARow >= MAX_TOO_LONG) {
        throw new TrainError(
          `${MAX_TOO_LONG} demonstrations of ${task.name} in a row are too long, the last with ${prefix.length + tokens.length} tokens for a context of ${options.context}: use a model with a larger context`,
        );
      }
    }
    return { sequences, skipped };
  }

  return {
    model,
    get config() {
      return config;
    },
    counters,

    async iterate() {
      const started = performance.now();
      const events: TrainEvent[] = [];
      const { learningRateSchedule: schedule, learningRateEnd: end, warmupShare: warmup } = config;
      for (const name of ['weights', 'm', 'v'] as const) draft[name].set(state[name]);
      const sums = { loss: 0, gradNorm: 0, tokens: 0, prompts: 0, drawSeconds: 0 };
      let [taken, skipped, tooLong, failed] = [0, 0, 0, false];
      let learningRate = 0;
      for (let i = 0; i < config.batchesPerIteration && !failed; i++) {
        const progress = (counters.envSteps + (i + 0.5) * config.batchSize) / totalSteps;
        learningRate =
          config.learningRate * counters.recoveryFactor * scheduleFactor({ schedule, end, warmup }, progress);
        const drawnAt = performance.now();
        const { sequences, skipped: notFitting } = await draw(config.batchSize);
        sums.drawSeconds += (performance.now() - drawnAt) / 1000;
        tooLong += notFitting;
        const shape = shapeFor(sequences, Math.min(config.microbatchSize, config.batchSize), options.context);
        const lengths = sequences.map(({ tokens }) => tokens.length);
        const perToken = tokenWeights(lengths, 'token', shape.newTokens);
        const weights = new Float32Array(sequences.length * shape.newTokens);
        lengths.forEach((length, row) => {
          weights.fill(perToken[row], row * shape.newTokens, row * shape.newTokens + length);
        });
        const { loss } = await programs.gradient(
          draft.weights,
          sequences,
          sequences.map((_, row) => row),
          shape,
          1,
          'clone',
          { columns: { weights }, referenceWidth: 1, scalars: {} },
          gradient,
        );
        const length = norm(gradient);
        if (!Number.isFinite(loss) || !Number.isFinite(length)) {
          skipped++;
          failed = ++counters.skippedInARow >= config.skipLimit;
          continue;
        }
        counters.skippedInARow = 0;
        adamW(layout, draft, {
          gradient,
          gradientScale:
            config.gradientClip === null ? 1 : config.gradientClip / Math.max(length, config.gradientClip),
          learningRate,
          step: counters.gradientSteps + taken + 1,
          beta1: config.adamBeta1,
          beta2: config.adamBeta2,
          epsilon: config.adamEpsilon,
          weightDecay: config.weightDecay,
        });
        taken++;
        sums.loss += loss;
        sums.gradNorm += length;
        sums.tokens += lengths.reduce((a, b) => a + b, 0);
        sums.prompts += sequences.reduce((sum, { prompt }) => sum + prompt.length, 0);
      }
      failed ||= !Number.isFinite(norm(draft.weights));
      counters.iteration++;
      counters.envSteps += perIteration;
      if (failed) {
        counters.skippedInARow = 0;
        const diagnosis = {
          wrong: 'the loss or gradient was not finite again',
          remedy: 'start a new run with a lower learningRate',
        };
        cutRate(counters, config, learningRate, diagnosis, events);
      } else {
        [state, draft] = [draft, state];
        model.weights = state.weights;
        counters.gradientSteps += taken;
        if (skipped > 0) events.push({ type: 'skipped', count: skipped });
      }
      const seconds = (performance.now() - started) / 1000;
      const row: Record<string, number> = {
        'train/iteration': counters.iteration,
        'train/step': counters.envSteps,
        'train/lr': learningRate,
        'train/minibatches_run': failed ? 0 : taken,
        'train/skipped': skipped,
        'completion/prompts_skipped': tooLong,
        'time/collect_s': sums.drawSeconds,
        'time/update_s': seconds - sums.drawSeconds,
        'time/steps_per_second': perIteration / seconds,
      };
      if (taken > 0) {
        row['loss/clone'] = sums.loss / taken;
        row['grad/norm'] = sums.gradNorm / taken;
        row['completion/length'] = sums.tokens / (taken * config.batchSize);
        row['completion/prompt_length'] = sums.prompts / (taken * config.batchSize);
      }
      return { row, events };
    },

    snapshot() {
      return { ...state, reference: undefined, counters: { ...counters }, rng: { prompt: rng.state() } };
    },

    restore(snapshot) {
      if (snapshot.weights.length !== layout.size) {
        throw new TrainError(
          `the checkpoint has ${snapshot.weights.length} weights, this model ${layout.size}: use the config it was trained with`,
        );
      }
      state = { weights: snapshot.weights.slice(), m: snapshot.m.slice(), v: snapshot.v.slice() };
      model.weights = state.weights;
      Object.assign(counters, snapshot.counters);
      rng = Rng.fromState(snapshot.rng.prompt);
    },

    adjust(changes) {
      for (const key of Object.keys(changes)) {
        if (!adjustable.includes(key as keyof CloneConfig))
          throw new TrainError(`${key} cannot change in a run that is under way: start a new run with it`);
        const [problem] = cloneProblems({ [key]: changes[key] });
        if (problem !== undefined) throw new TrainError(problem);
      }
      config = { ...config, ...changes } as CloneConfig;
    },

    dispose: () => programs.dispose(),
  };
}
