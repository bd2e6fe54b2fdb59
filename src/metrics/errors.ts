/**
 * Something about what is logged or saved that cannot be done as asked: an unknown name, a damaged file, a full disk.
 * The message is one line: what, where, and what to do. `code` is the system's (`ENOSPC`) or one of ours (`locked`).
 */
export class RunError extends Error {
  override name = 'RunError';
  readonly code: string | undefined;

  constructor(message: string, options?: { readonly code?: string | undefined; readonly cause?: unknown }) {
    super(message, options?.cause === undefined ? undefined : { cause: options.cause });
    this.code = options?.code;
  }
}

/** Fails with a one-line {@link RunError}. An expression, so that it can stand where a value is missing. */
export function fail(message: string, code?: string): never {
  throw new RunError(message, { code });
}

/** A value as a message shows it: short, and on one line whatever is in it. */
export function show(value: unknown): string {
  let text: string | undefined;
  try {
    text = typeof value === 'number' || typeof value === 'bigint' ? String(value) : JSON.stringify(value);
  } catch {
    // A cycle, a BigInt inside, or deeper than the stack: its kind says enough.
  }
  text ??= value === undefined || typeof value === 'symbol' ? String(value) : `a(n) ${typeof value}`;
  return text.length > 60 ? `${text.slice(0, 57)}…` : text;
}
