import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import type { PartReport } from '../../algos/algorithm.ts';
import { openPolicy, prepareRun, resume, train } from '../../algos/runs.ts';
import { typed } from '../../base/typed.ts';
import { listRuns, resolveRun } from '../../runs/store.ts';
import { forgetTrust } from '../../runs/trust.ts';
import { type BeginFlags, beginOptions, newRun, type WantedIn } from '../begin.ts';
import type { Context } from '../context.ts';
import { ExitWith, UsageError } from '../errors.ts';
import type { Examples } from '../examples.ts';
import { exitCodes } from '../exit-codes.ts';
import { runDirOption, settingOptions } from '../options.ts';
import { gatherSettings, locate } from '../settings.ts';

export function define(command: Command): void {
  beginOptions(settingOptions(command))
    .argument('[env]', 'an id, a text task or a file')
    .addOption(runDirOption())
    .option('--json', 'the report as JSON');
}

export const help = `Exits 1 if a part fails, and says which and what to do; 2 if settings are wrong.`;

export const examples: Examples = [['preflight cartpole'], ['preflight ./my-env.ts -c config.yaml']];

export async function run(context: Context, argument: string | undefined, flags: BeginFlags): Promise<void> {
  const { print, paint } = context;
  const wanted = gatherSettings(argument, flags);
  const { env, sources } = wanted;
  if (env === undefined)
    throw new UsageError(`preflight needs an environment, such as ${typed('preflight', 'cartpole')}`);
  const started = performance.now();
  const onPart = flags.json ? undefined : (report: PartReport): void => printPart(context, report);
  const { id, reports } = await tryAll({ ...wanted, env }, flags, onPart).catch(locate(sources));
  const failed = reports.find(({ status }) => status === 'failed');
  const seconds = (performance.now() - started) / 1000;
  if (flags.json) context.json({ environment: id, passed: failed === undefined, seconds, parts: reports }, 2);
  if (failed !== undefined) {
    context.note(`keel: ${id}: ${failed.part} failed: ${failed.detail}`);
    throw new ExitWith(exitCodes.failed);
  }
  if (flags.json) return;
  print(`${paint('all parts work', 'green')}, ${seconds.toFixed(1)} s`);
  const { config, set = [], from } = flags;
  const settings = [
    ...(config === undefined ? [] : ['-c', config]),
    ...set.flatMap(pair => ['--set', pair]),
    ...(from === undefined ? [] : ['--from', from]),
  ];
  context.raw(
    `  ${paint('train', 'dim')}  ${typed('train', ...(argument === undefined ? [] : [argument]), ...settings)}`,
  );
}

function printPart({ print, paint }: Context, { part, status, detail, seconds, warnings }: PartReport): void {
  const marks = { passed: paint('✓', 'green'), failed: paint('✗', 'red'), 'not reached': paint('·', 'dim') };
  const time = status === 'not reached' ? '' : `${seconds.toFixed(2).padStart(6)} s`;
  const text = status === 'not reached' ? paint(status, 'dim') : detail;
  print(`  ${marks[status]} ${part.padEnd(9)} ${time.padEnd(8)}  ${text}`, 23);
  for (const warning of warnings) print(`    ${paint('warning', 'yellow')}  ${warning}`, 13);
}

/** All parts of a run with these settings, in a directory that is gone afterwards. */
async function tryAll(
  wanted: WantedIn,
  flags: BeginFlags,
  onPart: ((report: PartReport) => void) | undefined,
): Promise<{ id: string; reports: readonly PartReport[] }> {
  const from = flags.from && startAt(flags.from, flags.runDir);
  const prepared = await prepareRun('train', { ...(await newRun(wanted, flags)), from });
  const { algorithm, subject, config, written, start } = prepared;
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
      // They were made just now, of what was named here.
      resume: dir => resume(dir, { trust: true }),
      openPolicy: dir => openPolicy(dir, { checkpoint: 'last', trust: true }),
    });
    return { id: subject.id, reports };
  } finally {
    for (const { dir } of listRuns([root]).runs) forgetTrust(dir);
    await rm(root, { recursive: true, force: true });
  }
}

/** What `--from` names by its path, because runs are made elsewhere here. */
const startAt = (from: string, root: string): string =>
  existsSync(from) ? resolve(from) : resolveRun(from, [root]).dir;
