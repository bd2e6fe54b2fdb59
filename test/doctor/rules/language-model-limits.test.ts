/** Each limit of the language-model rules, from both sides. */
import { describe, expect, it } from 'vitest';
import { rules, signalsOf } from '../../../src/doctor/rules/all.ts';
import { languageModelRules } from '../../../src/doctor/rules/language-models/all.ts';
import { type AtLimits, atLimits } from './support/language-models.ts';

function saidOf(
  { code, cause, make, louder = [] }: AtLimits,
  at: Readonly<Record<string, number>>,
  limit = '',
): boolean {
  const made = make(at);
  const found = rules.find(rule => rule.code === code)!.check(made, signalsOf(made), []);
  const severe = louder.includes(limit);
  return found.some(
    one => (cause === undefined || one.cause === cause) && (!severe || one.severity === 'critical'),
  );
}

describe.each(atLimits.map(one => [one.code, one] as const))('%s', (_, one) => {
  it('has a run on both sides of each limit', () => {
    expect(Object.keys(one.cases).sort()).toEqual(Object.keys(one.limits).sort());
  });

  it('speaks where all is well inside', () => {
    expect(saidOf(one, {})).toBe(true);
  });

  it.each(Object.entries(one.cases))(
    '%s: speaks just inside and is silent just outside',
    (limit, [inside, outside]) => {
      expect(saidOf(one, inside, limit)).toBe(true);
      expect(saidOf(one, outside, limit)).toBe(false);
    },
  );
});

it('every rule for language models has its limits tried', () => {
  const tried = new Set(atLimits.map(({ code }) => code));
  expect(languageModelRules.map(({ code }) => code).filter(code => !tried.has(code))).toEqual([]);
});
