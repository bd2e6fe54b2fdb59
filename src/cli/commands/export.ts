import { statSync } from 'node:fs';
import type { Command } from 'commander';
import { resolveRun } from '../../runs/index.ts';
import { contextOf } from '../context.ts';
import { checkpointOption, runDirOption } from '../options.ts';
import { grouped } from '../terminal.ts';
import { openCheckpoint } from '../trained.ts';

interface ExportFlags {
  readonly output: string;
  readonly checkpoint: 'last' | 'best' | number;
  readonly runDir: string;
}

export function addExport(program: Command): void {
  program
    .command('export')
    .description('write a policy as ONNX, observation normaliser inside, for any ONNX runtime')
    .argument('<run>', 'its id, the beginning or the last four characters of it, its directory, or last')
    .option('-o, --output <file>', 'where to', 'policy.onnx')
    .addOption(checkpointOption('--checkpoint <which>', 'last, best or a step').default('last'))
    .addOption(runDirOption())
    .addHelpText(
      'after',
      `
In:  observation   (1, size)   as the environment gives it
Out: action        (1, size)   the most likely action, within the environment's bounds
     distribution  (1, size)   the parameters of the policy's distribution

Examples:
  $ keel export last
  $ keel export last --checkpoint best -o cartpole.onnx`,
    )
    .action(async (reference: string, flags: ExportFlags, command: Command) => {
      const { print } = contextOf(command);
      const run = resolveRun(reference, [flags.runDir]);
      const [{ policyGraph }, { saveOnnx }] = await Promise.all([
        import('../../algos/export.ts'),
        import('../../engine/index.ts'),
      ]);
      const trained = await openCheckpoint(run, flags.checkpoint);
      try {
        const { trainer, actionSpace } = trained;
        const { model, params, observationNormaliser } = trainer;
        await saveOnnx(policyGraph(model, params, actionSpace, observationNormaliser), flags.output);
        print(
          `${flags.output}: ${grouped(statSync(flags.output).size)} bytes, step ${grouped(trainer.counters.envSteps)} of ${run.id}`,
        );
        print(`  in   observation (1, ${model.observationSize})`);
        print(
          `  out  action (1, ${actionSpace.flatSize}), distribution (1, ${model.distribution.paramSize})`,
        );
      } finally {
        await trained.close();
      }
    });
}
