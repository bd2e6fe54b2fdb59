/**
 * The short form of `npm run bench -- crash`: real kills of real processes, at random times and at the N-th call that
 * changes the disk, over every kind of run. faults.test.ts goes through all the calls of a run's own files.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { type AttackedRun, attack, shown, writerKind } from '../../bench/crash/attack.ts';
import { packageDir } from '../support/compiled.ts';
import { temporaryRoot } from './support/temporary.ts';

const root = temporaryRoot('crash');
const told = (runs: readonly AttackedRun[]): string[] =>
  runs.flatMap(({ kind, kills, faults }) =>
    faults.map(fault => `${kind}, ${kills.map(shown).join(', ')}: ${fault}`),
  );
const killsOf = (runs: readonly AttackedRun[]): number => runs.flatMap(({ kills }) => kills).length;

/** Of each algorithm one, and a fork; begin-again.test.ts has the others, and the long form all of them. */
const trainers = [
  'ppo, numbers',
  'ppo, shards in processes',
  'grpo',
  'fork of a policy',
  'cloned policy',
  'cloned text',
];

it.each([
  ['the files of a run', [writerKind], 30],
  ['runs that learn', trainers, 12],
])('killed at any moment, %s come to the same bits', async (name, kinds, kills) => {
  const scratch = join(root, name);
  mkdirSync(scratch);
  const runs = await attack({ packageDir, scratch, seed: 2, kills, kinds });
  expect(told(runs)).toEqual([]);
  expect(killsOf(runs)).toBe(kills);
  // How many kills one run takes depends on how fast the machine is, and so does whether the last kind has its turn.
  const seen = new Set(runs.map(({ kind }) => kind));
  expect(kinds).toEqual(expect.arrayContaining([...seen]));
  expect(seen.size).toBeGreaterThanOrEqual(Math.ceil(kinds.length / 2));
});
