/** Some groups of a batch, with everything a person wants to see of them, for the run's `completions.jsonl`. */
import { k3 } from '../../kl/estimators.ts';
import type { LanguageModel } from '../../lm/model.ts';
import type { CompletionRecord, GroupRecord } from '../../runs/completions.ts';
import type { TextTask } from '../../tasks/text-task.ts';
import type { Progress } from '../algorithm.ts';
import type { TokenValues } from '../text/programs.ts';
import type { TextBatch } from './collect.ts';
import type { GrpoConfig } from './settings.ts';

const MAX_TEXT = 20_000;

/** The first groups of a batch. */
export function completionRecords(parts: {
  readonly batch: TextBatch;
  readonly task: TextTask;
  readonly model: LanguageModel;
  readonly config: Pick<GrpoConfig, 'logGroups' | 'groupSize'>;
  readonly counters: Progress;
  readonly advantages: Float64Array;
  readonly newTokens: number;
  readonly old: TokenValues;
  readonly reference: TokenValues | undefined;
}): GroupRecord[] {
  const { batch, task, model, counters, old, reference, newTokens } = parts;
  const { logGroups, groupSize } = parts.config;
  const { vocabulary } = model.options;
  return batch.prompts.slice(0, logGroups).map(({ prompt }, group) => ({
    iteration: counters.iteration,
    step: counters.steps,
    prompt: prompt.text.slice(0, MAX_TEXT),
    ...(reference ? { klRefEstimator: reference.all ? ('exact' as const) : ('k3' as const) } : {}),
    completions: batch.completions
      .slice(group * groupSize, (group + 1) * groupSize)
      .map((completion, i): CompletionRecord => {
        const row = group * groupSize + i;
        const at = row * newTokens;
        const klRef =
          reference && completion.tokens.map((_, t) => tokenKl(old, reference, at + t, vocabulary));
        return {
          text: completion.text.slice(0, MAX_TEXT),
          ended: completion.end,
          parsed: completion.parsed,
          reward: Number.isNaN(completion.reward) ? null : completion.reward,
          parts: Object.fromEntries(task.rewardParts.map((name, part) => [name, completion.parts[part]])),
          metrics: Object.fromEntries(
            task.metricNames.map((name, metric) => {
              const value = completion.metrics[metric];
              return [name, Number.isFinite(value) ? value : null];
            }),
          ),
          advantage: short(parts.advantages[row]),
          tokens: completion.tokens.map(token => model.tokenizer.piece(token)),
          logProbs: completion.logProbs.map(short),
          ...(klRef ? { klRef } : {}),
          ...(completion.problem === undefined ? {} : { problem: completion.problem }),
        };
      }),
  }));
}

/** KL(policy ‖ reference) at one token, before the update. */
function tokenKl(old: TokenValues, reference: TokenValues, at: number, vocabulary: number): number {
  if (!old.all || !reference.all) return short(k3(reference.logProbs[at] - old.logProbs[at]));
  let kl = 0;
  for (let i = at * vocabulary; i < (at + 1) * vocabulary; i++)
    kl += Math.exp(old.all[i]) * (old.all[i] - reference.all[i]);
  return short(Math.max(0, kl));
}

/** Five digits are enough to look at, and halve the file. */
const short = (value: number): number => Number(value.toPrecision(5));
