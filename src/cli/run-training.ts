/** Training under a terminal's eyes: progress, Ctrl-C, and what to do next. Shared by `train` and `resume`. */
import { dirname, resolve } from 'node:path';
import type { SessionConfig, TrainHooks, TrainProgress, TrainResult } from '../algos/run-session.ts';
import type { TrainConfig } from '../algos/train-schema.ts';
import { defaultRoot, listCheckpoints, listReplays } from '../runs/index.ts';
import { type Context, referenceTo, shownDir } from './context.ts';
import { startDash, type TrainDashFlags, wantsDash } from './dash-thread.ts';
import { ExitWith } from './errors.ts';
import { reporterFor } from './progress.ts';
import { duration, grouped, number, toJson, widthOf } from './terminal.ts';

/** The code of a program that a signal ended, by convention. */
const exitCodes = { SIGINT: 130, SIGTERM: 143 } as const;
type Stop = keyof typeof exitCodes;

/** What is shown of it. */
export interface TrainingView<C extends SessionConfig = TrainConfig> {
  readonly json: boolean;
  readonly title: (progress: TrainProgress<C>) => string;
  /** A line about what the user may not expect. */
  readonly remark?: (progress: TrainProgress<C>) => string | undefined;
  /** The flags of the page, where the command has them. */
  readonly dash?: TrainDashFlags;
}

/** Runs `work` with hooks that show it; a signal ends it after its iteration, with a checkpoint. */
export async function runTraining<C extends SessionConfig = TrainConfig>(
  context: Context,
  { json, title, remark, dash }: TrainingView<C>,
  work: (hooks: TrainHooks<C>) => Promise<TrainResult>,
): Promise<TrainResult> {
  const reporter = reporterFor(context, json);
  const controller = new AbortController();
  const startedAt = performance.now();
  let stoppedBy: Stop | undefined;
  const stop = (signal: Stop): void => {
    stoppedBy = signal;
    controller.abort();
    // From now on the system's own handling counts: a second signal ends the process even in the middle of an update.
    for (const [name, listener] of listeners) process.off(name, listener);
    context.note(
      `${context.isTerminal ? '\r\u001b[K' : ''}stopping after this update, with a checkpoint; again to quit at once`,
    );
  };
  const listeners = (['SIGINT', 'SIGTERM'] as const).map(name => [name, () => stop(name)] as const);
  for (const [name, listener] of listeners) process.on(name, listener);
  // Whoever read the output has gone (`keel train … | head`): stop as for Ctrl-C.
  const onPipe = (): void => controller.abort();
  process.stdout.on('error', onPipe);
  let result: TrainResult;
  try {
    result = await work({
      signal: controller.signal,
      async onStart(progress) {
        if (!json) context.print(title(progress));
        const more = remark?.(progress);
        if (more !== undefined) (json ? context.note : context.print)(more);
        reporter.start(progress);
        if (dash === undefined || !wantsDash(context, dash, json)) return;
        const started = startDash(context, progress.dir, dash, progress.recorded);
        // Who wants to look sees it from the first update; otherwise nothing waits for the page.
        if (dash.open) await started;
      },
      onRow: (row, progress) => reporter.row(row, progress),
      onEvent: event => reporter.event(event),
    });
  } finally {
    reporter.close();
    for (const [name, listener] of listeners) process.off(name, listener);
  }
  const best = listCheckpoints(result.dir).find(({ isBest }) => isBest)?.index;
  if (json) {
    const { id, dir, status, step } = result;
    const bestCheckpoint = best ? { step: best.step, return: best.score } : null;
    context.raw(toJson({ kind: 'end', id, dir, status, step, best: bestCheckpoint }));
  } else {
    farewell(context, result, best, (performance.now() - startedAt) / 1000);
  }
  if (stoppedBy !== undefined) throw new ExitWith(exitCodes[stoppedBy]);
  return result;
}

/** Rollouts are whole, so a run may do more steps than were asked for; said where it is more than a tenth. */
export function overshoot({ config, step }: Pick<TrainProgress, 'config' | 'step'>): string | undefined {
  const { envs, stepsPerRollout, minibatchSize, steps } = config;
  const rollout = envs * stepsPerRollout;
  const total = step + Math.ceil(Math.max(0, steps - step) / rollout) * rollout;
  if (total - steps <= (steps - step) / 10) return undefined;
  const fitting = Math.floor((steps - step) / envs);
  const remedy =
    fitting > 0 && (fitting * envs) % minibatchSize === 0
      ? `--set stepsPerRollout=${fitting} does just those`
      : 'for fewer, set a smaller stepsPerRollout, envs or minibatchSize';
  return `note: it will do ${grouped(total)} steps, not ${grouped(steps)}, because one rollout is ${grouped(rollout)} (envs ${envs} x stepsPerRollout ${stepsPerRollout}): ${remedy}`;
}

function farewell(
  { print, raw, paint, columns }: Context,
  result: TrainResult,
  best: { step: number; score: number | null } | undefined,
  seconds: number,
): void {
  const run = referenceTo(result);
  // In one line, because it is there to be copied; a long id is named by its end.
  const advise = (what: string, command: string, flags = ''): void => {
    const line = (name: string): string => `  ${label(what)}keel ${command} ${name}${flags}`;
    raw(widthOf(line(run)) > columns && run === result.id ? line(run.slice(-4)) : line(run));
  };
  const label = (text: string): string => paint(text.padEnd(9), 'dim');
  const steps = `${grouped(result.step)} steps, ${duration(seconds)}`;
  print();
  print(
    `${result.status === 'finished' ? paint('Finished', 'green') : paint('Stopped', 'yellow')}: ${steps}`,
  );
  if (best?.score !== undefined && best.score !== null)
    print(`  ${label('best')}checkpoint ${best.step}, mean return ${number(best.score)}`);
  print(`  ${label('run')}${shownDir(result.dir)}`);
  if (result.status === 'stopped') advise('resume', 'resume');
  if (result.step > 0) advise('evaluate', 'eval');
  if (listReplays(result.dir).length > 0) advise('see it', 'play');
  if (result.status === 'finished') advise('go on', 'resume', ` --steps ${2 * result.step}`);
  const root = dirname(result.dir);
  raw(`  ${label('look')}keel dash${root === resolve(defaultRoot) ? '' : ` ${shownDir(root)}`}`);
}
