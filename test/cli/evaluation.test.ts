/** What `keel eval` says of two ways of acting: one where they agree, each where they do not, and what that means. */
import { describe, expect, test } from 'vitest';
import { summaryOf } from '../../src/algos/update/moments.ts';
import type { Context } from '../../src/cli/context.ts';
import { comparison, evaluationJson, printEvaluation } from '../../src/cli/evaluation.ts';

const episodes = (...returns: number[]) =>
  ({ kind: 'episodes', returns, lengths: returns.map(() => 9), ...summaryOf(returns) }) as const;
const completions = (...rewards: number[]) =>
  ({
    kind: 'completions',
    completions: rewards.length,
    ungraded: 0,
    reward: summaryOf(rewards),
    ...{
      parseRate: 1,
      truncated: 0,
      meanTokens: 2,
      distinct: 1,
      parts: { exact: 1 },
      metrics: {},
      examples: [],
    },
  }) as const;

type Evaluated = ReturnType<typeof episodes> | ReturnType<typeof completions>;

function said(likely: Evaluated, drawn: Evaluated | undefined): string[] {
  const lines: string[] = [];
  const context = { paint: (text: string) => text, print: (line = '') => void lines.push(line) };
  printEvaluation(context as unknown as Context, {
    sampled: false,
    evaluation: likely,
    seed: 7,
    other: drawn && { sampled: true, evaluation: drawn },
  });
  return lines;
}

describe('comparison', () => {
  // Two of each, which are 2 apart: the standard error of each mean is 1, and √2 of their difference.
  test.each([
    [1.41, false],
    [1.42, true],
    [-1.42, true],
  ])('means that are %f apart differ: %s', (by, differ) => {
    const compared = comparison(episodes(9, 11), episodes(9 + by, 11 + by))!;
    expect(compared.error).toBeCloseTo(Math.SQRT2, 12);
    expect(compared.by).toBeCloseTo(Math.abs(by), 12);
    expect(compared.differ).toBe(differ);
  });

  test('measurements of a task have no mean to compare', () => {
    const measured = { kind: 'measurements', rows: [] } as never;
    expect(comparison(measured, measured)).toBeUndefined();
    expect(evaluationJson({ evaluation: measured })).toEqual({ rows: [] });
  });
});

describe('what is printed', () => {
  test('both agree', () => {
    expect(said(episodes(9, 11), episodes(10, 12))).toEqual([
      '  most likely actions, seed 7',
      '    return 10.00 ± 1.00 (standard error) over 2 episodes',
      '    min 9.00, median 10.00, max 11.00, std 1.00, length 9.00',
      '  actions drawn as in training agree: 11.00 ± 1.00',
    ]);
  });

  test('the noise costs', () => {
    const lines = said(episodes(19, 21), episodes(9, 11));
    expect(lines.slice(3)).toEqual([
      '  actions drawn as in training, seed 7',
      '    return 10.00 ± 1.00 (standard error) over 2 episodes',
      '    min 9.00, median 10.00, max 11.00, std 1.00, length 9.00',
      '  They differ by 10.00 (standard error 1.41): the noise of training costs that much, so act with the most likely',
    ]);
  });

  test('the policy leans on its noise', () => {
    expect(said(episodes(9, 11), episodes(19, 21)).at(-1)).toBe(
      '  They differ by 10.00 (standard error 1.41): the policy leans on its noise, and acts best when it draws',
    );
  });

  test('what may be chance is called that, up to two standard errors', () => {
    expect(said(episodes(9, 11), episodes(11.8, 13.8)).at(-1)).toBe(
      '  They differ by 2.80 (standard error 1.41), which may be chance: try more (-n 1000)',
    );
    expect(said(episodes(9, 11), episodes(11.9, 13.9)).at(-1)).toContain('the policy leans on its noise');
  });

  test('one of each says nothing, unless they are the same', () => {
    expect(said(episodes(9), episodes(10)).at(-1)).toBe(
      '  They differ, which says nothing of so few: try more (-n 100)',
    );
    expect(said(episodes(9), episodes(9)).slice(1)).toEqual([
      '    return 9.00 over 1 episode',
      '    min 9.00, median 9.00, max 9.00, std 0, length 9.00',
      '  actions drawn as in training agree: 9.00',
    ]);
  });

  test('of language models it is tokens, and only the first is told in full', () => {
    const lines = said(completions(0, 2), completions(8, 10));
    expect(lines[0]).toBe('  most likely tokens, seed 7');
    expect(lines).toContain('  reward by part');
    expect(lines.slice(-4, -1)).toEqual([
      '  tokens drawn as in training, seed 7',
      '    reward 9.00 ± 1.00 (standard error) over 2 completions',
      '    parsed 100.0%, cut off 0.0%, different 100.0%, 2.00 tokens each',
    ]);
  });

  test('only what was asked for', () => {
    expect(said(episodes(9, 11), undefined)).toHaveLength(3);
  });
});
