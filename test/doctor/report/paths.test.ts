/** Several paths, and directories with more than logs in them. */
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { examinePaths, exitCodeOf, isRead, isUnreadable, type Outcome } from '../../../src/doctor/index.ts';
import { temporaryDirectory, writeTree } from '../support/files.ts';

const log = `step,approx_kl,ep_rew_mean\n${Array.from({ length: 20 }, (_, i) => `${i * 1000},0.00${5 + (i % 3)},${20 + 10 * i}`).join('\n')}\n`;
const weather = `day,temperature,rain\n${Array.from({ length: 20 }, (_, i) => `${i},${i % 7},${i % 3}`).join('\n')}\n`;

async function examined(
  paths: readonly string[],
): Promise<{ outcomes: Outcome[]; notes: readonly string[] }> {
  const outcomes: Outcome[] = [];
  const all = examinePaths(paths);
  for (;;) {
    const next = await all.next();
    if (next.done) return { outcomes, notes: next.value.notes };
    outcomes.push(next.value);
  }
}

describe('paths', () => {
  it('of which one does not exist are no success', async () => {
    const root = writeTree(temporaryDirectory(), { 'run/progress.csv': log });
    const { outcomes } = await examined([join(root, 'run'), join(root, 'nowhere')]);
    expect(outcomes.filter(isRead)).toHaveLength(1);
    expect(exitCodeOf(outcomes)).toBe(3);
    expect(exitCodeOf(outcomes, 'sick')).toBe(3);
    expect(exitCodeOf(outcomes.filter(isRead))).toBe(0);
  });

  it('that cannot be read say why, with the path before it or beside it', async () => {
    const root = writeTree(temporaryDirectory(), { 'b.csv': weather });
    const { outcomes } = await examined([join(root, 'b.csv'), join(root, 'nowhere')]);
    const failed = outcomes.filter(isUnreadable);
    expect(failed).toHaveLength(2);
    for (const { path, error, why } of failed) {
      expect(error).toBe(`${path}: ${why}`);
      expect(why).not.toContain(root);
    }
  });

  it('of which one is a table of something else are no success either', async () => {
    const root = writeTree(temporaryDirectory(), { 'a.csv': log, 'b.csv': weather });
    const { outcomes } = await examined([join(root, 'a.csv'), join(root, 'b.csv')]);
    expect(exitCodeOf(outcomes)).toBe(3);
  });
});

describe('a directory', () => {
  const junk = {
    'README.md': '# A title\n\nreward, loss, kl\n',
    'train.py': 'import gym\n',
    'conf.yaml': 'lr: 0.1\n',
    'data/weather.csv': weather,
    'data/more.csv': weather,
  };

  it('with other tables passes over them in one line', async () => {
    const root = writeTree(temporaryDirectory(), { ...junk, 'run/progress.csv': log });
    const { outcomes, notes } = await examined([root]);
    expect(outcomes).toHaveLength(1);
    expect(exitCodeOf(outcomes)).toBe(0);
    expect(notes.filter(note => /2 files have numbers but none that training logs/.test(note))).toHaveLength(
      1,
    );
  });

  it('with nothing else says what was found', async () => {
    const { outcomes } = await examined([writeTree(temporaryDirectory(), junk)]);
    expect(outcomes.map(outcome => isRead(outcome))).toEqual([false, false]);
    expect(exitCodeOf(outcomes)).toBe(3);
  });
});
