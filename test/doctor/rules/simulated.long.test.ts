import { describe, expect, it } from 'vitest';
import { diagnose } from '../../../src/doctor/diagnose.ts';
import { type Fault, faults, simulate, type Task } from './support/simulate.ts';

const returns: readonly (readonly [number, number])[] = [
  [20, 500],
  [-1200, -150],
  [-500, -90],
  [-21, 18],
  [-3, 8],
];

/** Tasks of all lengths and scales, and of both kinds of actions. */
function tasks(lengths: readonly number[], seeds: number): Task[] {
  const out: Task[] = [];
  for (const rows of lengths)
    for (let seed = 0; seed < seeds; seed++)
      for (const actions of ['discrete', 'continuous'] as const) {
        const [from, to] = returns[(seed + rows) % returns.length];
        out.push({ rows, seed, actions, from, to });
      }
  return out;
}

function confusion(lengths: readonly number[], seeds: number): Map<Fault, Map<string, number>> {
  const table = new Map<Fault, Map<string, number>>();
  for (const fault of faults) {
    const row = new Map<string, number>();
    for (const task of tasks(lengths, seeds)) {
      const said = diagnose(simulate(task, fault));
      const answer = said.verdict === 'healthy' ? 'healthy' : (said.rootCause ?? said.verdict);
      row.set(answer, (row.get(answer) ?? 0) + 1);
    }
    table.set(fault, row);
  }
  return table;
}

const show = (table: Map<Fault, Map<string, number>>): string =>
  [...table].map(([fault, row]) => `${fault}: ${JSON.stringify(Object.fromEntries(row))}`).join('\n');

describe('simulated runs', () => {
  const lengths = [20, 40, 100, 400];
  const seeds = 10;
  const table = confusion(lengths, seeds);
  const each = lengths.length * seeds * 2;

  it('calls no healthy run anything else', () => {
    expect(Object.fromEntries(table.get('healthy')!)).toEqual({ healthy: each });
  });

  it.each(faults.slice(1))('finds %s', fault => {
    const right = table.get(fault)!.get(fault) ?? 0;
    expect(right / each, show(table)).toBeGreaterThanOrEqual(0.95);
  });

  it('takes runs of two thousand rows', () => {
    for (const fault of faults) {
      const task: Task = { rows: 2000, seed: 3, actions: 'discrete', from: -21, to: 18 };
      const said = diagnose(simulate(task, fault));
      expect(said.verdict === 'healthy' ? 'healthy' : said.rootCause, fault).toBe(fault);
    }
  });
});
