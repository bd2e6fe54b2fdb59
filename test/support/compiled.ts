/**
 * The package as users have it: sources without their types, in a temporary directory. What starts processes and threads
 * is taken from there by Node itself: from the sources each of them would load tsx first, and then every module through it.
 */
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { inject } from 'vitest';

export const root: string = fileURLToPath(new URL('../../', import.meta.url));

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

/** TypeScript as what tsconfig.build.json asks of tsc, which would take ten seconds. */
async function compileFile(source: string, target: string, change = (code: string) => code): Promise<void> {
  const { transformWithOxc } = await import('vite');
  const { code } = await transformWithOxc(readFileSync(source, 'utf8'), source, {
    target: 'es2023',
    sourcemap: false,
    typescript: { onlyRemoveTypeImports: true, rewriteImportExtensions: true },
  });
  mkdirSync(dirname(target), { recursive: true });
  writeFileSync(target, change(code));
}

async function buildPackage(built: string): Promise<void> {
  for (const name of readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })) {
    if (name.endsWith('.ts'))
      await compileFile(join(root, 'src', name), join(built, 'dist', name.replace(/\.ts$/, '.js')));
  }
  cpSync(join(root, 'configs'), join(built, 'configs'), { recursive: true });
  cpSync(join(root, 'package.json'), join(built, 'package.json'));
  symlinkSync(join(root, 'node_modules'), join(built, 'node_modules'));
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
  for (const file of files) {
    target = join(packageDir, file.replace(/\.ts$/, '.js'));
    await compileFile(join(root, file), target, code => code.replaceAll('../src/', '../dist/'));
  }
  return target;
}
