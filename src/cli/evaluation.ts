/** What a policy is worth, as `keel eval` tells it. */
import type { Evaluation } from '../algos/policy.ts';
import { grouped, number } from '../base/numbers.ts';
import { median } from '../doctor/statistics/order.ts';
import type { Context } from './context.ts';

/** As JSON: each kind's own fields. */
export function evaluationJson(evaluation: Evaluation): Record<string, unknown> {
  const { kind, ...rest } = evaluation;
  if (evaluation.kind !== 'episodes') return rest;
  const { returns, lengths, mean, std } = evaluation;
  const spread = { mean, std, ...spreadOf(returns), meanLength: meanOf(lengths) };
  return { episodes: returns.length, ...spread, returns, lengths };
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
      const spread = Object.entries(spreadOf(returns)).map(([name, value]) => `${name} ${number(value)}`);
      const actions = sampled ? 'actions drawn as in training' : 'most likely actions';
      print(`  return ${meanOfMany(mean, std)} over ${returns.length} episodes (${spread.join(', ')})`);
      print(`  length ${number(meanOf(lengths))}, ${actions}, seed ${seed}`);
      return;
    }
    case 'completions': {
      const { reward, parseRate, truncated, distinct, meanTokens, metrics, parts, ungraded } = evaluation;
      print(`  reward ${meanOfMany(reward.mean, reward.std)} over ${evaluation.completions} completions`);
      const shares = `parsed ${percent(parseRate)}, cut off ${percent(truncated)}, different ${percent(distinct)}`;
      print(`  ${shares}, ${number(meanTokens)} tokens each`);
      for (const [name, value] of Object.entries(metrics)) print(`  ${name.padEnd(18)} ${number(value)}`);
      print(`  ${paint('reward by part', 'dim')}`);
      for (const [name, value] of Object.entries(parts)) print(`  ${name.padEnd(18)} ${number(value)}`);
      print(`  ${paint('examples', 'dim')}`);
      for (const { reward, prompt, completion } of evaluation.examples) {
        const worth = number(reward ?? Number.NaN).padStart(6);
        print(`  ${worth}  ${JSON.stringify(prompt)} → ${JSON.stringify(completion)}`, 10);
      }
      if (ungraded > 0) print(`  ${paint(`${ungraded} could not be graded`, 'yellow')}`);
      return;
    }
    case 'measurements':
      for (const { name, value, count, doc } of evaluation.rows) {
        const about = paint(`of ${grouped(count)}: ${doc}`, 'dim');
        print(`  ${name.padEnd(18)} ${number(value).padStart(7)}  ${about}`, 29);
      }
      return;
    default:
      evaluation satisfies never;
  }
}

const percent = (value: number): string => `${(100 * value).toFixed(1)} %`;
const meanOf = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0) / values.length;

const spreadOf = (values: readonly number[]) => ({
  min: values.reduce((a, b) => Math.min(a, b)),
  median: median(values),
  max: values.reduce((a, b) => Math.max(a, b)),
});
