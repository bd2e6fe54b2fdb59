/** What holds for every text task, Keel's own and a user's. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Rng } from '../../../src/random/index.ts';
import { gradeSafely, makeTask, newGrade, type TaskPrompt, type TextTask } from '../../../src/tasks/index.ts';

const PROMPTS = 30;

/** Tokens of a text under the task's own tokenizer: the longest piece that fits, else a character. */
function tokenCount(task: TextTask, text: string): number {
  const longest = Math.max(1, ...task.pieces.map(piece => piece.length));
  const pieces = new Set(task.pieces);
  let tokens = 0;
  for (let at = 0; at < text.length; tokens++) {
    let length = 1;
    for (let size = Math.min(longest, text.length - at); size > 1; size--) {
      if (!pieces.has(text.slice(at, at + size))) continue;
      length = size;
      break;
    }
    if (length === 1 && !task.characters.includes(text[at]))
      throw new Error(`${JSON.stringify(text[at])} of ${JSON.stringify(text)} is not among the characters`);
    at += length;
  }
  return tokens;
}

export async function drawPrompts(task: TextTask, seed: number, count: number): Promise<TaskPrompt[]> {
  const rng = new Rng(seed);
  const prompts: TaskPrompt[] = [];
  for (let i = 0; i < count; i++) prompts.push(await task.prompt(rng));
  return prompts;
}

export function testTask(reference: string, options: object): void {
  describe(`${reference} ${JSON.stringify(options)}`, () => {
    it('the same seed gives the same prompts and demonstrations, another seed others', async () => {
      const [one, two] = [await makeTask(reference, options), await makeTask(reference, options)];
      const prompts = await drawPrompts(one, 7, PROMPTS);
      expect(await drawPrompts(two, 7, PROMPTS)).toEqual(prompts);
      expect(await drawPrompts(one, 7, PROMPTS)).toEqual(prompts);
      expect(await drawPrompts(two, 8, PROMPTS)).not.toEqual(prompts);
      const [a, b] = [new Rng(3), new Rng(3)];
      for (const prompt of prompts)
        expect(await two.demonstration?.(prompt, b)).toBe(await one.demonstration?.(prompt, a));
      await one.close?.();
      await two.close?.();
    });

    it('texts are made of its characters and fit the tokens it names; data survives JSON', async () => {
      const task = await makeTask(reference, options);
      const rng = new Rng(5);
      for (const prompt of await drawPrompts(task, 5, 4 * PROMPTS)) {
        expect(JSON.parse(JSON.stringify(prompt.data))).toEqual(prompt.data);
        expect(tokenCount(task, prompt.text)).toBeLessThanOrEqual(task.maxPromptTokens);
        const shown = (await task.demonstration?.(prompt, rng)) ?? '';
        // The end token is one more.
        expect(tokenCount(task, shown)).toBeLessThan(task.maxNewTokens);
        for (const stop of task.stop) expect(shown).not.toContain(stop);
      }
      await task.close?.();
    });

    it('a demonstration parses and is worth more than nothing and than noise', async () => {
      const task = await makeTask(reference, options);
      const rng = new Rng(6);
      const [good, bad] = [newGrade(task), newGrade(task)];
      for (const prompt of await drawPrompts(task, 6, PROMPTS)) {
        if (task.demonstration === undefined) break;
        expect(await gradeSafely(task, prompt, await task.demonstration(prompt, rng), good)).toBeUndefined();
        expect(await gradeSafely(task, prompt, '?!', bad)).toBeUndefined();
        expect(good.parsed).toBe(true);
        expect(bad.parsed).toBe(false);
        expect(good.reward).toBeGreaterThan(bad.reward);
      }
      await task.close?.();
    });

    it('grades whatever is written: finite, the sum of its parts, and nothing left from the time before', async () => {
      const task = await makeTask(reference, options);
      const prompts = await drawPrompts(task, 9, 20);
      const rng = new Rng(9);
      const shown: string[] = [];
      for (const prompt of prompts) shown.push((await task.demonstration?.(prompt, rng)) ?? '');
      const [used, fresh] = [newGrade(task), newGrade(task)];
      const noise = fc.oneof(
        fc.string({ maxLength: 200 }),
        fc.string({ maxLength: 50, unit: fc.constantFrom('\0', '\ud800', 'é', '😀', '\u2028', ' ', '+') }),
        fc.string({ maxLength: 300, unit: fc.constantFrom(...task.characters, ...task.pieces) }),
      );
      const cut = fc
        .tuple(fc.nat(19), fc.nat(300), fc.nat(300), noise)
        .map(([i, from, to, text]) => shown[i].slice(0, from) + text + shown[i].slice(to));
      await fc.assert(
        fc.asyncProperty(fc.nat(19), fc.oneof(noise, cut), async (i, completion) => {
          const prompt = prompts[i];
          expect(await gradeSafely(task, prompt, completion, used)).toBeUndefined();
          fresh.parts.fill(0);
          fresh.metrics.fill(0);
          expect(await gradeSafely(task, prompt, completion, fresh)).toBeUndefined();
          expect(used).toEqual(fresh);
        }),
        { numRuns: 100 },
      );
      for (const long of ['a'.repeat(100_000), '+'.repeat(100_000), 'M: '.repeat(30_000)])
        expect(await gradeSafely(task, prompts[0], long, used)).toBeUndefined();
      await task.close?.();
    });
  });
}
