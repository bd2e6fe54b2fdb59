/** Errors of training that are the user's to mend. */
import { KeelError, type Problem } from '../base/errors.ts';

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
