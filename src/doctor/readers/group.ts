/** Which of the log files that were found belong to one run, and which of them is read. */
import { basename, dirname, sep } from 'node:path';
import { beginsAgain, separateLogs } from './apart.ts';
import { type Candidate, formatOf, type Source } from './candidate.ts';
import type { Kind } from './detect.ts';
import type { LogFile } from './log-file.ts';
import { fileOf, placeIn } from './places.ts';
import { exportedName } from './scalars.ts';
import type { EventFiles } from './tensorboard.ts';

export interface Directory {
  readonly path: string;
  readonly logs: readonly LogFile[];
}

/**
 * Which source tells most, if several tell of one run: JSON lines have all digits and the settings (RLlib), a CSV has
 * the digits, event files have 32-bit numbers, a console's output is rounded, a monitor knows episodes only.
 */
const richest: readonly Kind[] = [
  'trainer-state',
  'jsonl',
  'json-list',
  'json-document',
  'csv',
  'tensorboard',
  'verl-console',
  'console',
  'scalars',
  'monitor',
  'long',
  'charts',
  'sqlite',
];

const why: Readonly<Record<Kind, string>> = {
  'trainer-state': 'it is the trainer’s own history',
  jsonl: 'its numbers have all their digits',
  'json-list': 'its numbers have all their digits',
  'json-document': 'its numbers have all their digits',
  scalars: 'there is no other',
  csv: 'its numbers have more digits',
  tensorboard: 'it has more metrics',
  'verl-console': 'it has more metrics',
  console: 'it has more metrics',
  monitor: 'there is no other',
  wandb: 'it has everything',
  long: 'its numbers have more digits',
  charts: 'there is no other',
  sqlite: 'it has everything',
};

export function groupRuns(directories: readonly Directory[], root: string): Candidate[] {
  const byPath = new Map(directories.map(directory => [directory.path, directory]));
  const absorbed = new Map<string, EventFiles[]>();
  const mentioned = new Map<string, string[]>();
  const gone = new Set<string>();
  absorbWriters(directories, byPath, absorbed, gone);
  const outputs = newestStates(directories, byPath, root, gone);

  // Their event files are in <output>/runs/<name>/: those of the newest training, and of what it goes on from.
  const eventsOf = new Map<string, { path: string; log: LogFile }[]>();
  for (const { path, logs } of directories) {
    if (!logs.every(log => log.kind === 'tensorboard')) continue;
    const above = basename(path) === 'runs' ? path : dirname(path);
    const output = /^(?:runs|logs)$/.test(basename(above)) ? outputs.get(dirname(above)) : undefined;
    if (output === undefined || gone.has(path) || logs.length === 0) continue;
    put(eventsOf, output.newest.path, { path, log: logs[0] });
  }
  for (const [state, found] of eventsOf) {
    let after: LogFile | undefined;
    for (const { path, log } of found.sort((a, b) => b.log.firstWallTime - a.log.firstWallTime)) {
      if (after !== undefined && beginsAgain(log, after)) break;
      after = log;
      gone.add(path);
      put(mentioned, state, `event files in ${path}`);
    }
  }

  const names = new Map<string, string>();
  for (const [output, { newest, count }] of outputs) {
    if (count > 1)
      put(mentioned, newest.path, `${count} files trainer_state.json, of which this is the newest`);
    if (newest.path !== output && output.startsWith(root) && newest.path !== root)
      names.set(newest.path, output);
  }
  return directories
    .filter(({ path }) => !gone.has(path))
    .flatMap(one => {
      const name = names.get(one.path) ?? one.path;
      return runsIn(one, name, absorbed.get(one.path) ?? [], mentioned.get(one.path) ?? []);
    });
}

/** What SummaryWriter.add_scalars and add_hparams write goes to directories below the run's own. */
function absorbWriters(
  directories: readonly Directory[],
  byPath: ReadonlyMap<string, Directory>,
  absorbed: Map<string, EventFiles[]>,
  gone: Set<string>,
): void {
  for (const { path, logs } of directories) {
    const parent = byPath.get(dirname(path));
    if (parent === undefined || !logs.every(log => log.kind === 'tensorboard')) continue;
    if (!parent.logs.some(log => log.kind === 'tensorboard')) continue;
    const tag = logs[0].firstTag ?? '';
    const prefix = `${tag.replaceAll('/', '_')}_`;
    const name = basename(path);
    const files = inOrder(logs);
    if (tag !== '' && name.startsWith(prefix) && name.length > prefix.length) {
      put(absorbed, parent.path, { files, rename: `${tag}/${name.slice(prefix.length)}` });
    } else if (/^\d{9,}\.\d+$/.test(name)) put(absorbed, parent.path, { files });
    else continue;
    gone.add(path);
  }
}

interface Output {
  readonly newest: Directory;
  readonly count: number;
}

/** Hugging Face's trainers leave their state in each checkpoint and at the end in their output: only the newest counts. */
function newestStates(
  directories: readonly Directory[],
  byPath: ReadonlyMap<string, Directory>,
  root: string,
  gone: Set<string>,
): Map<string, Output> {
  const isState = (one: Directory): boolean => one.logs.some(log => log.kind === 'trainer-state');
  const states = new Map<string, Directory[]>();
  for (const one of directories) {
    if (!isState(one)) continue;
    const isCheckpoint = /^checkpoint-\d+$/.test(basename(one.path)) && one.path !== root;
    put(states, isCheckpoint ? dirname(one.path) : one.path, one);
  }
  const outputs = new Map<string, Output>();
  for (const [output, found] of states) {
    const newest = found.reduce((best, one) => (stepOf(one) > stepOf(best) ? one : best));
    outputs.set(output, { newest, count: found.length });
    for (const one of found) {
      if (one !== newest && one.logs.every(log => log.kind === 'trainer-state')) gone.add(one.path);
    }
    // Other logs beside the states tell of the same run.
    const own = byPath.get(output);
    if (own !== undefined && own !== newest && own.logs.length > 0) gone.add(output);
  }
  return outputs;
}

function put<T>(map: Map<string, T[]>, key: string, value: T): void {
  const list = map.get(key);
  if (list === undefined) map.set(key, [value]);
  else list.push(value);
}

function stepOf(directory: Directory): number {
  return Math.max(...directory.logs.map(log => log.globalStep));
}

function inOrder(logs: readonly LogFile[]): string[] {
  return [...logs]
    .sort((a, b) => a.firstWallTime - b.firstWallTime || 0 || (a.name < b.name ? -1 : 1))
    .map(log => log.path);
}

/** The runs of one directory: one, if no kind of file is there twice; else one for each name. */
function runsIn(
  directory: Directory,
  name: string,
  extra: readonly EventFiles[],
  mentions: readonly string[],
): Candidate[] {
  const { path } = directory;
  const exports = exportsIn(directory);
  if (exports.length > 0) {
    const logs = directory.logs.filter(log => log.kind !== 'scalars');
    const others = logs.length === 0 ? [] : runsIn({ path, logs }, name, extra, mentions);
    // Where the run's own log lies beside them, they are parts of it.
    return others.length > 0 ? others : exports;
  }
  const charts = directory.logs.filter(log => log.kind === 'charts');
  if (charts.length > 0) {
    const logs = directory.logs.filter(log => log.kind !== 'charts');
    const others = logs.length === 0 ? [] : runsIn({ path, logs }, name, extra, mentions);
    return [...others, ...chartCandidates(logs.length === 0 ? path : charts[0].path, path, charts)];
  }
  const stores = directory.logs.filter(log => log.kind === 'sqlite' || log.kind === 'long');
  if (stores.length > 0) {
    const logs = directory.logs.filter(log => !stores.includes(log));
    const others = logs.length === 0 ? [] : runsIn({ path, logs }, name, extra, mentions);
    return [
      ...others,
      ...stores.map(log =>
        candidate(stores.length + others.length === 1 ? name : log.path, [log], path, [], []),
      ),
    ];
  }
  const apart = separateLogs(directory.logs);
  if (apart.length > 1) {
    const [newest, ...older] = apart.reverse();
    return [
      ...older.flatMap(logs => runsIn({ path, logs }, logs[0].path, [], [])),
      ...runsIn({ path, logs: newest }, name, extra, mentions),
    ];
  }
  const { logs } = directory;
  const single = logs.filter(log => log.kind !== 'tensorboard' && log.kind !== 'monitor');
  const kinds = new Set(single.map(log => log.kind));
  if (kinds.size === single.length) return [candidate(name, logs, path, extra, mentions)];
  const stems = new Map<string, LogFile[]>();
  for (const log of single) put(stems, stemOf(log.name), log);
  const shared = logs.filter(log => !single.includes(log));
  const groups: Candidate[] = [];
  for (const [, group] of stems) {
    const isOne = new Set(group.map(log => log.kind)).size === group.length;
    for (const one of isOne ? [group] : group.map(log => [log])) {
      groups.push(candidate(richestOf(one).path, one, path, [], []));
    }
  }
  if (shared.length > 0) groups.push(candidate(path, shared, path, extra, mentions));
  return groups;
}

/** The runs of exported charts, each in all the charts where it has a column. */
export function chartCandidates(
  name: string,
  directory: string,
  charts: readonly Pick<LogFile, 'path' | 'runs'>[],
): Candidate[] {
  const byRun = new Map<string, string[]>();
  for (const { path, runs } of charts) for (const run of runs) put(byRun, run, path);
  return [...byRun].map(([run, files]) => ({
    path: byRun.size === 1 ? name : placeIn(charts.length === 1 ? charts[0].path : name, run),
    format: 'csv',
    files: files.map(fileOf),
    source: { kind: 'charts', charts: files, run },
    directory,
    notes: [],
  }));
}

/** Scalars that were exported one by one: those of one run, by the names of their files, are together. */
function exportsIn({ path, logs }: Directory): Candidate[] {
  const byRun = new Map<string, LogFile[]>();
  for (const log of logs) {
    if (log.kind !== 'scalars') continue;
    const { run } = exportedName(log.name);
    put(byRun, run === undefined ? `file ${log.name}` : `run ${run}`, log);
  }
  return [...byRun.values()].map(files =>
    candidate(byRun.size === 1 ? path : files[0].path, files, path, [], []),
  );
}

function stemOf(name: string): string {
  return name.replace(/\.gz$/i, '').replace(/\.[A-Za-z]\w{0,7}$/, '');
}

/** The first in the order of `richest`, of those that name at least half as many metrics as any of them. */
function richestOf(logs: readonly LogFile[]): LogFile {
  const widest = Math.max(...logs.map(log => log.width));
  return logs
    .filter(log => log.width * 2 >= widest)
    .reduce((best, log) => (richest.indexOf(log.kind) < richest.indexOf(best.kind) ? log : best));
}

function candidate(
  path: string,
  logs: readonly LogFile[],
  directory: string,
  extra: readonly EventFiles[],
  mentions: readonly string[],
): Candidate {
  const best = richestOf(logs);
  const same = logs.filter(log => log.kind === best.kind);
  const source = sourceOf(best, same, extra);
  const read =
    source.kind === 'tensorboard' ? source.groups.flatMap(group => group.files) : same.map(log => log.path);
  const others = logs
    .filter(log => log.kind !== best.kind)
    .map(log => log.path.slice(directory.length + sep.length));
  const notes = mentions.map(mention => `of the same run: ${mention}`);
  if (others.length > 0) {
    const names = others.slice(0, 4).join(', ') + (others.length > 4 ? ` and ${others.length - 4} more` : '');
    notes.push(
      `read ${best.name} because ${why[best.kind]}; ${names} tell of the same run and were not read`,
    );
  }
  return { path, format: formatOf(source), files: read.map(fileOf), source, directory, notes };
}

function sourceOf(best: LogFile, same: readonly LogFile[], extra: readonly EventFiles[]): Source {
  switch (best.kind) {
    case 'sqlite':
      return { kind: 'sqlite-file', file: best.path };
    case 'long':
      return { kind: best.kind, file: best.path, run: '' };
    case 'charts':
      return { kind: best.kind, charts: [best.path], run: best.runs[0] };
    case 'tensorboard':
      return { kind: best.kind, groups: [{ files: inOrder(same) }, ...extra] };
    case 'monitor':
      return { kind: best.kind, monitors: same.map(log => log.path) };
    case 'scalars':
      return { kind: best.kind, scalars: same.map(log => log.path) };
    default:
      return { kind: best.kind, file: best.path };
  }
}
