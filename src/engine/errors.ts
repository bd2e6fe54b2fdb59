import { KeelError } from '../base/errors.ts';

/** Something the engine cannot do as asked; the message says the value, the limit and the remedy in one line. */
export class EngineError extends KeelError {
  override name = 'EngineError';
}

/** Fails with a one-line {@link EngineError}. An expression, so that it can stand where a value is missing. */
export function fail(message: string): never {
  throw new EngineError(message);
}
