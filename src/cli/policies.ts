/** The policy that a command takes of a run: which checkpoint it is, in words, and replays from it. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { WhichCheckpoint } from '../algos/algorithm.ts';
import { algorithmOf } from '../algos/algorithms.ts';
import { chooseCheckpoint } from '../algos/choose-checkpoint.ts';
import type { Policy } from '../algos/policy.ts';
import { newestRun, openPolicy } from '../algos/runs.ts';
import { resolveSubject } from '../algos/subject.ts';
import { codeFileOf, isEnvFile } from '../base/code-reference.ts';
import { grouped, number } from '../base/numbers.ts';
import { isEnvName } from '../envs/registry.ts';
import type { Replay } from '../runs/replay-format.ts';
import { kindOf, type ScoreKind, scoreEpisodes } from '../runs/score.ts';
import { type Run, resolveRun } from '../runs/store.ts';
import { isTaskName } from '../tasks/registry.ts';
import type { PolicyFlags } from './options.ts';
import { absoluteEnv } from './settings.ts';
import { trustOf } from './trust.ts';

/** The rule, for the help of every command that takes a policy. */
export const checkpointHelp = `Without --checkpoint it is the best one: that of the highest mean return in its
evaluation, of runs that evaluate (evaluateEvery), else over the last ${scoreEpisodes}
episodes before it; the last one if there is none, or if returns do not compare,
as in Cluster-v0, where each episode has its own load.`;

/** What a score is of, for people. */
export const scoreWords: Readonly<Record<ScoreKind, string>> = {
  training: 'when it was saved',
  evaluation: 'in its evaluation',
};

/** The checkpoint that is meant and why, in a sentence; empty where it is missing, which is said when it is opened. */
export function whyCheckpoint(run: Run, wanted: WhichCheckpoint | undefined): string {
  const { which, found } = chooseCheckpoint(run, wanted);
  if (found === undefined) return '';
  const { step, index, isBest, isLast } = found;
  const score = index?.score ?? undefined;
  const names = [isBest && 'the best', isLast && 'the last', typeof which === 'number' && 'as asked'];
  const kind = names.some(Boolean) ? ` (${names.filter(Boolean).join(', ')})` : '';
  const evaluates = Number(run.manifest.config.evaluateEvery ?? 0) > 0;
  // Demonstrations have no returns to wait for.
  const unplayed = algorithmOf(run.manifest).verb === 'clone' ? '' : ', no episode had ended';
  const unmeasured = evaluates ? ', which was not evaluated' : unplayed;
  const measured =
    score === undefined ? unmeasured : `, mean return ${number(score)} ${scoreWords[kindOf(index)]}`;
  return `checkpoint ${grouped(step)}${kind}${measured}`;
}

/** Whether an environment or a task is meant and not a run, which goes before: a directory of runs may have one of that name. */
export function meansSubject(reference: string, root: string): boolean {
  if ([reference, join(root, reference)].some(path => existsSync(join(path, 'manifest.json')))) return false;
  if (isEnvFile(reference))
    return existsSync(codeFileOf(reference).file) && /\.([cm]?[jt]sx?|py)([#:]|$)/.test(reference);
  return isTaskName(reference) || isEnvName(reference);
}

/**
 * The run that is meant; of an environment or a task, the newest of it that has a checkpoint. A file that was named, in
 * whichever way, is what defines it, and not one that the run names.
 */
export async function runMeant(
  reference: string,
  { runDir, envFile }: Pick<PolicyFlags, 'runDir' | 'envFile'>,
): Promise<{ run: Run; envFile: string | undefined }> {
  if (!meansSubject(reference, runDir)) return { run: resolveRun(reference, [runDir]), envFile };
  const run = newestRun(await resolveSubject(absoluteEnv(reference), {}, envFile), runDir);
  if (run === undefined) return { run: resolveRun(reference, [runDir]), envFile };
  return { run, envFile: envFile ?? (isEnvFile(reference) ? reference : undefined) };
}

/** Opens a policy for as long as it is used. */
export async function using<T>(opened: Promise<Policy>, use: (policy: Policy) => Promise<T>): Promise<T> {
  const policy = await opened;
  try {
    return await use(policy);
  } finally {
    await policy.close();
  }
}

interface Recording {
  readonly episodes?: number;
  readonly onReplay?: (name: string, replay: Replay) => void;
}

/** Plays episodes with a checkpoint's policy and keeps them; returns their names and which checkpoint it was. */
export function recordCheckpoint(
  run: Run,
  { checkpoint, envFile, ...flags }: Pick<PolicyFlags, 'checkpoint' | 'envFile' | 'trust' | 'json'>,
  how: Recording = {},
): Promise<{ names: string[]; why: string }> {
  return using(openPolicy(run.dir, { checkpoint, envFile, trust: trustOf(flags) }), async policy => ({
    names: await policy.record(how),
    why: whyCheckpoint(run, checkpoint),
  }));
}
