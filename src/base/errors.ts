/** Errors that are the user's to mend. */
import { withoutControls } from './controls.ts';

/** One thing that is wrong: the sentence, and the setting that it is about, if it is about one. */
export interface Problem {
  readonly key?: string | undefined;
  readonly text: string;
}

/** On every {@link KeelError}, whichever copy of this module made it. */
const brand = Symbol.for('keel.error');

/**
 * Something that cannot be done as asked; the message says the value, the limit and the remedy, a line for each problem.
 * Any other error is a fault of ours. `code` is a stable name (`env-unknown`), or the system's (`ENOSPC`).
 *
 * `instanceof KeelError` holds for those of another copy of this module too: a user's file may load one of its own.
 */
export class KeelError extends Error {
  override name = 'KeelError';
  readonly code: string | undefined;
  readonly problems: readonly Problem[];

  constructor(
    problems: string | readonly Problem[],
    options: { readonly code?: string | undefined; readonly cause?: unknown } = {},
  ) {
    // What a manifest or a log says may stand in it, and it may be shown in a terminal.
    const all = (typeof problems === 'string' ? [{ text: problems }] : problems).map(problem => ({
      ...problem,
      text: withoutControls(problem.text),
    }));
    super(
      all.map(({ text }) => text).join('\n'),
      options.cause === undefined ? undefined : { cause: options.cause },
    );
    this.code = options.code;
    this.problems = all;
  }

  get [brand](): true {
    return true;
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    // biome-ignore lint/complexity/noThisInStatic: it is the class on the right of `instanceof`, perhaps one of those that extend this.
    if (this !== KeelError) return Function.prototype[Symbol.hasInstance].call(this, value);
    return typeof value === 'object' && value !== null && brand in value;
  }
}

/** Something about what is logged or saved: an unknown name, a damaged file, a full disk. */
export class RunError extends KeelError {
  override name = 'RunError';
}

/** A config that cannot be used; `problems` has an entry for each thing that is wrong, the message a line. */
export class ConfigError extends KeelError {
  override name = 'ConfigError';

  constructor(problems: string | readonly Problem[], options: { readonly cause?: unknown } = {}) {
    super(problems, { ...options, code: 'config-invalid' });
  }
}

/** Training cannot go on; the message says why and what to change. */
export class TrainError extends KeelError {
  override name = 'TrainError';
}

/** Before the first step the program that scores does not agree with the one that sampled. */
export class MismatchError extends TrainError {
  override name = 'MismatchError';
}

/** Fails with a one-line {@link RunError}. An expression, so that it can stand where a value is missing. */
export function fail(message: string, code?: string): never {
  throw new RunError(message, { code });
}

/** A variable with which a program that starts Keel asks for errors as data: `{"problems": [sentence, …]}`, a line of stderr. */
export const errorsAsJson = 'KEEL_ERRORS_AS_JSON';

/** The code of an error, the system's or ours; empty if it has none. */
export function codeOf(error: unknown): string {
  return (error as { code?: string } | undefined)?.code ?? '';
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
