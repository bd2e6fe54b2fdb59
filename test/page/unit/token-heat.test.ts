import { describe, expect, test } from 'vitest';
import { factsOf, fullKlOf, heatOf, namesIn, visible } from '../../../web/lib/token-heat.ts';
import { fakeGroups } from '../support/fake-completions.ts';

const [group, flat] = fakeGroups(2);
const [first] = group.completions;

describe('heat of tokens', () => {
  test('KL by its root, full from so many nats on, nothing where it is not known', () => {
    const kl = [0, 0.01, 0.25, 1, 7, null, -1];
    const heat = heatOf('kl', { ...first, tokens: kl.map(String), kl }, group, 1);
    expect(heat).toEqual([0, 0.1, 0.5, 1, 1, 0, 0].map(value => expect.closeTo(value, 12)));
    expect(heatOf('kl', { ...first, kl: null }, group, 1).every(value => value === 0)).toBe(true);
  });

  test('KL has its full colour at a round number near the largest that is shown', () => {
    const shown = (...kl: (number | null)[]) => [{ ...group, completions: [{ ...first, kl }] }];
    expect(fullKlOf([])).toBe(0.01);
    expect(fullKlOf(shown(null, 0.002))).toBe(0.01);
    expect(fullKlOf(shown(0.02, 0.25))).toBe(0.3);
    expect(fullKlOf([...shown(0.02), ...shown(9)])).toBe(1);
  });

  test('surprise is what the probability lacks to 1', () => {
    const logProbs = [0, Math.log(0.25), -100, null];
    expect(heatOf('surprise', { ...first, logProbs }, group, 1)).toEqual(
      [0, 0.75, 1, 0].map(value => expect.closeTo(value, 12)),
    );
  });

  test('advantage is a share of the largest of the group, with its sign', () => {
    const shares = group.completions.map(one => heatOf('advantage', one, group, 1)[0]);
    expect(Math.max(...shares.map(Math.abs))).toBe(1);
    for (const [i, one] of group.completions.entries())
      expect(Math.sign(shares[i])).toBe(Math.sign(one.advantage!));
    expect(heatOf('advantage', flat.completions[0], flat, 1)[0]).toBe(0);
  });
});

test('what is told of a group', () => {
  expect(factsOf(group)).toMatchObject({ flat: false, parsed: 3 });
  expect(factsOf(flat)).toEqual({ flat: true, parsed: 3, mean: expect.closeTo(-0.3, 12) });
  // Equal rewards after which a penalty for length made a difference.
  const penalised = flat.completions.map((one, i) => ({ ...one, advantage: i === 0 ? -1 : 0.5 }));
  expect(factsOf({ ...flat, completions: penalised })).toMatchObject({ flat: false });
  // Unequal ones whose advantages nobody knows.
  const unequal = flat.completions.map((one, i) => ({ ...one, reward: i, advantage: null }));
  expect(factsOf({ ...flat, completions: unequal })).toMatchObject({ flat: false });
  expect(factsOf({ ...group, completions: [{ ...first, reward: null }] })).toEqual({
    flat: false,
    parsed: 1,
    mean: null,
  });
  expect(namesIn(group, 'metrics')).toEqual(['legal', 'overlap']);
  expect(namesIn({ ...group, completions: [first] }, 'parts')).not.toContain('malformed');
  expect(visible('a\n\tb')).toBe('a⏎\n⇥\tb');
});
