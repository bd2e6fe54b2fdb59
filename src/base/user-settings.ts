/** The directory of what this user has decided for all their runs, which nobody else may write. */
import { mkdirSync } from 'node:fs';
import { homedir, platform } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { makeDirectories } from './directories.ts';
import { codeOf } from './errors.ts';
import { attempt } from './files.ts';

/** Where it is: `KEEL_CONFIG_DIR`, else `keel` in `XDG_CONFIG_HOME`, in `~/.config`, or in Windows' own place. */
export function userSettingsDirectory(env: NodeJS.ProcessEnv = process.env): string {
  if (env.KEEL_CONFIG_DIR) return resolve(env.KEEL_CONFIG_DIR);
  const usual = platform() === 'win32' && env.APPDATA ? env.APPDATA : join(homedir(), '.config');
  return join(resolve(env.XDG_CONFIG_HOME || usual), 'keel');
}

/** Makes a directory that its user alone can enter. Those above it that are missing are made as usual. */
export function makePrivateDirectory(path: string): void {
  makeDirectories(dirname(path));
  attempt('create', path, () => {
    try {
      mkdirSync(path, { mode: 0o700 });
    } catch (error) {
      if (codeOf(error) !== 'EEXIST') throw error;
    }
  });
}
