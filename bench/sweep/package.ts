/** The package as users have it, for parts that start processes: from the sources each of them would load tsx first. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { buildPackage } from '../../test/support/build-package.ts';

export interface BuiltPackage {
  /** Its directory. */
  readonly built: string;
  /** A directory for all that is written. */
  readonly work: string;
  /** The address of a module, by its path in `src` without its ending. */
  url(name: string): string;
  load<T>(name: string): Promise<T>;
}

/** With the package and a directory that are gone afterwards. */
export async function withPackage<T>(act: (it: BuiltPackage) => Promise<T>): Promise<T> {
  const work = mkdtempSync(join(tmpdir(), 'keel-bench-sweep-'));
  try {
    const built = join(work, 'package');
    mkdirSync(built);
    await buildPackage(built);
    const url = (name: string): string => pathToFileURL(join(built, 'dist', `${name}.js`)).href;
    return await act({ built, work, url, load: async name => await import(url(name)) });
  } finally {
    rmSync(work, { recursive: true, force: true, maxRetries: 5 });
  }
}
