/** Where Keel's documents are on this machine: they come with the package. */
import { isAbsolute, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Both `src/base` and `dist/base` are two below the package. */
const root = new URL('../../', import.meta.url);

/** The path of a document (`docs/ppo.md`), from here where that is shorter, for who reads of it in a message. */
export function documentPath(name: string): string {
  const path = fileURLToPath(new URL(name, root));
  const near = relative(process.cwd(), path);
  return near.startsWith('..') || isAbsolute(near) ? path : near;
}
