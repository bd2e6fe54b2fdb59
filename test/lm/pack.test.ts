/** Sequences as programs take them: what is read, what predicts what, and that no row is read twice. */
import { describe, expect, it } from 'vitest';
import { pack, shapeFor } from '../../src/lm/index.ts';

const sequences = [
  { prompt: [1, 2], tokens: [3, 4, 5, 6] }, // as long as its row
  { prompt: [1, 2, 3, 4], tokens: [7] }, // fewer tokens than places, most rows before them
  { prompt: [9], tokens: [8, 7] }, // none before, some after
];

it('refuses what the context does not hold, to the token', () => {
  expect(shapeFor(sequences, 4, 6).length).toBe(6);
  expect(() => shapeFor(sequences, 4, 5)).toThrow(/a sequence has 6 tokens, the context holds 5/);
});

describe('pack', () => {
  const shape = shapeFor(sequences, 4, 16, { step: 1 });
  const { tokens, places, targets } = pack(sequences, shape);

  it('reads all tokens but the last of the longest, which predicts nothing', () => {
    expect(shape).toEqual({ rows: 4, length: 5, newTokens: 4, copies: 1 });
    expect([...tokens].map(Number)).toEqual([1, 2, 3, 4, 5, 1, 2, 3, 4, 0, 9, 8, 0, 0, 0, 0, 0, 0, 0, 0]);
  });

  it('names the row before each token', () => {
    sequences.forEach(({ prompt, tokens: own }, row) => {
      own.forEach((token, i) => {
        expect(Number(targets[row * shape.newTokens + i])).toBe(token);
        expect(Number(places[row * shape.newTokens + i])).toBe(row * shape.length + prompt.length - 1 + i);
      });
    });
  });

  it('gives each place a row of its own, the last row of the batch included', () => {
    expect(new Set(places).size).toBe(places.length);
    expect([...places].every(place => place >= 0n && place < BigInt(shape.rows * shape.length))).toBe(true);
    // All of an empty row's places lie within it.
    expect([...places.slice(3 * shape.newTokens)].every(place => place >= 15n)).toBe(true);
  });
});
