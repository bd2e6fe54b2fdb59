import { KeelError } from '../base/errors.ts';

/** Stable names of what can go wrong with a text task. */
export type TaskErrorCode =
  | 'definition-invalid'
  | 'engine-failed'
  | 'file-invalid'
  | 'file-not-found'
  | 'option-invalid'
  | 'position-invalid'
  | 'task-duplicate'
  | 'task-threw'
  | 'task-unknown';

/** A task, or what was asked of one, is at fault; the message says the value, the limit and the remedy. */
export class TaskError extends KeelError {
  override name = 'TaskError';
  declare readonly code: TaskErrorCode;

  constructor(code: TaskErrorCode, message: string, details: { cause?: unknown } = {}) {
    super(message, { code, cause: details.cause });
  }
}

/** Fails with a {@link TaskError}. An expression, so that it can stand where a value is missing. */
export function fail(code: TaskErrorCode, message: string): never {
  throw new TaskError(code, message);
}
