import type { Command } from 'commander';
import { toJson } from '../../base/json.ts';
import { checkEnv } from '../../envs/check.ts';
import { formatCheckReport } from '../../envs/check-format.ts';
import { resolveEnv } from '../../envs/load.ts';
import { makeEnv } from '../../envs/registry.ts';
import { contextOf } from '../context.ts';
import { ExitWith } from '../errors.ts';
import { countOption, setOption } from '../options.ts';
import { parseSets } from '../settings.ts';

interface CheckFlags {
  readonly set?: readonly string[];
  readonly seed?: number;
  readonly steps?: number;
  readonly json?: boolean;
}

/** Its arguments, options and action; name and description stand in program.ts. */
export function define(command: Command): void {
  command
    .argument('<env>', 'an id or a file')
    .addOption(setOption())
    .addOption(countOption('--seed <n>', 'of the random walk'))
    .addOption(countOption('--steps <n>', 'random steps to look at'))
    .option('--json', 'the report as JSON')
    .addHelpText(
      'after',
      `
Here --set is for the environment's own options. Exits 1 if there are errors;
warnings pass.

Examples:
  $ keel check-env cartpole
  $ keel check-env ./my-env.ts --set goal=2 --json`,
    )
    .action(async (reference: string, flags: CheckFlags, command: Command) => {
      const { print, raw, colour } = contextOf(command);
      const { id } = await resolveEnv(reference);
      const options = parseSets(flags.set ?? []) as Parameters<typeof makeEnv>[1];
      const { seed, steps } = flags;
      const report = checkEnv(() => makeEnv(id, options), {
        ...(seed === undefined ? {} : { seed }),
        ...(steps === undefined ? {} : { steps }),
      });
      if (flags.json) raw(toJson(report, 2));
      else {
        // What a line says begins after its level and code.
        const hang = 13 + Math.max(0, ...report.findings.map(({ code }) => code.length));
        for (const line of formatCheckReport(report, { colour }).split('\n')) print(line, hang);
      }
      if (!report.passed) throw new ExitWith(1);
    });
}
