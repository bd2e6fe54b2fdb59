/**
 * Finds the runs in a file or directory and tells them apart, by the first bytes of what is there. The searching is
 * bounded: depth, entries, links that lead in circles.
 */
import { lstatSync, readdirSync, realpathSync, type Stats, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { looksLikeRun } from '../../runs/looks-like-run.ts';
import { readHead, startReading } from './bytes.ts';
import { type Candidate, formatOf, type Source } from './candidate.ts';
import { deepest, detectDeep, mayBePrinted } from './deep-console.ts';
import { detect, headBytes, type Kind, widthOf } from './detect.ts';
import { asReadError, ReadError } from './errors.ts';
import { type Directory, groupRuns, type LogFile } from './group.ts';
import { filesBelow } from './mlflow.ts';
import { eventFileHead } from './tensorboard.ts';

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

const skippedDirectories = new Set([
  'node_modules',
  '.git',
  '__pycache__',
  '.venv',
  'site-packages',
  '.ipynb_checkpoints',
]);
/** Never logs, and not worth opening when a directory is searched. A file that is named outright is always opened. */
const skippedFiles =
  /(?:^\.)|\.(?:py|pyc|pyi|ts|js|mjs|cjs|svelte|c|h|cpp|cu|so|o|rs|go|java|md|rst|html?|css|svg|ipynb|sh|toml|ya?ml|png|jpe?g|gif|mp4|webm|avi|pdf|pt|pth|ckpt|bin|safetensors|onnx|npz|npy|pkl|pickle|zip|tar|7z|whl|lock|xml|urdf|stl|obj|parquet|arrow|db|sqlite3?|h5|msgpack)$/i;
/** Settings, vocabularies and what a study is kept in: objects of numbers too, but nobody's log. */
const notLogs =
  /^(?:params|args|config|hparams|label|manifest|package|tsconfig|wandb-summary|wandb-metadata|vocab|merges|tokenizer|tokenizer_config|special_tokens_map|added_tokens|generation_config|adapter_config|preprocessor_config|study|workers)\.json$|^journal\.log$|^(?:experiment_state|basic-variant-state|searcher-state).*\.json$|\.index\.json$/;

/** Looks for runs. A path without any is a {@link ReadError} that says what was looked for and what was found. */
export async function findRuns(path: string, options: FindOptions = {}): Promise<Found> {
  let stat: Stats;
  try {
    stat = statSync(path);
  } catch (error) {
    throw asReadError(error, path);
  }
  if (stat.isDirectory()) return findInDirectory(path, options);
  // Opening a pipe would wait for ever.
  if (!stat.isFile()) throw new ReadError(path, 'is neither a file nor a directory: save the log to a file');
  options.onOpen?.(path);
  return { candidates: [await fileCandidate(path)], notes: [] };
}

const lookedFor =
  "looked for a run of Keel, TensorBoard events, W&B's .wandb, MLflow's files, trainer_state.json, CSV, JSON lines or a trainer's printed output";

async function fileCandidate(path: string): Promise<Candidate> {
  const directory = dirname(path);
  if (/^(manifest\.json|metrics\.jsonl|events\.jsonl)$/.test(basename(path)) && looksLikeRun(directory)) {
    return candidateOf(directory, { kind: 'keel', directory }, directory, keelFiles(directory));
  }
  const { head, size, packed } = await readHead(path, headBytes);
  const whole = packed ? head.length < headBytes : size <= head.length;
  const { kind, looks } = await detectDeep(path, detect(head, whole));
  if (kind === undefined) throw new ReadError(path, `${lookedFor}, and found ${looks}`);
  return candidateOf(path, sourceOf(kind, path), directory, [path]);
}

function sourceOf(kind: Kind, file: string): Source {
  switch (kind) {
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
  return { path, format: formatOf(source.kind), files, source, directory, notes: [] };
}

function keelFiles(directory: string): string[] {
  return ['manifest.json', 'metrics.jsonl', 'events.jsonl'].map(name => join(directory, name));
}

async function findInDirectory(root: string, options: FindOptions): Promise<Found> {
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
  const pending: { path: string; depth: number }[] = [{ path: root, depth: 0 }];
  const linked: { path: string; depth: number }[] = [];
  for (;;) {
    const next = pending.pop() ?? linked.shift();
    if (next === undefined) break;
    await reading.breathe();
    await visit(next.path, next.depth);
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
        else if (!skippedFiles.test(name) && !notLogs.test(name)) {
          await reading.breathe();
          const log = await look(child, name, link);
          if (log !== undefined) logs.push(log);
        }
      }
    }
    pending.push(...below.reverse());
    const wandb = logs.filter(log => log.kind === 'wandb');
    for (const log of wandb)
      ready.push(
        candidateOf(wandb.length === 1 ? path : log.path, { kind: 'wandb', file: log.path }, path, [
          log.path,
        ]),
      );
    if (wandb.length > 0) {
      // What W&B keeps below is of the same run.
      pending.length -= below.length;
      return;
    }
    if (logs.length > 0) directories.push({ path, logs });
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
      const { kind } =
        !whole && mayBePrinted(name) ? await detectDeep(path, shallow, deepest, reading) : shallow;
      if (kind === undefined || (kind === 'jsonl' && whole && isLoneObject(head))) return undefined;
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
        firstWallTime: times?.firstWallTime ?? Number.NaN,
        firstTag: times?.firstTag,
        globalStep: step === undefined ? -1 : Number(step),
      };
    } catch {
      unreadable++;
      return undefined;
    }
  }

  const candidates = [...ready, ...groupRuns(directories, root)].sort((a, b) => byNumber(a.path, b.path));
  if (tooDeep > 0)
    notes.push(`${tooDeep} directories deeper than ${maxDepth} were not searched: give one further down`);
  if (unreadable > 0) notes.push(`${unreadable} files or directories could not be read`);
  if (candidates.length === 0) {
    const what = [`${files} files in ${seen.size} directories`];
    if (empty > 0) what.push(`${empty} of them empty`);
    const found = entries === 1 ? 'an empty directory' : `none in ${what.join(', ')}`;
    throw new ReadError(root, [`${lookedFor}, and found ${found}`, ...notes].join('; '));
  }
  return { candidates, notes };
}

/** A file of one object is settings rather than a log, unless it counts something or names metrics. */
function isLoneObject(head: Buffer): boolean {
  const text = head.toString('utf8').trim();
  return (
    !text.includes('\n') &&
    !/"(?:step|_step|global_step|training_iteration|timesteps_total|[\w.-]+\/[^"]+)"\s*:/.test(text)
  );
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
