/** verl's long lines, as a terminal or another tool broke them. */
import { describe, expect, it } from 'vitest';
import { points, readContent, values } from '../support/files.ts';

const names = ['actor/ppo_kl', 'actor/entropy', 'actor/pg_loss', 'critic/score/mean', 'response_length/mean'];
const value = (step: number, i: number): number => Number((step * 1.2345 + i * 0.0625 - 3).toFixed(6));
const prefix = '(TaskRunner pid=15930) ';
const record = (step: number): string =>
  `${prefix}step:${step} - ${names.map((name, i) => `${name}:${value(step, i)}`).join(' - ')}`;
const steps = [1, 2, 3, 4, 5, 6];
const wrap = (line: string, width: number): string[] => line.match(new RegExp(`.{1,${width}}`, 'g')) ?? [];
const expected = (i: number): number[] => steps.map(step => value(step, i));

describe('a line of verl', () => {
  it('that a terminal wrapped at any width is read as if it had not', async () => {
    for (let width = 50; width <= 130; width++) {
      const lines = steps.flatMap(step => [
        ...wrap(record(step), width),
        `Training Progress: ${step}%|#   | ${step}/9`,
      ]);
      const run = await readContent(`${lines.join('\n')}\n`);
      expect(run.format).toBe('verl-console');
      names.forEach((name, i) => {
        expect(values(run, name), `${name} at ${width}`).toEqual(expected(i));
      });
      expect([...run.series.keys()].sort()).toEqual([...names, 'step'].sort());
    }
  });

  it('takes nothing from ordinary lines after it', async () => {
    const lines = steps.flatMap(step => [record(step), 'Saved a checkpoint', '', '12', 'done: 3.5']);
    const run = await readContent(`${lines.join('\n')}\n`);
    names.forEach((name, i) => {
      expect(values(run, name)).toEqual(expected(i));
    });
  });

  it('may have its metrics below it, one a line', async () => {
    const lines = steps.flatMap(step => [
      `${prefix}step:${step}`,
      ...names.map((name, i) => ` - ${name}:${value(step, i)}`),
      'Saved a checkpoint',
    ]);
    const run = await readContent(`${lines.join('\n')}\n`);
    expect(run.format).toBe('verl-console');
    names.forEach((name, i) => {
      expect(values(run, name)).toEqual(expected(i));
    });
  });

  it('loses the number that is being written', async () => {
    const lines = steps.flatMap(step => wrap(record(step), 80));
    const run = await readContent(lines.join('\n').slice(0, -3));
    expect(points(run, names.at(-1)!)).toHaveLength(steps.length - 1);
    expect(values(run, names[0])).toEqual(expected(0));
  });
});
