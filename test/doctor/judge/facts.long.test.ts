/** Every sentence is true of its log: each number is a fact, each fact is what the series say, and words fit numbers. */
import { rmSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { diagnose } from '../../../src/doctor/diagnose.ts';
import type { CitedFact, Finding } from '../../../src/doctor/findings.ts';
import { basisOf } from '../../../src/doctor/judge/basis.ts';
import { type Signals, signalsOf } from '../../../src/doctor/rules/signals.ts';
import type { Said } from '../../../src/doctor/rules/words.ts';
import { atLimits } from '../rules/limits/all.ts';
import { allLogs } from '../support/all-logs.ts';
import { isPrinted, recomputed, uncited } from '../support/recompute.ts';

interface Told {
  readonly name: string;
  readonly signals: Signals;
  readonly finding: Finding;
}

const told: Told[] = [];
/** What "healthy" would rest on, of every log. */
const bases: { readonly name: string; readonly signals: Signals; readonly said: readonly Said[] }[] = [];
let scratch = '';

beforeAll(async () => {
  const all = await allLogs();
  scratch = all.scratch;
  // Runs on the near side of each limit: what a rule says that no log of ours brings about.
  const made = atLimits.flatMap(({ code, cases, make }) =>
    Object.entries(cases).map(([limit, [inside]]) => ({ name: `${code} at ${limit}`, run: make(inside) })),
  );
  for (const { name, run } of [...all.logs, ...made]) {
    const signals = signalsOf(run);
    for (const finding of diagnose(run).findings) told.push({ name, signals, finding });
    bases.push({ name, signals, said: basisOf(signals) });
  }
});
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** Equal but for the last digits of a float; there is nothing to compare with a limit. */
const isSame = (again: number | undefined, value: number): boolean =>
  again === undefined ||
  again === value ||
  Math.abs(again - value) <= 1e-9 * Math.max(Math.abs(again), Math.abs(value));

it('says something of hundreds of logs', () => {
  expect(told.length).toBeGreaterThan(300);
  expect(new Set(told.map(({ finding }) => finding.code)).size).toBeGreaterThan(25);
});

it('has no number in a title or in the evidence that is not a fact', () => {
  const bare = told.flatMap(({ name, finding }) =>
    [null, ...finding.evidence.keys()].flatMap(at => {
      const sentence = at === null ? finding.title : finding.evidence[at];
      const left = uncited(
        sentence,
        finding.facts.filter(({ evidence }) => evidence === at),
      );
      return left === undefined ? [] : [`${finding.code}: ${left} (${name})`];
    }),
  );
  expect([...new Set(bare)]).toEqual([]);
});

it('cites what the series say, as it is printed', () => {
  const off = told.flatMap(({ name, signals, finding }) =>
    finding.facts.flatMap(fact => {
      const again = recomputed(fact, signals, finding);
      if (isSame(again, fact.value) && isPrinted(fact)) return [];
      return [`${finding.code}: ${JSON.stringify(fact)} is ${again} (${name})`];
    }),
  );
  expect(off.slice(0, 20)).toEqual([]);
});

it('rests "healthy" on sentences of the same kind', () => {
  const off = bases.flatMap(({ name, signals, said }) =>
    said.flatMap(({ text, facts }) => {
      const isTrue = facts.every(fact => isSame(recomputed(fact, signals), fact.value) && isPrinted(fact));
      return isTrue && uncited(text, facts) === undefined ? [] : [`${text} (${name})`];
    }),
  );
  expect(off).toEqual([]);
});

/** The facts of each sentence, with the sentence. */
const sentences = (): { text: string; facts: CitedFact[]; where: string }[] =>
  told.flatMap(({ name, finding }) =>
    [null, ...finding.evidence.keys()].map(at => ({
      text: at === null ? finding.title : finding.evidence[at],
      facts: finding.facts.filter(({ evidence }) => evidence === at),
      where: `${finding.code} (${name})`,
    })),
  );

/** The values of the numbers in words such as `from # to #`, where a sentence has these. */
function valuesIn(words: RegExp): { text: string; values: number[]; where: string }[] {
  return sentences().flatMap(({ text, facts, where }) => {
    let rest = text;
    let template = '';
    for (const fact of facts) {
      const at = rest.indexOf(fact.text);
      template += `${rest.slice(0, at)}#`;
      rest = rest.slice(at + fact.text.length);
    }
    template += rest;
    const found = words.exec(template);
    if (found === null) return [];
    const before = template.slice(0, found.index).split('#').length - 1;
    const count = found[0].split('#').length - 1;
    return [{ text, where, values: facts.slice(before, before + count).map(({ value }) => value) }];
  });
}

const ascends = (values: readonly number[]): boolean => values.every((v, i) => i === 0 || values[i - 1] <= v);
const descends = (values: readonly number[]): boolean => ascends(values.toReversed());
const risesStrictly = ([a, b]: readonly number[]): boolean => a < b;
const fallsStrictly = ([a, b]: readonly number[]): boolean => a > b;

it.each<[string, RegExp, (values: readonly number[]) => boolean]>([
  [
    'what falls, from more to less',
    /(falls|fell|shrinks?|falls steadily|collapsed),? from # to #/,
    fallsStrictly,
  ],
  [
    'what rises, from less to more',
    /(rises|grew|grows|still improves|improved),? from # to #/,
    risesStrictly,
  ],
  ['a median below the largest', /median #[^,;]*, largest #/, ascends],
  ['at most', /median of #[^;]*, at most #/, ascends],
  ['what does not improve', /does not improve: # at the start, # at the end/, descends],
  ['what does not fall', /does not fall: # at the start, # at the end/, ascends],
  ['what hardly falls', /hardly falls: # at the start, # at the end/, fallsStrictly],
  ['a best that is lost', /fell: # at its best, around #, and # at the end/, ([best, , end]) => best > end],
  ['a collapse', /reached # at \w+ #, (fell to # )?and ends at #/, values => values[0] > values.at(-1)!],
  ['rows from a step to a later one', /above #, from # to #/, ([, from, to]) => from <= to],
  ['a share of something', /in # of the (rows|updates)/, ([share]) => share >= 0 && share <= 1],
  ['times that are more', /# times (as large|what it was|the largest that is usual)/, ([times]) => times > 1],
])('says of numbers what they are: %s', (_, words, holds) => {
  const found = valuesIn(words);
  expect(found.length).toBeGreaterThan(0);
  expect(found.filter(({ values }) => !holds(values))).toEqual([]);
});

it('counts one of a thing as one, and never says that something is there in none of the rows', () => {
  const all = told.flatMap(({ finding }) => [
    finding.title,
    ...finding.evidence,
    ...finding.fix,
    finding.watch ?? '',
  ]);
  expect(
    all.filter(text => /(?<![\d.,-])1 (steps|rows|updates|iterations|epochs|tokens)\b/.test(text)),
  ).toEqual([]);
  expect(all.filter(text => /\bin 0% of/.test(text))).toEqual([]);
});
