import { KeelError } from '../base/errors.ts';

/** Stable names of what can go wrong with an environment; `keel check-env` and tests refer to them. */
export type EnvErrorCode =
  | 'action-outside'
  | 'action-size'
  | 'definition-invalid'
  | 'env-closed'
  | 'env-duplicate'
  | 'env-threw'
  | 'env-unknown'
  | 'episode-over'
  | 'file-invalid'
  | 'file-not-found'
  | 'file-threw'
  | 'flags-invalid'
  | 'not-reset'
  | 'observation-not-finite'
  | 'observation-size'
  | 'option-invalid'
  | 'option-unknown'
  | 'python-failed'
  | 'python-missing'
  | 'reward-not-finite'
  | 'seed-invalid'
  | 'space-invalid'
  | 'state-invalid'
  | 'vector-invalid'
  | 'worker-died';

/** Which of a vector's environments failed, and how to get there again: reset it with the seed and take the steps. */
export interface EnvErrorPlace {
  /** Index in the vector. */
  readonly index: number;
  /** The environment's own seed, not the vector's. */
  readonly seed: number;
  /** Steps since that seed, this one included: 1 is the first; 0 is the reset. */
  readonly step: number;
}

/** An environment, or what was asked of one, is at fault; the message says the value, the limit and the remedy. */
export class EnvError extends KeelError {
  override name = 'EnvError';
  declare readonly code: EnvErrorCode;
  /** Set by vector environments. */
  readonly place: EnvErrorPlace | undefined;

  constructor(code: EnvErrorCode, message: string, details: { cause?: unknown; place?: EnvErrorPlace } = {}) {
    super(message, { code, cause: details.cause });
    this.place = details.place;
  }
}

/** Fails with an {@link EnvError}. An expression, so that it can stand where a value is missing. */
export function fail(code: EnvErrorCode, message: string): never {
  throw new EnvError(code, message);
}

/** The code of an error, also of one that another copy of this module made (see registry.ts). */
export function errorCode(error: unknown): EnvErrorCode | undefined {
  const code = (error as { code?: unknown } | null)?.code;
  return (error as { name?: unknown } | null)?.name === 'EnvError' && typeof code === 'string'
    ? (code as EnvErrorCode)
    : undefined;
}

/** The first line of what was thrown, whatever it was. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message || error.name : String(error);
}

/** A value for an error message: one line, short, and NaN and -0 as they are (JSON would print null and 0). */
export function show(value: unknown): string {
  if (typeof value === 'number') return Object.is(value, -0) ? '-0' : String(value);
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'function') return `the function ${value.name || '(anonymous)'}`;
  let text: string;
  try {
    text = JSON.stringify(value) ?? String(value);
  } catch {
    text = String(value);
  }
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}
