import type { Command } from 'commander';
import { typed } from '../../base/typed.ts';
import { checkEnv } from '../../envs/check.ts';
import { formatCheckReport } from '../../envs/check-format.ts';
import { resolveEnv } from '../../envs/load.ts';
import { makeEnv } from '../../envs/registry.ts';
import { meansTask } from '../../tasks/registry.ts';
import type { Context } from '../context.ts';
import { ExitWith, UsageError } from '../errors.ts';
import type { Examples } from '../examples.ts';
import { exitCodes } from '../exit-codes.ts';
import { setOption, wholeNumber } from '../options.ts';
import { environmentFlags, type PythonFlags, pythonOptions } from '../python-flags.ts';
import { parseSets } from '../settings.ts';

interface CheckFlags extends PythonFlags {
  readonly set?: readonly string[];
  readonly seed?: number;
  readonly steps?: number;
  readonly json?: boolean;
}

export function define(command: Command): void {
  pythonOptions(command)
    .argument('<env>', 'an id or a file')
    .addOption(setOption())
    .option('--seed <n>', 'of the random walk', wholeNumber)
    .option('--steps <n>', 'random steps to look at', wholeNumber)
    .option('--json', 'the report as JSON');
}

export const help = `Here --set is for the environment's own options. Exits 1 if there are errors;
warnings pass.`;

export const examples: Examples = [['check-env cartpole'], ['check-env ./my-env.ts --set goal=2 --json']];

export async function run(
  { print, json, colour }: Context,
  reference: string,
  flags: CheckFlags,
): Promise<void> {
  if (await meansTask(reference))
    throw new UsageError(
      `${reference} is a text task, which ${typed('preflight', reference)} tries; check-env is for environments`,
    );
  const { id } = await resolveEnv(reference);
  const options = {
    ...(parseSets(flags.set ?? []) as Parameters<typeof makeEnv>[1]),
    ...environmentFlags(reference, flags),
  };
  const report = checkEnv(() => makeEnv(id, options), flags);
  if (flags.json) json(report, 2);
  else {
    // What a line says begins after its level and code.
    const hang = 13 + Math.max(0, ...report.findings.map(({ code }) => code.length));
    for (const line of formatCheckReport(report, { colour }).split('\n')) print(line, hang);
  }
  if (!report.passed) throw new ExitWith(exitCodes.failed);
}
