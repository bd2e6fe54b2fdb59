import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import type { WhichCheckpoint } from '../../algos/algorithm.ts';
import type { Policy } from '../../algos/policy.ts';
import { openPolicy, openPolicyOn } from '../../algos/runs.ts';
import { toJson } from '../../base/json.ts';
import { isEnvFile } from '../../envs/load.ts';
import { isEnvName } from '../../envs/registry.ts';
import { openRun, resolveRun } from '../../runs/store.ts';
import { isTaskName } from '../../tasks/registry.ts';
import { optionsOf } from '../begin.ts';
import { checkpointHelp, whyCheckpoint } from '../checkpoints.ts';
import { contextOf, shownDir } from '../context.ts';
import { UsageError } from '../errors.ts';
import { evaluationJson, printEvaluation } from '../evaluation.ts';
import { countOption, envFileOption, policyCheckpointOption, runDirOption, setOption } from '../options.ts';
import { gatherSettings } from '../settings.ts';

interface EvalFlags {
  readonly episodes: number;
  readonly sampled?: boolean;
  readonly checkpoint?: WhichCheckpoint;
  readonly seed: number;
  readonly runDir: string;
  readonly json?: boolean;
  readonly from?: string;
  readonly engine?: string;
  readonly set?: readonly string[];
  readonly envFile?: string;
}

/** Its arguments, options and action; name and description stand in program.ts. */
export function define(command: Command): void {
  command
    .argument('<run>', 'a run (its id, directory or last), or an environment or text task: its newest run')
    .option('--from <model>', 'another run of that environment; of text tasks, any run or model directory')
    .option('--engine <command>', 'chess: a UCI engine that labels positions')
    .addOption(setOption())
    .addOption(countOption('-n, --episodes <n>', 'episodes to play, prompts to complete').default(100))
    .option('--sampled', 'draw actions as in training, instead of taking the most likely')
    .addOption(policyCheckpointOption())
    .addOption(countOption('--seed <n>', 'of the episodes').default(10_000))
    .addOption(envFileOption())
    .addOption(runDirOption())
    .option('--json', 'the result as JSON, with every return')
    .addHelpText(
      'after',
      `
${checkpointHelp}

Examples:
  $ keel eval last
  $ keel eval chess -n 500 --engine stockfish
  $ keel eval chess --from gpt2/
  $ keel eval cartpole-20260115 -n 20 --sampled --checkpoint last --json`,
    )
    .action(async (reference: string, flags: EvalFlags, command: Command) => {
      const context = contextOf(command);
      const { episodes, seed, checkpoint } = flags;
      if (episodes < 1) throw new UsageError('--episodes 0 plays nothing: use at least 1');
      const policy = await policyOf(reference, flags);
      try {
        const sampled = flags.sampled === true;
        const evaluation = await policy.evaluate({ episodes, seed, sampled });
        const isRun = existsSync(join(policy.run.dir, 'manifest.json'));
        if (flags.json) {
          const of = isRun ? { run: policy.run.id, checkpoint: policy.step } : { model: policy.run.dir };
          const where = policy.subject.kind === 'env' ? 'environment' : 'task';
          const asked = { ...of, [where]: policy.subject.id, sampled, seed };
          context.raw(toJson({ ...asked, ...evaluationJson(evaluation) }));
          return;
        }
        context.print(
          isRun
            ? `${policy.run.id}: ${whyCheckpoint(openRun(policy.run.dir), checkpoint)}`
            : `${policy.subject.id}: ${shownDir(policy.run.dir)}`,
        );
        printEvaluation(context, evaluation, { sampled, seed });
      } finally {
        await policy.close();
      }
    });
}

/** The policy of a run; of an environment or a task, that of its newest run or of what `--from` names. */
async function policyOf(reference: string, flags: EvalFlags): Promise<Policy> {
  const wanted = gatherSettings(reference, { set: flags.set ?? [] });
  const [inert] = Object.keys(wanted.settings);
  if (inert !== undefined)
    throw new UsageError(
      `--set ${inert} has no effect on eval: only options of the environment or the task do, envOptions.… or taskOptions.…`,
    );
  const { runDir: root, checkpoint, envFile, from } = flags;
  const options = { root, checkpoint, envFile, options: optionsOf(wanted, flags) };
  if (!meansSubject(reference, root)) {
    if (from !== undefined)
      throw new UsageError(
        `--from is for an environment or a task, ${reference} is a run: leave one of them out`,
      );
    return openPolicy(resolveRun(reference, [root]).dir, options);
  }
  return openPolicyOn(wanted.env!, { ...options, from });
}

/** Whether an environment or a task is meant and not a run, which goes before: a directory of runs may have one of that name. */
function meansSubject(reference: string, root: string): boolean {
  if ([reference, join(root, reference)].some(path => existsSync(join(path, 'manifest.json')))) return false;
  if (isEnvFile(reference))
    return existsSync(reference.replace(/#[^#/\\]*$/, '')) && /\.[cm]?[jt]sx?(#|$)/.test(reference);
  return isTaskName(reference) || isEnvName(reference);
}
