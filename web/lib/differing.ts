/** What tells things of one name apart: the settings in which they differ. */

import type { AllSettings } from '../../src/server/api.ts';
import type { SeedGroup } from './overview.ts';

/** Settings that are said of a thing at most; where they do not tell all apart, an ellipsis follows. */
const most = 2;
/** What is said first, because it is what people vary; then what has most values, then by name. */
const first = ['learningRate', 'guard'];

/** Something with a name, and the values of each of its settings as they are shown. */
export interface Named {
  readonly name: string;
  readonly settings: ReadonlyMap<string, string>;
}

/**
 * For each that shares its name with another, what it has where these differ: `learningRate 0.03, guard none`. Null where the
 * name is enough, or nothing is known to differ. A seed is left out, and what one of them does not say does not differ.
 */
export function differencesOf(all: readonly Named[]): (string | null)[] {
  const byName = new Map<string, Named[]>();
  for (const one of all) byName.set(one.name, [...(byName.get(one.name) ?? []), one]);
  const said = new Map<Named, string>();
  for (const alike of byName.values()) {
    if (alike.length < 2) continue;
    const values = new Map<string, Set<string>>();
    for (const { settings } of alike)
      for (const [key, value] of settings) values.set(key, (values.get(key) ?? new Set()).add(value));
    const differing = [...values]
      .filter(([key, { size }]) => size > 1 && key !== 'seed')
      .sort(([a, x], [b, y]) => rank(a) - rank(b) || y.size - x.size || (a < b ? -1 : 1))
      .map(([key]) => key);
    const wordsOf = ({ settings }: Named, keys: readonly string[]): string =>
      keys.flatMap(key => (settings.has(key) ? [`${key} ${settings.get(key)}`] : [])).join(', ');
    const tell = (keys: readonly string[]): boolean =>
      new Set(alike.map(one => wordsOf(one, keys))).size === alike.length;
    const counts = Array.from({ length: Math.min(most, differing.length) }, (_, i) => i + 1);
    const enough = counts.find(count => tell(differing.slice(0, count)));
    const keys = differing.slice(0, enough ?? most);
    for (const one of alike) {
      const words = wordsOf(one, keys);
      if (words !== '')
        said.set(one, enough === undefined && differing.length > most ? `${words}, …` : words);
    }
  }
  return all.map(one => said.get(one) ?? null);
}

const rank = (key: string): number => (first.includes(key) ? first.indexOf(key) : first.length);

/** The same of groups of runs, whose settings read `learningRate=0.001`; by the groups' keys. */
export function differencesIn(groups: readonly SeedGroup[], all: AllSettings): Map<string, string> {
  const named = groups.map(({ name, runs: [run] }) => ({
    name,
    settings: new Map(
      (run === undefined ? [] : (all.runs[run.id] ?? [])).map(place => {
        const text = all.settings[place] ?? '';
        const at = text.indexOf('=');
        return [text.slice(0, at), text.slice(at + 1).replace(/^null$/, 'none')] as const;
      }),
    ),
  }));
  const said = differencesOf(named);
  return new Map(groups.flatMap(({ key }, i) => (said[i] == null ? [] : [[key, said[i]] as const])));
}
