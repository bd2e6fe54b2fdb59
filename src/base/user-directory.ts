/** The directory for what is this user's alone: the page's token, the runs that they trust. */
import { chmodSync, mkdirSync, statSync } from 'node:fs';
import { homedir, platform } from 'node:os';
import { dirname, isAbsolute, join, resolve, sep } from 'node:path';
import { makeDirectories } from './directories.ts';
import { codeOf, RunError } from './errors.ts';
import { attempt } from './files.ts';

/** Where it is: `$KEEL_CONFIG_DIR`, `$XDG_CONFIG_HOME/keel` or `~/.config/keel`. It need not be there yet. */
export function userDirectory(env: NodeJS.ProcessEnv = process.env): string {
  if (env.KEEL_CONFIG_DIR) return resolve(env.KEEL_CONFIG_DIR);
  // A relative one is to be ignored: https://specifications.freedesktop.org/basedir-spec/latest.
  if (env.XDG_CONFIG_HOME && isAbsolute(env.XDG_CONFIG_HOME)) return join(env.XDG_CONFIG_HOME, 'keel');
  if (platform() === 'win32') return join(env.APPDATA ?? join(homedir(), 'AppData', 'Roaming'), 'keel');
  return join(homedir(), '.config', 'keel');
}

/** A file of it as strangers may be told: from the home directory, or from the variable that names another place. */
export function shownInUserDirectory(name: string, env: NodeJS.ProcessEnv = process.env): string {
  const path = join(userDirectory(env), name);
  const home = homedir() + sep;
  if (path.startsWith(home)) return `~${sep}${path.slice(home.length)}`;
  return env.KEEL_CONFIG_DIR ? join('$KEEL_CONFIG_DIR', name) : join('$XDG_CONFIG_HOME', 'keel', name);
}

/** The same, made if it is missing: of mode 0700, this user's, and nobody else can put files into it. */
export function makeUserDirectory(env: NodeJS.ProcessEnv = process.env): string {
  const path = userDirectory(env);
  makeDirectories(dirname(path));
  attempt('create', path, () => {
    try {
      mkdirSync(path, 0o700);
    } catch (error) {
      if (codeOf(error) !== 'EEXIST') throw error;
    }
    const { uid, mode } = statSync(path);
    if (isAnothers(uid)) {
      throw new RunError(
        `${path} belongs to another user (${uid}): set KEEL_CONFIG_DIR to a directory of your own`,
        { code: 'not-yours' },
      );
    }
    if (process.getuid !== undefined && (mode & 0o022) !== 0) chmodSync(path, mode & 0o755);
  });
  return path;
}

/** Whether a file of this owner is not the user's own. Where the system has no such owners, none is. */
export const isAnothers = (uid: number): boolean => process.getuid !== undefined && uid !== process.getuid();
