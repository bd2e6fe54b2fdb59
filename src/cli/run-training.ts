/**
 * Training under a terminal's eyes: progress, Ctrl-C, what to do next, and the page that stays when it has ended. Shared by
 * all commands that train.
 */
import { dirname, resolve } from 'node:path';
import type { Command } from 'commander';
import type { Algorithm } from '../algos/algorithm.ts';
import { algorithmOf } from '../algos/algorithms.ts';
import type { TrainHooks, TrainProgress, TrainResult } from '../algos/hooks.ts';
import { counted, duration, grouped, number } from '../base/numbers.ts';
import { columnsOf } from '../base/terminal.ts';
import { typed } from '../base/typed.ts';
import { listCheckpoints } from '../runs/checkpoint.ts';
import { defaultRoot } from '../runs/layout.ts';
import { subjectReference } from '../runs/named-code.ts';
import { nearPath, referenceTo } from '../runs/reference.ts';
import { listReplays } from '../runs/replays.ts';
import type { CheckpointIndex, Manifest } from '../runs/schema.ts';
import { kindOf } from '../runs/score.ts';
import { openRun } from '../runs/store.ts';
import { savedSettings } from '../settings/resolve.ts';
import { type Context, shownDir } from './context.ts';
import { ExitWith, reportError } from './errors.ts';
import { exitCodeOfSignal } from './exit-codes.ts';
import { envFileOption, setOption, trustOption } from './options.ts';
import { type ServedPage, startDash, type TrainingFlags, trainingOptions } from './page.ts';
import { scoreWords } from './policies.ts';
import { reporterFor } from './progress.ts';
import { located } from './settings.ts';

type Stop = keyof typeof exitCodeOfSignal;

/** What the options of a command that goes on from a checkpoint say. */
export interface ContinueFlags extends TrainingFlags {
  readonly set?: readonly string[];
  readonly steps?: number | undefined;
  readonly rescaleCritic?: boolean;
  readonly envFile?: string;
  readonly trust?: boolean;
}

/** Those of them that have the same words in every such command. */
export function continueOptions(command: Command): Command {
  return trainingOptions(
    command
      .addOption(setOption())
      .option('--rescale-critic', 'after a change of rewardScale: scale the value function with it')
      .addOption(envFileOption())
      .addOption(trustOption()),
  );
}

/** What is shown of it. */
export interface TrainingView {
  /** How it speaks, and whether with the page. */
  readonly flags: TrainingFlags;
  /** Where each setting was set, for errors. */
  readonly sources: ReadonlyMap<string, string>;
  readonly title: (progress: TrainProgress, all: string) => string;
  /** What to do next when it has finished, besides what goes for every run. */
  readonly next?:
    | { readonly label: string; readonly command: (run: string) => readonly string[] }
    | undefined;
  /** Tells what came of it, besides what goes for every run. */
  readonly tell?: ((result: TrainResult) => void) | undefined;
  /** What the user may not expect, besides what the algorithm remarks. */
  readonly remark?: (progress: TrainProgress) => string | undefined;
  /** Whether it has begun already, or begins from weights. */
  readonly started: boolean;
}

/**
 * Runs `work` with hooks that show it; a signal ends it after its iteration, with a checkpoint. Where a page was served and
 * somebody sits at the terminal, the page stays until a signal; the exit code is that of the training all the same.
 */
export async function runTraining(
  context: Context,
  view: TrainingView,
  work: (hooks: TrainHooks) => Promise<TrainResult>,
): Promise<void> {
  const { flags, sources, title, remark, started } = view;
  const { json = false, dash, open } = flags;
  const stays = context.isTerminal && !json && !flags.exit;
  let page: Promise<ServedPage | undefined> | undefined;
  const reporter = reporterFor(context, json);
  const controller = new AbortController();
  const startedAt = performance.now();
  let stoppedBy: Stop | undefined;
  const stop = (signal: Stop): void => {
    stoppedBy = signal;
    controller.abort();
    // From now on the system's own handling counts: a second signal ends the process even in the middle of an update.
    for (const [name, listener] of listeners) process.off(name, listener);
    context.note('stopping after this update, with a checkpoint; again to quit at once');
  };
  const listeners = (['SIGINT', 'SIGTERM'] as const).map(name => [name, () => stop(name)] as const);
  for (const [name, listener] of listeners) process.on(name, listener);
  // Whoever read the output has gone (`keel train … | head`): stop as for Ctrl-C.
  const onPipe = (): void => controller.abort();
  process.stdout.on('error', onPipe);
  let result: TrainResult | undefined;
  let failure: unknown;
  let done: (steps: number) => string = grouped;
  try {
    result = await work({
      signal: controller.signal,
      async onStart(progress) {
        const { manifest } = openRun(progress.dir);
        const algorithm = algorithmOf(manifest);
        const { value: subject } = subjectReference(manifest);
        done = step => amount(algorithm, step, progress);
        if (!json) context.print(title(progress, amount(algorithm, progress.totalSteps, progress)));
        for (const text of [algorithm.remark?.({ ...progress, subject, started }), remark?.(progress)])
          if (text !== undefined) (json ? context.note : context.print)(`note: ${text}`);
        reporter.start(progress);
        // A run that goes on for one whose autopilot had it begin is on the page of that one.
        if (page !== undefined) return;
        // Unless somebody said, it is there where someone may be looking.
        if (!(dash ?? (open === true || (context.isTerminal && !json)))) return;
        page = startDash(context, progress.dir, flags, progress.recorded);
        // Who wants to look sees it from the first update; otherwise nothing waits for the page.
        if (open) await page;
      },
      // Where a page stays, it shows why the run failed.
      discardsFailedStart: () => !stays || page === undefined,
      onRow: (row, progress) => reporter.row(row, progress),
      onEvent: event => reporter.event(event),
    });
  } catch (error) {
    failure = located(error, sources);
  } finally {
    reporter.close();
    for (const [name, listener] of listeners) process.off(name, listener);
  }
  /** The page, if it is to stay: not for who has just stopped the run. */
  const staying = async (): Promise<ServedPage | undefined> =>
    stays && stoppedBy === undefined ? page : undefined;
  if (result === undefined) {
    const served = await staying();
    if (served === undefined) throw failure;
    // Said now, not when the page is closed.
    const code = reportError(failure, text => process.stderr.write(text));
    await stayOpen(context, served);
    throw new ExitWith(code);
  }
  const best = listCheckpoints(result.dir).find(({ isBest }) => isBest)?.index;
  if (json) {
    const { lastRow: _, ...ended } = result;
    const bestCheckpoint = best ? { step: best.step, return: best.score, of: kindOf(best) } : null;
    context.json({ kind: 'end', ...ended, best: bestCheckpoint });
  } else {
    const seconds = (performance.now() - startedAt) / 1000;
    farewell(context, result, best, `${done(result.step)}, ${duration(seconds)}`, view);
  }
  if (stoppedBy !== undefined) throw new ExitWith(exitCodeOfSignal[stoppedBy]);
  const served = await staying();
  if (served !== undefined) await stayOpen(context, served);
}

/** Keeps the page until a signal, or until its server ends by itself. */
async function stayOpen(context: Context, page: ServedPage): Promise<void> {
  // Before it is said: who has read it may end it at once. A second signal meets the system's own handling.
  const signals = ['SIGINT', 'SIGTERM'] as const;
  let end: () => void = () => {};
  const asked = new Promise<void>(done => {
    end = done;
  });
  for (const name of signals) process.once(name, end);
  const waiting = setInterval(() => {}, 2 ** 30); // the thread of the page keeps nobody
  context.print();
  context.raw(`The page stays open: ${page.url}`);
  context.print(context.paint('Ctrl-C ends it', 'dim'));
  await Promise.race([asked, page.ended]);
  clearInterval(waiting);
  for (const name of signals) process.off(name, end);
  await page.close();
}

function farewell(
  { print, raw, paint, columns }: Context,
  result: TrainResult,
  best: CheckpointIndex | undefined,
  done: string,
  { next, tell }: TrainingView,
): void {
  const run = referenceTo(result.dir);
  // In one line, because it is there to be copied; a long id is named by its end.
  const advise = (what: string, command: (name: string) => readonly string[]): void => {
    const line = (name: string): string => `  ${label(what)}${typed(...command(name))}`;
    raw(columnsOf(line(run)) > columns && run === result.id ? line(run.slice(-4)) : line(run));
  };
  const label = (text: string): string => paint(text.padEnd(9), 'dim');
  print();
  print(`${result.status === 'finished' ? paint('Finished', 'green') : paint('Stopped', 'yellow')}: ${done}`);
  if (best?.score !== undefined && best.score !== null)
    print(
      `  ${label('best')}checkpoint ${best.step}, mean return ${number(best.score)} ${scoreWords[kindOf(best)]}`,
    );
  print(`  ${label('run')}${shownDir(result.dir)}`);
  if (result.status === 'stopped') advise('resume', name => ['resume', name]);
  if (result.step > 0) advise('evaluate', name => ['eval', name]);
  if (listReplays(result.dir).length > 0) advise('see it', name => ['play', name]);
  if (result.status === 'finished') {
    if (next !== undefined) advise(next.label, next.command);
    const further = result.reached ? forgetStop : lengthOf(openRun(result.dir).manifest).twice;
    advise('go on', name => ['resume', name, ...further]);
  }
  const root = dirname(result.dir);
  const isDefault = root === resolve(defaultRoot);
  raw(`  ${label('look')}${typed('dash', ...(isDefault ? [] : [nearPath(root)]))}`);
  tell?.(result);
}

/** So much of a run in words: `100,000 completions`; what goes over the same again, in rounds: `8 epochs of …`. */
function amount(
  { settings: { length = 'steps' } }: Algorithm,
  steps: number,
  { totalSteps, config, unit }: TrainProgress,
): string {
  if (length === 'steps') return `${grouped(steps)} ${unit}`;
  const each = totalSteps / settingOf(config, length);
  return `${counted(steps / each, length.slice(0, -1))} of ${grouped(each)} ${unit}`;
}

/** What makes a run that has reached its `stopAt` do the rest of its steps. */
export const forgetStop = ['--set', 'stopAt=null'] as const;

/** How long a finished run is: the setting that says so, how much of it was done, and the flags for twice as much. */
export function lengthOf(manifest: Manifest): { key: string; done: number; twice: readonly string[] } {
  const { settings } = algorithmOf(manifest);
  const { length: key = 'steps' } = settings;
  // Rollouts are whole: it may have done more steps than it was to.
  const done = key === 'steps' ? manifest.step : settingOf(savedSettings(settings, manifest), key);
  return {
    key,
    done,
    twice: key === 'steps' ? ['--steps', String(2 * done)] : ['--set', `${key}=${2 * done}`],
  };
}

const settingOf = (config: object, key: string): number => Number((config as Record<string, unknown>)[key]);
