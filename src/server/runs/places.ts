/** The roots that are watched, and what may be read under them. */
import { createHash } from 'node:crypto';
import { existsSync, realpathSync } from 'node:fs';
import { isAbsolute, relative, resolve, sep } from 'node:path';

/** One directory (or file) that is watched. */
export interface Root {
  /** As the user named it. */
  readonly shown: string;
  readonly path: string;
}

export const rootOf = (shown: string): Root => ({ shown, path: resolve(shown) });

/** What a run is called in requests: made from its path, so that links hold; nothing can be made from it. */
export function idOf(path: string): string {
  return createHash('sha256').update(resolve(path)).digest('base64url').slice(0, 16);
}

/** The address of one run, or of one of its tabs, on the page whose address is given. */
export const runAddress = (url: string, id: string, tab?: string): string =>
  `${url}#/runs/${encodeURIComponent(id)}${tab === undefined ? '' : `/${tab}`}`;

/** Where a path really leads; undefined if nowhere. */
function realOf(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}

function isWithin(path: string, directory: string): boolean {
  const way = relative(directory, path);
  return way === '' || (way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way));
}

/** Whether a path, all links followed, is still in one of the roots. What does not exist is not. */
export function isInside(path: string, roots: readonly Root[]): boolean {
  const real = realOf(path);
  if (real === undefined) return false;
  return roots.some(root => {
    const place = realOf(root.path);
    return place !== undefined && isWithin(real, place);
  });
}

/** Whether a run's directory and all that is read of it stay in the roots. */
export function staysInside(paths: readonly string[], roots: readonly Root[]): boolean {
  return paths.every(path => !existsSync(path) || isInside(path, roots));
}

/** How a run is named under its root: the way to it, or the root's own name. */
export function nameUnder(path: string, root: Root): string {
  const way = relative(root.path, path);
  return way === '' ? (root.path.split(sep).at(-1) ?? path) : way.split(sep).join('/');
}
