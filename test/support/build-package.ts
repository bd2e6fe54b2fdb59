/** Makes the package as users have it, without the page: sources without their types. For tests and benchmarks. */
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root: string = fileURLToPath(new URL('../../', import.meta.url));

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

/** Into a directory that is there. */
export async function buildPackage(built: string): Promise<void> {
  for (const name of readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })) {
    if (name.endsWith('.ts'))
      await compileFile(join(root, 'src', name), join(built, 'dist', name.replace(/\.ts$/, '.js')));
  }
  for (const name of ['configs', 'bin', 'python'])
    cpSync(join(root, name), join(built, name), { recursive: true });
  cpSync(join(root, 'package.json'), join(built, 'package.json'));
  symlinkSync(join(root, 'node_modules'), join(built, 'node_modules'));
}

/** Compiles a file from outside `src`, which then uses the package, and gives its path. */
export async function compileInto(packageDir: string, file: string): Promise<string> {
  const target = join(packageDir, file.replace(/\.(m?)ts$/, '.$1js'));
  await compileFile(join(root, file), target, code => code.replaceAll('../src/', '../dist/'));
  return target;
}
