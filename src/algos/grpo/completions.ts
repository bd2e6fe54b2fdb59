/**
 * `completions.jsonl`: some groups of each iteration with everything a person wants to see of them, a line a group.
 *
 * The file is bounded: when it has twice the groups that are kept, the older half goes. A resumed run drops what its
 * checkpoint does not have, as with rows and events, and writes the same lines again.
 */
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { writeFileAtomic } from '../../base/files.ts';
import { k3 } from '../../kl/estimators.ts';
import type { LanguageModel } from '../../lm/model.ts';
import { runPaths } from '../../runs/layout.ts';
import type { TextTask } from '../../tasks/text-task.ts';
import type { Progress } from '../algorithm.ts';
import type { TokenValues } from '../text/programs.ts';
import type { TextBatch } from './collect.ts';
import type { GrpoConfig } from './settings.ts';

/** One completion of a group. */
export interface CompletionRecord {
  readonly text: string;
  /** `end`, `stop`, `length` or `kl`. */
  readonly ended: string;
  readonly parsed: boolean;
  /** Null where it could not be graded. */
  readonly reward: number | null;
  readonly parts: Readonly<Record<string, number>>;
  /** Null where one does not apply. */
  readonly metrics: Readonly<Record<string, number | null>>;
  readonly advantage: number;
  /** The text of each token, as it was drawn. */
  readonly tokens: readonly string[];
  /** Log-probability of each token when it was drawn: after temperature and truncation. */
  readonly logProbs: readonly number[];
  /** KL to the reference at each token: exact, or k3 of the token; none without a reference. */
  readonly klRef?: readonly number[];
  readonly problem?: string;
}

/** One group: a line of the file. */
export interface GroupRecord {
  readonly iteration: number;
  readonly step: number;
  readonly prompt: string;
  readonly klRefEstimator?: 'exact' | 'k3';
  readonly completions: readonly CompletionRecord[];
}

/** Groups that stay at least. */
const KEPT_GROUPS = 500;
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

/** Adds an iteration's groups to a run's file. */
export class CompletionLog {
  readonly #path: string;
  #groups: number;

  /** Lines after `iteration` are dropped: they are of a run that was killed. */
  constructor(runDir: string, iteration: number) {
    this.#path = runPaths(runDir).completions;
    const lines = this.#lines();
    const kept = lines.filter(line => (iterationOf(line) ?? Number.POSITIVE_INFINITY) <= iteration);
    if (kept.length < lines.length) this.#rewrite(kept);
    this.#groups = kept.length;
  }

  add(records: readonly GroupRecord[]): void {
    if (records.length === 0) return;
    appendFileSync(this.#path, records.map(record => `${JSON.stringify(record)}\n`).join(''));
    this.#groups += records.length;
    if (this.#groups < 2 * KEPT_GROUPS) return;
    const kept = this.#lines().slice(-KEPT_GROUPS);
    this.#rewrite(kept);
    this.#groups = kept.length;
  }

  #lines(): string[] {
    if (!existsSync(this.#path)) return [];
    return readFileSync(this.#path, 'utf8')
      .split('\n')
      .filter(line => line !== '');
  }

  #rewrite(lines: readonly string[]): void {
    writeFileAtomic(this.#path, lines.map(line => `${line}\n`).join(''));
  }
}

/** The iteration of a line; undefined for one that was cut off by a kill. */
function iterationOf(line: string): number | undefined {
  try {
    const { iteration } = JSON.parse(line) as { iteration?: unknown };
    return typeof iteration === 'number' ? iteration : undefined;
  } catch {
    return undefined;
  }
}
