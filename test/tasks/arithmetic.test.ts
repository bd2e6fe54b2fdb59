import { describe, expect, it } from 'vitest';
import { Rng } from '../../src/random/index.ts';
import { makeTask, newGrade } from '../../src/tasks/index.ts';
import { testTask } from './support/contract.ts';

testTask('arithmetic', {});
testTask('arithmetic', { digits: 5, operations: '*' });

describe('arithmetic', () => {
  it('asks for results that JavaScript agrees with', async () => {
    const task = await makeTask('arithmetic', { digits: 4, operations: '+-*' });
    const rng = new Rng(1);
    for (let i = 0; i < 300; i++) {
      const prompt = await task.prompt(rng);
      const [, left, operation, right] = /^(\d+)([-+*])(\d+)=$/.exec(prompt.text)!;
      const [a, b] = [Number(left), Number(right)];
      const expected = operation === '+' ? a + b : operation === '-' ? a - b : a * b;
      expect(task.demonstration!(prompt, rng)).toBe(String(expected));
    }
  });

  it.each([
    ['46', 1.5, [0.1, 0.4, 1, 0], true],
    [' 46 ', 1.5, [0.1, 0.4, 1, 0], true],
    ['36', 0.3, [0.1, 0.2, 0, 0], true],
    ['146', 0.1 + (0.4 * 2) / 3, [0.1, (0.4 * 2) / 3, 0, 0], true],
    ['-46', 0.1 + (0.4 * 2) / 3, [0.1, (0.4 * 2) / 3, 0, 0], true],
    ['046', 1.1 + (0.4 * 2) / 3, [0.1, (0.4 * 2) / 3, 1, 0], true],
    ['9', 0.1, [0.1, 0, 0, 0], true],
    ['', -0.3, [0, 0, 0, -0.3], false],
    ['4 6', -0.3, [0, 0, 0, -0.3], false],
    ['forty-six', -0.3, [0, 0, 0, -0.3], false],
  ])('grades %j with %d', async (completion, reward, parts, parsed) => {
    const task = await makeTask('arithmetic');
    const grade = newGrade(task);
    task.grade({ text: '12+34=', data: { answer: '46' } }, completion, grade);
    expect(grade.reward).toBeCloseTo(reward, 12);
    expect([...grade.parts]).toEqual(parts.map(part => expect.closeTo(part, 12)));
    expect(grade.parsed).toBe(parsed);
  });

  it.each(['', '++', '/', '+/'])('refuses the operations %j', async operations => {
    await expect(makeTask('arithmetic', { operations })).rejects.toThrow(/operations ".*\+ - \*/);
  });
});
