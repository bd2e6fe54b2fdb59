/** Each limit of the language-model rules, from both sides. */
import { describe, expect, it } from 'vitest';
import { rules, signalsOf } from '../../../src/doctor/rules/all.ts';
import { languageModelRules } from '../../../src/doctor/rules/language-models/all.ts';
import { type AtLimits, atLimits } from './support/language-models.ts';

function saidOf({ code, cause, make }: AtLimits, at: Readonly<Record<string, number>>): boolean {
  const made = make(at);
  const found = rules.find(rule => rule.code === code)!.check(made, signalsOf(made), []);
  return found.some(one => cause === undefined || one.cause === cause);
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
    (_, [inside, outside]) => {
      expect(saidOf(one, inside)).toBe(true);
      expect(saidOf(one, outside)).toBe(false);
    },
  );
});

it('every rule for language models has its limits tried', () => {
  const tried = new Set(atLimits.map(({ code }) => code));
  expect(languageModelRules.map(({ code }) => code).filter(code => !tried.has(code))).toEqual([]);
});
