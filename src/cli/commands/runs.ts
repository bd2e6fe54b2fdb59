import { dirname } from 'node:path';
import type { Command } from 'commander';
import { tableOf } from '../../algos/settings.ts';
import { toJson } from '../../base/json.ts';
import { counted, grouped, number, short } from '../../base/numbers.ts';
import { columnsOf, fit, type Paint, type Tone, table } from '../../base/terminal.ts';
import { typed } from '../../base/typed.ts';
import { bandOfRow, findMetric, headlineMetrics } from '../../metrics/registry.ts';
import { toneColours } from '../../metrics/tones.ts';
import { listCheckpoints } from '../../runs/checkpoint.ts';
import { differences } from '../../runs/differences.ts';
import { readEvents, readLastRow, readRows } from '../../runs/log.ts';
import { deleteRun, listRuns, type Run, resolveRun, resolveToDelete } from '../../runs/store.ts';
import { verifyRun } from '../../runs/verify.ts';
import { type Action, act, type Context, shownDir } from '../context.ts';
import { ExitWith, UsageError } from '../errors.ts';
import { type Examples, examplesText, sayWhatToType } from '../examples.ts';
import { exitCodes } from '../exit-codes.ts';
import { type RunFlags, runDirOption } from '../options.ts';

export const help = `A run is named by its id, the beginning or the last four characters of it, its
directory, or last.`;

export const examples: Examples = [
  ['runs'],
  ['runs show last'],
  ['runs compare k3f9 m2xw'],
  ['runs verify last'],
  ['runs delete k3f9'],
];

export function define(runs: Command): void {
  const add = (spec: string, description: string, action: Action, isDefault = false): Command => {
    const command = runs.command(spec, { isDefault }).description(description);
    act(command, action);
    sayWhatToType(command, examplesOf[command.name()]);
    return command
      .addOption(runDirOption())
      .option('--json', 'as JSON')
      .addHelpText('after', `\n${examplesText(examplesOf[command.name()])}`);
  };
  add('list', 'all runs, newest first (also: runs alone)', list, true).allowExcessArguments();
  add('show <run>', 'one run: settings, progress, checkpoints, events', show);
  add('compare <run> <others...>', 'settings that differ, and the last metrics side by side', compare);
  add('verify [runs...]', 'check all that is on disk of a run, or of all of them', verify);
  add('delete <run...>', 'delete runs for good; asks first', remove)
    .alias('rm')
    .option('-y, --yes', 'do not ask');
}

const examplesOf: Readonly<Record<string, Examples>> = {
  list: [['runs'], ["runs list --json | jq '.runs[0].best'"]],
  show: [['runs show last'], ['runs show k3f9 --json']],
  compare: [['runs compare k3f9 m2xw']],
  verify: [['runs verify'], ['runs verify k3f9 m2xw --json']],
  delete: [['runs delete k3f9 m2xw --yes']],
};

/** An id with its beginning and its end. */
function shortened(id: string, columns: number): string {
  return id.length <= columns ? id : `${id.slice(0, columns - 6)}…${id.slice(-5)}`;
}

const statusColours: Partial<Record<string, Tone>> = {
  running: 'cyan',
  finished: 'green',
  stopped: 'yellow',
  killed: 'yellow',
  failed: 'red',
};

const statusText = (status: string, paint: Paint): string => paint(status, statusColours[status] ?? 'dim');

/** The mean return of the best checkpoint, where it has one. */
const bestScore = ({ dir }: Run): number | undefined =>
  listCheckpoints(dir).find(({ isBest }) => isBest)?.index?.score ?? undefined;

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
    best: bestScore(run) ?? null,
    klStep: row?.['kl/step'] ?? null,
    klBand: bandOf(run, row) ?? null,
  };
}

const bandOf = ({ manifest }: Run, row: Readonly<Record<string, number>> | undefined) =>
  row === undefined ? undefined : bandOfRow(row, manifest.config);

/** It is also what runs when no command is named, or one that does not exist. */
function list(context: Context, flags: RunFlags, { args: [extra], parent }: Command): void {
  if (extra !== undefined) {
    const known = Object.keys(examplesOf).join(', ');
    const isList = parent?.args[0] === 'list';
    const what = isList ? `list takes no ${extra}` : `there is no command ${extra}: ${known}`;
    throw new UsageError(`${what}; ${typed('runs', 'show', extra)} shows that run`);
  }
  const { print, paint } = context;
  const { runs, broken } = listRuns([flags.runDir]);
  const seen = runs.map(overview);
  if (flags.json) {
    context.json({ runs: seen.map(({ klBand: _, ...told }) => told), broken }, 2);
    return;
  }
  if (runs.length === 0 && broken.length === 0) {
    print(`no runs in ${shownDir(flags.runDir)}; this starts one:`);
    context.raw(`  ${typed('train', 'cartpole')}`);
    return;
  }
  const columns = ['run', 'status', 'steps', 'return', 'best', 'kl/step'];
  const head = columns.map(text => paint(text, 'dim'));
  const rows = seen.map(({ id, status, step, return: last, best, klStep, klBand }) => [
    id,
    statusText(status, paint),
    short(step),
    number(last ?? undefined),
    number(best ?? undefined),
    klStep === null || klBand === null
      ? '-'
      : paint(`${number(klStep)} ${klBand.name}`, toneColours[klBand.tone]),
  ]);
  // Where not all fits, the best return goes first, then the middle of an id: its beginning and its last four characters
  // name a run, too.
  const roomIn = (lines: readonly string[][]): number =>
    context.columns - 2 - Math.max(...table(lines.map(line => line.slice(1))).map(columnsOf));
  const all = [head, ...rows];
  const isTight = roomIn(all) < Math.max(...seen.map(({ id }) => id.length));
  const kept = isTight ? all.map(line => line.filter((_, i) => columns[i] !== 'best')) : all;
  const room = Math.max(16, roomIn(kept));
  const fitting = kept.map(([id, ...rest], i) => [i === 0 ? id : shortened(id, room), ...rest]);
  for (const line of table(fitting, [2, 3, 4, 5])) print(line);
  for (const { dir, problem } of broken) context.note(`keel: ${shownDir(dir)} cannot be read: ${problem}`);
}

function show({ print, json, paint }: Context, reference: string, flags: RunFlags): void {
  const run = resolveRun(reference, [flags.runDir]);
  const checkpoints = listCheckpoints(run.dir);
  const { items: events, broken } = readEvents(run.dir);
  const row = readLastRow(run.dir);
  if (flags.json) {
    json({ ...run, lastRow: row ?? null, checkpoints, events }, 2);
    return;
  }
  const { manifest } = run;
  const { environment, startedAt, endedAt, resumes, reason, seed, versions } = manifest;
  const line = (label: string, text: string): void => print(`  ${paint(label.padEnd(25), 'dim')}${text}`, 27);
  print(`${paint(run.id, 'bold')}  ${statusText(run.status, paint)}`);
  if (reason !== null) line('reason', reason);
  const options = pairs(environment.options);
  line('environment', options === '' ? environment.id : `${environment.id}: ${options}`);
  line('seed', String(seed));
  line('steps', stepsOf(manifest, row));
  line('started', shownTime(startedAt));
  if (resumes > 0) line('resumed', resumes === 1 ? 'once' : `${resumes} times`);
  if (endedAt) line('ended', shownTime(endedAt));
  line('versions', pairs(versions));
  line('directory', shownDir(run.dir));
  const { imported } = manifest;
  if (imported !== undefined) {
    line('imported from', `${imported.from}, ${grouped(imported.steps)} steps: ${shownDir(imported.file)}`);
    if (imported.normaliser !== null) line('normaliser', shownDir(imported.normaliser));
    for (const note of imported.notes) line('left', note);
  }
  const { from, sources } = manifest.config;
  if (typeof from === 'string') line('began from', shownDir(from));
  for (const [name, source] of Object.entries(sources ?? {})) line(name, String(source));
  if (row !== undefined) {
    print('last row');
    for (const id of shownMetrics([row]))
      line(id, `${number(row[id])}${id === 'kl/step' ? ` (${bandOf(run, row)!.name})` : ''}`);
  }
  const counts = new Map<string, number>();
  for (const { type } of events) counts.set(type, (counts.get(type) ?? 0) + 1);
  print('events');
  for (const [type, count] of counts) line(type, String(count));
  if (broken.length > 0) line('damaged', `${broken.length} lines of events.jsonl`);
  print('checkpoints');
  if (checkpoints.length === 0) print('  none yet');
  for (const { step, index, problem, isBest, isLast } of checkpoints) {
    const score = index?.score ?? undefined;
    const names = [isBest && 'best', isLast && 'last'].filter(Boolean).join(', ');
    const damage = problem && paint(`damaged: ${problem}`, 'red');
    const facts = [score === undefined ? '' : `return ${number(score)}`, names, damage];
    line(grouped(step), facts.filter(Boolean).join('  '));
  }
  print('settings that are not defaults');
  for (const { path, value } of changedSettings(manifest)) line(path, toJson(value));
}

/** `a 1, b 2`. */
const pairs = (values: object): string =>
  Object.entries(values)
    .map(([name, value]) => `${name} ${value}`)
    .join(', ');

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
  const episodes = ['episode/return', 'episode/length', 'eval/return', 'eval/return_se'];
  const learning = ['policy/entropy', 'policy/clip_fraction', 'loss/clone', 'train/lr'];
  const ids = [...new Set([...headlineMetrics, ...episodes, ...learning])];
  return ids.filter(id => findMetric(id) !== undefined && rows.some(row => id in row));
}

/** All that may differ between runs, by the names of settings. */
const settingsOf = ({ manifest }: Run): Readonly<Record<string, unknown>> => ({
  ...manifest.config,
  env: manifest.environment.id,
  envOptions: manifest.environment.options,
  versions: manifest.versions,
});

function compare(context: Context, reference: string, others: readonly string[], flags: RunFlags): void {
  const { print, paint, columns } = context;
  const runs = [reference, ...others].map(name => resolveRun(name, [flags.runDir]));
  const settings = runs.map(settingsOf);
  const differing = settings.flatMap(other => differences(settings[0], other).map(({ path }) => topOf(path)));
  const paths = [...new Set(differing)];
  const rows = runs.map(({ dir }) => readLastRow(dir) ?? {});
  const best = runs.map(bestScore);
  if (flags.json) {
    const told = runs.map(({ id, status }, i) => ({ id, status, best: best[i] ?? null, lastRow: rows[i] }));
    const values = paths.map(path => [path, settings.map(own => own[path] ?? null)]);
    context.json({ runs: told, differences: Object.fromEntries(values) }, 2);
    return;
  }
  const names = runs.map((_, i) => paint(String.fromCharCode(65 + i), 'bold'));
  for (const [i, { id, status }] of runs.entries()) print(`${names[i]}  ${id}  ${statusText(status, paint)}`);
  print();
  // Long values such as environment options are cut where the columns would not fit.
  const room = Math.max(6, Math.floor((columns - 26) / runs.length) - 2);
  const printTable = (title: string, lines: readonly (readonly string[])[]): void => {
    const cells = lines.map(([name, ...values]) => [fit(name, 26), ...values.map(text => fit(text, room))]);
    const head = [paint(title, 'bold'), ...names];
    for (const line of table(
      [head, ...cells],
      runs.map((_, i) => i + 1),
    ))
      print(line);
  };
  const changes = paths.map(path => [path, ...settings.map(own => shownValue(own[path]))]);
  if (paths.length === 0) print('the settings are the same');
  else printTable('settings that differ', changes);
  print();
  printTable('last row', [
    ['train/step', ...rows.map(row => grouped(row['train/step'] ?? 0))],
    ...shownMetrics(rows).map(id => [id, ...rows.map(row => number(row[id]))]),
    ['best checkpoint', ...best.map(number)],
  ]);
}

const topOf = (path: string): string => path.split('.')[0];
const shownValue = (value: unknown): string =>
  value === undefined ? '-' : typeof value === 'string' ? value : toJson(value);

/** Exit code 1 if anything is wrong with any of them. */
function verify(context: Context, references: readonly string[], flags: RunFlags): void {
  const { print, paint } = context;
  const listed = references.length > 0 ? undefined : listRuns([flags.runDir]);
  const runs = listed?.runs ?? references.map(reference => resolveRun(reference, [flags.runDir]));
  const verdicts = runs.map(({ dir }) => verifyRun(dir));
  const broken = listed?.broken ?? [];
  if (flags.json) context.json({ runs: verdicts, broken }, 2);
  else {
    if (runs.length === 0 && broken.length === 0) print(`no runs in ${shownDir(flags.runDir)}`);
    for (const { id, rows, events, checkpoints, problems } of verdicts) {
      const seen = `${counted(rows, 'row')}, ${counted(events, 'event')}, ${counted(checkpoints, 'checkpoint')}`;
      const isWhole = problems.length === 0;
      const found = isWhole ? paint('whole', 'green') : paint(counted(problems.length, 'problem'), 'red');
      print(`${id}  ${found}: ${seen}`);
      for (const { text } of problems) print(`  ${text}`, 4);
    }
    for (const { dir, problem } of broken) context.note(`keel: ${shownDir(dir)} cannot be read: ${problem}`);
  }
  if (broken.length > 0 || verdicts.some(({ problems }) => problems.length > 0))
    throw new ExitWith(exitCodes.failed);
}

async function remove(
  { print, isTerminal }: Context,
  references: readonly string[],
  flags: RunFlags & { readonly yes?: boolean },
): Promise<void> {
  for (const { id, dir, run } of references.map(name => resolveToDelete(name, [flags.runDir]))) {
    if (!flags.yes) {
      if (!process.stdin.isTTY || !isTerminal) throw new UsageError(`deleting ${id} needs a yes: add --yes`);
      const prompts = await import('@clack/prompts');
      const rows = readRows(dir).items.length;
      const state = run?.status ?? 'cannot be read';
      const sure = await prompts.confirm({
        message: `Delete ${id} (${state}, ${rows} rows, ${listCheckpoints(dir).length} checkpoints) for good?`,
        initialValue: false,
      });
      if (sure !== true) throw new ExitWith(exitCodes.failed);
    }
    deleteRun(dir, dirname(dir));
    print(`deleted ${id}`);
  }
}
