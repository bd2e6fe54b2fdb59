import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { Rng } from '../../src/random/index.ts';
import { sourcesOf } from '../../src/tasks/draw-safely.ts';
import {
  createTask,
  defineTask,
  drawDemonstration,
  drawPrompt,
  findTask,
  gradeSafely,
  isTaskName,
  listTasks,
  loadTaskFile,
  makeTask,
  meansTask,
  newGrade,
  type TextTask,
} from '../../src/tasks/index.ts';
import { testTask } from './support/contract.ts';

const dir = mkdtempSync(join(tmpdir(), 'keel-tasks-'));
afterAll(() => rmSync(dir, { recursive: true }));
const file = (name: string, text: string): string => {
  writeFileSync(join(dir, name), text);
  return join(dir, name);
};

testTask('examples/own-task.ts', {});

describe('what a task writes', () => {
  const task = (change: object) => ({ name: 'mine', ...change }) as unknown as TextTask;
  const rng = new Rng(0);

  it('is given back, and a task that throws or gives something else is named', async () => {
    const good = { text: 'a', data: null };
    expect(await drawPrompt(task({ prompt: async () => good }), rng)).toBe(good);
    const throwing = () => {
      throw new Error('no more');
    };
    await expect(drawPrompt(task({ prompt: throwing }), rng)).rejects.toThrow(
      'prompt of mine threw: no more; correct the task and resume',
    );
    await expect(drawPrompt(task({ prompt: () => 'a' }), rng)).rejects.toThrow(
      /prompt of mine gave "a": return \{ text, data \}/,
    );
    expect(await drawDemonstration(task({ demonstration: () => 'b' }), good, rng)).toBe('b');
    expect(await drawDemonstration(task({ demonstration: async () => 'b' }), good, rng)).toBe('b');
    await expect(drawDemonstration(task({ demonstration: throwing }), good, rng)).rejects.toThrow(
      'demonstration of mine threw: no more',
    );
    await expect(drawDemonstration(task({ demonstration: () => 3 }), good, rng)).rejects.toThrow(
      'demonstration of mine gave 3: return a string',
    );
  });

  it('is waited for, but not for ever', async () => {
    const never = () => new Promise(() => {});
    await expect(drawPrompt(task({ prompt: never }), rng, 20)).rejects.toThrow(
      'prompt of mine took longer than 0.02 s: give it a limit of its own',
    );
    const asked = drawDemonstration(task({ demonstration: never }), { text: 'a', data: null }, rng, 20);
    await expect(asked).rejects.toThrow('demonstration of mine took longer than 0.02 s');
  });

  it('says at once where it comes from', () => {
    expect(sourcesOf(task({}))).toEqual({});
    expect(sourcesOf(task({ sources: () => ({ labels: 'own' }) }))).toEqual({ labels: 'own' });
    expect(() => sourcesOf(task({ sources: async () => ({}) }))).toThrow(
      'sources of mine gave a promise: return an object of names and values, at once',
    );
    expect(() => sourcesOf(task({ sources: () => [1] }))).toThrow('sources of mine gave [1]');
  });
});

describe('tasks by name', () => {
  it('finds them whatever the case, and lists them with every option explained', () => {
    expect(listTasks().map(({ name }) => name)).toEqual(['chess', 'arithmetic', 'format']);
    expect(findTask('Chess').name).toBe('chess');
    expect(isTaskName('cartpole')).toBe(false);
    for (const { summary, options } of listTasks()) {
      expect(summary.length).toBeGreaterThan(10);
      for (const option of Object.values(options)) expect(option.doc.length).toBeGreaterThan(5);
    }
  });

  it.each([
    ['ches', /task "ches" is unknown: did you mean chess\?/],
    ['zzzzz', /unknown: there are chess, arithmetic, format \(a file is written/],
  ])('%s is not one', (name, problem) => {
    expect(() => findTask(name)).toThrow(problem);
  });

  it.each([
    [{ digit: 2 }, /arithmetic has no option "digit": did you mean digits\?/],
    [{ digits: 0 }, /digits is 0, below its least value 1/],
    [{ digits: 1.5 }, /not a whole number/],
    [{ exact: Number.NaN }, /not a finite number/],
    [{ operations: 3 }, /not a string/],
  ])('refuses the options %j', async (options, problem) => {
    await expect(makeTask('arithmetic', options)).rejects.toThrow(problem);
  });
});

describe('tasks from files', () => {
  it('the example, and not an environment', async () => {
    expect(await meansTask('examples/own-task.ts')).toBe(true);
    const env = "{ id: 'Room-v0', description: 'a room', maxEpisodeSteps: 10, make() {} }";
    expect(await meansTask(file('room.mjs', `export default ${env};`))).toBe(false);
    expect(await meansTask('chess')).toBe(true);
    expect(await meansTask('cartpole')).toBe(false);
  });

  it.each([
    ['none.mjs', 'export const a = 1;', /the default export is no task: add export default defineTask/],
    ['number.mjs', 'export default 3;', /3 is not a task definition/],
    ['name.mjs', 'export default { name: "My Task" };', /the name "My Task" is not of small letters/],
    ['summary.mjs', 'export default { name: "x", make() {} };', /task x needs a summary/],
    ['taken.mjs', 'export default { name: "chess", summary: "s", make() {} };', /the name chess is taken/],
    ['throws.mjs', 'throw new Error("no luck");', /failed to load: no luck/],
  ])('refuses %s', async (name, text, problem) => {
    await expect(loadTaskFile(file(name, text))).rejects.toThrow(problem);
  });
});

const whole: TextTask = {
  name: 'x',
  characters: 'ab',
  pieces: [],
  rewardParts: ['one', 'two'],
  metricNames: [],
  stop: [],
  maxPromptTokens: 4,
  maxNewTokens: 4,
  prompt: () => ({ text: 'a', data: null }),
  grade: () => {},
};
const make = (task: unknown): Promise<TextTask> =>
  createTask(defineTask({ name: 'x', summary: 'a task', make: () => task as TextTask }));

describe('what a definition makes', () => {
  it.each([
    [undefined, /make returned undefined/],
    [{ ...whole, grade: 1 }, /without grade\(\)/],
    [{ ...whole, characters: '' }, /list all that its texts use/],
    [{ ...whole, stop: undefined }, /stop is undefined, not a list/],
    [{ ...whole, rewardParts: [] }, /rewardParts is empty/],
    [{ ...whole, rewardParts: ['a', 'a'] }, /names something twice/],
    [{ ...whole, maxNewTokens: 0 }, /maxNewTokens is 0/],
    [{ ...whole, demonstration: 'text' }, /demonstration is "text"/],
  ])('is checked: %#', async (task, problem) => {
    await expect(make(task)).rejects.toThrow(problem);
  });

  it('a make that throws is told by its message', async () => {
    const broken = defineTask({
      name: 'x',
      summary: 'a task',
      make: () => {
        throw new Error('no disk');
      },
    });
    await expect(createTask(broken)).rejects.toThrow('x could not be made: no disk');
  });
});

describe('gradeSafely', () => {
  const gives =
    (reward: number, ...parts: number[]): TextTask['grade'] =>
    (_, __, out) => {
      out.reward = reward;
      out.parts.set(parts);
    };
  const throws =
    (what: unknown): TextTask['grade'] =>
    () => {
      throw what;
    };

  const later =
    (grade: TextTask['grade']): TextTask['grade'] =>
    async (...args) => {
      await new Promise(resolve => setTimeout(resolve, 1));
      await grade(...args);
    };

  it.each<[string, TextTask['grade'], RegExp | undefined]>([
    ['right', gives(1, 1, 0), undefined],
    ['right to rounding', gives(0.3, 0.1, 0.2), undefined],
    ['throws', throws(new Error('oh')), /grade of x threw: oh/],
    ['throws what is no error', throws(null), /threw: null/],
    ['NaN', gives(Number.NaN), /gave the reward NaN/],
    ['nothing at all', () => {}, /gave the reward NaN, or none: begin with clearGrade/],
    ['a promise of nothing', async () => {}, /gave the reward NaN, or none/],
    ['a part is infinite', gives(0, 0, Number.POSITIVE_INFINITY), /Infinity for the part two/],
    ['the sum is another', gives(1, 0.5, 0), /but its parts sum to 0.5: end with sumParts/],
    ['right, as a promise', later(gives(1, 1, 0)), undefined],
    ['a promise that rejects', later(throws(new Error('oh'))), /grade of x threw: oh/],
    ['a promise of NaN', later(gives(Number.NaN)), /gave the reward NaN/],
    [
      'a promise that is never kept',
      () => new Promise(() => {}),
      /grade of x took longer than 0.05 s: give it a limit/,
    ],
  ])('%s', async (_, grade, problem) => {
    const task = await make({ ...whole, grade });
    const out = newGrade(task);
    const found = await gradeSafely(task, { text: 'a', data: null }, 'b', out, 50);
    if (problem === undefined) {
      expect(found).toBeUndefined();
      expect(out.reward).toBeGreaterThan(0);
    } else {
      expect(found).toMatch(problem);
      expect([out.reward, ...out.parts, out.parsed]).toEqual([0, 0, 0, false]);
    }
  });
});
