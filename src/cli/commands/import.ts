import { existsSync } from 'node:fs';
import type { Command } from 'commander';
import { type ImportFormat, importFormats, importRun } from '../../algos/import/import-run.ts';
import { normaliserBeside } from '../../algos/import/vecnormalize.ts';
import { didYouMean } from '../../base/nearest.ts';
import { grouped } from '../../base/numbers.ts';
import { typed } from '../../base/typed.ts';
import { SPACES_ID } from '../../envs/spaces-only.ts';
import { referenceTo } from '../../runs/reference.ts';
import { type Context, shownDir } from '../context.ts';
import { UsageError } from '../errors.ts';
import type { Examples } from '../examples.ts';
import { type RunFlags, runDirOption, settingOptions } from '../options.ts';
import { gatherSettings, locate, type SettingFlags } from '../settings.ts';

interface ImportFlags extends RunFlags, SettingFlags {
  readonly env?: string;
  readonly id?: string;
  /** False for none. */
  readonly normalise?: string | false;
}

export function define(command: Command): void {
  settingOptions(
    command
      .argument('<trainer>', `whose it is: ${importFormats.join(' or ')}`)
      .argument('<file>', 'model.zip of Stable-Baselines3, a state dict of CleanRL')
      .option('--env <env>', 'what it was trained in: an id or a file, as train takes it')
      .option('--normalise <file>', 'vecnormalize.pkl (default: the one beside the model)')
      .option('--no-normalise', 'without one, though it is beside the model'),
  )
    .option('--id <id>', "the new run's name")
    .addOption(runDirOption())
    .option('--json', 'the result as JSON');
}

export const help = `PPO and A2C with an MLP policy. Nothing in the files is run: pickles are read as
data, and what would act otherwise than Keel's network is refused by its name.
Without --env the run has spaces alone: it can be exported and be begun from.
resume goes on with the model's own settings, train --from with Keel's.`;

export const examples: Examples = [
  ['import sb3 ppo_cartpole.zip --env cartpole'],
  ['import sb3 model.zip --env pendulum --normalise vecnormalize.pkl'],
  ['resume last --steps 200k', 'on, with the rates of the model'],
  ['train pendulum --from last', "on, with Keel's preset"],
  ['import cleanrl agent.cleanrl_model --env cartpole'],
];

export async function run(
  context: Context,
  trainer: string,
  file: string,
  flags: ImportFlags,
): Promise<void> {
  const format = importFormats.find(name => name === trainer);
  if (format === undefined)
    throw new UsageError(
      `there is nothing that imports ${trainer}: ${didYouMean(trainer, [...importFormats]) || importFormats.join(', ')}`,
    );
  const model = modelFile(format, file);
  const { env, envOptions, settings, sources } = gatherSettings(flags.env, flags);
  const beside = flags.normalise === undefined ? normaliserBeside(model) : undefined;
  const normaliser = flags.normalise === false ? undefined : (flags.normalise ?? beside);
  const { runDir: root, id } = flags;
  const made = await importRun({
    ...{ format, file: model, normaliser, env, envOptions, config: settings, root, id },
  }).catch(locate(sources));
  const { imported, environment, adam, dir } = made;
  if (flags.json) {
    context.json({ id: made.id, dir, environment, adam, ...imported });
    return;
  }
  const { print, paint } = context;
  print(`${paint(environment === SPACES_ID ? imported.from : environment, 'bold')}: ${shownDir(dir)}`);
  print(`  ${imported.from}, ${grouped(imported.steps)} steps`);
  if (normaliser !== undefined)
    print(`  normalised by ${shownDir(normaliser)}${beside === undefined ? '' : ', found beside it'}`);
  if (adam) print("  Adam's moments go on as they were");
  for (const note of imported.notes) print(`  ${note}`);
  print();
  const name = referenceTo(dir);
  if (environment === SPACES_ID) print(`on:     ${typed('train', '<env>', '--from', name)}`);
  else {
    print(`try:    ${typed('eval', name)}`);
    print(`go on:  ${typed('resume', name, '--steps', String(2 * Math.max(50_000, imported.steps)))}`);
  }
}

/** Stable-Baselines3 writes `model.zip` where one says `model`. */
function modelFile(format: ImportFormat, file: string): string {
  return format === 'sb3' && !existsSync(file) && existsSync(`${file}.zip`) ? `${file}.zip` : file;
}
