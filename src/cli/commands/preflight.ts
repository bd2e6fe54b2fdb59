import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import type { PartReport } from '../../algos/algorithm.ts';
import { toJson } from '../../base/json.ts';
import { resolveRun } from '../../runs/store.ts';
import { type BeginFlags, beginOptions, optionsOf } from '../begin.ts';
import { contextOf } from '../context.ts';
import { ExitWith, UsageError } from '../errors.ts';
import { runDirOption, settingOptions } from '../options.ts';
import { gatherSettings, located, type Wanted } from '../settings.ts';

/** Its arguments, options and action; name and description stand in program.ts. */
export function define(command: Command): void {
  beginOptions(settingOptions(command))
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
    .action(async (argument: string | undefined, flags: BeginFlags, command: Command) => {
      const { print, raw, note, paint } = contextOf(command);
      const { env, ...wanted } = gatherSettings(argument, flags);
      if (env === undefined)
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
      const { id, reports } = await tryAll({ ...wanted, env }, flags, flags.json ? undefined : onPart).catch(
        error => {
          throw located(error, wanted.sources);
        },
      );
      const failed = reports.find(({ status }) => status === 'failed');
      const seconds = (performance.now() - started) / 1000;
      if (flags.json)
        raw(toJson({ environment: id, passed: failed === undefined, seconds, parts: reports }, 2));
      else if (failed === undefined)
        print(
          `${paint('all parts work', 'green')}, ${seconds.toFixed(1)} s: keel train ${argument ?? env}${flags.from === undefined ? '' : ` --from ${flags.from}`}`,
        );
      if (failed === undefined) return;
      note(`keel: ${id}: ${failed.part} failed: ${failed.detail}`);
      throw new ExitWith(1);
    });
}

/** All parts of a run with these settings, in a directory that is gone afterwards. */
async function tryAll(
  wanted: Wanted & { readonly env: string },
  flags: BeginFlags,
  onPart: ((report: PartReport) => void) | undefined,
): Promise<{ id: string; reports: readonly PartReport[] }> {
  const { openPolicy, prepareRun, resume, train } = await import('../../algos/runs.ts');
  const from = flags.from && startAt(flags.from, flags.runDir);
  const { algorithm, subject, config, written, start } = await prepareRun('train', {
    env: wanted.env,
    envOptions: optionsOf(wanted, flags),
    config: wanted.settings,
    ...(flags.preset === false ? { preset: {} } : {}),
    from,
  });
  if (algorithm.preflight === undefined)
    throw new UsageError(`${algorithm.name} has no preflight: train it for a few steps`);
  const root = await mkdtemp(join(tmpdir(), 'keel-preflight-'));
  try {
    const reports = await algorithm.preflight({
      subject,
      config,
      written,
      start,
      onPart,
      train: (tiny, hooks) =>
        train({ env: wanted.env, envOptions: subject.options, preset: tiny as object, root, from, ...hooks }),
      resume: dir => resume(dir),
      openPolicy: dir => openPolicy(dir, { checkpoint: 'last' }),
    });
    return { id: subject.id, reports };
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}

/** What `--from` names by its path, because runs are made elsewhere here. */
const startAt = (from: string, root: string): string =>
  existsSync(from) ? resolve(from) : resolveRun(from, [root]).dir;
