import type { Command } from 'commander';
import { typed } from '../../base/typed.ts';
import { type BeginFlags, beginOptions, beginRun } from '../begin.ts';
import type { Context } from '../context.ts';
import { UsageError } from '../errors.ts';
import type { Examples } from '../examples.ts';
import { settingOptions } from '../options.ts';
import { type TrainingFlags, trainingOptions } from '../page.ts';
import { absoluteEnv, checkEach, gatherSettings } from '../settings.ts';

export function define(command: Command): void {
  trainingOptions(beginOptions(settingOptions(command))).argument(
    '[env]',
    'an id (cartpole, Pendulum-v1), a text task (chess) or a file (./my-env.ts)',
  );
}

export const help = `Settings win in this order: flags, --set, the file (-c), the environment's
preset, defaults.
${typed('config')} [env] prints them all, with what each does.`;

export const examples: Examples = [
  ['train cartpole'],
  ['train pendulum --steps 200k --seed 1 --set "hidden=[64,64]"'],
  ['train ./my-env.ts -c config.yaml'],
  ['train chess --from last --set groupSize=16'],
  ['train cluster --from last --set klRefCoefInitial=0.3'],
  [`train cartpole --json | jq 'select(.kind == "row")["kl/step"]'`],
];

export async function run(context: Context, argument: string | undefined, flags: BeginFlags): Promise<void> {
  const wanted = gatherSettings(argument, flags);
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
    return beginRun(context, 'train', { ...wanted, env: absoluteEnv(answer.env) }, { ...flags, ...page });
  const { resumeRun } = await import('./resume.ts');
  const { dash, open, port, token, exit } = page;
  const steps = answer.steps ?? flags.steps;
  return resumeRun(context, answer.dir, { steps, dash, open, port, token, exit }, wanted);
}
