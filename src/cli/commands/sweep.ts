import { existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname, extname, join, normalize, resolve } from 'node:path';
import { type Command, InvalidArgumentError } from 'commander';
import { stringify } from 'yaml';
import { documentPath } from '../../base/documents.ts';
import { codeOf } from '../../base/errors.ts';
import { writeFileAtomic } from '../../base/files.ts';
import { counted } from '../../base/numbers.ts';
import { fit, fitMiddle, table } from '../../base/terminal.ts';
import { shellWord, typed } from '../../base/typed.ts';
import { readJournal } from '../../studies/journal.ts';
import type { Trial } from '../../studies/schema.ts';
import { mostReportingSeeds } from '../../studies/seeds.ts';
import { appliedParams } from '../../studies/space.ts';
import {
  defaultStudyRoot,
  findStudy,
  listStudies,
  type OpenStudy,
  openStudy,
  studyPaths,
} from '../../studies/store.ts';
import { isStudyFile, readStudyFile } from '../../studies/study-file.ts';
import { summaryOf } from '../../studies/summary.ts';
import { jobOf } from '../../sweep/conduct.ts';
import { emit, type Scheduler, schedulers } from '../../sweep/emit.ts';
import { makeStudy } from '../../sweep/make-study.ts';
import { planOf } from '../../sweep/plan.ts';
import { redisAddress } from '../../sweep/redis/address.ts';
import { connect } from '../../sweep/redis/connection.ts';
import { doJob } from '../../sweep/work.ts';
import { type Action, act, type Context, shownDir } from '../context.ts';
import { ExitWith, UsageError } from '../errors.ts';
import { type Examples, examplesText, sayWhatToType } from '../examples.ts';
import { exitCodeOfSignal, exitCodes } from '../exit-codes.ts';
import { setOption, wholeNumber } from '../options.ts';
import { absoluteEnv, parseSets } from '../settings.ts';
import { type ConductFlags, conductHere } from '../study/conduct.ts';
import { seedsFlag } from '../study/seeds-flag.ts';
import { paramText, printStudy } from '../study/show.ts';

export const help = `A study is a directory in studies/: its file, a journal that Optuna reads, and
its runs. Killed or stopped, it goes on with \`${typed('sweep', 'studies/cartpole')}\`.
What a study file may say is in
${documentPath('docs/sweeps.md')}.`;

export const examples: Examples = [
  ['sweep cartpole --trials 20'],
  ['sweep study.yaml --confirm 10'],
  ['sweep studies/cartpole', 'goes on with it'],
  ['sweep study.yaml --queue redis://10.0.0.5', 'on the workers of a queue'],
  ['sweep show cartpole'],
  ['sweep export cartpole --out best.yaml'],
];

const examplesOf: Readonly<Record<string, Examples>> = {
  run: examples,
  show: [['sweep show'], ['sweep show cartpole --json']],
  compare: [['sweep compare cartpole cartpole-2']],
  export: [['sweep export cartpole --out best.yaml'], ['train cartpole -c best.yaml']],
  task: [['sweep task studies/cartpole --index 12']],
};

/** What `keel sweep` itself is told. */
interface SweepFlags extends ConductFlags {
  readonly studyDir: string;
  readonly name?: string;
  readonly trials?: number;
  readonly seeds?: string;
  readonly method?: string;
  readonly halving?: boolean;
  readonly budget?: number;
  readonly objective?: string;
  readonly steps?: number;
  readonly set?: readonly string[];
  readonly emit?: Scheduler;
  readonly image: string;
  readonly claim: string;
}

export function define(sweep: Command): void {
  const add = (spec: string, description: string, action: Action, isDefault = false): Command => {
    const command = sweep.command(spec, { isDefault }).description(description);
    act(command, action);
    sayWhatToType(command, examplesOf[command.name()]);
    return command
      .option('--study-dir <root>', 'directory of studies', defaultStudyRoot)
      .option('--json', 'as JSON, a line each')
      .addHelpText('after', `\n${examplesText(examplesOf[command.name()])}`);
  };
  add('run <what>', 'search: a study file, an environment or task, or a study to go on with', search, true)
    .option('--name <name>', 'what the study is called')
    .option('--trials <n>', 'how many settings are tried at the most', wholeNumber)
    .option('--seeds <seeds>', 'seeds of every trial: 0..2, 0,3,5 or how many')
    .option('--method <name>', 'grid, random, quasi-random or tpe')
    .option('--halving', 'runs pause at rungs, and only the best of each go on')
    .option('--budget <steps>', 'steps of all runs together at the most', wholeNumber)
    .option('--objective <metric>', 'what is searched for (default: score, the mean return)')
    .option('--steps <n>', 'how long each run is', wholeNumber)
    .addOption(setOption())
    .option('--jobs <n>', 'runs at once on this machine (default: as many as it has room for)', wholeNumber)
    .option('--queue <address>', 'on the workers of a queue: redis://… or rediss://…')
    .option('--confirm <n>', 'then train the winner and the default on so many fresh seeds', wholeNumber)
    .option('--emit <scheduler>', 'write the file for slurm or k8s instead of training', schedulerOf)
    .option('--image <name>', '--emit k8s: the image that has Keel in it', 'keel:latest')
    .option('--claim <name>', '--emit k8s: the volume claim that holds the study', 'keel-study');
  add('show [study]', 'what a study has come to; all studies without one', show);
  add('compare <studies...>', 'winners of studies side by side', compare);
  add('export <study>', "the winner's settings as a file for -c", exportWinner).option(
    '--out <file>',
    'where to write it (default: standard output)',
  );
  add('task <study>', 'one run of a study by its number, for batch schedulers', task).requiredOption(
    '--index <n>',
    'which, from 0',
    wholeNumber,
  );
}

function schedulerOf(text: string): Scheduler {
  const found = schedulers.find(name => name === text);
  if (found === undefined) throw new InvalidArgumentError(`${text} is none: use ${schedulers.join(' or ')}`);
  return found;
}

// ---- searching -----------------------------------------------------------------------------------------------------

async function search(context: Context, what: string, flags: SweepFlags): Promise<void> {
  if (flags.confirm === 0) throw new UsageError('--confirm 0 confirms nothing: leave it out, or use 10');
  if (flags.confirm !== undefined && flags.confirm > mostReportingSeeds)
    throw new UsageError(`--confirm ${flags.confirm} is too many seeds: use ${mostReportingSeeds} or fewer`);
  if (flags.jobs === 0) throw new UsageError('--jobs 0 does nothing: use at least 1');
  if (flags.queue !== undefined && flags.jobs !== undefined)
    throw new UsageError('--jobs has no effect with --queue: workers have their own (keel worker --jobs)');
  // A study that could not be conducted is not made.
  if (flags.queue !== undefined) (await connect(redisAddress(flags.queue))).disconnect();
  const opened = await studyFor(what, flags);
  if (flags.emit !== undefined) {
    await emitFile(context, opened, flags.emit, flags);
    return;
  }
  const { status, trials } = await conductHere(context, opened, flags);
  if (status === 'stopped') throw new ExitWith(exitCodes.interrupted);
  // Nothing came of it, which a script must notice.
  if (trials.every(({ state }) => state === 'failed')) throw new ExitWith(exitCodes.failed);
}

/** Flags that say what a new study is: a study that is there has said so already. */
const newOnly = [
  'name',
  'trials',
  'seeds',
  'method',
  'halving',
  'budget',
  'objective',
  'steps',
  'set',
] as const;

/** The study that is meant: one that is there, by its directory; else a new one, of a file or an environment. */
async function studyFor(what: string, flags: SweepFlags): Promise<OpenStudy> {
  if (existsSync(studyPaths(what).study)) {
    const said = newOnly.find(key => flags[key] !== undefined);
    if (said !== undefined)
      throw new UsageError(
        `--${said} is for a new study, ${what} has its own: remove it, or begin another study`,
      );
    return openStudy(what);
  }
  const isThere = statSync(what, { throwIfNoEntry: false })?.isDirectory() ?? false;
  if (isThere || (/[\\/]/.test(what) && extname(what) === '' && dirname(what) === normalize(flags.studyDir)))
    throw new UsageError(`there is no study in ${what}: ${typed('sweep', 'show')} lists them`);
  const isFile = ['.yaml', '.yml', '.json'].includes(extname(what).toLowerCase());
  const given: Record<string, unknown> = isFile ? readStudyFile(what) : { env: absoluteEnv(what) };
  const { envOptions, ...settings } = parseSets(flags.set ?? []);
  const config = {
    ...(given.config as object | undefined),
    ...settings,
    ...(flags.steps === undefined ? {} : { steps: flags.steps }),
  };
  const options = given.task === undefined ? 'envOptions' : 'taskOptions';
  return makeStudy(
    {
      ...given,
      ...(Object.keys(config).length > 0 && { config }),
      ...(envOptions !== undefined && {
        [options]: { ...(given[options] as object), ...(envOptions as object) },
      }),
      ...(flags.trials !== undefined && { trials: flags.trials }),
      ...(flags.seeds !== undefined && { seeds: seedsFlag(flags.seeds) }),
      ...(flags.method !== undefined && { method: flags.method }),
      ...(flags.halving && { halving: true }),
      ...(flags.budget !== undefined && { budgetSteps: flags.budget }),
      ...(flags.objective !== undefined && { objective: flags.objective }),
    },
    { root: flags.studyDir, name: flags.name, check: flags.emit && planOf },
  ).catch((error: unknown) => {
    const there = join(flags.studyDir, what);
    if (codeOf(error) !== 'env-unknown' || !existsSync(studyPaths(there).study)) throw error;
    throw new UsageError(
      `${what} is no environment but a study, which goes on with ${typed('sweep', there)}`,
    );
  });
}

// ---- batch schedulers ----------------------------------------------------------------------------------------------

async function emitFile(
  context: Context,
  opened: OpenStudy,
  scheduler: Scheduler,
  flags: SweepFlags,
): Promise<void> {
  const { dir, study } = opened;
  const runs = planOf(study).length;
  const { name, text, start } = emit(scheduler, {
    study,
    dir,
    runs,
    atOnce: flags.jobs ?? runs,
    program: programWords(scheduler),
    image: flags.image,
    claim: flags.claim,
  });
  const path = join(dir, name);
  writeFileAtomic(path, text);
  if (flags.json) return context.json({ kind: 'emitted', path, runs });
  context.print(`${shownDir(path)}: ${counted(runs, 'task')}, a run each`);
  context.print(`start:   ${start} ${shellWord(shownDir(path))}`);
  context.print(`then:    ${typed('sweep', shownDir(dir))}, which takes the results into the journal`);
}

/** This very program; in a container, the one on its path. */
const programWords = (scheduler: Scheduler): string[] =>
  scheduler === 'k8s' ? ['keel'] : [process.execPath, resolve(process.argv[1])];

async function task(
  context: Context,
  what: string,
  flags: SweepFlags & { readonly index: number },
): Promise<void> {
  const { dir, study } = findStudy(what, flags.studyDir);
  const plan = planOf(study);
  const planned = plan[flags.index];
  if (planned === undefined)
    throw new UsageError(
      `--index ${flags.index} is beyond the last of ${plan.length} runs: use 0 to ${plan.length - 1}`,
    );
  const { trial: number, params, seed } = planned;
  const trial = { number, params, purpose: 'search', seeds: study.seeds, rungs: [] } as const;
  const controller = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const)
    process.once(name, () => controller.abort(new ExitWith(exitCodeOfSignal[name])));
  const { runs: root } = studyPaths(dir);
  mkdirSync(root, { recursive: true });
  const files = study.subject.sha256 === null ? [] : [study.subject.reference];
  const outcome = await doJob(jobOf(study, trial, seed, null), { root, files, signal: controller.signal });
  if (flags.json) context.json({ kind: 'outcome', trial: number, ...outcome });
  else
    context.print(
      `${outcome.run}: ${outcome.status === 'failed' ? outcome.problem : `${outcome.value === null ? 'no value' : paramText(outcome.value)}, ${outcome.verdict}`}`,
    );
  if (outcome.status === 'failed') throw new ExitWith(exitCodes.failed);
}

// ---- looking -------------------------------------------------------------------------------------------------------

const trialsOf = ({ dir }: OpenStudy): readonly Trial[] =>
  existsSync(studyPaths(dir).journal) ? readJournal(studyPaths(dir).journal).trials : [];

async function show(context: Context, what: string | undefined, flags: SweepFlags): Promise<void> {
  if (what !== undefined) {
    const opened = findStudy(what, flags.studyDir);
    const trials = trialsOf(opened);
    if (flags.json)
      return context.json({ study: opened.study, summary: summaryOf(opened.study, trials), trials });
    return printStudy(context, opened, trials);
  }
  const { studies, broken } = listStudies(flags.studyDir);
  const rows = studies.map(opened => {
    const summary = summaryOf(opened.study, trialsOf(opened));
    return { opened, summary };
  });
  if (flags.json)
    return context.json({
      studies: rows.map(({ opened, summary }) => ({ dir: opened.dir, summary })),
      broken,
    });
  if (rows.length === 0 && broken.length === 0)
    return context.print(
      `there are no studies in ${flags.studyDir}: begin one with \`${typed('sweep', 'cartpole')}\``,
    );
  const lines = rows.map(({ opened: { study }, summary }) => [
    fitMiddle(study.name, 30),
    fitMiddle(study.subject.reference, 20),
    study.method,
    `${summary.counts.complete} of ${study.trials}`,
    summary.winner?.value == null ? '' : paramText(summary.winner.value),
  ]);
  for (const line of table([['study', 'of', 'method', 'trials', 'best'], ...lines], [4])) context.raw(line);
  for (const { problem } of broken) context.note(problem);
}

async function compare(context: Context, names: readonly string[], flags: SweepFlags): Promise<void> {
  if (names.length < 2)
    throw new UsageError(
      `compare needs two studies, ${names[0]} is one: ${typed('sweep', 'show')} lists them`,
    );
  const opened = names.map(name => findStudy(name, flags.studyDir));
  const summaries = opened.map(one => summaryOf(one.study, trialsOf(one)));
  if (flags.json) return context.json({ studies: summaries });
  const keys = [...new Set(summaries.flatMap(({ winner }) => Object.keys(winner?.params ?? {})))];
  const cell = (value: unknown): string => (value === undefined || value === null ? '-' : paramText(value));
  const rows = [
    ['', ...opened.map(({ study }) => study.name)],
    ['objective', ...opened.map(({ study: { objective } }) => `${objective.metric}, ${objective.over}`)],
    ['trials', ...summaries.map(({ counts }) => String(counts.complete))],
    ['steps', ...summaries.map(({ steps }) => cell(steps))],
    ['best', ...summaries.map(({ winner }) => cell(winner?.value))],
    ['on fresh seeds', ...summaries.map(({ confirmation }) => cell(confirmation?.winner?.value))],
    ...keys.map(key => [key, ...summaries.map(({ winner }) => cell(winner?.params[key]))]),
  ];
  // Columns of the same width; what does not fit is in --json.
  const room = Math.max(8, Math.floor((context.columns - 22) / opened.length) - 2);
  const cells = rows.map(([name, ...values]) => [fit(name, 22), ...values.map(text => fit(text, room))]);
  for (const line of table(
    cells,
    opened.map((_, i) => i + 1),
  ))
    context.raw(fit(line, context.columns));
}

async function exportWinner(
  context: Context,
  what: string,
  flags: SweepFlags & { readonly out?: string },
): Promise<void> {
  const opened = findStudy(what, flags.studyDir);
  const { study } = opened;
  const { winner, confirmation } = summaryOf(study, trialsOf(opened));
  if (winner === null)
    throw new UsageError(
      `${study.name} has no winner: no trial ended that may win; ${typed('sweep', 'show', shownDir(opened.dir))} says why, and \`${typed('sweep', shownDir(opened.dir))}\` goes on where it is not done`,
    );
  const { config, options } = appliedParams(winner.params);
  const optionKey = study.subject.kind === 'env' ? 'envOptions' : 'taskOptions';
  const allOptions = { ...study.subject.options, ...options };
  const settings = {
    [study.subject.kind]: study.subject.reference,
    ...(Object.keys(allOptions).length > 0 && { [optionKey]: allOptions }),
    ...study.config,
    ...config,
  };
  if (flags.json) return context.json(settings, 2);
  const fresh = confirmation?.winner?.value;
  const head = [
    `# The winner of the study ${study.name}: trial ${winner.number}.`,
    `# On the seeds that it was tuned on: ${study.objective.metric} ${paramText(winner.value)}.`,
    fresh == null
      ? `# Not confirmed on fresh seeds: ${typed('sweep', shownDir(opened.dir), '--confirm', '10')}`
      : `# On fresh seeds: ${paramText(fresh)}.`,
  ];
  const text = `${head.join('\n')}\n${stringify(settings)}`;
  if (flags.out === undefined) return context.raw(text.trimEnd());
  if (isStudyFile(flags.out))
    throw new UsageError(`${flags.out} is the file of a study: write the winner to another one`);
  writeFileAtomic(resolve(flags.out), text);
  context.print(`${flags.out}: ${typed('train', '-c', flags.out)}`);
}
