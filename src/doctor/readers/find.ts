/**
 * Finds the runs in a file or directory and tells them apart, by the first bytes of what is there. The searching is
 * bounded: depth, entries, links that lead in circles.
 */
import { lstatSync, readdirSync, realpathSync, type Stats, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { looksLikeRun } from '../../runs/looks-like-run.ts';
import { leftOutOf } from './archive-limits.ts';
import { readHead, startReading } from './bytes.ts';
import { type Candidate, formatOf, type Source } from './candidate.ts';
import { chartRuns } from './charts.ts';
import { deepest, detectDeep, mayBePrinted } from './deep-console.ts';
import { detect, headBytes, type Kind, widthOf } from './detect.ts';
import { asReadError, ReadError } from './errors.ts';
import { chartCandidates, type Directory, groupRuns } from './group.ts';
import type { LogFile } from './log-file.ts';
import { filesBelow } from './mlflow.ts';
import { partsOf } from './parts.ts';
import { brokenKeel, hasRows, isDocument, isLoneObject, isSkipped, skippedDirectories } from './passed-by.ts';
import { deepestNesting, fileOf, indexOf, nesting, placeIn } from './places.ts';
import { eventFileHead } from './tensorboard.ts';
import { decodeHead } from './text.ts';

export interface FindOptions {
  /** How deep directories are searched; the one given is at depth 0. */
  readonly maxDepth?: number;
  /** How many files and directories are looked at in all. */
  readonly maxEntries?: number;
  /** Called now and then with how many entries were looked at. */
  readonly onProgress?: (entries: number) => void;
  /** Called with each file before it is opened: the one that a search hangs at is the last. */
  readonly onOpen?: ((path: string) => void) | undefined;
  /** Files that are not opened. */
  readonly leaveOut?: readonly string[] | undefined;
  readonly signal?: AbortSignal;
}

export interface Found {
  readonly candidates: readonly Candidate[];
  /** What the search left out. */
  readonly notes: readonly string[];
}

/** Looks for runs. A path without any is a {@link ReadError} that says what was looked for and what was found. */
export async function findRuns(path: string, options: FindOptions = {}): Promise<Found> {
  let stat: Stats;
  try {
    stat = statSync(path);
  } catch (error) {
    throw asReadError(error, path);
  }
  if (stat.isDirectory()) return findBelow(path, options);
  // Opening a pipe would wait for ever.
  if (!stat.isFile()) throw new ReadError(path, 'is neither a file nor a directory: save the log to a file');
  options.onOpen?.(path);
  return findInFile(path, options);
}

const lookedFor =
  "looked for a run of Keel, TensorBoard events, W&B's .wandb, MLflow's files, trainer_state.json, CSV, JSON lines, a notebook, an archive or a trainer's printed output";

async function findInFile(path: string, options: FindOptions): Promise<Found> {
  const directory = dirname(path);
  if (/^(manifest\.json|metrics\.jsonl|events\.jsonl)$/.test(basename(path)) && looksLikeRun(directory)) {
    const keel = candidateOf(directory, { kind: 'keel', directory }, directory, keelFiles(directory));
    return { candidates: [keel], notes: [] };
  }
  const { head, size, packed } = await readHead(path, headBytes);
  const whole = packed ? head.length < headBytes : size <= head.length;
  const { kind, looks, container } = await detectDeep(path, detect(head, whole));
  if (container !== undefined) return findBelow(path, options);
  if (kind === undefined) throw new ReadError(path, `${lookedFor}, and found ${looks}`);
  const reading = startReading(size, options.signal === undefined ? {} : { signal: options.signal });
  const candidates =
    kind === 'charts'
      ? chartCandidates(path, directory, [{ path, runs: chartRuns(decodeHead(head).split(/\r?\n/, 1)[0]) }])
      : await partsOf(candidateOf(path, sourceOf(kind, path), directory, [path]), reading);
  return { candidates, notes: [] };
}

function sourceOf(kind: Exclude<Kind, 'charts'>, file: string): Source {
  switch (kind) {
    case 'sqlite':
      return { kind: 'sqlite-file', file };
    case 'long':
      return { kind, file, run: '' };
    case 'tensorboard':
      return { kind, groups: [{ files: [file] }] };
    case 'monitor':
      return { kind, monitors: [file] };
    case 'scalars':
      return { kind, scalars: [file] };
    default:
      return { kind, file };
  }
}

function candidateOf(path: string, source: Source, directory: string, files: readonly string[]): Candidate {
  return { path, format: formatOf(source), files: files.map(fileOf), source, directory, notes: [] };
}

function keelFiles(directory: string): string[] {
  return ['manifest.json', 'metrics.jsonl', 'events.jsonl'].map(name => join(directory, name));
}

/** Runs in a directory, or in a file that holds files. */
async function findBelow(root: string, options: FindOptions): Promise<Found> {
  const { maxDepth = 12, maxEntries = 200_000, signal, onProgress, onOpen, leaveOut = [] } = options;
  const notes: string[] = [];
  const ready: Candidate[] = [];
  const directories: Directory[] = [];
  const seen = new Set<string>();
  const seenFiles = new Set<string>();
  let entries = 0;
  let [tooDeep, unreadable, files, empty] = [0, 0, 0, 0];
  const reading = startReading(0, { ...(signal && { signal }), onProgress: () => onProgress?.(entries) });
  // Links are followed last, so that a run is found under its own name first.
  const pending: { path: string; depth: number }[] = isDirectory(root) ? [{ path: root, depth: 0 }] : [];
  const containers: string[] = isDirectory(root) ? [] : [root];
  const linked: { path: string; depth: number }[] = [];
  for (;;) {
    const next = pending.pop() ?? linked.shift();
    const container = next === undefined ? containers.pop() : undefined;
    if (next === undefined && container === undefined) break;
    await reading.breathe();
    if (next !== undefined) await visit(next.path, next.depth);
    else if (container !== undefined) await open(container);
    if (entries > maxEntries) {
      notes.push(
        `${root} has more than ${maxEntries} files and directories: the rest was not searched; give a directory further down`,
      );
      break;
    }
  }

  async function visit(path: string, depth: number): Promise<void> {
    let names: string[];
    try {
      const real = realpathSync(path);
      if (seen.has(real)) return;
      seen.add(real);
      entries++;
      names = readdirSync(path).sort(byNumber);
    } catch (error) {
      if (depth === 0) throw asReadError(error, path);
      unreadable++;
      return;
    }
    if (names.includes('manifest.json') && looksLikeRun(path)) {
      ready.push(candidateOf(path, { kind: 'keel', directory: path }, path, keelFiles(path)));
      return;
    }
    if (names.includes('meta.yaml') && names.includes('metrics') && isDirectory(join(path, 'metrics'))) {
      ready.push(
        candidateOf(path, { kind: 'mlflow', directory: path }, path, filesBelow(join(path, 'metrics'))),
      );
      return;
    }
    const broken = await brokenKeel(path, names);
    if (broken !== undefined) {
      ready.push(candidateOf(path, { kind: 'broken', file: path, why: broken }, path, keelFiles(path)));
      return;
    }
    const logs: LogFile[] = [];
    const below: { path: string; depth: number }[] = [];
    for (const name of names) {
      if (entries > maxEntries) break;
      const child = join(path, name);
      let link = false;
      let stat: Stats;
      try {
        stat = lstatSync(child);
        link = stat.isSymbolicLink();
        if (link) stat = statSync(child);
      } catch {
        unreadable++;
        continue;
      }
      if (stat.isDirectory()) {
        if (skippedDirectories.has(name)) continue;
        if (depth >= maxDepth) tooDeep++;
        else (link ? linked : below).push({ path: child, depth: depth + 1 });
      } else if (stat.isFile()) {
        entries++;
        files++;
        if (stat.size === 0) empty++;
        else if (!isSkipped(name)) {
          await reading.breathe();
          const log = await look(child, name, link);
          if (log !== undefined) logs.push(log);
        }
      }
    }
    pending.push(...below.reverse());
    // What W&B keeps below is of the same run.
    if (settle(path, logs)) pending.length -= below.length;
  }

  /** Takes the logs of one directory; true if they are W&B's own. */
  function settle(path: string, logs: readonly LogFile[]): boolean {
    const wandb = logs.filter(log => log.kind === 'wandb');
    for (const log of wandb)
      ready.push(
        candidateOf(wandb.length === 1 ? path : log.path, { kind: 'wandb', file: log.path }, path, [
          log.path,
        ]),
      );
    if (wandb.length > 0) return true;
    if (logs.length > 0) directories.push({ path, logs });
    return false;
  }

  /** Looks at the files that a file holds. */
  async function open(container: string): Promise<void> {
    const byDirectory = new Map<string, LogFile[]>();
    try {
      const members = [...indexOf(container).keys()];
      // The weights of a policy are a zip archive too (Stable-Baselines3's).
      if (members.includes('data') && members.some(name => name.endsWith('.pth'))) return;
      if (members.length > 0 && members.every(name => name.endsWith('.npy'))) {
        files++;
        ready.push(candidateOf(container, { kind: 'npz', file: container }, dirname(container), [container]));
        return;
      }
      for (const member of members.sort(byNumber)) {
        if (++entries > maxEntries) break;
        const parts = member.split('/');
        const name = parts.pop()!;
        if (parts.some(part => skippedDirectories.has(part)) || isSkipped(name)) continue;
        files++;
        await reading.breathe();
        const log = await look(placeIn(container, member), name, false);
        if (log === undefined) continue;
        const directory = dirname(log.path);
        byDirectory.set(directory, [...(byDirectory.get(directory) ?? []), log]);
      }
      notes.push(...leftOutOf(container));
    } catch (error) {
      if (container === root) throw asReadError(error, container);
      unreadable++;
      notes.push(asReadError(error, container).message);
    }
    for (const [path, logs] of byDirectory) settle(path, logs);
  }

  async function look(path: string, name: string, link: boolean): Promise<LogFile | undefined> {
    if (leaveOut.includes(path)) return undefined;
    try {
      onOpen?.(path);
      if (link) {
        const real = realpathSync(path);
        if (seenFiles.has(real)) return undefined;
        seenFiles.add(real);
      } else seenFiles.add(path);
      const { head, size, packed } = await readHead(path, headBytes);
      const whole = packed ? head.length < headBytes : size <= head.length;
      const shallow = detect(head, whole);
      const { kind, container } =
        !whole && mayBePrinted(name) ? await detectDeep(path, shallow, deepest, reading) : shallow;
      if (container !== undefined) {
        if (nesting(path) < deepestNesting) containers.push(path);
        return undefined;
      }
      if (kind === undefined || (kind === 'jsonl' && whole && isLoneObject(head))) return undefined;
      if (isDocument.test(name) && !(await hasRows(path, decodeHead(head), reading))) return undefined;
      const times = kind === 'tensorboard' ? eventFileHead(head) : undefined;
      const step =
        kind === 'trainer-state'
          ? /"global_step"\s*:\s*(\d{1,15})/.exec(head.toString('utf8'))?.[1]
          : undefined;
      return {
        path,
        name,
        kind,
        width: times?.tags ?? widthOf(kind, head),
        firstWallTime: times?.firstWallTime ?? monitorStart(kind, head),
        firstTag: times?.firstTag,
        firstPoints: times?.firstPoints ?? new Map(),
        runs: kind === 'charts' ? chartRuns(decodeHead(head).split(/\r?\n/, 1)[0]) : [],
        globalStep: step === undefined ? -1 : Number(step),
      };
    } catch {
      unreadable++;
      return undefined;
    }
  }

  const grouped: Candidate[] = [];
  for (const candidate of [...ready, ...groupRuns(directories, root)]) {
    try {
      grouped.push(...(await partsOf(candidate, reading)));
    } catch (error) {
      if (!(error instanceof ReadError)) throw error;
      // Databases are of anything.
      if (error.isNoLog) continue;
      unreadable++;
      notes.push(error.message);
    }
  }
  // Evaluations that lie beside a run's log are its own.
  const alone = grouped.filter(
    ({ source, directory }) =>
      source.kind !== 'npz' || !grouped.some(one => one.source.kind !== 'npz' && one.path === directory),
  );
  const candidates = namedByContainer(alone).sort((a, b) => byNumber(a.path, b.path));
  if (tooDeep > 0)
    notes.push(`${tooDeep} directories deeper than ${maxDepth} were not searched: give one further down`);
  if (unreadable > 0) notes.push(`${unreadable} files or directories could not be read`);
  if (candidates.length === 0) {
    const what = [`${files} files in ${seen.size} directories`];
    if (empty > 0) what.push(`${empty} of them empty`);
    const found =
      entries === 1 && isDirectory(root)
        ? 'an empty directory'
        : isDirectory(root)
          ? `none in ${what.join(', ')}`
          : `none in the ${files} files that it holds`;
    throw new ReadError(root, [`${lookedFor}, and found ${found}`, ...notes].join('; '));
  }
  return { candidates, notes };
}

/** A container with one run is what the user calls that run. */
function namedByContainer(candidates: readonly Candidate[]): Candidate[] {
  const counts = new Map<string, number>();
  for (const { path } of candidates) counts.set(fileOf(path), (counts.get(fileOf(path)) ?? 0) + 1);
  return candidates.map(one =>
    counts.get(fileOf(one.path)) === 1 ? { ...one, path: fileOf(one.path) } : one,
  );
}

/** When a monitor's environment was made. */
function monitorStart(kind: Kind, head: Buffer): number {
  const start =
    kind === 'monitor' ? /"t_start":\s*(\d{9,}(?:\.\d+)?)/.exec(head.toString('latin1', 0, 4096)) : null;
  return start === null ? Number.NaN : Number(start[1]);
}

function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}

/** Made when there is something to sort: it takes as long as reading a small run. */
let collator: Intl.Collator | undefined;
function byNumber(a: string, b: string): number {
  collator ??= new Intl.Collator('en', { numeric: true });
  return collator.compare(a, b) || (a < b ? -1 : 1);
}

/** Changes when a run's files do: their sizes and times. Cheap enough to ask every second. */
export function signature(candidate: Candidate): string {
  const paths = new Set([...candidate.files, candidate.directory]);
  return [...paths]
    .map(path => {
      try {
        const { size, mtimeMs } = statSync(path);
        return `${size}:${mtimeMs}`;
      } catch {
        return '-';
      }
    })
    .join(' ');
}
