/**
 * Behaviour cloning of text: a model learns to write a task's demonstrations, token by token (cross-entropy over the
 * tokens of completions, their end included). It makes the model that GRPO starts from: groups are worth comparing only
 * when some completions are better than others.
 *
 * `iterate` does some minibatches: collect demonstrations, learn, recover, report. There is no policy to stay near, so
 * nothing bounds an update; one whose steps are not finite is taken back all the same.
 */

import { TrainError } from '../../../base/errors.ts';
import type { LanguageModel } from '../../../lm/model.ts';
import { type ScoredSequence, shapeFor } from '../../../lm/scorer.ts';
import { Rng } from '../../../random/rng.ts';
import { tokenWeights } from '../../../rollout/group-advantages.ts';
import { drawDemonstration, drawPrompt } from '../../../tasks/draw-safely.ts';
import type { TextTask } from '../../../tasks/text-task.ts';
import type { TrainEvent } from '../../events.ts';
import type { TextTrainer } from '../../text/learner.ts';
import { TextOptimiser } from '../../text/optimiser.ts';
import { TextPrograms } from '../../text/programs.ts';
import { drawFitting, promptTokens } from '../../text/prompts.ts';
import { guardedUpdate, newCounters, UNBOUNDED, UNTOUCHED } from '../../update/guarded.ts';
import { stopwatch } from '../../update/stopwatch.ts';
import { TrainerState } from '../../update/trainer-state.ts';
import type { CloneTextSnapshot } from './checkpoint.ts';
import { rateAt } from './control.ts';
import { gradientGraph } from './graphs.ts';
import { rowOf } from './row.ts';
import { type CloneTextConfig, cloneTextSettings } from './settings.ts';

/** Cloning of a task's demonstrations, an iteration at a time. */
export interface CloneTextTrainer extends TextTrainer<CloneTextSnapshot> {
  readonly model: LanguageModel;
  readonly config: CloneTextConfig;
}

const DIAGNOSIS = {
  wrong: 'the loss or gradient was not finite again',
  remedy: 'start a new run with a lower learningRate',
};
const LOSS = { name: 'clone', graph: gradientGraph };

/** Compiles nothing yet: programs are made for the shapes that come up. */
export function createCloneTextTrainer({
  model,
  task,
  config,
}: {
  readonly model: LanguageModel;
  readonly task: TextTask;
  readonly config: CloneTextConfig;
}): CloneTextTrainer {
  if (!task.demonstration)
    throw new TrainError(`${task.name} has no demonstrations to clone: give the task a demonstration()`);
  const { tokenizer, options } = model;
  const programs = new TextPrograms(model, { device: config.device, threads: config.threads });
  const optimiser = new TextOptimiser(model, programs);
  const [promptRng] = new Rng(config.seed).split(1);
  const own = new TrainerState(cloneTextSettings, config, newCounters(), { prompt: promptRng });
  const { counters, rngs } = own;
  const microRows = Math.min(config.microbatchSize, config.batchSize);
  const perIteration = config.batchSize * config.batchesPerIteration;
  const totalSteps = Math.ceil(config.steps / perIteration) * perIteration;

  /** Demonstrations that fit; those that do not are counted. */
  const draw = () =>
    drawFitting<ScoredSequence>(
      config.batchSize,
      async () => {
        const prompt = await drawPrompt(task, rngs.prompt);
        const prefix = promptTokens(model, prompt);
        const tokens = [
          ...tokenizer.encode(await drawDemonstration(task, prompt, rngs.prompt)),
          tokenizer.end,
        ];
        return { item: { prompt: prefix, tokens }, tokens: prefix.length + tokens.length };
      },
      options.context,
      (inARow, tokens) =>
        `${inARow} demonstrations of ${task.name} in a row are too long, the last with ${tokens} tokens for a context of ${options.context}: use a model with a larger context`,
    );

  return {
    model,
    get config() {
      return own.config;
    },
    counters,

    async iterate() {
      const { config } = own; // as it is now
      const events: TrainEvent[] = [];
      const watch = stopwatch();
      const update = await guardedUpdate(config, counters, events, {
        steps: perIteration,
        diagnosis: DIAGNOSIS,
        async attempt() {
          const counted = { tokens: 0, prompts: 0, tooLong: 0 };
          let learningRate = 0;
          optimiser.begin(counters.skippedInARow);
          for (let i = 0; i < config.batchesPerIteration && optimiser.streak < config.skipLimit; i++) {
            // ---- collect
            const progress = (counters.steps + (i + 0.5) * config.batchSize) / totalSteps;
            learningRate = rateAt(config, counters, progress);
            const { items: sequences, skipped } = await draw();
            counted.tooLong += skipped;
            watch.lap('collect');

            // ---- learn
            const shape = shapeFor(sequences, microRows, options.context);
            const lengths = sequences.map(({ tokens }) => tokens.length);
            const perToken = tokenWeights(lengths, 'token', shape.newTokens);
            const weights = new Float32Array(sequences.length * shape.newTokens);
            lengths.forEach((length, row) => {
              weights.fill(perToken[row], row * shape.newTokens, row * shape.newTokens + length);
            });
            const batch = { sequences, shape, temperature: 1 };
            const minibatch = { batch, chosen: sequences.keys(), loss: LOSS, columns: { weights } };
            const knobs = { learningRate, stepsDone: counters.gradientSteps };
            const taken = await optimiser.step(minibatch, knobs, config);
            watch.lap('update');
            if (!taken) continue;
            counted.tokens += lengths.reduce((a, b) => a + b, 0);
            counted.prompts += sequences.reduce((sum, { prompt }) => sum + prompt.length, 0);
          }
          const failed = optimiser.streak >= config.skipLimit || !optimiser.draftIsFinite;
          return {
            ...UNBOUNDED,
            ...optimiser.counts,
            learningRate,
            failed,
            sums: { ...optimiser.sums, ...counted },
          };
        },
        hold({ failed }) {
          if (!failed) optimiser.adopt();
          return UNTOUCHED;
        },
      });
      watch.lap('update');
      return { row: rowOf(config, counters, update.done, watch.columns(perIteration)), events };
    },

    snapshot() {
      return { ...optimiser.state, reference: undefined, ...own.snapshot() };
    },

    restore(snapshot) {
      optimiser.restore(snapshot);
      own.restore(snapshot);
    },

    adjust: changes => own.adjust(changes),

    dispose: () => programs.dispose(),
  };
}
