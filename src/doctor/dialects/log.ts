/** A read run as a dialect looks at it: names without the trainer's prefixes, settings by any of their spellings. */
import type { RawRun } from '../raw-run.ts';
import type { Dialect, Log, NamedSeries, NamePattern } from './dialect.ts';

export function logOf(raw: RawRun, dialect: Pick<Dialect, 'prefixes' | 'rename'> = {}): Log {
  const short = new Map<string, string>();
  for (const theirs of raw.series.keys()) short.set(theirs, strip(theirs, dialect.prefixes ?? []));
  const renamed = dialect.rename?.([...short.values()]);
  const series = new Map<string, NamedSeries>();
  for (const [theirs, points] of raw.series) {
    const stripped = short.get(theirs)!;
    const name = renamed?.names.get(stripped) ?? stripped;
    if (!series.has(name) || name === theirs) series.set(name, { theirs, series: points });
  }
  return { raw, series, notes: renamed?.notes ?? [], setting: names => findSetting(raw.config, names) };
}

/** A log that says nothing, for what is told of a trainer in general. */
export const emptyLog: Log = logOf({
  path: '',
  format: 'csv',
  files: [],
  axis: 'row',
  series: new Map(),
  config: new Map(),
  texts: new Map(),
  restarts: [],
  notes: [],
  unfinished: false,
});

/** Takes prefixes off, as often as there is one; what would leave nothing stays. */
function strip(name: string, prefixes: readonly string[]): string {
  let short = name;
  for (let again = true; again; ) {
    again = false;
    for (const prefix of prefixes) {
      if (short.length > prefix.length && short.startsWith(prefix)) {
        short = short.slice(prefix.length);
        again = true;
      }
    }
  }
  return short;
}

/** Whether a name is, or wholly fits, a pattern; the match has the pattern's groups. */
export function fits(name: string, pattern: NamePattern): RegExpMatchArray | undefined {
  if (typeof pattern === 'string') return name === pattern ? [name] : undefined;
  let whole = anchored.get(pattern);
  if (whole === undefined) {
    whole = new RegExp(`^(?:${pattern.source})$`, pattern.flags);
    anchored.set(pattern, whole);
  }
  return whole.exec(name) ?? undefined;
}

const anchored = new WeakMap<RegExp, RegExp>();

/** A whole name first, then the end of a path; of several paths the shortest. Dots and slashes are alike. */
function findSetting(config: RawRun['config'], names: readonly string[]): ReturnType<Log['setting']> {
  for (const wanted of names) {
    const name = spell(wanted);
    let best: string | undefined;
    for (const key of config.keys()) {
      const path = spell(key);
      if (path !== name && !path.endsWith(`/${name}`)) continue;
      if (best === undefined || path.length < best.length) best = key;
    }
    if (best !== undefined) return config.get(best);
  }
  return undefined;
}

/** One spelling of a setting's path: `optim.lr` and `optim/lr`, `learning-rate` and `learning_rate`. */
export function spell(key: string): string {
  return key.toLowerCase().replaceAll('.', '/').replaceAll('-', '_').replaceAll(' ', '_');
}
