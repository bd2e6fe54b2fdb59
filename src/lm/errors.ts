import { KeelError } from '../base/errors.ts';

/** A model, tokenizer or text that cannot be used; the message is one line: what, the limit, the remedy. */
export class LmError extends KeelError {
  override name = 'LmError';
}

export function fail(message: string): never {
  throw new LmError(message);
}
