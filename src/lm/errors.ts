/** A model, tokenizer or text that cannot be used; the message is one line: what, the limit, the remedy. */
export class LmError extends Error {
  override name = 'LmError';
}

export function fail(message: string): never {
  throw new LmError(message);
}
