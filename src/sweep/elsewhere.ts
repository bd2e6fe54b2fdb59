/** What one machine cannot do and another may. */
import { codeOf, KeelError, RunError } from '../base/errors.ts';

/**
 * This machine cannot do a job, and that is not the job's fault: its disk is full, it does not know the file, another
 * process writes the run. A place tries elsewhere or later; no trial fails by it.
 */
export class ElsewhereError extends KeelError {
  override name = 'ElsewhereError';
}

/** What the system says where its disk, its rights or its limits are in the way. */
const machineCodes = new Set([
  'ENOSPC',
  'EDQUOT',
  'EFBIG',
  'EROFS',
  'EACCES',
  'EPERM',
  'EMFILE',
  'ENFILE',
  'ENOMEM',
  'EIO',
  'EBUSY',
]);
/** What befalls a run's directory: another process has it, has just made it, or took it away. */
const runCodes = new Set(['locked', 'gone', 'exists']);

/**
 * The same error as one of the machine, if it is one. Those of file operations are ours (`RunError`); an environment of
 * the user's own may fail with any code of the system's on every machine, but a full disk is full for everybody.
 */
export function elsewhere(error: unknown): ElsewhereError | undefined {
  if (error instanceof ElsewhereError) return error;
  const code = codeOf(error);
  const isOurs = error instanceof RunError && (machineCodes.has(code) || runCodes.has(code));
  if (!isOurs && code !== 'ENOSPC' && code !== 'EDQUOT') return undefined;
  const message = error instanceof Error ? error.message : String(error);
  return new ElsewhereError(message.replaceAll(/\s+/g, ' '), { code, cause: error });
}

/** Whether waiting a little on the same machine helps: another process has the run, which ends or dies. */
export const passes = (error: ElsewhereError): boolean => runCodes.has(error.code ?? '');

/** Whether this machine cannot do any job now, not only this one. */
export const isMachineWide = (error: ElsewhereError): boolean => machineCodes.has(error.code ?? '');
