/** What can be asked for on the command line. Only the command that is asked for is loaded, so that `keel --help` is instant. */
import { Command } from 'commander';
import { VERSION } from '../base/version.ts';

export interface Entry {
  readonly name: string;
  /** What follows the name, as the help writes it: test/cli/program.test.ts holds it to what the command takes. */
  readonly takes: string;
  readonly does: string;
  /** Its module, which adds arguments, options and what it does to a command that has its name. */
  load(): Promise<{ define(command: Command): void }>;
}

/** In the order of the help. */
export const entries: readonly Entry[] = [
  {
    name: 'train',
    takes: '[options] [env]',
    does: 'train a policy in a new run; without arguments, in a terminal, it asks',
    load: () => import('./commands/train.ts'),
  },
  {
    name: 'clone',
    takes: '[options] [task]',
    does: 'make a policy or a language model that does as demonstrations do: what train starts from',
    load: () => import('./commands/clone.ts'),
  },
  {
    name: 'resume',
    takes: '[options] [run]',
    does: 'go on with a run that was stopped or killed, to the same bits, or with a finished one',
    load: () => import('./commands/resume.ts'),
  },
  {
    name: 'fork',
    takes: '[options] <run>',
    does: 'start a new run from a checkpoint of another, with other settings',
    load: () => import('./commands/fork.ts'),
  },
  {
    name: 'eval',
    takes: '[options] <run>',
    does: 'play episodes with a trained policy, or grade completions of a language model',
    load: () => import('./commands/eval.ts'),
  },
  {
    name: 'export',
    takes: '[options] <run>',
    does: 'write a policy as ONNX, observation normaliser inside, for any ONNX runtime',
    load: () => import('./commands/export.ts'),
  },
  {
    name: 'play',
    takes: '[options] <run>',
    does: 'see a trained robot in the browser: live, or any recorded episode',
    load: () => import('./commands/play.ts'),
  },
  {
    name: 'record',
    takes: '[options] <run>',
    does: 'record episodes of a trained robot, to see with play or render',
    load: () => import('./commands/record.ts'),
  },
  {
    name: 'render',
    takes: '[options] <run>',
    does: 'write a recorded episode as a GIF, pictures or a video, without a display',
    load: () => import('./commands/render.ts'),
  },
  {
    name: 'runs',
    takes: '',
    does: 'list, show, compare and delete runs',
    load: () => import('./commands/runs.ts'),
  },
  {
    name: 'simulate',
    takes: '[options] <system>',
    does: 'simulate a cluster that serves a language model, with any router on any workload',
    load: () => import('./commands/simulate.ts'),
  },
  {
    name: 'doctor',
    takes: '[options] [paths...]',
    does: "say what is wrong with a run, of any trainer's logs, and what to change",
    load: () => import('./commands/doctor.ts'),
  },
  {
    name: 'dash',
    takes: '[options] [roots...]',
    does: 'the page: all runs live, what is wrong with them, and comparing them',
    load: () => import('./commands/dash.ts'),
  },
  {
    name: 'watch',
    takes: '[options] <logs...>',
    does: "the page on any trainer's logs, live",
    load: () => import('./commands/watch.ts'),
  },
  {
    name: 'envs',
    takes: '[options]',
    does: 'list the environments and text tasks',
    load: () => import('./commands/envs.ts'),
  },
  {
    name: 'check-env',
    takes: '[options] <env>',
    does: 'check that an environment keeps the contract: spaces, seeding, determinism, NaN, reward scale',
    load: () => import('./commands/check-env.ts'),
  },
  {
    name: 'preflight',
    takes: '[options] [env]',
    does: 'one tiny batch through every part, in seconds, with what was measured: environment, update, guard, resume, export',
    load: () => import('./commands/preflight.ts'),
  },
  {
    name: 'config',
    takes: '[options] [env]',
    does: 'print the whole config, with what each key does',
    load: () => import('./commands/config.ts'),
  },
];

/** The program for these arguments: all commands by name, and the one that they ask for in full. */
export async function makeProgram(args: readonly string[]): Promise<Command> {
  const program = new Command('keel')
    .description('Trains policies inside a KL bound that you set.')
    .version(VERSION, '-V, --version', 'print the version')
    .option('--no-color', 'plain text (also NO_COLOR=1)')
    .helpOption('-h, --help', 'print this')
    .helpCommand('help [command]', 'print the help of a command')
    .showSuggestionAfterError(true)
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({
      outputError: (text, write) =>
        write(
          `keel: ${text
            .replace(/^error: /, '')
            .trim()
            .replaceAll(/\s*\n\s*/g, ' ')}\n`,
        ),
    })
    .exitOverride()
    .addHelpText(
      'after',
      `
Examples:
  $ keel train cartpole          train, log, checkpoint
  $ keel resume                  go on with the newest run
  $ keel eval last               how good it is
  $ keel play last               see the robot in the browser
  $ keel preflight ./my-env.ts   try every part on a tiny batch
  $ keel clone chess             a language model to start from
  $ keel doctor logs/ppo_1       what is wrong with a run, of any trainer
  $ keel dash                    all runs live in the browser

Exit codes: 0 done; 1 tried and failed; 2 wrong use: a flag, a setting or a name
that cannot be, nothing was started; 130 stopped by Ctrl-C. Doctor has its own.`,
    );
  const asked = askedFor(args);
  for (const { name, takes, does, load } of entries) {
    const command = program.command(name).description(does);
    if (name === asked) (await load()).define(command);
    else nameOnly(command, takes);
  }
  return program;
}

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
