/**
 * The package as users have it, in a temporary directory. What starts processes and threads is taken from there by Node
 * itself: from the sources each of them would load tsx first, and then every module through it.
 */
import { existsSync, mkdtempSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { inject } from 'vitest';
import { buildPackage, compileInto, root } from './build-package.ts';

export { root };

/** Made by the first test file that asks for it, for all of a run. */
async function makePackage(): Promise<string> {
  const built = join(inject('sharedScratch'), 'package');
  if (existsSync(built)) return built;
  const own = mkdtempSync(`${built}-`);
  await buildPackage(own);
  try {
    renameSync(own, built);
  } catch (error) {
    // Another file's tests made it meanwhile.
    if (!existsSync(built)) throw error;
  }
  return built;
}

export const packageDir: string = await makePackage();

/** Where a module of the package is, by its path in `src` without its ending: `runs/lock`. */
export const compiledUrl = (name: string): string =>
  pathToFileURL(join(packageDir, 'dist', `${name}.js`)).href;

/** A module of the package: `compiled<typeof import('…/x.ts')>('server/x')`. */
export function compiled<T>(name: string): Promise<T> {
  // Not through the test runner: see `external` in vitest.config.ts.
  return import(/* @vite-ignore */ compiledUrl(name)) as Promise<T>;
}

/** Compiles files from outside `src`, which then use the package, and gives the path of the last: a program for Node. */
export async function compiledProgram(...files: readonly string[]): Promise<string> {
  let target = '';
  for (const file of files) target = await compileInto(packageDir, file);
  return target;
}
