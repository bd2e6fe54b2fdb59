/**
 * Arithmetic: `7+8=` is completed by `15`, and with `digits: 2` `12+34=` by `46`.
 *
 * **Reward** the sum of `form` (a whole number was written), `digits` (times the share of right digits, counted from the
 * end, in the longer of the two numbers) and `exact`; anything else is `malformed`, and mildly so: a group in which some
 * answers are numbers and some are not must not drown the difference between numbers.
 */
import type { Rng } from '../random/rng.ts';
import { defineTask } from './definition.ts';
import { clearGrade, sumParts, type TaskPrompt } from './text-task.ts';

/** Options of the task `arithmetic`. */
export type ArithmeticOptions = {
  readonly digits: number;
  readonly operations: string;
  readonly form: number;
  readonly digitShare: number;
  readonly exact: number;
  readonly malformed: number;
};

const OPERATIONS = ['+', '-', '*'];
const PARTS = ['form', 'digits', 'exact', 'malformed'] as const;
/** What anyone may write and mean a number: longer ones are cut by the tokens allowed. */
const NUMBER = /^-?\d{1,32}$/;

/** The task `arithmetic`. */
export const arithmeticDefinition = defineTask<ArithmeticOptions>({
  name: 'arithmetic',
  summary: 'Sums, differences and products of whole numbers; 1.5 for the exact result.',
  options: {
    digits: { default: 1, doc: 'digits of the largest operand', min: 1, max: 7, integer: true },
    operations: { default: '+-', doc: 'which of + - * are asked, each once' },
    form: { default: 0.1, doc: 'reward for writing a whole number', min: -10, max: 10 },
    digitShare: { default: 0.4, doc: 'reward times the share of right digits', min: -10, max: 10 },
    exact: { default: 1, doc: 'reward for the exact result', min: -10, max: 10 },
    malformed: { default: -0.3, doc: 'reward for anything that is no whole number', min: -10, max: 10 },
  },
  make(options) {
    const operations = [...options.operations];
    if (operations.length === 0 || new Set(operations).size !== operations.length)
      throw new RangeError(`operations "${options.operations}" must name some of + - *, each once`);
    for (const operation of operations) {
      if (!OPERATIONS.includes(operation))
        throw new RangeError(`operations "${options.operations}" has "${operation}": choose from + - *`);
    }
    const limit = 10 ** options.digits;
    return {
      name: 'arithmetic',
      characters: `0123456789${operations.join('')}${operations.includes('-') ? '' : '-'}=`,
      pieces: [],
      rewardParts: PARTS,
      metricNames: ['exact', 'digit_share'],
      stop: ['\n'],
      maxPromptTokens: 2 * options.digits + 2,
      maxNewTokens: 2 * options.digits + 2,
      prompt(rng) {
        const operation = operations[rng.integer(operations.length)];
        const left = operand(rng, options.digits, limit);
        const right = operand(rng, options.digits, limit);
        return { text: `${left}${operation}${right}=`, data: { answer: result(left, operation, right) } };
      },
      grade(prompt, completion, out) {
        clearGrade(out);
        const answer = answerOf(prompt);
        const written = completion.trim();
        if (NUMBER.test(written)) {
          const share = rightDigits(written, answer);
          const exact = BigInt(written) === BigInt(answer) ? 1 : 0;
          out.parsed = true;
          out.parts[0] = options.form;
          out.parts[1] = options.digitShare * share;
          out.parts[2] = options.exact * exact;
          out.metrics[0] = exact;
          out.metrics[1] = share;
        } else {
          out.parts[3] = options.malformed;
          out.metrics.fill(0);
        }
        sumParts(out);
      },
      demonstration: prompt => answerOf(prompt),
    };
  },
});

/** Lengths are equally likely, or nearly all numbers would have the most digits. */
function operand(rng: Rng, digits: number, limit: number): number {
  return rng.integer(Math.min(limit, 10 ** (1 + rng.integer(digits))));
}

function result(left: number, operation: string, right: number): string {
  if (operation === '+') return String(left + right);
  return String(operation === '-' ? left - right : left * right);
}

const answerOf = (prompt: TaskPrompt): string => (prompt.data as { answer: string }).answer;

/** The share of digits that are right, counted from the end; a wrong sign is a wrong digit. */
function rightDigits(written: string, answer: string): number {
  const length = Math.max(written.length, answer.length);
  let right = 0;
  for (let i = 1; i <= length; i++) {
    if (written.at(-i) !== undefined && written.at(-i) === answer.at(-i)) right++;
  }
  return right / length;
}
