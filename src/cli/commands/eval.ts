import type { Command } from 'commander';
import { median } from '../../doctor/statistics/index.ts';
import { resolveRun } from '../../runs/index.ts';
import { contextOf } from '../context.ts';
import { UsageError } from '../errors.ts';
import { countOption, policyCheckpointOption, runDirOption, setOption } from '../options.ts';
import { gatherSettings } from '../settings.ts';
import { number, toJson } from '../terminal.ts';
import { checkpointHelp, chooseCheckpoint, openCheckpoint, type WhichCheckpoint } from '../trained.ts';

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
}

export function addEval(program: Command): void {
  program
    .command('eval')
    .description('play episodes with a trained policy, or grade completions of a language model')
    .argument('<run>', 'a run (its id, directory or last), or a text task: its newest run')
    .option('--from <model>', 'text tasks: another model, a directory or a run')
    .option('--engine <command>', 'chess: a UCI engine that labels positions')
    .addOption(setOption())
    .addOption(countOption('-n, --episodes <n>', 'episodes to play, prompts to complete').default(100))
    .option('--sampled', 'draw actions as in training, instead of taking the most likely')
    .addOption(policyCheckpointOption())
    .addOption(countOption('--seed <n>', 'of the episodes').default(10_000))
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
      const { print, raw, paint } = contextOf(command);
      if (flags.episodes < 1) throw new UsageError('--episodes 0 plays nothing: use at least 1');
      if (await isTask(reference, flags.runDir)) {
        const { evalTask } = await import('../text.ts');
        return evalTask(contextOf(command), gatherSettings(reference, { set: flags.set ?? [] }), flags);
      }
      for (const name of ['from', 'engine', 'set'] as const)
        if (flags[name] !== undefined)
          throw new UsageError(
            `--${name} is for a text task, ${reference} is a run: keel eval chess --from …`,
          );
      const run = resolveRun(reference, [flags.runDir]);
      const { step: chosen, why } = chooseCheckpoint(run, flags.checkpoint);
      const { isTextRun } = await import('../../algos/train-text.ts');
      if (isTextRun(run.manifest)) {
        const { evalTextRun } = await import('../text.ts');
        return evalTextRun(contextOf(command), run, chosen, flags);
      }
      const { evaluatePolicy } = await import('../../algos/evaluate.ts');
      const trained = await openCheckpoint(run, chosen);
      try {
        const { trainer } = trained;
        const { returns, lengths, mean, std } = await evaluatePolicy({
          env: trained.env,
          envOptions: trained.envOptions,
          model: trainer.model,
          params: trainer.params,
          normaliser: trainer.observationNormaliser,
          episodes: flags.episodes,
          seed: flags.seed,
          deterministic: flags.sampled !== true,
        });
        const step = trainer.counters.envSteps;
        const sorted = [...returns].sort((a, b) => a - b);
        const middle = median(returns);
        const [min, max] = [sorted[0]!, sorted.at(-1)!];
        const meanLength = lengths.reduce((a, b) => a + b, 0) / lengths.length;
        if (flags.json) {
          raw(
            toJson({
              run: run.id,
              environment: run.manifest.environment.id,
              checkpoint: step,
              episodes: returns.length,
              sampled: flags.sampled === true,
              seed: flags.seed,
              mean,
              std,
              min,
              median: middle,
              max,
              meanLength,
              returns,
              lengths,
            }),
          );
          return;
        }
        print(`${run.id}: ${why}`);
        print(
          `  return ${paint(`${number(mean)} ± ${number(std)}`, 'bold')} over ${returns.length} episodes (min ${number(min)}, median ${number(middle)}, max ${number(max)})`,
        );
        print(
          `  length ${number(meanLength)}, ${flags.sampled ? 'actions drawn as in training' : 'most likely actions'}, seed ${flags.seed}`,
        );
      } finally {
        await trained.close();
      }
    });
}

/** Whether a task is meant and not a run, which goes before: a directory of runs may have one of that name. */
async function isTask(reference: string, root: string): Promise<boolean> {
  const { existsSync } = await import('node:fs');
  const { join } = await import('node:path');
  const isRun = [reference, join(root, reference)].some(path => existsSync(join(path, 'manifest.json')));
  if (isRun) return false;
  const { isEnvFile } = await import('../../envs/index.ts');
  const { meansTask } = await import('../../tasks/index.ts');
  return isEnvFile(reference) && !existsSync(reference) ? false : meansTask(reference);
}
