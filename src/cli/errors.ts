/** What a user sees when something cannot be done: one line for each problem, and an exit code. */
import { CommanderError } from 'commander';

/** The command line itself is wrong: exit code 2. */
export class UsageError extends Error {
  override name = 'UsageError';
}

/** Work that was done and found something bad, which has been printed already: only the exit code is left. */
export class ExitWith extends Error {
  override name = 'ExitWith';
  readonly exitCode: number;

  constructor(exitCode: number) {
    super(`exit ${exitCode}`);
    this.exitCode = exitCode;
  }
}

/** Errors whose messages are written for users. Those of a user's file come from another copy of their module. */
const expected = new Set([
  'UsageError',
  'ConfigError',
  'TrainError',
  'EnvError',
  'RunError',
  'EngineError',
  'SafetensorsError',
]);

/** Prints what went wrong and gives the exit code. Where it was thrown is shown with KEEL_DEBUG=1 alone. */
export function reportError(error: unknown, write: (text: string) => void): number {
  if (error instanceof ExitWith) return error.exitCode;
  // Commander has printed its own.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  const { name, message, stack } =
    error instanceof Error ? error : { name: 'Error', message: String(error), stack: undefined };
  const system = typeof (error as { syscall?: unknown } | null)?.syscall === 'string';
  const lines = message.split('\n').filter(line => line.trim() !== '');
  if (expected.has(name) || system) {
    for (const line of lines) write(`keel: ${line.trim()}\n`);
  } else {
    write(`keel: ${name}: ${lines[0]?.trim() ?? ''} (this is a fault in Keel: KEEL_DEBUG=1 shows where)\n`);
  }
  if (process.env.KEEL_DEBUG === '1' && stack !== undefined) {
    write(`${stack}\n`);
    const { cause } = error as Error;
    if (cause instanceof Error) write(`caused by ${cause.stack}\n`);
  }
  return name === 'UsageError' ? 2 : 1;
}
