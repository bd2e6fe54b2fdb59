/** What tells groups of one name apart. */
import { describe, expect, test } from 'vitest';
import { differencesIn, differencesOf } from '../../../web/lib/differing.ts';

const named = (name: string, settings: Record<string, string>) => ({
  name,
  settings: new Map(Object.entries(settings)),
});

describe('the settings in which things of one name differ', () => {
  test('as many as it takes, the learning rate first, the seed never', () => {
    const told = differencesOf([
      named('cartpole', { epochs: '4', learningRate: '0.03', guard: 'none', seed: '1' }),
      named('cartpole', { epochs: '4', learningRate: '0.001', guard: 'none', seed: '2' }),
      named('snake', { learningRate: '0.5' }),
    ]);
    expect(told).toEqual(['learningRate 0.03', 'learningRate 0.001', null]);
    const three = differencesOf([
      named('a', { learningRate: '0.03', guard: 'none' }),
      named('a', { learningRate: '0.001', guard: '0.03' }),
      named('a', { learningRate: '0.001', guard: '0.05' }),
    ]);
    expect(three).toEqual([
      'learningRate 0.03, guard none',
      'learningRate 0.001, guard 0.03',
      'learningRate 0.001, guard 0.05',
    ]);
  });

  test('no more than two, and then that there is more', () => {
    const settings = (i: number) => ({ a: String(i & 1), b: String((i >> 1) & 1), c: String(i >> 2) });
    const told = differencesOf([0, 1, 2, 3, 4].map(i => named('x', settings(i))));
    expect(told[4]).toBe('a 0, b 0, …');
  });

  test('what one does not say does not differ; nothing is said where nothing is known', () => {
    expect(differencesOf([named('x', { epochs: '4' }), named('x', {})])).toEqual([null, null]);
    expect(differencesOf([named('x', { seed: '1' }), named('x', { seed: '2' })])).toEqual([null, null]);
    expect(differencesOf([])).toEqual([]);
  });

  test('of groups of runs, from the settings of their first', () => {
    const group = (key: string, run: string) => ({ key, name: 'x', runs: [{ id: run }] }) as never;
    const all = { settings: ['lr=1', 'guard=null', 'guard=0.1'], runs: { a: [0, 1], b: [0, 2] } };
    expect([...differencesIn([group('g', 'a'), group('h', 'b'), group('i', 'gone')], all)]).toEqual([
      ['g', 'guard none'],
      ['h', 'guard 0.1'],
    ]);
  });
});
