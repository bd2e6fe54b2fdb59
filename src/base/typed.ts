/**
 * Commands as they can be typed from here. Who reads one copies it: it must name this very program, wherever it was
 * installed, and its words must come through a shell as they are.
 */
import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { delimiter, dirname, isAbsolute, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { jsonOf } from './json.ts';

/** What `keel` starts; both `src/base` and `dist/base` are two below the package. */
const entry = fileURLToPath(new URL('../../bin/keel.js', import.meta.url));
const isWindows = process.platform === 'win32';

/** A word for a POSIX shell, in quotes where it would be another one without. */
export const shellWord = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;

/** A command of this program, such as `npx keel eval last`; each word is one argument. */
export const typed = (...words: readonly string[]): string =>
  [programName(), ...words.map(shellWord)].join(' ');

/**
 * What to type for `keel` in this directory: that alone where it is on the path, `npx keel` where it is installed here
 * or in a directory above, and else, as in a checkout, what Node is to start.
 */
export function programName(): string {
  if (onPath()) return 'keel';
  if (isInstalledHere() || isFromRegistry()) return 'npx keel';
  const near = relative(process.cwd(), entry);
  return `node ${shellWord(near.startsWith('..') || isAbsolute(near) ? entry : near)}`;
}

/** npm adds the binaries of a project to the path of what it starts, and to no other: those do not count. */
function onPath(): boolean {
  const first = (process.env.PATH ?? '')
    .split(delimiter)
    .filter(dir => isAbsolute(dir) && !dir.endsWith(join('node_modules', '.bin')))
    .find(dir => existsSync(join(dir, isWindows ? 'keel.cmd' : 'keel')));
  return first !== undefined && isEntry(join(first, isWindows ? 'node_modules/keel/bin/keel.js' : 'keel'));
}

/** npx takes the nearest one, from here upwards. */
function isInstalledHere(): boolean {
  for (let dir = process.cwd(); ; dir = dirname(dir)) {
    const modules = join(dir, 'node_modules');
    if (existsSync(join(modules, '.bin', isWindows ? 'keel.cmd' : 'keel')))
      return isEntry(join(modules, 'keel/bin/keel.js'));
    if (dirname(dir) === dir) return false;
  }
}

/** Whether npx has fetched it by its name: then it does so again, or takes what it keeps. */
function isFromRegistry(): boolean {
  const [, kept] = /^(.*[\\/]_npx[\\/][^\\/]+)[\\/]node_modules[\\/]keel[\\/]/.exec(entry) ?? [];
  if (kept === undefined) return false;
  try {
    const { dependencies } = jsonOf(readFileSync(join(kept, 'package.json'), 'utf8')) as {
      dependencies: { keel: string };
    };
    return /^[\w.^~*-]+$/.test(dependencies.keel); // a range of versions, not a path or an address
  } catch {
    return false;
  }
}

function isEntry(path: string): boolean {
  try {
    return realpathSync(path) === realpathSync(entry);
  } catch {
    return false;
  }
}
