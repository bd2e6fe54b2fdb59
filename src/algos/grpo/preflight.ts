/** GRPO's parts of a preflight: the model, the sampler against the scorer, rewards, an update, what is not finite. */

import { MismatchError, TrainError } from '../../base/errors.ts';
import { grouped, number } from '../../base/numbers.ts';
import { LmError } from '../../lm/errors.ts';
import { loadModel } from '../../lm/huggingface.ts';
import type { LanguageModel } from '../../lm/model.ts';
import { resolveSettings } from '../../settings/resolve.ts';
import { createTask } from '../../tasks/definition.ts';
import type { TextTask } from '../../tasks/text-task.ts';
import type { PartReport, PreflightOptions } from '../algorithm.ts';
import { FailedLater, NO_RATE, type PartFound, tryParts, tryResume } from '../preflight.ts';
import { type ModelStart, newModel } from '../text/model.ts';
import type { GroupRecord } from './completions.ts';
import { createGrpoTrainer, type GrpoTrainer } from './iteration.ts';
import { type GrpoConfig, grpoSettings } from './settings.ts';

/** The parts in their order. */
const preflightParts = [
  'task',
  'model',
  'collect',
  'score',
  'rewards',
  'batch',
  'update',
  'guard',
  'nonfinite',
  'resume',
] as const;
type Part = (typeof preflightParts)[number];

/** A learning rate that leaves no weight finite. */
const WILD_RATE = 1e30;
const ITERATIONS = 2;

/** Few prompts and steps; all that decides what is computed stays. */
function tinyConfig(config: GrpoConfig): GrpoConfig {
  const promptsPerIteration = Math.min(4, config.promptsPerIteration);
  const groupSize = Math.min(4, config.groupSize);
  const preset = {
    ...config,
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
export async function preflight(options: PreflightOptions<GrpoConfig, ModelStart>): Promise<PartReport[]> {
  const { subject, start } = options;
  if (subject.kind !== 'task') throw new TrainError(`${subject.id} is no text task`);
  const config = tinyConfig(options.config);
  let task: TextTask | undefined;
  let model: LanguageModel | undefined;
  let trainer: GrpoTrainer | undefined;
  let first: Record<string, number> = {};
  let records: readonly GroupRecord[] = [];
  let updated: Record<string, number> = {};
  const completions = () => records.flatMap(group => group.completions);

  const parts: Record<Part, () => Promise<PartFound>> = {
    async task() {
      task = await createTask(subject.definition, subject.options);
      const sources = Object.entries(task.sources?.() ?? {}).map(([name, value]) => `${name}: ${value}`);
      return {
        detail: [`${task.name}, parts ${task.rewardParts.join(', ')}`, ...sources].join('; '),
        ...(task.demonstration
          ? {}
          : { warnings: ['it has no demonstrations: keel clone cannot make a model for it'] }),
      };
    },
    async model() {
      model = start === undefined ? newModel(task!, config) : await loadModel(start.directory);
      model.tokenizer.encode(task!.characters);
      trainer = createGrpoTrainer({ model, task: task!, config });
      const { layers, width, heads, context, vocabulary } = model.options;
      return {
        detail: `${grouped(model.layout.size)} parameters (${layers} layers, width ${width}, ${heads} heads), vocabulary ${vocabulary}, context ${context}, on ${config.device}, ${config.threads} threads`,
        warnings: [
          ...(start === undefined ? ['its weights are random: keel clone makes a model to start from'] : []),
          ...namelessTokens(model),
        ],
      };
    },
    // An iteration whose step is too small to change a weight: what it measures is whether the programs agree.
    async collect() {
      trainer!.adjust({ learningRate: NO_RATE });
      try {
        ({ row: first } = await trainer!.iterate());
      } catch (error) {
        // It collects and scores in one go: a refusal to score means that collecting went well.
        throw error instanceof MismatchError ? new FailedLater('score', error) : error;
      }
      ({ records } = trainer!);
      const tokens = completions().reduce((sum, completion) => sum + completion.tokens.length, 0);
      return {
        detail: `${completions().length} completions, ${number(first['completion/length'])} tokens each, ${number(tokens / first['time/collect_s'])} tokens/s, temperature ${config.temperature}`,
        seconds: first['time/collect_s'],
      };
    },
    async score() {
      const [sampler, ratio] = [first['kl/sampler'], first['policy/ratio_mean']];
      // To the policy itself, and to a reference that is the same: both are 0 before anything was learnt.
      const kl = Math.max(first['kl/step'], first['kl/ref'] ?? first['kl/ref_k3'] ?? 0);
      if (!(kl < 1e-6))
        throw new Error(
          `with equal weights the KL is ${number(kl)}, which must be 0: another temperature, precision, dropout or re-tokenised text in sampler or scorer could be why`,
        );
      return {
        detail: `sampler and scorer differ by a KL of ${number(sampler)}, a log-probability of at most ${number(first['sampler/logp_diff_max'])}; ratio off 1 by ${number(Math.abs(ratio - 1))}`,
        warnings: retokenised(model!, completions()),
      };
    },
    async rewards() {
      const rewards = completions().map(({ reward }) => reward ?? Number.NaN);
      const ungraded = completions().find(({ problem }) => problem !== undefined);
      if (ungraded)
        throw new Error(`${first['reward/ungraded']} completions could not be graded: ${ungraded.problem}`);
      const [low, high] = [Math.min(...rewards), Math.max(...rewards)];
      const warnings: string[] = [];
      if (first['completion/parse_rate'] === 0 && low === high)
        warnings.push(
          `no completion could be read and every reward is ${number(low)}: the weights look random; start from a cloned model (keel clone, --from)`,
        );
      else if (low === high)
        warnings.push(`every reward is ${number(low)}: without differences within a group nothing is learnt`);
      else if (first['completion/parse_rate'] === 0)
        warnings.push('no completion could be read: the weights look random, or are of another task');
      return {
        detail: `${number(low)} to ${number(high)}, mean ${number(first['reward/mean'])}; ${Math.round(100 * first['completion/parse_rate'])} % could be read; ${Math.round(100 * first['reward/zero_std_groups'])} % of groups without spread`,
        warnings,
      };
    },
    async batch() {
      const { promptsPerIteration, groupSize } = config;
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
      const truncated = first['completion/truncated'];
      const full = options.config.promptsPerIteration * options.config.groupSize;
      return {
        detail: `${promptsPerIteration} groups of ${groupSize} here, ${full} completions a batch in the run, ${Math.min(options.config.microbatchSize, options.config.minibatchSize ?? full)} at once; advantages sum to 0 in each group`,
        warnings:
          truncated > 0.5
            ? [
                `${Math.round(100 * truncated)} % of completions were cut off: maxNewTokens is too small, or the model never ends`,
              ]
            : [],
      };
    },
    async update() {
      trainer!.adjust({ learningRate: config.learningRate });
      ({ row: updated } = await trainer!.iterate());
      for (const name of ['loss/policy', 'grad/norm', 'kl/step'])
        if (!Number.isFinite(updated[name]))
          throw new Error(
            `${name} is ${updated[name]} after one update: lower learningRate, or look at the rewards`,
          );
      return {
        detail: `${updated['train/minibatches_run']} gradient steps; loss ${number(updated['loss/policy'])}, gradient norm ${number(updated['grad/norm'])}, entropy ${number(updated['policy/entropy'])} nats a token`,
        seconds: updated['time/update_s'],
      };
    },
    async guard() {
      const { guard } = config;
      if (guard !== null && updated['kl/step'] > guard)
        throw new Error(
          `kl/step ${number(updated['kl/step'])} is above the bound ${guard}: this is a fault in Keel`,
        );
      return {
        detail: `kl/step ${number(updated['kl/step'])}, ${guard === null ? 'no bound (guard null)' : `bound ${guard}`}`,
        seconds: updated['time/guard_s'],
      };
    },
    async nonfinite() {
      const before = trainer!.model.weights.slice();
      trainer!.adjust({ learningRate: WILD_RATE, gradientClip: null });
      const { events } = await trainer!.iterate();
      const same = trainer!.model.weights.every((value, i) => Object.is(value, before[i]));
      const acted = events.some(({ type }) => type === 'restored' || type === 'guard');
      if (!same && !acted) throw new Error('a step that overflows was kept: this is a fault in Keel');
      if (trainer!.model.weights.some(value => !Number.isFinite(value)))
        throw new Error('weights are not finite after a wild step: this is a fault in Keel');
      return {
        detail: `a step that overflows was ${same ? 'undone, weights to the bit' : 'taken back by the guard'}`,
      };
    },
    resume: async () =>
      tryResume(options, config, await options.train(config), {
        file: 'model.safetensors',
        learnt: 'weights',
        question: 'do prompts and grades of the task depend on its options and the generator alone?',
      }),
  };
  try {
    return await tryParts(parts, options.onPart);
  } finally {
    await trainer?.dispose();
    await task?.close?.();
  }
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
