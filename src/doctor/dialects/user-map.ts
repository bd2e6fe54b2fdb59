/** What a user says about names with `--map theirs=ours`. */
import { fail, show } from '../../base/errors.ts';
import { nearest } from '../../base/nearest.ts';
import { requireMetric } from '../../metrics/registry.ts';
import type { RawRun } from '../raw-run.ts';
import type { Mapping } from './dialect.ts';

/** What a user calls a metric of the registry: `step` and `steps` are what x counts. */
export const metricOf = (ours: string): string => (/^steps?$/i.test(ours) ? 'train/step' : ours);

/** Checks a user's map against the registry and the log, and gives its entries as mappings. */
export function mappingsOf(raw: RawRun, map: ReadonlyMap<string, string>): Mapping[] {
  const problem = mapProblem([...map]);
  if (problem !== undefined) fail(problem, 'double-map');
  return [...map].map(([theirs, ours]) => {
    const id = metricOf(ours);
    const metric = requireMetric(id);
    if (!raw.series.has(theirs)) {
      const similar = similarNames(theirs, [...raw.series.keys()]);
      fail(
        `--map ${show(theirs)}: the log has no such name${similar.length === 0 ? '' : `; it has ${similar.join(', ')}`}`,
        'unknown-name',
      );
    }
    const { kl } = metric;
    return {
      theirs,
      id,
      ...(kl === undefined
        ? {}
        : {
            kl: {
              pair: kl.pair,
              estimator: /_k[13]$/.test(id) ? kl.estimator : ('unknown' as const),
              per: 'unknown' as const,
              aggregation: 'unknown' as const,
            },
          }),
    };
  });
}

/** Of two names for one metric only one could be read: a sentence if a map has such, or one name twice. */
export function mapProblem(pairs: readonly (readonly [theirs: string, ours: string])[]): string | undefined {
  const taken = new Map<string, string>();
  const given = new Map<string, string>();
  for (const [theirs, said] of pairs) {
    const ours = metricOf(said);
    const before = taken.get(ours);
    if (before !== undefined && before !== theirs)
      return `--map says that both ${show(before)} and ${show(theirs)} are ${ours}: leave one of them out`;
    const other = given.get(theirs);
    if (other !== undefined && other !== ours)
      return `--map says that ${show(theirs)} is both ${other} and ${ours}: leave one of them out`;
    taken.set(ours, theirs);
    given.set(theirs, ours);
  }
  return undefined;
}

/** Up to five names of the log that are near to a word, or share a part with it. */
function similarNames(word: string, names: readonly string[]): string[] {
  const wanted = wordsOf(word);
  const closest = nearest(word, names);
  const shared = names
    .map(name => ({ name, common: wordsOf(name).filter(part => wanted.includes(part)).length }))
    .filter(({ common }) => common > 0)
    .sort((a, b) => b.common - a.common)
    .map(({ name }) => name);
  return [...new Set([...(closest === undefined ? [] : [closest]), ...shared])].slice(0, 5).map(show);
}

const wordsOf = (name: string): string[] =>
  name
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter(part => part.length > 1);
