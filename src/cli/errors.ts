/** What a user sees when something cannot be done: one line for each problem, and an exit code. */
import { CommanderError } from 'commander';
import { withoutControls } from '../base/controls.ts';
import { errorsAsJson, KeelError } from '../base/errors.ts';
import { fileError } from '../base/files.ts';
import { wholeTrace } from '../base/trace.ts';
import { exitCodes } from './exit-codes.ts';

/** What was asked for is wrong, and nothing was tried: exit code 2. */
export class UsageError extends KeelError {
  override name = 'UsageError';

  constructor(message: string) {
    super(message, { code: 'usage' });
  }
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

/** What was asked for cannot be, whatever the machine: a value out of range, a name of nothing. Exit code 2, too. */
const wrongUse = new Set([
  'usage',
  'config-invalid',
  'env-unknown',
  'file-invalid',
  'file-not-found',
  'option-invalid',
  'option-unknown',
  'task-unknown',
  'vector-invalid',
  'ambiguous',
  'no-checkpoint',
  'no-such-run',
  'no-such-study',
  'not-a-run',
  'unsafe',
  'untrusted',
  'would-discard',
  'exists',
]);

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** An error of a file that nobody has put into words: what the system says, or the remedy if it is one we know. */
function fromSystem(error: NodeJS.ErrnoException): string {
  const known = ['ENOSPC', 'EDQUOT', 'EROFS', 'EACCES', 'EPERM', 'EIO', 'EMFILE'].includes(error.code ?? '');
  return known ? fileError(error, error.syscall ?? 'use', error.path ?? 'a file').message : error.message;
}

/** Prints what went wrong and gives the exit code. Where it was thrown is shown with KEEL_DEBUG=1 alone. */
export function reportError(error: unknown, print: (text: string) => void): number {
  const write = (text: string): void => print(withoutControls(text));
  if (error instanceof ExitWith) return error.exitCode;
  // Commander has printed its own.
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.done : exitCodes.wrongUse;
  const name = error instanceof Error ? error.name : 'Error';
  const system = typeof (error as { syscall?: unknown } | null)?.syscall === 'string';
  const message = system ? fromSystem(error as NodeJS.ErrnoException) : messageOf(error);
  const lines = message.split('\n').filter(line => line.trim() !== '');
  if (process.env[errorsAsJson] === '1') write(`${JSON.stringify({ problems: lines })}\n`);
  else if (error instanceof KeelError || system) {
    for (const line of lines) write(`keel: ${line.trim()}\n`);
  } else {
    write(`keel: ${name}: ${lines[0]?.trim() ?? ''} (this is a fault in Keel: KEEL_DEBUG=1 shows where)\n`);
  }
  const trace = process.env.KEEL_DEBUG === '1' ? wholeTrace(error) : undefined;
  if (trace !== undefined) write(`${trace}\n`);
  return error instanceof KeelError && wrongUse.has(error.code ?? '') ? exitCodes.wrongUse : exitCodes.failed;
}
