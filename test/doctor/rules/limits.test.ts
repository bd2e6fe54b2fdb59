/** Each limit of the doctor's rules, from both sides, and what becomes of that when the limit is moved. */
import { afterEach, describe, expect, it } from 'vitest';
import { rules, signalsOf } from '../../../src/doctor/rules/all.ts';
import { limitTables } from '../../../src/doctor/rules/limits.ts';
import { atLimits } from './limits/all.ts';
import { languageModels } from './limits/language-models.ts';
import { holds } from './support/at-limits.ts';

const tableOf = ({ code, table = code }: { code: string; table?: string }): string => table;

it('every table of limits is tried', () => {
  expect(atLimits.map(tableOf).toSorted()).toEqual([...limitTables.keys()].toSorted());
});

describe.each(atLimits.map(one => [tableOf(one), one] as const))('%s', (name, one) => {
  const table = limitTables.get(name) as Record<string, number>;
  const before = { ...table };
  afterEach(() => Object.assign(table, before));

  it('has a run on both sides of each limit', () => {
    expect(Object.keys(one.cases).toSorted()).toEqual(Object.keys(table).toSorted());
  });

  const cases = Object.entries(one.cases);

  it.each(cases)('%s: speaks so just inside and not just outside', (limit, sides) => {
    expect(holds(one, limit, sides)).toEqual([true, true]);
  });

  it.each(cases)('%s: is noticed if it is a fifth larger or smaller', (limit, sides) => {
    const at = before[limit];
    const [, , , by = 0.2] = sides;
    // A number of rows or spikes is whole.
    const step = Number.isInteger(at) ? Math.max(1, by * at) : by * at;
    const noticed = [step, -step].map(moved => {
      table[limit] = at + moved;
      return holds(one, limit, sides).includes(false);
    });
    expect(noticed).toEqual([true, true]);
  });
});

it('a sentence that names a series cites it', () => {
  const ofAgents = atLimits.filter(one => !languageModels.includes(one));
  const bare = ofAgents.flatMap(({ cases, make }) =>
    Object.values(cases).flatMap(([inside]) => {
      const made = make(inside);
      const signals = signalsOf(made);
      // Of a series without a number there is no stretch to cite.
      const named = [...signals.tracks.values()].filter(({ n }) => n > 0).map(({ theirs }) => theirs);
      return rules
        .flatMap(rule => rule.check(made, signals, []))
        .flatMap(({ code, evidence, cites }) =>
          evidence
            .filter(
              (text, i) =>
                named.some(theirs => text.includes(`\`${theirs}\``)) &&
                !cites.some(cite => cite.evidence === i && text.includes(cite.theirs)),
            )
            .map(text => `${code}: ${text}`),
        );
    }),
  );
  expect(bare).toEqual([]);
});
