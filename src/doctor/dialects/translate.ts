/** From a trainer's names to the registry's: recognises the dialect and puts every series where rules look for it. */
import { fail, show } from '../../base/errors.ts';
import { nearest } from '../../base/nearest.ts';
import { isMetricId } from '../../metrics/registry.ts';
import type { CanonicalRun, CanonicalSeries } from '../canonical.ts';
import { isStepName } from '../counters.ts';
import type { RawRun } from '../raw-run.ts';
import { actionsOf } from './actions.ts';
import { dialects } from './all.ts';
import { chooseAxis } from './axis.ts';
import { commonMappings } from './common.ts';
import { moved, scaled } from './derive.ts';
import type { Dialect, Draft, Log, Mapping } from './dialect.ts';
import { keel } from './keel.ts';
import { klProxyOf } from './kl-proxy.ts';
import { configOf, withSeries } from './known-config.ts';
import { fits, logOf } from './log.ts';
import { type Recognised, recognise } from './recognise.ts';
import { unknownDialect } from './unknown.ts';
import { mappingsOf } from './user-map.ts';
import { wordingOf } from './wording.ts';
import { dropZeroKls } from './zero-kl.ts';

export { dialects };

/** How a log is translated, where it is not left to be recognised. */
export interface CanonicalOptions {
  /** Their names to ours, as the user says with `--map`; stronger than any dialect. */
  readonly map?: ReadonlyMap<string, string>;
  /** The dialect to use, where the user knows better than the names tell. */
  readonly trainer?: string;
}

/** A run in the registry's names. An unknown trainer, or a map that fits neither log nor registry, is an error. */
export function toCanonical(raw: RawRun, options: CanonicalOptions = {}): CanonicalRun {
  const { dialect, log, notes } = choose(raw, options.trainer);
  const own = options.map === undefined ? [] : mappingsOf(raw, options.map);
  const counter = own.find(({ id }) => id === 'train/step')?.theirs as string | undefined;
  const axis = chooseAxis(log, dialect, counter === undefined ? undefined : raw.series.get(counter));
  const understood = new Set<string>();
  const drafts = draftsOf(log, dialect, own, understood).map(draft => ({
    ...draft,
    series: scaled(moved(draft.series, axis.at), draft.mapping.times ?? 1),
  }));
  const refined = dialect.refine?.(drafts, log, axis.at) ?? {};
  const series = withBlanks(seriesOf(refined.drafts ?? drafts, log), raw, axis.at);
  const kind = dialect.kindOf?.(log) ?? dialect.kind;
  const zeros = dropZeroKls(kind, dialect.name, series);
  const said = configOf(log, dialect.config);
  const klProxy = klProxyOf(dialect, log, series, said);
  const config = withSeries(
    { ...(klProxy === undefined ? {} : { learningRateSchedule: 'adaptive' }), ...refined.config, ...said },
    series,
  );
  const error = errorOf(raw);
  return {
    path: raw.path,
    trainer: dialect.name,
    kind,
    unit: axis.unit,
    series,
    config,
    wording: wordingOf(dialect.wording, log),
    ...actionsOf(kind, series, dialect.actions?.(log)),
    restarts: axis.restarts,
    notes: [...raw.notes, ...notes, ...log.notes, ...axis.notes, ...(refined.notes ?? []), ...zeros],
    unknown: [...raw.series.keys()].filter(name => !understood.has(name)),
    unfinished: raw.unfinished,
    ...(klProxy === undefined ? {} : { klProxy }),
    ...(error === undefined ? {} : { error }),
  };
}

/** By id; a draft that came first stays. */
function seriesOf(drafts: readonly Draft[], log: Log): Map<string, CanonicalSeries> {
  const series = new Map<string, CanonicalSeries>();
  for (const { id, theirs, series: points, mapping } of drafts) {
    if (series.has(id) || points.length === 0) continue;
    const kl = typeof mapping.kl === 'function' ? mapping.kl(log) : mapping.kl;
    series.set(id, { id, theirs, series: points, ...(kl === undefined ? {} : { kl: { lag: 0, ...kl } }) });
  }
  return series;
}

/** Says of each series where the table goes on without it. */
function withBlanks(
  series: Map<string, CanonicalSeries>,
  raw: RawRun,
  stepOf: (row: number) => number,
): Map<string, CanonicalSeries> {
  for (const [id, one] of series) {
    const blank = raw.blanks?.get(one.theirs);
    if (blank === undefined) continue;
    const from = stepOf(blank.from);
    series.set(id, {
      ...one,
      blank: {
        from: Number.isFinite(from) ? from : one.series.x[one.series.length - 1],
        rows: blank.rows,
        before: blank.from - 1,
        kind: blank.kind,
      },
    });
  }
  return series;
}

function choose(raw: RawRun, trainer: string | undefined): { dialect: Dialect; log: Log; notes: string[] } {
  const generic = (): Pick<Recognised, 'dialect' | 'log'> => ({
    dialect: unknownDialect([...raw.series.keys()]),
    log: logOf(raw),
  });
  if (trainer !== undefined) {
    if (trainer === 'unknown') return { ...generic(), notes: [] };
    const dialect = dialects.find(({ name }) => name === trainer);
    if (dialect === undefined) {
      const names = [...dialects.map(({ name }) => name), 'unknown'];
      const near = nearest(trainer, names);
      fail(
        `unknown trainer ${show(trainer)}: ${near === undefined ? `use one of ${names.join(', ')}` : `did you mean ${near}?`}`,
        'unknown-trainer',
      );
    }
    return { dialect, log: logOf(raw, dialect), notes: [] };
  }
  if (raw.format === 'keel') return { dialect: keel, log: logOf(raw, keel), notes: [] };
  const [best, ...others] = recognise(raw, dialects);
  if (best === undefined) return { ...generic(), notes: [] };
  return { dialect: best.dialect, log: best.log, notes: otherTrainers(best, others) };
}

/** Says if a log has names of a second trainer that the first has no use for. */
function otherTrainers(best: Recognised, others: readonly Recognised[]): string[] {
  const known = [...best.dialect.mappings.map(m => m.theirs), ...best.dialect.ignored];
  const claimed = new Set<string>();
  for (const [name, { theirs }] of best.log.series) {
    if (known.some(pattern => fits(name, pattern) !== undefined)) claimed.add(theirs);
  }
  for (const { dialect, log } of others) {
    const extra: string[] = [];
    for (const [name, { theirs }] of log.series) {
      if (!claimed.has(theirs) && dialect.mappings.some(m => fits(name, m.theirs) !== undefined))
        extra.push(theirs);
    }
    if (extra.length < 4) continue;
    const some = extra.slice(0, 3).join(', ');
    return [
      `the log also has names of ${dialect.title} (${some} …): it is read as one of ${best.dialect.title}`,
    ];
  }
  return [];
}

/** Their series under our ids, in the order of the mappings; every name that is understood is marked. */
function draftsOf(log: Log, dialect: Dialect, own: readonly Mapping[], understood: Set<string>): Draft[] {
  const drafts: Draft[] = [];
  const taken = new Set<string>();
  for (const mapping of own) {
    taken.add(mapping.id);
    const series = log.raw.series.get(mapping.theirs as string)!;
    understood.add(mapping.theirs as string);
    drafts.push({ id: mapping.id, theirs: mapping.theirs as string, series, mapping });
  }
  for (const mapping of [...dialect.mappings, ...commonMappings]) {
    for (const [name, { theirs, series }] of log.series) {
      if (understood.has(theirs)) continue;
      const match = fits(name, mapping.theirs);
      if (match === undefined) continue;
      const id = mapping.id.replace('$1', safe(match[1] ?? ''));
      understood.add(theirs);
      if (taken.has(id) || !isMetricId(id)) continue;
      taken.add(id);
      drafts.push({ id, theirs, series, mapping });
    }
  }
  for (const [name, { theirs }] of log.series) {
    if (isStepName(name) || dialect.steps.some(step => step.theirs === name)) understood.add(theirs);
    else if (dialect.ignored.some(pattern => fits(name, pattern) !== undefined)) understood.add(theirs);
  }
  return drafts;
}

/** A part of a name as it may stand in an id. */
const safe = (text: string): string =>
  text
    .replace(/[^A-Za-z0-9_.-]+/g, '_')
    .replace(/^[^A-Za-z0-9_]+/, '')
    .slice(0, 60);

/** An error that the reader kept. */
function errorOf(raw: RawRun): string | undefined {
  const text = raw.texts.get('error')?.trim();
  return text === '' ? undefined : text;
}
