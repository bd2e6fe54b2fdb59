/** What a policy is worth, as `keel eval` tells it. */
import type { Evaluation } from '../algos/policy.ts';
import { grouped, number } from '../base/numbers.ts';
import { median } from '../doctor/statistics/order.ts';
import type { Context } from './context.ts';

/** As JSON: each kind's own fields. */
export function evaluationJson(evaluation: Evaluation): Record<string, unknown> {
  const { kind, ...rest } = evaluation;
  switch (evaluation.kind) {
    case 'episodes': {
      const { returns, lengths, mean, std } = evaluation;
      return {
        episodes: returns.length,
        mean,
        std,
        ...spreadOf(returns),
        meanLength: meanOf(lengths),
        returns,
        lengths,
      };
    }
    case 'completions':
    case 'measurements':
      return rest;
    default:
      return evaluation satisfies never;
  }
}

/** For people. */
export function printEvaluation(
  { print, paint }: Context,
  evaluation: Evaluation,
  { sampled, seed }: { readonly sampled: boolean; readonly seed: number },
): void {
  const meanOfMany = (mean: number, std: number): string => paint(`${number(mean)} ± ${number(std)}`, 'bold');
  switch (evaluation.kind) {
    case 'episodes': {
      const { returns, lengths, mean, std } = evaluation;
      const { min, median: middle, max } = spreadOf(returns);
      print(
        `  return ${meanOfMany(mean, std)} over ${returns.length} episodes (min ${number(min)}, median ${number(middle)}, max ${number(max)})`,
      );
      print(
        `  length ${number(meanOf(lengths))}, ${sampled ? 'actions drawn as in training' : 'most likely actions'}, seed ${seed}`,
      );
      return;
    }
    case 'completions': {
      const { reward, parseRate, truncated, distinct, meanTokens, metrics, parts, ungraded } = evaluation;
      print(`  reward ${meanOfMany(reward.mean, reward.std)} over ${evaluation.completions} completions`);
      print(
        `  parsed ${percent(parseRate)}, cut off ${percent(truncated)}, different ${percent(distinct)}, ${number(meanTokens)} tokens each`,
      );
      for (const [name, value] of Object.entries(metrics)) print(`  ${name.padEnd(18)} ${number(value)}`);
      print(`  ${paint('reward by part', 'dim')}`);
      for (const [name, value] of Object.entries(parts)) print(`  ${name.padEnd(18)} ${number(value)}`);
      print(`  ${paint('examples', 'dim')}`);
      for (const example of evaluation.examples)
        print(
          `  ${number(example.reward ?? Number.NaN).padStart(6)}  ${JSON.stringify(example.prompt)} → ${JSON.stringify(example.completion)}`,
          10,
        );
      if (ungraded > 0) print(`  ${paint(`${ungraded} could not be graded`, 'yellow')}`);
      return;
    }
    case 'measurements':
      for (const { name, value, count, doc } of evaluation.rows)
        print(
          `  ${name.padEnd(18)} ${number(value).padStart(7)}  ${paint(`of ${grouped(count)}: ${doc}`, 'dim')}`,
          29,
        );
      return;
    default:
      evaluation satisfies never;
  }
}

const percent = (value: number): string => `${(100 * value).toFixed(1)} %`;
const meanOf = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0) / values.length;

function spreadOf(values: readonly number[]): { min: number; median: number; max: number } {
  return {
    min: values.reduce((a, b) => Math.min(a, b)),
    median: median(values),
    max: values.reduce((a, b) => Math.max(a, b)),
  };
}
