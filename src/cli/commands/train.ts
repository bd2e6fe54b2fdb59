import type { Command } from 'commander';
import { resolveSubject } from '../../algos/subject.ts';
import { typed } from '../../base/typed.ts';
import { type BeginFlags, beginOptions, beginRun } from '../begin.ts';
import type { Context } from '../context.ts';
import { ExitWith, UsageError } from '../errors.ts';
import type { Examples } from '../examples.ts';
import { exitCodes } from '../exit-codes.ts';
import { settingOptions } from '../options.ts';
import { type TrainingFlags, trainingOptions } from '../page.ts';
import { queueFlag } from '../queue.ts';
import { absoluteEnv, checkEach, gatherSettings, locate, type Wanted } from '../settings.ts';

export function define(command: Command): void {
  trainingOptions(beginOptions(settingOptions(command)))
    .argument(
      '[env]',
      'an id (cartpole, Pendulum-v1, gym:Hopper-v5), a text task (chess) or a file (./my-env.ts, ./my_env.py:MyEnv)',
    )
    .option('--seeds <seeds>', 'several runs side by side: 0..9, 0,3,5 or how many')
    .option('--autopilot', 'the doctor looks at the run while it trains, and mends what it is sure of')
    .option(...queueFlag);
}

export const help = `Settings win in this order: flags, --set, the file (-c), the environment's
preset, defaults.
${typed('config')} [env] prints them all, with what each does.

A line of a training: share and number of steps done, mean return, how far the
last update moved the policy (kl) with a word for it, how well the critic
predicts returns (ev: 1 is all, 0 nothing) or what share of completions could be
read, steps a second, time left.`;

export const examples: Examples = [
  ['train cartpole'],
  ['train pendulum --steps 200k --seed 1 --set "hidden=[64,64]"'],
  ['train cartpole --seeds 0..9', 'ten runs, and what they come to'],
  ['train ./my-env.ts -c config.yaml'],
  ['train gym:Hopper-v5 --python .venv/bin/python', "Gymnasium's, in Python"],
  [`train ./my_env.py:MyEnv --env-args '{"size": 8}'`, 'a class of your own, in Python'],
  ['train cartpole --autopilot --set learningRate=0.1 --set guard=null', 'sick, and mended by the doctor'],
  ['train hopper --set shards=4 --queue redis://head', 'its steps are played by workers'],
  ['train chess --from last --set groupSize=16'],
  [`train cartpole --json | jq 'select(.kind == "row")["kl/step"]'`],
];

interface TrainFlags extends BeginFlags {
  readonly seeds?: string;
}

export async function run(context: Context, argument: string | undefined, flags: TrainFlags): Promise<void> {
  const wanted = gatherSettings(argument, flags);
  if (flags.seeds !== undefined) return trainSeeds(context, wanted, flags, flags.seeds);
  if (wanted.env !== undefined) return beginRun(context, 'train', { ...wanted, env: wanted.env }, flags);
  if (!process.stdin.isTTY || !process.stdout.isTTY || flags.json)
    throw new UsageError(
      `train needs an environment, such as ${typed('train', 'cartpole')}: ${typed('envs')} lists them`,
    );
  // What is wrong whatever the answers are is said before the first question.
  checkEach(wanted);
  const { askWhatToTrain } = await import('../ask.ts');
  const answer = await askWhatToTrain({
    root: flags.runDir,
    steps: flags.steps,
    page: flags.dash !== undefined || flags.open !== undefined,
  });
  const page: TrainingFlags = { ...flags, ...(answer.open === undefined ? {} : { open: answer.open }) };
  if (answer.kind === 'new')
    return beginRun(
      context,
      'train',
      { ...wanted, env: absoluteEnv(answer.env) },
      {
        ...flags,
        ...page,
        ...(answer.from !== undefined && flags.from === undefined && { from: answer.from }),
      },
    );
  const { resumeRun } = await import('./resume.ts');
  const { dash, open, port, token, exit } = page;
  const steps = answer.steps ?? flags.steps;
  return resumeRun(context, answer.dir, { steps, dash, open, port, token, exit }, wanted);
}

/** The smallest study: one trial, as the settings have it, on several seeds. */
async function trainSeeds(context: Context, wanted: Wanted, flags: TrainFlags, seeds: string): Promise<void> {
  const { env, envOptions, settings } = wanted;
  if (env === undefined)
    throw new UsageError(
      `--seeds needs an environment, such as ${typed('train', 'cartpole', '--seeds', '0..4')}`,
    );
  // The page of a study is for whoever asks for it: `keel dash` shows it.
  for (const flag of ['seed', 'from', 'engine', 'dash', 'open', 'port', 'exit', 'autopilot'] as const)
    if (flags[flag] !== undefined)
      throw new UsageError(`--${flag} and --seeds do not go together: remove one of them`);
  if (flags.queue !== undefined)
    throw new UsageError(
      `--queue of train is for the shards of one run: ${typed('sweep', env, '--queue', '…')} has whole runs done by workers`,
    );
  if (flags.preset === false)
    throw new UsageError('--no-preset and --seeds do not go together: write the settings with --set');
  const { makeStudy } = await import('../../sweep/make-study.ts');
  const { conductHere } = await import('../study/conduct.ts');
  const { seedsFlag } = await import('../study/seeds-flag.ts');
  const { kind } = await resolveSubject(env, envOptions);
  const opened = await makeStudy({
    [kind]: env,
    [`${kind}Options`]: envOptions,
    config: settings,
    space: {},
    method: 'grid',
    trials: 1,
    seeds: seedsFlag(seeds),
  }).catch(locate(wanted.sources));
  const { status } = await conductHere(context, opened, flags);
  if (status === 'stopped') throw new ExitWith(exitCodes.interrupted);
}
