import { KeelError } from '../../base/errors.ts';

/**
 * A path that cannot be read as a log. The message is one sentence: the path, what was looked for, what was found, and
 * what to do if there is something to do. Nothing else is thrown by a reader, whatever is in the file.
 */
export class ReadError extends KeelError {
  override name = 'ReadError';
  readonly path: string;
  /** The message without the path. */
  readonly why: string;
  /** What was found is of another kind: a table of the weather, not a log of training. */
  readonly isNoLog: boolean;

  constructor(
    path: string,
    why: string,
    options: { readonly cause?: unknown; readonly isNoLog?: boolean } = {},
  ) {
    super(oneLine(`${path}: ${why}`), options);
    this.path = path;
    this.why = oneLine(why);
    this.isNoLog = options.isNoLog ?? false;
  }
}

const oneLine = (text: string): string => text.replace(/\s+/g, ' ');

/** What a system's error means for someone who wants a log read. */
const meanings: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file or directory: check the path',
  ENOTDIR: 'part of the path is a file, not a directory: check the path',
  EACCES: 'permission denied: change its owner or mode, or copy it',
  EPERM: 'the system does not permit reading it: change its owner or mode, or copy it',
  EMFILE: 'too many files are open: close some or raise the limit (ulimit -n)',
  ENFILE: 'too many files are open on this machine: close some',
  EISDIR: 'it became a directory while it was read: try again',
  ELOOP: 'its symbolic links lead in a circle: give the real path',
  ENAMETOOLONG: 'the path is too long for this system: check it',
  EIO: 'the disk reports an error: check it',
  ESTALE: 'the network drive lost it: mount it again',
};

/** Any error of a file operation as a {@link ReadError}. */
export function asReadError(error: unknown, path: string): ReadError {
  if (error instanceof ReadError) return error;
  const code = (error as NodeJS.ErrnoException | undefined)?.code;
  const meaning = code === undefined ? undefined : meanings[code];
  const why = meaning ?? `cannot be read: ${String((error as Error | undefined)?.message ?? error)}`;
  return new ReadError(path, why.slice(0, 300), { cause: error });
}
