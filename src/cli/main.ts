#!/usr/bin/env node
/** The command line. Commands load what they need when they run, so that `keel --help` is instant. */
import { Command } from 'commander';
import { addCheckEnv } from './commands/check-env.ts';
import { addClone } from './commands/clone.ts';
import { addConfig } from './commands/config.ts';
import { addDash } from './commands/dash.ts';
import { addDoctor } from './commands/doctor.ts';
import { addEnvs } from './commands/envs.ts';
import { addEval } from './commands/eval.ts';
import { addExport } from './commands/export.ts';
import { addFork } from './commands/fork.ts';
import { addPlay } from './commands/play.ts';
import { addPreflight } from './commands/preflight.ts';
import { addRecord } from './commands/record.ts';
import { addRender } from './commands/render.ts';
import { addResume } from './commands/resume.ts';
import { addRuns } from './commands/runs.ts';
import { addSimulate } from './commands/simulate.ts';
import { addTrain } from './commands/train.ts';
import { addWatch } from './commands/watch.ts';
import { reportError } from './errors.ts';
import { packageVersion } from './package.ts';

function makeProgram(): Command {
  const program = new Command('keel')
    .description('Trains policies inside a KL bound that you set.')
    .version(packageVersion(), '-V, --version', 'print the version')
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
  for (const add of [
    addTrain,
    addClone,
    addResume,
    addFork,
    addEval,
    addExport,
    addPlay,
    addRecord,
    addRender,
    addRuns,
    addSimulate,
    addDoctor,
    addDash,
    addWatch,
    addEnvs,
    addCheckEnv,
    addPreflight,
    addConfig,
  ]) {
    add(program);
  }
  return program;
}

async function main(): Promise<number> {
  // A reader that has gone (`keel runs | head`) is no error.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
    if (process.stdout.listenerCount('error') === 1) process.exit(0);
  });
  const program = makeProgram();
  try {
    if (process.argv.length <= 2) program.outputHelp();
    else await program.parseAsync();
    return 0;
  } catch (error) {
    return reportError(error, text => process.stderr.write(text));
  }
}

const code = await main();
// Threads and timers of an environment must not keep the process; what was written must be out first.
await Promise.all(
  [process.stdout, process.stderr].map(
    stream =>
      new Promise<void>(done => (stream.writableLength > 0 ? stream.write('', () => done()) : done())),
  ),
);
process.exit(code);
