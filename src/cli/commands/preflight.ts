import type { Command } from 'commander';
import type { GrpoConfig } from '../../algos/grpo/config.ts';
import { loadPreset } from '../../algos/settings-file.ts';
import { contextOf } from '../context.ts';
import { ExitWith, UsageError } from '../errors.ts';
import { runDirOption, settingOptions } from '../options.ts';
import type { PartReport } from '../preflight.ts';
import { checkedConfig, gatherSettings, located, type Wanted } from '../settings.ts';
import { toJson } from '../terminal.ts';
import {
  modelDirectory,
  refuseTextFlags,
  type TextFlags,
  taskOptionsOf,
  textConfig,
  textOptions,
} from '../text.ts';

export function addPreflight(program: Command): void {
  textOptions(settingOptions(program.command('preflight')))
    .description(
      'one tiny batch through every part, in seconds, with what was measured: environment, update, guard, resume, export',
    )
    .argument('[env]', 'an id, a text task or a file')
    .addOption(runDirOption())
    .option('--json', 'the report as JSON')
    .addHelpText(
      'after',
      `
Exits 1 if a part fails, and says which and what to do; 2 if settings are wrong.

Examples:
  $ keel preflight cartpole
  $ keel preflight ./my-env.ts -c config.yaml`,
    )
    .action(async (argument: string | undefined, flags: TextFlags, command: Command) => {
      const { print, raw, note, paint } = contextOf(command);
      const wanted = gatherSettings(argument, flags);
      if (wanted.env === undefined)
        throw new UsageError('preflight needs an environment, such as keel preflight cartpole');
      const started = performance.now();
      const onPart = ({ part, status, detail, seconds, warnings }: PartReport): void => {
        const mark = {
          passed: paint('✓', 'green'),
          failed: paint('✗', 'red'),
          'not reached': paint('·', 'dim'),
        }[status];
        const time = status === 'not reached' ? '' : `${seconds.toFixed(2).padStart(6)} s`;
        print(
          `  ${mark} ${part.padEnd(9)} ${time.padEnd(8)}  ${status === 'not reached' ? paint(status, 'dim') : detail}`,
          23,
        );
        for (const warning of warnings) print(`    ${paint('warning', 'yellow')}  ${warning}`, 13);
      };
      const shown = flags.json ? {} : { onPart };
      const { meansTask } = await import('../../tasks/index.ts');
      const isText = await meansTask(wanted.env);
      if (!isText) refuseTextFlags(flags, wanted.env);
      const { id, reports } = await (isText
        ? ofTask(wanted, flags, shown)
        : ofEnv(wanted, flags, shown)
      ).catch(error => {
        throw located(error, wanted.sources);
      });
      const failed = reports.find(({ status }) => status === 'failed');
      const seconds = (performance.now() - started) / 1000;
      if (flags.json)
        raw(toJson({ environment: id, passed: failed === undefined, seconds, parts: reports }, 2));
      else if (failed === undefined)
        print(
          `${paint('all parts work', 'green')}, ${seconds.toFixed(1)} s: keel train ${argument ?? wanted.env}${flags.from === undefined ? '' : ` --from ${flags.from}`}`,
        );
      if (failed === undefined) return;
      note(`keel: ${id}: ${failed.part} failed: ${failed.detail}`);
      throw new ExitWith(1);
    });
}

interface Reports {
  readonly id: string;
  readonly reports: readonly PartReport[];
}
type Shown = { readonly onPart?: (report: PartReport) => void };

async function ofEnv(wanted: Wanted, flags: TextFlags, shown: Shown): Promise<Reports> {
  const { resolveEnv } = await import('../../envs/index.ts');
  const { id } = await resolveEnv(wanted.env!);
  const config = checkedConfig(flags.preset === false ? {} : loadPreset(id), wanted);
  const { preflight } = await import('../preflight.ts');
  const reports = await preflight({
    env: wanted.env!,
    id,
    envOptions: wanted.envOptions,
    config,
    written: wanted.settings,
    ...shown,
  });
  return { id, reports };
}

async function ofTask(wanted: Wanted, flags: TextFlags, shown: Shown): Promise<Reports> {
  const { name, config } = await textConfig(wanted, 'grpo', flags.preset !== false);
  const { preflightText } = await import('../preflight-text.ts');
  const reports = await preflightText({
    task: wanted.env!,
    taskOptions: taskOptionsOf(wanted, flags),
    config: config as GrpoConfig,
    ...(flags.from === undefined ? {} : modelDirectory(flags.from, flags.runDir)),
    ...shown,
  });
  return { id: name, reports };
}
