import { statSync } from 'node:fs';
import type { Command } from 'commander';
import type { WhichCheckpoint } from '../../algos/algorithm.ts';
import { fileError } from '../../base/files.ts';
import { grouped } from '../../base/numbers.ts';
import { resolveRun } from '../../runs/store.ts';
import { checkpointHelp, whyCheckpoint } from '../checkpoints.ts';
import { contextOf } from '../context.ts';
import { envFileOption, policyCheckpointOption, runArgument, runDirOption } from '../options.ts';

interface ExportFlags {
  readonly output?: string;
  readonly envFile?: string;
  readonly checkpoint?: WhichCheckpoint;
  readonly runDir: string;
}

/** Its arguments, options and action; name and description stand in program.ts. */
export function define(command: Command): void {
  command
    .addArgument(runArgument('<run>'))
    .option('-o, --output <file>', 'where to (default: policy.onnx; of a language model the directory model)')
    .addOption(policyCheckpointOption())
    .addOption(envFileOption())
    .addOption(runDirOption())
    .addHelpText(
      'after',
      `
In:  observation   (rows, size)  as the environment gives it, any number of rows
Out: action        (rows, size)  the most likely one, within the space's bounds
     distribution  (rows, size)  the parameters of the policy's distribution

Of a language model it is a directory that Hugging Face's tools load.

${checkpointHelp}

Examples:
  $ keel export last
  $ keel export last --checkpoint last -o cartpole.onnx`,
    )
    .action(async (reference: string, flags: ExportFlags, command: Command) => {
      const { print } = contextOf(command);
      const run = resolveRun(reference, [flags.runDir]);
      const { openPolicy } = await import('../../algos/runs.ts');
      const policy = await openPolicy(run.dir, { checkpoint: flags.checkpoint, envFile: flags.envFile });
      const output = flags.output ?? policy.exportName;
      try {
        const exported = await policy.export(output).catch(error => {
          throw fileError(error, 'write', output);
        });
        print(`${run.id}: ${whyCheckpoint(run, flags.checkpoint)}`);
        switch (exported.kind) {
          case 'onnx':
            print(`  ${output}  ${grouped(statSync(output).size)} bytes`);
            print(`  in   observation (rows, ${exported.observation})`);
            print(`  out  action (rows, ${exported.action}), distribution (rows, ${exported.distribution})`);
            return;
          case 'model':
            print(`  ${output}  ${exported.files.join(', ')}`);
            return;
          default:
            exported satisfies never;
        }
      } finally {
        await policy.close();
      }
    });
}
