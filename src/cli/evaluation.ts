/** What a policy is worth, as `keel eval` tells it. */
import type { Evaluation } from '../algos/policy.ts';
import type { Summary } from '../algos/update/moments.ts';
import { counted, grouped, number } from '../base/numbers.ts';
import { median } from '../doctor/statistics/order.ts';
import type { Context } from './context.ts';

/** How it acted: drawing as in training, or the most likely. */
export interface Tried {
  readonly sampled: boolean;
  readonly evaluation: Evaluation;
}

/** What a policy came to: as asked, and in the other way where that was tried too. */
export interface Trial extends Tried {
  readonly seed: number;
  readonly other?: Tried | undefined;
}

/** As JSON: each kind's own fields; the other way of acting beside them, and whether the two differ. */
export function evaluationJson({
  evaluation,
  other,
}: Pick<Trial, 'evaluation' | 'other'>): Record<string, unknown> {
  const compared = other && comparison(evaluation, other.evaluation);
  return {
    ...fieldsOf(evaluation),
    ...(other && { other: { sampled: other.sampled, ...fieldsOf(other.evaluation) } }),
    ...(compared && { differ: compared.differ }),
  };
}

function fieldsOf(evaluation: Evaluation): Record<string, unknown> {
  const { kind, ...rest } = evaluation;
  if (evaluation.kind !== 'episodes') return rest;
  const { returns, lengths, mean, std, standardError } = evaluation;
  const spread = { mean, std, standardError, ...spreadOf(returns), meanLength: meanOf(lengths) };
  return { episodes: returns.length, ...spread, returns, lengths };
}

/** For people: one way of acting where both come to the same, each of them where they do not. */
export function printEvaluation(context: Context, { seed, other, ...asked }: Trial): void {
  const { print } = context;
  const compared = other && comparison(asked.evaluation, other.evaluation);
  printOne(context, asked, seed);
  if (other === undefined || compared === undefined) return;
  if (compared.differ) {
    printOne(context, other, seed, true);
    print(`  ${meaning(asked, other, compared)}`);
  } else print(`  ${manner(other)} agree: ${meanText(worthOf(other.evaluation)!)}`);
}

/** Whether two means differ by more than what both scatter together; of one value each, whether they differ at all. */
export function comparison(
  one: Evaluation,
  other: Evaluation,
): { readonly by: number; readonly error: number; readonly differ: boolean } | undefined {
  const [a, b] = [worthOf(one), worthOf(other)];
  if (a === undefined || b === undefined) return undefined;
  const by = Math.abs(a.mean - b.mean);
  const error = Math.hypot(a.standardError, b.standardError);
  return { by, error, differ: by > (Number.isNaN(error) ? 0 : error) };
}

/** Standard errors beyond which a difference is taken for one: chance alone gives it in one of twenty cases. */
const SURE = 2;

/** What two ways of acting that differ say of the policy. */
function meaning(
  asked: Tried,
  other: Tried,
  { by, error }: { readonly by: number; readonly error: number },
): string {
  if (Number.isNaN(error)) return 'They differ, which says nothing of so few: try more (-n 100)';
  if (by < SURE * error)
    return `They differ by ${number(by)} (standard error ${number(error)}), which may be chance: try more (-n 1000)`;
  const [likely, drawn] = asked.sampled ? [other, asked] : [asked, other];
  const leans = worthOf(drawn.evaluation)!.mean > worthOf(likely.evaluation)!.mean;
  const what = leans
    ? 'the policy leans on its noise, and acts best when it draws'
    : 'the noise of training costs that much, so act with the most likely';
  return `They differ by ${number(by)} (standard error ${number(error)}): ${what}`;
}

/** What is compared: returns, or rewards; a task's own measurements have no one mean. */
function worthOf(evaluation: Evaluation): Summary | undefined {
  switch (evaluation.kind) {
    case 'episodes':
      return evaluation;
    case 'completions':
      return evaluation.reward;
    case 'measurements':
      return undefined;
    default:
      return evaluation satisfies never;
  }
}

function manner({ sampled, evaluation }: Tried): string {
  const what = evaluation.kind === 'episodes' ? 'actions' : 'tokens';
  return sampled ? `${what} drawn as in training` : `most likely ${what}`;
}

const meanText = ({ mean, standardError }: Summary): string =>
  Number.isNaN(standardError) ? number(mean) : `${number(mean)} ± ${number(standardError)}`;

/** In full, or what of it the other way of acting changes. */
function printOne({ print, paint }: Context, tried: Tried, seed: number, brief = false): void {
  const { evaluation } = tried;
  // What the ± is, once a line: others print the std there.
  const worth = (summary: Summary): string =>
    `${paint(meanText(summary), 'bold')}${Number.isNaN(summary.standardError) ? '' : ' (standard error)'}`;
  switch (evaluation.kind) {
    case 'episodes': {
      const { returns, lengths, std } = evaluation;
      const spread = Object.entries({ ...spreadOf(returns), std, length: meanOf(lengths) });
      print(`  ${manner(tried)}, seed ${seed}`);
      print(`    return ${worth(evaluation)} over ${counted(returns.length, 'episode')}`);
      print(`    ${spread.map(([name, value]) => `${name} ${number(value)}`).join(', ')}`);
      return;
    }
    case 'completions': {
      const { reward, parseRate, truncated, distinct, meanTokens, metrics, parts, ungraded } = evaluation;
      print(`  ${manner(tried)}, seed ${seed}`);
      print(`    reward ${worth(reward)} over ${counted(evaluation.completions, 'completion')}`);
      const shares = `parsed ${percent(parseRate)}, cut off ${percent(truncated)}, different ${percent(distinct)}`;
      print(`    ${shares}, ${number(meanTokens)} tokens each`);
      if (brief) return;
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

const percent = (value: number): string => `${(100 * value).toFixed(1)}%`;
const meanOf = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0) / values.length;

const spreadOf = (values: readonly number[]) => ({
  min: values.reduce((a, b) => Math.min(a, b)),
  median: median(values),
  max: values.reduce((a, b) => Math.max(a, b)),
});
