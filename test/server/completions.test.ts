import { appendFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { completionsOf } from '../../src/server/completions.ts';
import type { KeelRun } from '../../src/server/runs/keel-run.ts';

const dir = mkdtempSync(join(tmpdir(), 'keel-completions-'));
afterAll(() => rmSync(dir, { recursive: true }));
const roots = [{ path: dir, shown: 'runs' }] as unknown as Parameters<typeof completionsOf>[1];
const runOf = (name: string): KeelRun => {
  mkdirSync(join(dir, name), { recursive: true });
  return { path: join(dir, name) } as KeelRun;
};
const fileOf = (name: string): string => join(dir, name, 'completions.jsonl');
const all = { before: Number.POSITIVE_INFINITY, count: 20 };

const line = (iteration: number, more: object = {}): string =>
  `${JSON.stringify({
    iteration,
    step: 64 * iteration,
    prompt: '1+1=',
    klRefEstimator: 'k3',
    completions: [
      {
        text: '2',
        tokens: ['2'],
        logProbs: [-0.5],
        klRef: [0.25],
        reward: 1.5,
        advantage: 1,
        parsed: true,
        ended: 'end',
        parts: { exact: 1 },
        metrics: { exact: 1, other: null },
      },
    ],
    ...more,
  })}\n`;

it('gives the newest first, and earlier ones by iteration', () => {
  const run = runOf('a');
  writeFileSync(fileOf('a'), Array.from({ length: 60 }, (_, i) => line(1 + Math.floor(i / 2))).join(''));
  const newest = completionsOf(run, roots, { ...all, count: 4 });
  expect(newest.groups.map(({ iteration }) => iteration)).toEqual([30, 30, 29, 29]);
  expect(newest.older).toBe(true);
  // Those of one iteration are not parted.
  expect(completionsOf(run, roots, { ...all, count: 3 }).groups).toHaveLength(4);
  const last = completionsOf(run, roots, { before: 3, count: 20 });
  expect(last.groups.map(({ iteration }) => iteration)).toEqual([2, 2, 1, 1]);
  expect(last.older).toBe(false);
  expect(last.groups[0]).toEqual({
    iteration: 2,
    step: 128,
    prompt: '1+1=',
    klEstimator: 'k3',
    completions: [
      {
        text: '2',
        tokens: ['2'],
        logProbs: [-0.5],
        kl: [0.25],
        reward: 1.5,
        advantage: 1,
        parsed: true,
        ended: 'end',
        parts: { exact: 1 },
        metrics: { exact: 1, other: null },
        problem: null,
      },
    ],
  });
});

it('leaves out what is damaged or not whole yet, and bounds what it gives', () => {
  const run = runOf('b');
  expect(completionsOf(run, roots, all)).toEqual({ groups: [], older: false });
  writeFileSync(
    fileOf('b'),
    `${line(1)}{"iteration":2,"comp\n[]\nnull\n7\n{"iteration":"x","completions":[]}\n`,
  );
  appendFileSync(
    fileOf('b'),
    line(3, {
      prompt: 'x'.repeat(50_000),
      completions: [...Array(100).fill(null), { tokens: [1, '2'], logProbs: 3 }],
    }),
  );
  appendFileSync(fileOf('b'), line(4).slice(0, 40));
  const { groups } = completionsOf(run, roots, all);
  expect(groups.map(({ iteration }) => iteration)).toEqual([3, 1]);
  expect(groups[0].prompt).toHaveLength(20_000);
  expect(groups[0].completions).toHaveLength(64);
  expect(groups[0].completions[0]).toMatchObject({ tokens: [], kl: null, reward: null, parsed: false });
  appendFileSync(fileOf('b'), line(4).slice(40));
  expect(completionsOf(run, roots, all).groups[0].iteration).toBe(4);
});

it('follows no link out of what the server was given', () => {
  const outside = mkdtempSync(join(tmpdir(), 'keel-outside-'));
  try {
    writeFileSync(join(outside, 'completions.jsonl'), line(1));
    const run = runOf('c');
    symlinkSync(join(outside, 'completions.jsonl'), fileOf('c'));
    expect(completionsOf(run, roots, all).groups).toEqual([]);
  } finally {
    rmSync(outside, { recursive: true });
  }
});
