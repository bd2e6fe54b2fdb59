import { describe, expect, it } from 'vitest';
import { makeTask, newGrade } from '../../src/tasks/index.ts';
import { testTask } from './support/contract.ts';

testTask('format', {});
testTask('format', { fields: 8, digits: 6 });

describe('format', () => {
  it.each([
    ['json', '{"a":3,"b":71}', 1.5],
    ['json', ' {"a":3,"b":71} ', 1.5],
    ['json', '{"b":71,"a":3}', 0.8], // all right, but not to the letter
    ['json', '{"a":3,"b":70}', 0.6],
    ['json', '{"a":3}', 0.2 + 0.1 + 0.2],
    ['json', '{"a":3,"b":71,"c":1,"d":2}', 0.2 + 0.1 + 0.2],
    ['json', '{}', 0.2],
    ['json', '[3,71]', -0.3],
    ['json', '{"a":3,"b":71', -0.3],
    ['json', 'a,b;3,71', -0.3],
    ['csv', 'a,b;3,71', 1.5],
    ['csv', 'b,a;3,71', 0.4],
    ['csv', 'a,b;3', -0.3],
    ['tags', '<a>3</a><b>71</b>', 1.5],
    ['tags', '<a>3</a><b>71</b>.', -0.3],
    ['tags', '<a>3</b>', -0.3],
    ['tags', '', -0.3],
  ])('as %s, %s is worth %d', async (format, completion, reward) => {
    const task = await makeTask('format');
    const grade = newGrade(task);
    const data = { format, fields: [['a', '3'], ['b', '71']] }; // biome-ignore format: a pair a field
    task.grade({ text: `${format} a=3 b=71>`, data }, completion, grade);
    expect(grade.reward).toBeCloseTo(reward, 12);
    expect(grade.parsed).toBe(reward > 0);
  });
});
