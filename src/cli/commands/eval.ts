import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { evaluationSeed, type Policy } from '../../algos/policy.ts';
import { openPolicy, openPolicyOn } from '../../algos/runs.ts';
import { resolveSubject, subjectOf } from '../../algos/subject.ts';
import { openRun, resolveRun } from '../../runs/store.ts';
import { type BeginFlags, optionsOf } from '../begin.ts';
import { type Context, shownDir } from '../context.ts';
import { UsageError } from '../errors.ts';
import { evaluationJson, printEvaluation, type Tried } from '../evaluation.ts';
import type { Examples } from '../examples.ts';
import { type PolicyFlags, policyArgument, policyOptions, setOption, wholeNumber } from '../options.ts';
import { checkpointHelp, meansSubject, using, whyCheckpoint } from '../policies.ts';
import { type PythonFlags, pythonOptions } from '../python-flags.ts';
import { gatherSettings } from '../settings.ts';
import { trustOf } from '../trust.ts';

interface EvalFlags extends PolicyFlags, Pick<BeginFlags, 'from' | 'engine' | 'set'>, PythonFlags {
  readonly episodes: number;
  readonly sampled?: boolean;
  readonly seed: number;
}

export function define(command: Command): void {
  pythonOptions(command)
    .addArgument(policyArgument())
    .option('--from <model>', 'another run of that environment; of text tasks, any run or model directory')
    .option('--engine <command>', 'chess: a UCI engine that labels positions')
    .addOption(setOption())
    .option('-n, --episodes <n>', 'episodes to play, prompts to complete', wholeNumber, 100)
    .option('--sampled', 'only actions drawn as in training, not also the most likely')
    .option('--seed <n>', 'of the episodes or prompts', wholeNumber, evaluationSeed);
  policyOptions(command).option('--json', 'the result as JSON, with every return');
}

export const help = `It plays with the most likely actions, then the same episodes with actions that
are drawn as in training, and prints both where they differ by more than their
standard error. A text task with measurements of its own has the first alone.

All episodes come from --seed: two policies that are tried with the same one
start alike. The evaluations of train have other seeds, so that what picked the
best checkpoint is not what judges it. For a run that was trained with --seed
${evaluationSeed}, whose environments would start alike, give another.

${checkpointHelp}`;

export const examples: Examples = [
  ['eval last'],
  ['eval chess -n 500 --engine stockfish'],
  ['eval chess --from gpt2/'],
  ['eval cartpole-20260115 -n 20 --sampled --checkpoint last --json'],
];

export async function run(context: Context, reference: string, flags: EvalFlags): Promise<void> {
  const { episodes, seed, sampled = false } = flags;
  if (episodes < 1) throw new UsageError('--episodes 0 plays nothing: use at least 1');
  await using(policyOf(reference, flags), async policy => {
    const tryOut = async (draws: boolean): Promise<Tried> => ({
      sampled: draws,
      evaluation: await policy.evaluate({ episodes, seed, sampled: draws }),
    });
    const asked = await tryOut(sampled);
    const comparable = !sampled && asked.evaluation.kind !== 'measurements';
    const trial = { ...asked, seed, other: comparable ? await tryOut(true) : undefined };
    const { run, step, subject } = policy;
    const isRun = existsSync(join(run.dir, 'manifest.json'));
    if (flags.json) {
      const of = isRun ? { run: run.id, checkpoint: step } : { model: run.dir };
      const where = subject.kind === 'env' ? 'environment' : 'task';
      context.json({ ...of, [where]: subject.id, sampled, seed, ...evaluationJson(trial) });
      return;
    }
    if (isRun) context.print(`${run.id}: ${whyCheckpoint(openRun(run.dir), flags.checkpoint)}`);
    else context.print(`${subject.id}: ${shownDir(run.dir)}`);
    printEvaluation(context, trial);
  });
}

/** The policy of a run; of an environment or a task, that of its newest run or of what `--from` names. */
async function policyOf(reference: string, flags: EvalFlags): Promise<Policy> {
  const { python, envArgs } = flags;
  const wanted = gatherSettings(reference, {
    set: flags.set ?? [],
    ...(python !== undefined && { python }),
    ...(envArgs !== undefined && { envArgs }),
  });
  const [inert] = Object.keys(wanted.settings);
  if (inert !== undefined)
    throw new UsageError(
      `--set ${inert} has no effect on eval: only options of the environment or the task do, envOptions.… or taskOptions.…`,
    );
  const { runDir: root, checkpoint, envFile, from } = flags;
  const policy = { root, checkpoint, envFile, trust: trustOf(flags) };
  if (!meansSubject(reference, root)) {
    if (from !== undefined)
      throw new UsageError(
        `--from is for an environment or a task, ${reference} is a run: leave one of them out`,
      );
    const run = resolveRun(reference, [root]);
    const { engine } = flags;
    const options = await optionsOf(wanted, flags, () => subjectOf(run, { ...policy, options: { engine } }));
    return openPolicy(run.dir, { ...policy, options });
  }
  const options = await optionsOf(wanted, flags, () => resolveSubject(wanted.env!, {}, envFile));
  return openPolicyOn(wanted.env!, { ...policy, options, from });
}
