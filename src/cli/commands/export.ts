import { statSync } from 'node:fs';
import { type Command, Option } from 'commander';
import { type ExportFormat, exportFormats } from '../../algos/policy.ts';
import { openPolicy } from '../../algos/runs.ts';
import { fileError } from '../../base/files.ts';
import { grouped } from '../../base/numbers.ts';
import type { Context } from '../context.ts';
import type { Examples } from '../examples.ts';
import { type PolicyFlags, policyArgument, policyOptions } from '../options.ts';
import { checkpointHelp, runMeant, using, whyCheckpoint } from '../policies.ts';
import { trustOf } from '../trust.ts';

interface ExportFlags extends PolicyFlags {
  readonly out?: string;
  /** As `--out` was called before. */
  readonly output?: string;
  readonly format?: ExportFormat;
}

export function define(command: Command): void {
  command
    .addArgument(policyArgument())
    .option('-o, --out <file>', 'where to (default: policy.onnx; of a language model the directory model)')
    .addOption(new Option('--output <file>').hideHelp())
    .addOption(
      new Option(
        '--format <name>',
        'onnx, or the names of Stable-Baselines3 as safetensors (policy.safetensors)',
      ).choices([...exportFormats]),
    );
  policyOptions(command);
}

export const help = `In:  observation   (rows, size)  as the environment gives it, any number of rows
Out: action        (rows, size)  the most likely one, within the space's bounds
     distribution  (rows, size)  the parameters of the policy's distribution

Of a language model it is a directory that Hugging Face's tools load.

${checkpointHelp}`;

export const examples: Examples = [
  ['export last'],
  ['export arithmetic', 'its newest run'],
  ['export last --checkpoint last -o cartpole.onnx'],
  ['export last --format sb3-state-dict', 'for load_state_dict in Python'],
];

export async function run({ print }: Context, reference: string, flags: ExportFlags): Promise<void> {
  const { checkpoint } = flags;
  const { run, envFile } = await runMeant(reference, flags);
  await using(openPolicy(run.dir, { checkpoint, envFile, trust: trustOf(flags) }), async policy => {
    const { format } = flags;
    const usual = format === 'sb3-state-dict' ? 'policy.safetensors' : policy.exportName;
    const output = flags.out ?? flags.output ?? usual;
    const exported = await policy.export(output, { format }).catch(error => {
      throw fileError(error, 'write', output);
    });
    print(`${run.id}: ${whyCheckpoint(run, checkpoint)}`);
    switch (exported.kind) {
      case 'onnx':
        print(`  ${output}  ${grouped(statSync(output).size)} bytes`);
        print(`  in   observation (rows, ${exported.observation})`);
        print(`  out  action (rows, ${exported.action}), distribution (rows, ${exported.distribution})`);
        return;
      case 'state-dict':
        print(`  ${output}  ${grouped(statSync(output).size)} bytes`);
        for (const [name, shape] of Object.entries(exported.tensors))
          print(`  ${name} (${shape.join(', ')})`);
        return;
      case 'model':
        print(`  ${output}  ${exported.files.join(', ')}`);
        return;
      default:
        exported satisfies never;
    }
  });
}
