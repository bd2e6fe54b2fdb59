/** GRPO's parts of a preflight: the model, the sampler against the scorer, rewards, an update, what is not finite. */

import { TrainError } from '../../base/errors.ts';
import { grouped, number } from '../../base/numbers.ts';
import { typed } from '../../base/typed.ts';
import { LmError } from '../../lm/errors.ts';
import { loadModel } from '../../lm/huggingface.ts';
import type { LanguageModel } from '../../lm/model.ts';
import { resolveSettings } from '../../settings/resolve.ts';
import { createTask } from '../../tasks/definition.ts';
import { sourcesOf } from '../../tasks/draw-safely.ts';
import type { PartReport, PreflightOptions } from '../algorithm.ts';
import * as tried from '../preflight.ts';
import { newModel } from '../text/model.ts';
import type { ModelStart } from '../text/start.ts';
import { createGrpoTrainer, type GrpoTrainer } from './iteration.ts';
import { refKlOf } from './reference-kl.ts';
import { type GrpoConfig, grpoSettings } from './settings.ts';

/** The parts in their order. */
const preflightParts = 'task model collect score rewards batch update guard nonfinite resume'.split(' ');

/** A learning rate that leaves no weight finite. */
const WILD_RATE = 1e30;
const ITERATIONS = 2;

/** Few prompts and steps; all that decides what is computed stays. */
function tinyConfig(config: GrpoConfig): GrpoConfig {
  const promptsPerIteration = Math.min(4, config.promptsPerIteration);
  const groupSize = Math.min(4, config.groupSize);
  const preset = {
    ...config,
    autopilot: false,
    promptsPerIteration,
    groupSize,
    minibatchSize: null,
    epochs: Math.min(2, config.epochs),
    steps: ITERATIONS * promptsPerIteration * groupSize,
    logGroups: promptsPerIteration,
    checkpointEvery: 1,
    // The wild step below needs one.
    recoveries: Math.max(1, config.recoveries),
    skipLimit: 1,
  };
  return resolveSettings(grpoSettings, { preset });
}

/** Tries each part; after a failure the rest is not reached. */
export function preflight(options: PreflightOptions<GrpoConfig, ModelStart>): Promise<PartReport[]> {
  return tried.tryParts(preflightParts, allParts(options), options.onPart);
}

async function* allParts(options: PreflightOptions<GrpoConfig, ModelStart>): tried.Parts {
  const { subject, start } = options;
  if (subject.kind !== 'task') throw new TrainError(`${subject.id} is no text task`);
  const config = tinyConfig(options.config);
  const task = await createTask(subject.definition, subject.options);
  try {
    const sources = Object.entries(sourcesOf(task)).map(([name, value]) => `${name}: ${value}`);
    yield {
      detail: [`${task.name}, parts ${task.rewardParts.join(', ')}`, ...sources].join('; '),
      warnings: task.demonstration ? [] : ['it has no demonstrations: no model can be cloned for it'],
    };

    const model = start === undefined ? newModel(task, config) : await loadModel(start.directory);
    model.tokenizer.encode(task.characters);
    const trainer = createGrpoTrainer({ model, task, config });
    try {
      const { layers, width, heads, context, vocabulary } = model.options;
      yield {
        detail: `${grouped(model.layout.size)} parameters (${layers} layers, width ${width}, ${heads} heads), vocabulary ${vocabulary}, context ${context}, on ${config.device}, ${config.threads} threads`,
        warnings: [
          ...(start === undefined
            ? [`its weights are random: ${typed('clone', subject.reference)} makes a model to start --from`]
            : []),
          ...namelessTokens(model),
        ],
      };
      yield* batchParts(trainer, options.config, task.maxNewTokens);
      yield* updateParts(trainer, config);
    } finally {
      await trainer.dispose();
    }
  } finally {
    await task.close?.();
  }
  yield await tried.tryResume(options, config, await options.train(config), {
    file: 'model.safetensors',
    learnt: 'weights',
    question: 'do prompts and grades of the task depend on its options and the generator alone?',
  });
}

/** What one batch is; `run` are the settings of the run, whose batches are larger; `newTokens` is the task's limit. */
async function* batchParts(trainer: GrpoTrainer, run: GrpoConfig, newTokens: number): tried.Parts {
  const { temperature, promptsPerIteration, groupSize } = trainer.config;
  trainer.adjust({ learningRate: tried.NO_RATE });
  const row = yield* tried.firstIteration(trainer);
  const { records, model } = trainer;
  const completions = records.flatMap(group => group.completions);
  const tokens = completions.reduce((sum, completion) => sum + completion.tokens.length, 0);
  yield {
    detail: `${completions.length} completions, ${number(row['completion/length'])} tokens each, ${number(tokens / row['time/collect_s'])} tokens/s, temperature ${temperature}`,
    seconds: row['time/collect_s'],
  };

  // To the policy itself, and to a reference that is the same: both are 0 before anything was learnt.
  const kl = Math.max(row['kl/step'], row['kl/ref'] ?? row['kl/ref_k3'] ?? 0);
  if (!(kl < 1e-6))
    throw new Error(
      `with equal weights the KL is ${number(kl)}, which must be 0: another temperature, precision, dropout or re-tokenised text in sampler or scorer could be why`,
    );
  yield {
    detail: `sampler and scorer differ by a KL of ${number(row['kl/sampler'])}, a log-probability of at most ${number(row['sampler/logp_diff_max'])}; ratio off 1 by ${number(Math.abs(row['policy/ratio_mean'] - 1))}`,
    warnings: retokenised(model, completions),
  };

  const ungraded = completions.find(({ problem }) => problem !== undefined);
  if (ungraded)
    throw new Error(`${row['reward/ungraded']} completions could not be graded: ${ungraded.problem}`);
  const rewards = completions.map(({ reward }) => reward ?? Number.NaN);
  const [low, high] = [Math.min(...rewards), Math.max(...rewards)];
  yield {
    detail: `${number(low)} to ${number(high)}, mean ${number(row['reward/mean'])}; ${percent(row['completion/parse_rate'])} could be read; ${percent(row['reward/zero_std_groups'])} of groups without spread`,
    warnings: suspectRewards(low, high, row['completion/parse_rate'] > 0),
  };

  const odd = records.find(group => group.completions.length !== groupSize);
  if (records.length !== promptsPerIteration || odd)
    throw new Error(
      `the batch has ${records.length} groups, ${promptsPerIteration} of ${groupSize} were asked for: this is a fault in Keel`,
    );
  for (const { completions: group } of records) {
    const sum = group.reduce((total, { advantage }) => total + advantage, 0);
    if (Math.abs(sum) > 1e-3 * groupSize)
      throw new Error(`advantages of a group sum to ${number(sum)}, not to 0: this is a fault in Keel`);
  }
  const full = run.promptsPerIteration * run.groupSize;
  const truncated = row['completion/truncated'];
  // Of the run's own size: what fits here may not fit there.
  const refKl = refKlOf(run, full * (run.maxNewTokens ?? newTokens) * model.options.vocabulary);
  const cutOff = 'of completions were cut off: maxNewTokens is too small, or the model never ends';
  yield {
    detail: `${promptsPerIteration} groups of ${groupSize} here, ${full} completions a batch in the run, ${Math.min(run.microbatchSize, run.minibatchSize ?? full)} at once; advantages sum to 0 in each group${refKl === 'none' ? '' : `; KL to the reference: ${refKl}`}`,
    warnings: truncated > 0.5 ? [`${percent(truncated)} ${cutOff}`] : [],
  };
}

const percent = (share: number): string => `${Math.round(100 * share)}%`;

/** What rewards say of weights and task, if they say something odd. */
function suspectRewards(low: number, high: number, someRead: boolean): string[] {
  if (low !== high)
    return someRead ? [] : ['no completion could be read: the weights look random, or are of another task'];
  return [
    someRead
      ? `every reward is ${number(low)}: without differences within a group nothing is learnt`
      : `no completion could be read and every reward is ${number(low)}: the weights look random; start --from a cloned model`,
  ];
}

/** An update at the run's own rate, and one that overflows. */
async function* updateParts(trainer: GrpoTrainer, { learningRate, guard }: GrpoConfig): tried.Parts {
  trainer.adjust({ learningRate });
  const { row } = await trainer.iterate();
  tried.requireFinite(
    row,
    ['loss/policy', 'grad/norm', 'kl/step'],
    'lower learningRate, or look at the rewards',
  );
  yield {
    detail: `${row['train/minibatches_run']} gradient steps; loss ${number(row['loss/policy'])}, gradient norm ${number(row['grad/norm'])}, entropy ${number(row['policy/entropy'])} nats a token`,
    seconds: row['time/update_s'],
  };
  yield tried.guardFound(row, guard);

  const before = trainer.model.weights.slice();
  trainer.adjust({ learningRate: WILD_RATE, gradientClip: null });
  const { events } = await trainer.iterate();
  const { weights } = trainer.model;
  const same = weights.every((value, i) => Object.is(value, before[i]));
  const acted = events.some(({ type }) => type === 'restored' || type === 'guard');
  if (!same && !acted) throw new Error('a step that overflows was kept: this is a fault in Keel');
  if (!weights.every(Number.isFinite))
    throw new Error('weights are not finite after a wild step: this is a fault in Keel');
  yield {
    detail: `a step that overflows was ${same ? 'undone, weights to the bit' : 'taken back by the guard'}`,
  };
}

/** A vocabulary may be padded to a round number; much more than that, and the tokenizer is another model's. */
export function namelessTokens({ options: { vocabulary }, tokenizer }: LanguageModel): string[] {
  const nameless = vocabulary - tokenizer.size;
  return nameless <= Math.max(128, vocabulary / 50)
    ? []
    : [
        `${grouped(nameless)} of the vocabulary's ${grouped(vocabulary)} tokens have no text: is it the tokenizer that the model was trained with?`,
      ];
}

/** Whoever encodes the texts again gets other tokens in so many of them: why tokens are kept. */
export function retokenised(
  model: LanguageModel,
  completions: readonly { text: string; tokens: readonly string[] }[],
): string[] {
  const { tokenizer } = model;
  const other = completions.filter(({ text, tokens }) => {
    const pieces = tokens.filter(piece => piece !== tokenizer.piece(tokenizer.end));
    if (pieces.join('') !== text) return false;
    let again: number[];
    try {
      again = tokenizer.encode(text);
    } catch (error) {
      // Tokens without text of their own, which random weights draw as well as others.
      if (error instanceof LmError) return true;
      throw error;
    }
    return again.map(token => tokenizer.piece(token)).join('\u0000') !== pieces.join('\u0000');
  }).length;
  return other === 0
    ? []
    : [
        `${other} of ${completions.length} completions have other tokens when encoded again: tools that do so will see a KL that is not there`,
      ];
}
