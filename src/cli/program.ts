/** What can be asked for on the command line. Only the command that is asked for is loaded, so that `keel --help` is instant. */
import { Command } from 'commander';
import { withoutControls } from '../base/controls.ts';
import { VERSION } from '../base/version.ts';
import { type Action, act } from './context.ts';
import { type Examples, examplesText, sayWhatToType } from './examples.ts';
import { exitCodes } from './exit-codes.ts';

/** A module of `commands`, in the file that has the command's name. */
interface CommandModule {
  /** Adds its arguments and options. */
  define(command: Command): void;
  /** What its help says after them, and examples. */
  readonly help?: string;
  readonly examples: Examples;
  /** What it does, given its arguments and its flags; absent where commands below it do (`runs`). */
  readonly run?: Action;
}

/**
 * Each command, in the order of the help: what follows its name there, and what it does. test/cli/program.test.ts holds it
 * to what the command takes.
 */
const commands = {
  train: ['[options] [env]', 'train a policy in a new run; without arguments, in a terminal, it asks'],
  clone: [
    '[options] [task]',
    'learn from examples (demonstrations) alone: a policy or a language model that train can start from',
  ],
  resume: [
    '[options] [run]',
    'go on with a run that was stopped or killed, as if it had not been, or with a finished one',
  ],
  fork: ['[options] <run>', 'start a new run from a checkpoint of another, with other settings'],
  import: [
    '[options] <trainer> <file>',
    "make a run of another trainer's model (Stable-Baselines3, CleanRL), to go on with inside the bound",
  ],
  eval: ['[options] <run>', 'play episodes with a trained policy, or grade completions of a language model'],
  export: ['[options] <run>', 'write a policy as one ONNX file, which runs without Keel'],
  play: ['[options] <run>', 'see a trained robot or game in the browser: live, or any recorded episode'],
  record: ['[options] <run>', 'record episodes of a trained robot or game, to see with play or render'],
  render: ['[options] <run>', 'write a recorded episode as a GIF, pictures or a video, without a display'],
  runs: ['', 'list, show, compare and delete runs'],
  simulate: [
    '[options] <system>',
    'simulate the servers of a language model under load, with any way to share out requests',
  ],
  sweep: ['', 'many runs: search settings on several seeds, here or on a queue; show, compare, export'],
  worker: ['[options]', 'train the runs of sweeps on this machine, taken from a queue on Redis'],
  doctor: ['[options] [paths...]', "say what is wrong with a run, of any trainer's logs, and what to change"],
  report: [
    '[options] <runs...>',
    'one interactive page of a run, or of several beside each other, in a file: any trainer',
  ],
  dash: [
    '[options] [roots...]',
    'a page in the browser: all runs live, what is wrong with them, and comparing them',
  ],
  watch: ['[options] <logs...>', "the same page on any trainer's logs, live"],
  envs: ['[options] [env]', 'list the environments and text tasks, or all there is to know of one'],
  'check-env': [
    '[options] <env>',
    'look for mistakes in an environment: shapes, seeds, repeatability, NaN, size of the rewards',
  ],
  preflight: [
    '[options] [env]',
    'one tiny batch through every part, in seconds, with what was measured: environment, update, guard, resume, export',
  ],
  config: ['[options] [env]', 'print the whole config, with what each key does'],
} as const satisfies Readonly<Record<string, readonly [takes: string, does: string]>>;

const modules: Readonly<Record<keyof typeof commands, () => Promise<CommandModule>>> = {
  train: () => import('./commands/train.ts'),
  clone: () => import('./commands/clone.ts'),
  resume: () => import('./commands/resume.ts'),
  fork: () => import('./commands/fork.ts'),
  import: () => import('./commands/import.ts'),
  eval: () => import('./commands/eval.ts'),
  export: () => import('./commands/export.ts'),
  play: () => import('./commands/play.ts'),
  record: () => import('./commands/record.ts'),
  render: () => import('./commands/render.ts'),
  runs: () => import('./commands/runs.ts'),
  simulate: () => import('./commands/simulate.ts'),
  sweep: () => import('./commands/sweep.ts'),
  worker: () => import('./commands/worker.ts'),
  doctor: () => import('./commands/doctor.ts'),
  report: () => import('./commands/report.ts'),
  dash: () => import('./commands/dash.ts'),
  watch: () => import('./commands/watch.ts'),
  envs: () => import('./commands/envs.ts'),
  'check-env': () => import('./commands/check-env.ts'),
  preflight: () => import('./commands/preflight.ts'),
  config: () => import('./commands/config.ts'),
};

/** All of it, as a list. */
export const entries = Object.entries(modules).map(([name, load]) => {
  const [takes, does] = commands[name as keyof typeof commands];
  return { name, takes, does, load };
});

const examples: Examples = [
  ['train cartpole', 'train, log, checkpoint'],
  ['resume', 'go on with the newest run'],
  ['eval last', 'how good it is'],
  ['play last', 'see the robot in the browser'],
  ['preflight ./my-env.ts', 'try every part on a tiny batch'],
  ['clone chess', 'a language model to start from'],
  ['sweep cartpole --trials 20', 'search for better settings'],
  ['doctor logs/ppo_1', 'what is wrong with a run, of any trainer'],
  ['dash', 'all runs live in the browser'],
];

const exits = `Exit codes: ${exitCodes.done} done; ${exitCodes.failed} tried and failed; ${exitCodes.wrongUse} wrong use: a flag, a setting or a name
that cannot be, nothing was started; ${exitCodes.interrupted} stopped by Ctrl-C. Doctor has its own.`;

/** The program for these arguments: all commands by name, and the one that they ask for in full. */
export async function makeProgram(args: readonly string[]): Promise<Command> {
  const program = new Command('keel')
    .description(
      'Trains agents and language models by reinforcement learning, and says what is wrong with a run of any trainer. Each update keeps below a bound that you set on its KL: how far it moves the policy.',
    )
    .version(VERSION, '-V, --version', 'print the version')
    .option('--no-color', 'plain text (also NO_COLOR=1)')
    .helpOption('-h, --help', 'print this')
    .helpCommand('help [command]', 'print the help of a command')
    .showSuggestionAfterError(true)
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({ outputError: (text, write) => write(`keel: ${withoutControls(oneLine(text))}\n`) })
    .exitOverride()
    .addHelpText('after', `\n${examplesText(examples)}\n\n${exits}`);
  const asked = askedFor(args);
  for (const { name, takes, does, load } of entries) {
    const command = program.command(name).description(does);
    if (name === asked) complete(command, await load());
    else nameOnly(command, takes);
  }
  return program;
}

function complete(command: Command, { define, help, examples, run }: CommandModule): void {
  define(command);
  const parts = [help, examplesText(examples)].filter(part => part !== undefined);
  command.addHelpText('after', `\n${parts.join('\n\n')}`);
  sayWhatToType(command, examples);
  if (run !== undefined) act(command, run);
}

/** What commander says of wrong use, as Keel says it. */
const oneLine = (text: string): string =>
  text
    .replace(/^error: /, '')
    .trim()
    .replaceAll(/\s*\n\s*/g, ' ');

/** The command's name: no option before it takes a value. */
function askedFor(args: readonly string[]): string | undefined {
  const [first, second] = args.filter(arg => !arg.startsWith('-'));
  return first === 'help' ? second : first;
}

/** As much of a command as the help of all of them shows; that there are options is all that it says of them. */
function nameOnly(command: Command, takes: string): void {
  for (const part of takes.match(/\S+/g) ?? []) {
    if (part === '[options]') command.option('--any');
    else command.argument(part);
  }
}
