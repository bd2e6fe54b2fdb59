import { dirname } from 'node:path';
import type { Command } from 'commander';
import { tableOf } from '../../algos/settings.ts';
import { toJson } from '../../base/json.ts';
import { counted, grouped, number, short } from '../../base/numbers.ts';
import { columnsOf, fit, type Tone, table, toneColours } from '../../base/terminal.ts';
import { findMetric, headlineMetrics, klBand } from '../../metrics/registry.ts';
import { listCheckpoints } from '../../runs/checkpoint.ts';
import { differences } from '../../runs/differences.ts';
import { readEvents, readLastRow, readRows } from '../../runs/log.ts';
import { deleteRun, listRuns, type Run, resolveRun } from '../../runs/store.ts';
import { type Context, contextOf, shownDir } from '../context.ts';
import { ExitWith, UsageError } from '../errors.ts';
import { runDirOption } from '../options.ts';

interface RunsFlags {
  readonly runDir: string;
  readonly json?: boolean;
  readonly yes?: boolean;
}

/** Its arguments, options and action; name and description stand in program.ts. */
export function define(runs: Command): void {
  runs.addHelpText(
    'after',
    `
A run is named by its id, the beginning or the last four characters of it, its
directory, or last.

Examples:
  $ keel runs
  $ keel runs show last
  $ keel runs compare k3f9 m2xw
  $ keel runs delete k3f9`,
  );
  const add = (spec: string, description: string, isDefault = false): Command =>
    runs
      .command(spec, { isDefault })
      .description(description)
      .addOption(runDirOption())
      .option('--json', 'as JSON')
      .addHelpText(
        'after',
        () => `\nExamples:\n${examples[spec.split(' ')[0]].map(line => `  $ keel ${line}`).join('\n')}`,
      );
  add('list', 'all runs, newest first (also: keel runs)', true)
    .allowExcessArguments()
    .action((flags: RunsFlags, command: Command) => {
      const [extra] = command.args;
      if (extra !== undefined) {
        // It is also what runs when no command is named, or one that does not exist.
        const what =
          runs.args[0] === 'list'
            ? `list takes no ${extra}`
            : `there is no command ${extra}: ${Object.keys(examples).join(', ')}`;
        throw new UsageError(`${what}; keel runs show ${extra} shows that run`);
      }
      list(contextOf(command), flags);
    });
  add('show <run>', 'one run: settings, progress, checkpoints, events').action(
    (reference: string, flags: RunsFlags, command: Command) => show(contextOf(command), reference, flags),
  );
  add('compare <run> <others...>', 'settings that differ, and the last metrics side by side').action(
    (reference: string, others: string[], flags: RunsFlags, command: Command) =>
      compare(contextOf(command), [reference, ...others], flags),
  );
  add('delete <run...>', 'delete runs for good; asks first')
    .option('-y, --yes', 'do not ask')
    .action((references: string[], flags: RunsFlags, command: Command) =>
      remove(contextOf(command), references, flags),
    );
}

const examples: Readonly<Record<string, readonly string[]>> = {
  list: ['runs', "runs list --json | jq '.runs[0].best'"],
  show: ['runs show last', 'runs show k3f9 --json'],
  compare: ['runs compare k3f9 m2xw'],
  delete: ['runs delete k3f9 m2xw --yes'],
};

/** An id with its beginning and its end. */
function shortened(id: string, columns: number): string {
  return id.length <= columns ? id : `${id.slice(0, columns - 6)}…${id.slice(-5)}`;
}

const statusColours: Record<string, Tone> = {
  running: 'cyan',
  finished: 'green',
  stopped: 'yellow',
  killed: 'yellow',
  failed: 'red',
};

function overview(run: Run) {
  const row = readLastRow(run.dir);
  const { environment, config, startedAt, seed } = run.manifest;
  return {
    id: run.id,
    dir: run.dir,
    status: run.status,
    environment: environment.id,
    seed,
    startedAt,
    step: row?.['train/step'] ?? run.manifest.step,
    steps: Number(config.steps),
    return: row?.['episode/return'] ?? null,
    best: listCheckpoints(run.dir).find(({ isBest }) => isBest)?.index?.score ?? null,
    klStep: row?.['kl/step'] ?? null,
  };
}

function list({ print, raw, note, paint, columns }: Context, { runDir, json }: RunsFlags): void {
  const { runs, broken } = listRuns([runDir]);
  const seen = runs.map(overview);
  if (json) {
    raw(toJson({ runs: seen, broken }, 2));
    return;
  }
  if (runs.length === 0 && broken.length === 0) {
    print(`no runs in ${shownDir(runDir)}: start one with keel train cartpole`);
    return;
  }
  const head = ['run', 'status', 'steps', 'return', 'best', 'kl/step'].map(text => paint(text, 'dim'));
  const rows = seen.map(({ id, status, step, return: last, best, klStep }) => [
    id,
    paint(status, statusColours[status] ?? 'dim'),
    short(step),
    number(last ?? undefined),
    number(best ?? undefined),
    klStep === null ? '-' : paint(number(klStep), toneColours[klBand(klStep).tone]),
  ]);
  // Where not all fits, the middle of an id goes: its beginning and its last four characters name a run, too.
  const others = Math.max(
    ...table(
      [head, ...rows].map(row => row.slice(1)),
      [1, 2, 3, 4],
    ).map(columnsOf),
  );
  const room = Math.max(16, columns - 2 - others);
  const fitting = rows.map(([id, ...rest]) => [shortened(id, room), ...rest]);
  for (const line of table([head, ...fitting], [2, 3, 4, 5])) print(line);
  for (const { dir, problem } of broken) note(`keel: ${shownDir(dir)} cannot be read: ${problem}`);
}

function show({ print, raw, paint }: Context, reference: string, { runDir, json }: RunsFlags): void {
  const run = resolveRun(reference, [runDir]);
  const checkpoints = listCheckpoints(run.dir);
  const { items: events, broken } = readEvents(run.dir);
  const row = readLastRow(run.dir);
  if (json) {
    raw(toJson({ ...run, lastRow: row ?? null, checkpoints, events }, 2));
    return;
  }
  const { manifest } = run;
  const { environment, startedAt, endedAt, resumes, reason, seed, versions } = manifest;
  const line = (label: string, text: string): void => print(`  ${paint(label.padEnd(25), 'dim')}${text}`, 27);
  print(`${paint(run.id, 'bold')}  ${paint(run.status, statusColours[run.status] ?? 'dim')}`);
  if (reason !== null) line('reason', reason);
  const options = Object.entries(environment.options).map(([key, value]) => `${key} ${value}`);
  line('environment', `${environment.id}${options.length > 0 ? `: ${options.join(', ')}` : ''}`);
  line('seed', String(seed));
  line('steps', stepsOf(manifest, row));
  line('started', shownTime(startedAt));
  if (resumes > 0) line('resumed', resumes === 1 ? 'once' : `${resumes} times`);
  if (endedAt) line('ended', shownTime(endedAt));
  line(
    'versions',
    Object.entries(versions)
      .map(([name, version]) => `${name} ${version}`)
      .join(', '),
  );
  line('directory', shownDir(run.dir));
  const { from, sources } = manifest.config;
  if (typeof from === 'string') line('began from', shownDir(from));
  for (const [name, source] of Object.entries(sources ?? {})) line(name, String(source));
  if (row !== undefined) {
    print('last row');
    for (const id of shownMetrics([row])) line(id, `${number(row[id])}${bandOf(id, row[id])}`);
  }
  const counts = new Map<string, number>();
  for (const { type } of events) counts.set(type, (counts.get(type) ?? 0) + 1);
  print('events');
  for (const [type, count] of counts) line(type, String(count));
  if (broken.length > 0) line('damaged', `${broken.length} lines of events.jsonl`);
  print('checkpoints');
  if (checkpoints.length === 0) print('  none yet');
  for (const { step, index, problem, isBest, isLast } of checkpoints) {
    const names = [isBest ? 'best' : '', isLast ? 'last' : ''].filter(Boolean).join(', ');
    const score = index?.score === null || index === undefined ? '' : `return ${number(index.score)}`;
    line(
      grouped(step),
      [score, names, problem ? paint(`damaged: ${problem}`, 'red') : ''].filter(Boolean).join('  '),
    );
  }
  print('settings that are not defaults');
  for (const { path, value } of changedSettings(manifest)) line(path, toJson(value));
}

/** How far it is; what goes over the same again is as long as its rounds. */
function stepsOf(
  { algorithm, config, iteration, step }: Run['manifest'],
  row: ReturnType<typeof readLastRow>,
): string {
  const done = grouped(row?.['train/step'] ?? step);
  if (tableOf(algorithm)?.length === 'epochs')
    return `${done}, in ${counted(row?.['train/iteration'] ?? iteration, 'epoch')}`;
  return `${done} of ${grouped(Number(config.steps))}`;
}

/** `2026-01-15T10:30:00.123Z` → `2026-01-15 10:30:00 UTC`. */
const shownTime = (iso: string): string => iso.replace('T', ' ').replace(/(\.\d+)?Z$/, ' UTC');

/** Against the defaults of its algorithm in this version. */
function changedSettings({ algorithm, config }: Run['manifest']): { path: string; value: unknown }[] {
  const defaults: Readonly<Record<string, unknown>> = tableOf(algorithm)?.defaults ?? {};
  const { env: _, task: __, from: ___, sources: ____, sourcesBefore: _____, ...own } = config;
  return Object.entries(own)
    .filter(([key, value]) => differences(defaults[key], value).length > 0)
    .map(([path, value]) => ({ path, value }));
}

/** Those of the first page that the rows have, in its order. */
function shownMetrics(rows: readonly Readonly<Record<string, number>>[]): string[] {
  const extra = [
    'episode/return',
    'episode/length',
    'policy/entropy',
    'policy/clip_fraction',
    'loss/clone',
    'train/lr',
  ];
  const ids = [...new Set([...headlineMetrics, ...extra])];
  return ids.filter(id => findMetric(id) !== undefined && rows.some(row => id in row));
}

const bandOf = (id: string, value: number | undefined): string =>
  id === 'kl/step' && value !== undefined ? ` (${klBand(value).name})` : '';

function compare(
  { print, raw, paint, columns }: Context,
  references: readonly string[],
  { runDir, json }: RunsFlags,
): void {
  const runs = references.map(reference => resolveRun(reference, [runDir]));
  const [first, ...others] = runs as [Run, ...Run[]];
  const settingsOf = ({ manifest }: Run) => ({
    ...manifest.config,
    env: manifest.environment.id,
    envOptions: manifest.environment.options,
    versions: manifest.versions,
  });
  const paths = [
    ...new Set(
      others.flatMap(other => differences(settingsOf(first), settingsOf(other)).map(d => topOf(d.path))),
    ),
  ];
  const rows = runs.map(({ dir }) => readLastRow(dir) ?? {});
  const best = runs.map(
    ({ dir }) => listCheckpoints(dir).find(({ isBest }) => isBest)?.index?.score ?? undefined,
  );
  const metrics = ['train/step', ...shownMetrics(rows)];
  const value = (run: Run, path: string): unknown => (settingsOf(run) as Record<string, unknown>)[path];
  if (json) {
    raw(
      toJson(
        {
          runs: runs.map(({ id, status }, i) => ({ id, status, best: best[i] ?? null, lastRow: rows[i] })),
          differences: Object.fromEntries(
            paths.map(path => [path, runs.map(run => value(run, path) ?? null)]),
          ),
        },
        2,
      ),
    );
    return;
  }
  const names = runs.map((_, i) => String.fromCharCode(65 + i));
  runs.forEach(({ id, status }, i) => {
    print(`${paint(names[i], 'bold')}  ${id}  ${paint(status, statusColours[status] ?? 'dim')}`);
  });
  print();
  // Long values such as environment options are cut where the columns would not fit.
  const room = Math.max(6, Math.floor((columns - 26) / runs.length) - 2);
  const lined = (cells: string[][]): string[] =>
    table(
      cells.map(([name, ...values]) => [fit(name, 26), ...values.map(text => fit(text, room))]),
      runs.map((_, i) => i + 1),
    );
  const changes = paths.map(path => [path, ...runs.map(run => shownValue(value(run, path)))]);
  const head = (title: string): string[] => [paint(title, 'bold'), ...names.map(name => paint(name, 'bold'))];
  if (paths.length === 0) print('the settings are the same');
  else for (const line of lined([head('settings that differ'), ...changes])) print(line);
  print();
  const measured = metrics.map(id => [
    id,
    ...rows.map(row => (id === 'train/step' ? grouped(row[id] ?? 0) : number(row[id]))),
  ]);
  const bestRow = ['best checkpoint', ...best.map(number)];
  for (const line of lined([head('last row'), ...measured, bestRow])) print(line);
}

const topOf = (path: string): string => path.split('.')[0];
const shownValue = (value: unknown): string =>
  value === undefined ? '-' : typeof value === 'string' ? value : toJson(value);

async function remove(
  { print, isTerminal }: Context,
  references: readonly string[],
  flags: RunsFlags,
): Promise<void> {
  const runs = references.map(reference => resolveRun(reference, [flags.runDir]));
  for (const run of runs) {
    if (!flags.yes) {
      if (!process.stdin.isTTY || !isTerminal)
        throw new UsageError(`deleting ${run.id} needs a yes: add --yes`);
      const prompts = await import('@clack/prompts');
      const rows = readRows(run.dir).items.length;
      const sure = await prompts.confirm({
        message: `Delete ${run.id} (${run.status}, ${rows} rows, ${listCheckpoints(run.dir).length} checkpoints) for good?`,
        initialValue: false,
      });
      if (sure !== true) throw new ExitWith(1);
    }
    deleteRun(run.dir, dirname(run.dir));
    print(`deleted ${run.id}`);
  }
}
