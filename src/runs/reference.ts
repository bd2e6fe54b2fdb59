/** How a run is named on a command line that is typed here. */
import { basename, relative, resolve, sep } from 'node:path';
import { defaultRoot } from './layout.ts';

/** Its id where commands look for it by themselves, else its path, which no command takes for an id or an option. */
export function referenceTo(dir: string): string {
  const id = basename(dir);
  if (resolve(defaultRoot, id) === resolve(dir)) return id;
  return nearPath(dir);
}

/** A path from here where it is below, else the whole one. */
export function nearPath(path: string): string {
  const near = relative(process.cwd(), path);
  if (near === '') return '.';
  if (near === '..' || near.startsWith(`..${sep}`)) return resolve(path);
  return near.includes(sep) && !near.startsWith('-') ? near : `.${sep}${near}`;
}
