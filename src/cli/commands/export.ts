import { statSync } from 'node:fs';
import type { Command } from 'commander';
import { fileError } from '../../metrics/files.ts';
import { resolveRun } from '../../runs/index.ts';
import { contextOf } from '../context.ts';
import { policyCheckpointOption, runArgument, runDirOption } from '../options.ts';
import { grouped } from '../terminal.ts';
import { checkpointHelp, chooseCheckpoint, openCheckpoint, type WhichCheckpoint } from '../trained.ts';

interface ExportFlags {
  readonly output: string;
  readonly checkpoint?: WhichCheckpoint;
  readonly runDir: string;
}

export function addExport(program: Command): void {
  program
    .command('export')
    .description('write a policy as ONNX, observation normaliser inside, for any ONNX runtime')
    .addArgument(runArgument('<run>'))
    .option('-o, --output <file>', 'where to', 'policy.onnx')
    .addOption(policyCheckpointOption())
    .addOption(runDirOption())
    .addHelpText(
      'after',
      `
In:  observation   (1, size)  as the environment gives it
Out: action        (1, size)  the most likely action, within the space's bounds
     distribution  (1, size)  the parameters of the policy's distribution

${checkpointHelp}

Examples:
  $ keel export last
  $ keel export last --checkpoint last -o cartpole.onnx`,
    )
    .action(async (reference: string, flags: ExportFlags, command: Command) => {
      const { print } = contextOf(command);
      const run = resolveRun(reference, [flags.runDir]);
      const [{ policyGraph }, { saveOnnx }] = await Promise.all([
        import('../../algos/export.ts'),
        import('../../engine/index.ts'),
      ]);
      const { step, why } = chooseCheckpoint(run, flags.checkpoint);
      const trained = await openCheckpoint(run, step);
      try {
        const { trainer, actionSpace } = trained;
        const { model, params, observationNormaliser } = trainer;
        try {
          await saveOnnx(policyGraph(model, params, actionSpace, observationNormaliser), flags.output);
        } catch (error) {
          throw fileError(error, 'write', flags.output);
        }
        print(`${run.id}: ${why}`);
        print(`  ${flags.output}  ${grouped(statSync(flags.output).size)} bytes`);
        print(`  in   observation (1, ${model.observationSize})`);
        print(
          `  out  action (1, ${actionSpace.flatSize}), distribution (1, ${model.distribution.paramSize})`,
        );
      } finally {
        await trained.close();
      }
    });
}
