/**
 * Gradients that mean what they say: on a language whose every expectation is a sum, the mean gradient of each KL penalty is the
 * exact gradient of the KL that it is named for. docs/kl.md has the same figures.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, test } from 'vitest';
import {
  type Comparison,
  type Comparisons,
  compare,
  counts,
  distance,
} from '../../../bench/kl-gradients/compare.ts';
import { grpoGradient } from '../../../bench/kl-gradients/estimators.ts';
import { pictureOf, tableOf } from '../../../bench/kl-gradients/picture.ts';
import {
  completions,
  drawTables,
  forwardGradient,
  probabilitiesOf,
  reachOf,
  SIZE,
  sequenceGradient,
  sequenceKl,
  type Table,
  tokenGradient,
} from '../../../bench/kl-gradients/task.ts';
import { SAMPLES, SEED, withTable } from '../../../bench/kl-gradients.ts';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const fileAt = (path: string): string => readFileSync(join(root, path), 'utf8');

const found = new Map<number, Comparisons>();
const seeds = [SEED, SEED + 1, SEED + 2];
beforeAll(async () => {
  for (const seed of seeds) found.set(seed, await compare(seed, SAMPLES));
});

describe('the exact gradients', () => {
  const { policy, reference } = drawTables(SEED);
  /** By central differences of a value in float64, one logit at a time. */
  const differences = (of: (table: Table) => number): Float64Array =>
    Float64Array.from({ length: SIZE }, (_, at) => {
      const moved = (by: number): number => {
        const table = Float64Array.from(policy);
        table[at] += by;
        return of(table as unknown as Table);
      };
      return (moved(1e-5) - moved(-1e-5)) / 2e-5;
    });

  test('all completions are there, and their probabilities sum to 1', () => {
    expect(completions.length).toBe(40);
    expect(new Set(completions.map(({ tokens }) => tokens.join())).size).toBe(40);
    expect(probabilitiesOf(policy).reduce((a, b) => a + b)).toBeCloseTo(1, 12);
  });

  test("of the sequence's KL: finite differences of the sum over completions", () => {
    const slopes = differences(table => sequenceKl(table, reference));
    expect(distance(sequenceGradient(policy, reference), slopes)).toBeLessThan(1e-8);
  });

  test('of each token, both ways: finite differences with the contexts held', () => {
    const reach = reachOf(policy);
    const klOf = (p: Table, q: Table): number => {
      // The KL of each context by itself, from the sum over tokens.
      const [own, other] = [p, q].map(table => {
        const logs = Float64Array.from(table);
        for (let start = 0; start < SIZE; start += 4) {
          const total = Math.log([0, 1, 2, 3].reduce((sum, i) => sum + Math.exp(table[start + i]), 0));
          for (let i = start; i < start + 4; i++) logs[i] -= total;
        }
        return logs;
      });
      return own.reduce(
        (sum, log, at) => sum + reach[Math.floor(at / 4)] * Math.exp(log) * (log - other[at]),
        0,
      );
    };
    const reverse = differences(table => klOf(table, reference));
    expect(distance(tokenGradient(policy, reference), reverse)).toBeLessThan(1e-8);
    const forward = differences(table => klOf(reference, table));
    expect(distance(forwardGradient(policy, reference), forward)).toBeLessThan(1e-8);
    expect(distance(reverse, forward)).toBeGreaterThan(0.1);
  });
});

const row = (seed: number, name: string, of = ''): Comparison =>
  found.get(seed)!.rows.find(entry => entry.name.includes(`\`${name}\``) && entry.of.startsWith(of))!;

describe.each(seeds)('seed %i', seed => {
  test('every estimator but k3 has the gradient that it is named for, exactly and in the sample', () => {
    const others = found.get(seed)!.rows.filter(entry => entry !== row(seed, 'k3', 'KL(policy'));
    expect(others.map(({ name }) => name)).toEqual([
      ...['GRPO `exact`', 'GRPO `ratio-k3`', 'GRPO `k2`', 'GRPO `k3`', 'GRPO `exact-sequence`'],
      ...['GRPO `k1-advantage`', 'PPO `reference`', 'PPO `klCoef`'],
    ]);
    for (const { name, bias, standardErrors, mean, exact } of others) {
      expect(bias, name).toBeLessThan(1e-5);
      expect(standardErrors, name).toBeLessThan(1.6);
      expect(distance(mean, exact), name).toBeLessThan(0.06);
    }
  });

  test("plain k3 has the other KL's gradient, and not that of KL(policy ‖ reference)", () => {
    expect(row(seed, 'k3', 'KL(reference').bias).toBeLessThan(1e-5);
    const asMeant = row(seed, 'k3', 'KL(policy');
    expect(asMeant.bias).toBeGreaterThan(0.1);
    expect(asMeant.standardErrors).toBeGreaterThan(10);
  });

  test("by token it is not the sequence's: the term is not small", () => {
    expect(found.get(seed)!.exactToSequence).toBeGreaterThan(0.05);
  });

  test('with completions of an older policy: exact and ratio-k3 stay right by token, the others do not', () => {
    for (const name of ['exact', 'ratio-k3', 'reference'])
      expect(row(seed, name).biasOlder).toBeLessThan(1e-5);
    for (const name of ['k2', 'exact-sequence', 'k1-advantage'])
      expect(row(seed, name).biasOlder).toBeGreaterThan(0.01);
  });

  test('the exact ones vary least; ratio-k3 and k2 are the same while the ratio is 1', () => {
    const of = (name: string): number => row(seed, name).variance;
    expect(of('ratio-k3') / of('exact')).toBeGreaterThan(3);
    expect(of('k1-advantage') / of('exact-sequence')).toBeGreaterThan(3);
    expect(of('k2') / of('ratio-k3')).toBeCloseTo(1, 4);
    expect(of('reference') / of('exact')).toBeCloseTo(1, 4);
  });
});

test('a whole batch in one program has the sum of what its completions have by themselves', async () => {
  const { tables } = found.get(SEED)!;
  const weights = counts(tables.policy, 5000).map(count => count / 5000);
  for (const refKl of ['exact-sequence', 'k1-advantage', 'ratio-k3'] as const) {
    const all = completions.map((_, i) => i);
    const [whole, single] = [
      await grpoGradient(refKl, tables, all.length),
      await grpoGradient(refKl, tables, 1),
    ];
    const sum = new Float64Array(SIZE);
    for (const i of all)
      single.run([i], [weights[i]], tables.policy).forEach((value, at) => {
        sum[at] += value;
      });
    expect(distance(whole.run(all, weights, tables.policy), sum)).toBeLessThan(1e-5);
    whole.dispose();
    single.dispose();
  }
});

test('docs/kl.md and its picture are of these figures', () => {
  const here = found.get(SEED)!;
  const document = fileAt('docs/kl.md');
  expect(document).toContain(tableOf(here));
  expect(withTable(document, tableOf(here))).toBe(document);
  // Last digits of single precision move no point by a tenth of a unit, but may round otherwise.
  const numbers = (svg: string): number[] =>
    [...svg.matchAll(/(?:c[xy]|d)="M?([\d.]+)/g)].map(([, value]) => Number(value));
  const [drawn, kept] = [numbers(pictureOf(here)), numbers(fileAt('docs/pictures/kl-gradients.svg'))];
  expect(kept.length).toBe(drawn.length);
  expect(Math.max(...drawn.map((value, i) => Math.abs(value - kept[i])))).toBeLessThan(0.2);
});
