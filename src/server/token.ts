/** The token that the page asks for: one a user, in a file that they alone can read, so that an open page survives a restart. */
import { randomBytes } from 'node:crypto';
import {
  closeSync,
  constants,
  fstatSync,
  linkSync,
  openSync,
  readSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { codeOf, RunError } from '../base/errors.ts';
import { attempt, temporaryBeside } from '../base/files.ts';
import { isAnothers, makeUserDirectory, shownInUserDirectory } from '../base/user-directory.ts';

export interface PageToken {
  readonly token: string;
  /** Where its owner finds it, as strangers may be told; absent if it is in no file. */
  readonly file?: string | undefined;
}

const fileName = 'token';
/** 192 bits; letters that an address needs not escape. */
const newToken = (): string => randomBytes(24).toString('base64url');
const pattern = /^[\w-]{20,200}$/;

/**
 * The user's own token, made at the first start of all. A file that others could read or have written counts for nothing:
 * it is replaced, which is said. Where no file can be, the token is this server's alone.
 */
export function userToken(onProblem: (sentence: string) => void = () => {}): PageToken {
  try {
    const path = join(makeUserDirectory(), fileName);
    // Of two servers that start at once, one makes it, and both read what that one made.
    for (let isNew = false; ; isNew = true) {
      const found = readToken(path);
      if ('token' in found) return { token: found.token, file: shownInUserDirectory(fileName) };
      // As where the file system knows no modes.
      if (isNew) throw new RunError(`${path} ${found.wrong ?? 'is gone'}, though it is new`);
      if (found.wrong !== undefined) {
        onProblem(`${path} ${found.wrong}: the page has a new token, so open pages need the new address`);
        attempt('delete', path, () => rmSync(path));
      }
      createPrivately(path, `${newToken()}\n`);
    }
  } catch (error) {
    onProblem(
      `the page's token cannot be kept: ${(error as Error).message}; it has one for this start alone`,
    );
    return { token: newToken() };
  }
}

/** What is in the file, or what is wrong with it; neither if there is none. */
function readToken(path: string): { readonly token: string } | { readonly wrong: string | undefined } {
  let fd: number;
  try {
    // A link could lead to what another user wrote, and to open a pipe would wait for ever. Windows knows neither.
    fd = openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return { wrong: undefined };
    if (codeOf(error) === 'ELOOP') return { wrong: 'is a link' };
    throw error;
  }
  try {
    const stat = fstatSync(fd);
    if (isAnothers(stat.uid)) return { wrong: `belongs to another user (${stat.uid})` };
    if (process.getuid !== undefined && (stat.mode & 0o077) !== 0)
      return { wrong: `could be read by others (mode ${(stat.mode & 0o777).toString(8)}, not 600)` };
    if (!stat.isFile()) return { wrong: 'is not a file' };
    const bytes = Buffer.alloc(256);
    const text = bytes.toString('utf8', 0, readSync(fd, bytes)).trim();
    return pattern.test(text) ? { token: text } : { wrong: 'holds no token' };
  } finally {
    closeSync(fd);
  }
}

/** The file appears with its content, for its owner alone; nothing happens if there is one by now. */
function createPrivately(path: string, text: string): void {
  const temporary = temporaryBeside(path);
  const how = { flag: 'wx', mode: 0o600 } as const;
  attempt('write', path, () => {
    try {
      writeFileSync(temporary, text, how);
      try {
        linkSync(temporary, path);
      } catch (error) {
        // No hard links here (FAT, some network drives).
        if (codeOf(error) !== 'EEXIST') writeFileSync(path, text, how);
      }
    } catch (error) {
      if (codeOf(error) !== 'EEXIST') throw error;
    } finally {
      rmSync(temporary, { force: true });
    }
  });
}
