/**
 * The text tasks of the language-model matrix: two of Keel's own, made small, and one of its own. All leave room for
 * completions much longer than good ones are, so that lengths can grow.
 */
import type { Rng } from '../../../src/random/index.ts';
import { arithmeticDefinition } from '../../../src/tasks/arithmetic.ts';
import { formatDefinition } from '../../../src/tasks/format.ts';
import { clearGrade, createTask, defineTask, sumParts, type TextTask } from '../../../src/tasks/index.ts';

export const lmTasks = ['arithmetic', 'sort', 'format'] as const;
export type LmTaskName = (typeof lmTasks)[number];

/** Tokens that a completion may have. */
export const room: Readonly<Record<LmTaskName, number>> = { arithmetic: 16, sort: 16, format: 24 };

/** `dbca>` is completed by `abcd`. */
const sortDefinition = defineTask({
  name: 'sort',
  summary: 'Write letters in the order of the alphabet.',
  make: () => ({
    name: 'sort',
    characters: 'abcdef>',
    pieces: [],
    rewardParts: ['form', 'places', 'exact'],
    metricNames: ['exact'],
    stop: [],
    maxPromptTokens: 6,
    maxNewTokens: room.sort,
    prompt(rng) {
      const letters = Array.from({ length: 3 + rng.integer(3) }, () => 'abcdef'[rng.integer(6)]).join('');
      return { text: `${letters}>`, data: letters };
    },
    grade(prompt, completion, out) {
      clearGrade(out);
      const right = [...(prompt.data as string)].sort().join('');
      out.parsed = /^[a-f]+$/.test(completion) && completion.length === right.length;
      const most = Math.max(right.length, completion.length);
      const places = [...right].filter((letter, i) => completion[i] === letter).length;
      out.parts[0] = out.parsed ? 0.2 : 0;
      out.parts[1] = (0.5 * places) / most;
      out.parts[2] = completion === right ? 1 : 0;
      out.metrics[0] = completion === right ? 1 : 0;
      sumParts(out);
    },
    demonstration: prompt => [...(prompt.data as string)].sort().join(''),
  }),
});

/** The task, with room for long completions. */
export async function lmTask(name: LmTaskName): Promise<TextTask> {
  switch (name) {
    case 'arithmetic': {
      const task = await createTask(arithmeticDefinition, { digits: 1, operations: '+-', malformed: 0 });
      return { ...task, maxNewTokens: room[name] };
    }
    case 'format': {
      const task = await createTask(formatDefinition, { fields: 1, digits: 2, malformed: 0 });
      return { ...task, maxNewTokens: room[name] };
    }
    case 'sort':
      return createTask(sortDefinition);
    default:
      return name satisfies never;
  }
}

/** How often a demonstration for the base model is right, and how often it is wrong but of the usual length. */
const RIGHT = 0.4;
const WRONG = 0.35;
/** Of the others, how likely each further character is. */
const GOES_ON = 0.8;

/**
 * The same task with demonstrations as a base model has read them: some right, some wrong, some babble. What is cloned from
 * them can do the task and often does not, as a language model before reinforcement learning.
 */
export function noisyDemonstrations(task: TextTask): TextTask {
  const characters = [...task.characters];
  const any = (rng: Rng): string => characters[rng.integer(characters.length)];
  return {
    ...task,
    async demonstration(prompt, rng) {
      const right = await task.demonstration!(prompt, rng);
      const kind = rng.uniform();
      if (kind < RIGHT) return right;
      if (kind < RIGHT + WRONG) {
        const at = rng.integer(right.length);
        return right.slice(0, at) + any(rng) + right.slice(at + 1);
      }
      let babble = any(rng);
      while (babble.length < task.maxNewTokens - 1 && rng.uniform() < GOES_ON) babble += any(rng);
      return babble;
    },
  };
}
