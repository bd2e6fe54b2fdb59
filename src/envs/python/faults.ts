/** What goes wrong in Python: an environment's code threw, or its process has gone. */
import { EnvError, messageOf } from '../errors.ts';

/** The process has gone, or does not speak as it should: it can be started again. */
export class ChildGone extends Error {
  override name = 'ChildGone';
}

/** What an environment's own code threw, as Python tells it. */
export interface Told {
  readonly kind: 'missing' | 'threw';
  readonly package: string | null;
  readonly message: string;
  readonly place: string | null;
  readonly traceback: string;
}

/** What an environment threw. */
export class ToldError extends Error {
  override name = 'ToldError';
  readonly told: Told;

  constructor(told: Told) {
    super(told.message);
    this.told = told;
  }
}

/** What it threw, as an error of ours: the traceback is its stack. */
export function errorOf(told: Told, what: string, python: string): EnvError {
  const cause = new Error(told.message);
  cause.stack = told.traceback;
  if (told.kind === 'missing')
    return new EnvError(
      'python-missing',
      told.package
        ? `${what} needs the Python package ${told.package}, which ${python} does not have: ${python} -m pip install ${told.package}${told.package === 'gymnasium' ? ', or name another Python with --python' : ''}`
        : `${what}: ${messageOf(cause).split('\n')[0]} (with ${python})`,
      { cause },
    );
  const place = told.place ? ` (${told.place})` : '';
  return new EnvError('env-threw', `${told.message.split('\n')[0]}${place}`, { cause });
}
