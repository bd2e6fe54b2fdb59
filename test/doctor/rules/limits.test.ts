/** Each limit of the rules for agents, from both sides. */
import { describe, expect, it } from 'vitest';
import { type Finding, severities } from '../../../src/doctor/findings.ts';
import { rules, signalsOf } from '../../../src/doctor/rules/all.ts';
import { causesAtLimits } from './support/causes.ts';
import { type AtLimits, atLimits as classicAtLimits } from './support/classic.ts';

const atLimits = [...classicAtLimits, ...causesAtLimits];

/** How loud it speaks, in the order of severities; -1 where it is silent. */
function loudness(
  { code, make, causes }: AtLimits,
  limit: string,
  at: Readonly<Record<string, number>>,
): number {
  const cause = causes?.[limit];
  const made = make(at);
  const found: readonly Finding[] = rules.find(rule => rule.code === code)!.check(made, signalsOf(made), []);
  return Math.max(
    -1,
    ...found
      .filter(one => cause === undefined || one.cause === cause)
      .map(({ severity }) => severities.indexOf(severity)),
  );
}

describe.each(atLimits.map(one => [one.code, one] as const))('%s', (_, one) => {
  it('has a run on both sides of each limit', () => {
    expect(Object.keys(one.cases).sort()).toEqual(Object.keys(one.limits).sort());
  });

  it.each(Object.entries(one.cases))(
    '%s: speaks so just inside and not just outside',
    (limit, [inside, outside, loud = 'info']) => {
      expect(loudness(one, limit, inside)).toBeGreaterThanOrEqual(severities.indexOf(loud));
      expect(loudness(one, limit, outside)).toBeLessThan(severities.indexOf(loud));
    },
  );
});

it('a sentence that names a series cites it', () => {
  const bare = atLimits.flatMap(({ cases, make }) =>
    Object.values(cases).flatMap(([inside]) => {
      const made = make(inside);
      const signals = signalsOf(made);
      return rules
        .flatMap(rule => rule.check(made, signals, []))
        .flatMap(({ code, evidence, cites }) =>
          evidence
            .filter(
              (text, i) =>
                text.includes('`their/') &&
                !cites.some(cite => cite.evidence === i && text.includes(cite.theirs)),
            )
            .map(text => `${code}: ${text}`),
        );
    }),
  );
  expect(bare).toEqual([]);
});
