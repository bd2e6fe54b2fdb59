/** Where programs are that the user has installed. */
import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join, resolve } from 'node:path';

/** Debian puts games where the path of services and of root does not look. */
const games = ['/usr/games', '/usr/local/games'];

/** Where programs that are started are looked for, as `PATH` has it. */
export const programPath = (): string => [process.env.PATH ?? '', ...games].join(delimiter);

/** The file that starting `command` would run; undefined if there is none. */
export function findProgram(command: string): string | undefined {
  const endings = process.platform === 'win32' ? ['', '.exe', '.com'] : [''];
  const places = /[/\\]/.test(command)
    ? [resolve(command)]
    : programPath()
        .split(delimiter)
        // The system takes an empty part for the directory that one is in.
        .map(directory => join(resolve(directory), command));
  return places.flatMap(place => endings.map(ending => place + ending)).find(isProgram);
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
