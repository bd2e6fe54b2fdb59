import { existsSync } from 'node:fs';
import { type Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { nearest } from '../../base/nearest.ts';
import { whole } from '../../base/numbers.ts';
import { typed } from '../../base/typed.ts';
import type { ExamineOptions, ExamineProgress, Examiner } from '../../doctor/doctor.ts';
import { examinePaths } from '../../doctor/examine-paths.ts';
import { clean } from '../../doctor/report/clean.ts';
import {
  exitCodeOf,
  isRead,
  isUnreadable,
  type Outcome,
  type RunReport,
} from '../../doctor/report/run-report.ts';
import { writeReport } from '../../doctor/report/write.ts';
import { threadExaminer } from '../../doctor/thread-examiner.ts';
import type { Context } from '../context.ts';
import { ExitWith, reportError, UsageError } from '../errors.ts';
import type { Examples } from '../examples.ts';
import { doctorExitCodes } from '../exit-codes.ts';
import { type RunFlags, repeated, runDirOption, wholeNumber } from '../options.ts';
import { statusLine } from '../status-line.ts';

interface DoctorFlags extends RunFlags {
  readonly md?: string | true;
  readonly html?: string | true;
  readonly map?: readonly string[];
  readonly trainer?: string;
  readonly against?: string;
  readonly failOn: 'watch' | 'sick';
  readonly explain?: string;
  readonly listRules?: boolean;
  readonly follow?: boolean;
  readonly interval: number;
  readonly limit?: number;
  readonly timeLimit?: number;
  readonly all?: boolean;
  readonly verbose?: boolean;
}

/** 1 and 2 are verdicts here, so what cannot be read and wrong use share a code. */
const COULD_NOT_READ = doctorExitCodes.couldNotRead;
/** Sentences about runs that could not be read, on stderr. */
const MOST_ERRORS = 20;

export function define(command: Command): void {
  command
    .argument('[paths...]', 'log files, directories of runs, or a run of Keel by its name')
    .option('--json', 'one JSON document')
    .option('--md [file]', 'Markdown, to a file or to stdout')
    .option('--html [file]', 'a page with charts (doctor-report.html unless named)')
    .option(
      '--map <theirs=ours>',
      "what a name in the log is, in Keel's words, or step for what counts; may be repeated",
      repeated,
    )
    .option('--against <run>', 'a run that is well: what differs from it, and where the series part')
    .option('--trainer <name>', 'which trainer wrote the logs, if it is not recognised')
    .addOption(
      new Option('--fail-on <verdict>', 'from which verdict on the exit code is not 0')
        .choices(['watch', 'sick'])
        .default('watch'),
    )
    .option('--explain <code>', 'the page of a rule or a root cause')
    .option('--list-rules', 'all rules and root causes')
    .option('--follow', 'look again and again, and say what changes, until Ctrl-C')
    .option('--interval <seconds>', 'between two looks', seconds, 2)
    .option('--limit <n>', 'look at no more runs than this', wholeNumber)
    .option(
      '--time-limit <seconds>',
      'leave out a log that takes longer (20; large ones may take more)',
      seconds,
    )
    .option('--all', 'the story of every run, not of the sick ones alone')
    .option('-v, --verbose', 'all evidence, all findings, all charts')
    .addOption(runDirOption())
    .exitOverride(error => {
      // Commander has printed its own.
      throw error instanceof CommanderError && error.exitCode !== 0 ? new ExitWith(COULD_NOT_READ) : error;
    });
}

export const help = `Exit codes: 0 healthy, 1 watch, 2 sick, 3 it cannot tell, nothing could be read,
or wrong use. Of several runs the worst counts; --fail-on sick makes watch 0. A
path without a run is 3, unless another is worse than healthy.`;

export const examples: Examples = [
  ['doctor logs/ppo_1', 'a run of Stable-Baselines3, TRL, RLlib …'],
  ['doctor last --html', "Keel's own newest run, as a page"],
  ['doctor logs --json', 'every run below a directory'],
  ['doctor run.csv --map tick=step --map loss=loss/value'],
  ['doctor logs/sick --against logs/well', 'two runs beside each other'],
  ['doctor --explain kl-spikes'],
];

export async function run(context: Context, paths: string[], flags: DoctorFlags): Promise<void> {
  let code: number;
  try {
    code = await doctor(context, paths, flags);
  } catch (error) {
    // Whatever went wrong must not look like a verdict.
    reportError(error, text => process.stderr.write(text));
    code = COULD_NOT_READ;
  }
  if (code !== 0) throw new ExitWith(code);
}

function seconds(text: string): number {
  const value = Number(text);
  if (text.trim() === '' || !(value >= 0.05 && value <= 86_400))
    throw new InvalidArgumentError(`${text} must be a number of seconds from 0.05 to 86400.`);
  return value;
}

/** What was asked for is wrong; it may name what a log says, which may be anything. */
function refuse(message: string): never {
  throw new UsageError(clean(message));
}

/** Readers and rules are in the thread; of the ways to tell what they found, only the one that is asked for is loaded. */
async function doctor(context: Context, paths: readonly string[], flags: DoctorFlags): Promise<number> {
  const style = {
    columns: context.columns,
    colour: context.colour,
    unicode: showsUnicode(process.env),
    verbose: flags.verbose ?? false,
    all: flags.all ?? false,
  };
  if (flags.listRules) {
    const { listRules } = await import('../../doctor/report/explain.ts');
    process.stdout.write(listRules(style));
    return 0;
  }
  if (flags.explain !== undefined) {
    const { explain, unknownCode } = await import('../../doctor/report/explain.ts');
    const page = explain(flags.explain, style);
    if (page === undefined) return refuse(unknownCode(flags.explain));
    process.stdout.write(page);
    return 0;
  }
  const outputs = outputsOf(flags, paths);
  const where = await Promise.all(outputs.paths.map(path => placeOf(path, flags.runDir)));
  if (where.length === 0)
    refuse(`doctor needs a log file or a directory of runs, such as ${typed('doctor', 'logs/ppo_1')}`);
  refuseConflict(flags, outputs);
  const map = await mapOf(flags.map ?? []);
  await refuseUnknownTrainer(flags.trainer);
  const { trainer, limit, timeLimit } = flags;
  const options = {
    map,
    ...(trainer === undefined ? {} : { trainer }),
    ...(limit === undefined ? {} : { limit }),
    ...(flags.against === undefined ? {} : { whole: true }),
  };
  // Whatever a log does to its readers, it must not do to the others' reports.
  const examiner = threadExaminer(timeLimit === undefined ? undefined : 1000 * timeLimit);
  if (flags.follow) return followed(context, where, options, examiner, flags);

  const well =
    flags.against === undefined
      ? undefined
      : await runAgainst(flags.against, flags.runDir, options, examiner);
  const status = statusLine(300);
  const outcomes: Outcome[] = [];
  const onProgress = (progress: ExamineProgress): void => status.show(progressText(progress));
  const examined = examinePaths(where, { ...options, onProgress }, examiner);
  const first = examined.next();
  // Loaded while the thread is.
  const rendering = flags.json || outputs.md === true ? undefined : import('../../doctor/report/many.ts');
  let next = await first;
  for (; !next.done; next = await examined.next()) {
    const outcome = next.value;
    if (well === undefined || isUnreadable(outcome)) outcomes.push(outcome);
    else {
      const { besideOf, plotsBeside } = await import('../../doctor/beside.ts');
      const beside = besideOf(outcome, well);
      outcomes.push({ ...outcome, beside, plots: plotsBeside(outcome, beside) });
    }
  }
  status.clear();
  for (const note of next.value.notes) context.note(`keel: ${clean(note)}`);
  noteErrors(context, outcomes);

  const asMarkdown = async () =>
    (await import('../../doctor/report/markdown.ts')).renderMarkdown(outcomes, style);
  if (flags.json) context.raw((await import('../../doctor/report/json.ts')).renderJson(outcomes));
  else if (outputs.md === true) process.stdout.write(await asMarkdown());
  else if (rendering !== undefined && outcomes.some(isRead))
    process.stdout.write((await rendering).renderTerminalRuns(outcomes, style));
  const write = (file: string, text: string): void => {
    writeReport(file, text);
    context.note(`wrote ${file}`);
  };
  if (outputs.html !== undefined) {
    const { renderHtml } = await import('../../doctor/report/html.ts');
    write(outputs.html, renderHtml(outcomes, { madeAt: new Date().toISOString() }));
  }
  if (typeof outputs.md === 'string') write(outputs.md, await asMarkdown());
  return exitCodeOf(outcomes, flags.failOn);
}

interface Outputs {
  readonly paths: readonly string[];
  readonly html: string | undefined;
  /** A file, or true for stdout. */
  readonly md: string | true | undefined;
}

/**
 * `--html logs/ppo_1` is meant as an option without a name and a path to look at, and must never overwrite the log: only
 * what ends as such a file does is taken for its name.
 */
function outputsOf({ html, md }: DoctorFlags, paths: readonly string[]): Outputs {
  const isHtml = typeof html === 'string' && /\.html?$/i.test(html);
  const isMd = typeof md === 'string' && /\.(?:md|markdown)$/i.test(md);
  return {
    paths: [...paths, !isHtml && html, !isMd && md].filter(path => typeof path === 'string'),
    html: html === undefined ? undefined : isHtml ? html : 'doctor-report.html',
    md: md === undefined ? undefined : isMd ? md : true,
  };
}

function refuseConflict(flags: DoctorFlags, { html, md }: Outputs): void {
  if (flags.json && md === true)
    refuse('--json and --md both write to stdout: give --md a file, as in --md report.md');
  if (flags.follow && flags.against !== undefined)
    refuse('--follow looks at what grows: leave out --against');
  if (flags.follow && (flags.json || html !== undefined || md !== undefined))
    refuse('--follow tells what changes as lines: leave out --json, --md and --html');
}

/** The run that others are held against: one, and one that can be read. */
async function runAgainst(
  path: string,
  runDir: string,
  options: ExamineOptions,
  examiner: Examiner,
): Promise<RunReport> {
  const found: Outcome[] = [];
  for await (const outcome of examinePaths([await placeOf(path, runDir)], { ...options, limit: 2 }, examiner))
    found.push(outcome);
  const read = found.filter(isRead);
  if (read.length === 1) return read[0];
  return refuse(
    read.length > 1
      ? `--against ${path}: there are several runs, such as ${read.map(({ diagnosis }) => diagnosis.path).join(' and ')}: name one`
      : `--against ${found.find(isUnreadable)?.error ?? `${path}: there is no run`}`,
  );
}

/** A path as it is, or the directory of one of Keel's runs: `last`, an id, its last four characters. */
async function placeOf(path: string, runDir: string): Promise<string> {
  if (existsSync(path)) return path;
  const { resolveRun } = await import('../../runs/store.ts');
  try {
    return resolveRun(path, [runDir]).dir;
  } catch {
    return path;
  }
}

/** Checked before anything is read. */
async function mapOf(pairs: readonly string[]): Promise<Map<string, string>> {
  if (pairs.length === 0) return new Map();
  const { mapProblem, metricOf } = await import('../../doctor/dialects/user-map.ts');
  const { requireMetric } = await import('../../metrics/registry.ts');
  const said = pairs.map((pair): [theirs: string, ours: string] => {
    const at = pair.lastIndexOf('=');
    const [theirs, ours] = [pair.slice(0, Math.max(0, at)), pair.slice(at + 1)];
    if (theirs === '' || ours === '')
      refuse(`--map ${pair}: write theirs=ours, as in --map my_return=episode/return`);
    try {
      requireMetric(metricOf(ours));
    } catch (error) {
      refuse(`--map ${pair}: ${(error as Error).message}`);
    }
    return [theirs, ours];
  });
  const problem = mapProblem(said);
  return problem === undefined ? new Map(said) : refuse(problem);
}

async function refuseUnknownTrainer(trainer: string | undefined): Promise<void> {
  if (trainer === undefined) return;
  const { dialects } = await import('../../doctor/dialects/translate.ts');
  const names = [...dialects.map(({ name }) => name), 'unknown'];
  if (names.includes(trainer)) return;
  const near = nearest(trainer, names);
  const hint = near === undefined ? '' : `did you mean ${near}? `;
  refuse(`unknown trainer ${trainer}: ${hint}One of ${names.join(', ')}`);
}

function noteErrors(context: Context, outcomes: readonly Outcome[]): void {
  const failed = outcomes.filter(isUnreadable);
  for (const { error } of failed.slice(0, MOST_ERRORS)) context.note(`keel: ${clean(error)}`);
  if (failed.length > MOST_ERRORS)
    context.note(`keel: and ${failed.length - MOST_ERRORS} more could not be read`);
}

/** Lines about what changes, until a signal; then the exit code of the last verdicts. */
async function followed(
  { paint, print, raw, isTerminal }: Context,
  paths: readonly string[],
  options: ExamineOptions,
  examiner: Examiner,
  { interval, failOn }: DoctorFlags,
): Promise<number> {
  const { follow } = await import('../../doctor/follow.ts');
  const stop = new AbortController();
  const onSignal = (): void => stop.abort();
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.on(name, onSignal);
  const colours = { good: 'green', info: 'cyan', warning: 'yellow', critical: 'red' } as const;
  const verdicts = new Map<string, Outcome>();
  const status = statusLine();
  try {
    const following = { ...options, intervalMs: interval * 1000, signal: stop.signal };
    const events = follow(paths, following, examiner);
    for await (const { path, outcome, news } of events) {
      if (isRead(outcome)) verdicts.set(path, outcome);
      status.clear();
      for (const { text, level } of news) {
        const time = new Date().toTimeString().slice(0, 8);
        const name = paths.length > 1 || verdicts.size > 1 || path !== paths[0] ? `${clean(path)}  ` : '';
        // One line each where a program reads them.
        (isTerminal ? print : raw)(`${paint(time, 'dim')}  ${name}${paint(text, colours[level])}`);
      }
      if (isTerminal && isRead(outcome)) {
        const { steps, verdict } = outcome.diagnosis;
        status.show(`${verdict} at ${whole(steps)} ${clean(outcome.unit)}; Ctrl-C ends`);
      }
    }
  } finally {
    status.clear();
    for (const name of ['SIGINT', 'SIGTERM'] as const) process.off(name, onSignal);
  }
  return exitCodeOf([...verdicts.values()], failOn);
}

function progressText({ phase, done, total }: ExamineProgress): string {
  if (phase === 'looking') return `looking for runs: ${done} files`;
  const cells = 24;
  const full = total > 0 ? Math.floor((cells * done) / total) : 0;
  const bar = total > 0 ? `[${'#'.repeat(full)}${'.'.repeat(cells - full)}] ` : '';
  return `${bar}${done} of ${total} runs`;
}

/** Without a locale most terminals of today are UTF-8; one that is set and says otherwise is believed. */
function showsUnicode({ TERM, LC_ALL, LC_CTYPE, LANG }: NodeJS.ProcessEnv): boolean {
  if (TERM === 'dumb') return false;
  const locale = LC_ALL || LC_CTYPE || LANG || '';
  return process.platform === 'win32' || locale === '' || /utf-?8/i.test(locale);
}
