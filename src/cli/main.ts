/** The command line's process: runs what its arguments ask for, and ends with the exit code. `bin/keel.js` starts it. */
import { realpathSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Command } from 'commander';
import { reportError } from './errors.ts';
import { exitCodes } from './exit-codes.ts';
import { makeProgram } from './program.ts';

/** Runs a command line; its exit code is the process's when this returns. */
export async function main(argv: readonly string[] = process.argv): Promise<void> {
  const args = argv.slice(2);
  try {
    const program = await makeProgram(args);
    if (args.length === 0) program.outputHelp();
    else await program.parseAsync(meant(program, args), { from: 'user' });
    process.exitCode = 0;
  } catch (error) {
    process.exitCode = reportError(error, text => process.stderr.write(text));
  }
}

/** Commander answers `help nonsense` with the help of everything, and says nothing of nonsense: that is done as `nonsense`, which is refused by name. */
function meant({ commands }: Command, args: readonly string[]): readonly string[] {
  const [first, named] = args;
  const isKnown = named === undefined || named === 'help' || commands.some(one => one.name() === named);
  return first === 'help' && !isKnown ? [named] : args;
}

/** As a program of its own, and not imported by one. */
async function start(): Promise<void> {
  // Node's code of a process that has nothing left to do while an import waits: a file that waits for itself, or for nothing.
  process.on('exit', code => {
    if (code !== 13) return;
    process.stderr.write(
      'keel: a file that was loaded awaits something at its top level that never comes: it may be a script, which is run with tsx or node, and not an environment\n',
    );
    process.exitCode = exitCodes.failed;
  });
  // A reader that has gone (`keel runs | head`) is no error.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
    if (process.stdout.listenerCount('error') === 1) process.exit(0);
  });
  await main();
  // Threads and timers of an environment must not keep the process; what was written must be out first.
  await Promise.all(
    [process.stdout, process.stderr].map(
      stream =>
        new Promise<void>(done => (stream.writableLength > 0 ? stream.write('', () => done()) : done())),
    ),
  );
  process.exit();
}

/** Started by itself or by the entry; npm's link to that is followed. */
const programs = [import.meta.url, new URL('../../bin/keel.js', import.meta.url)].map(url =>
  fileURLToPath(url),
);
if (process.argv[1] !== undefined && programs.includes(realpathSync(process.argv[1]))) await start();
