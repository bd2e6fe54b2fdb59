/**
 * A user's file through tsx, as an ES module wherever it can be one.
 *
 * tsx follows package.json: outside of a project with "type": "module" a `.ts` file becomes CommonJS, in which `await` at
 * the top level and `import.meta` do not work. Who writes `import` and `export` means an ES module, whatever the folder
 * says, so a hook below tsx's calls the file one; a file that uses CommonJS's own names (`require`, `module.exports`,
 * `__dirname`) stays what it is. `.mts` and `.cts` say it themselves.
 */
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import module from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { EnvError, messageOf } from './errors.ts';

/** Loads a file and what it imports. tsx is imported only here, only when a file needs it. */
export async function importThroughTsx(url: string): Promise<{ readonly default?: unknown }> {
  let tsx: typeof import('tsx/esm/api');
  try {
    tsx = await import('tsx/esm/api');
  } catch (error) {
    throw new EnvError(
      'file-invalid',
      `${url}: TypeScript is loaded by the package tsx, which is missing: npm install tsx, or compile the file to .js`,
      { cause: error },
    );
  }
  callFilesModules();
  return tsx.tsImport(url, import.meta.url);
}

/** Why a file did not load, in one line; where the kind of module is to blame, with what to do about it. */
export function loadProblem(error: unknown): string {
  const [first, ...lines] = messageOf(error).split('\n');
  // esbuild says "Transform failed", then `file:line:column: ERROR: why`.
  const message = /^(Transform|Build) failed/.test(first!) && lines[0] ? lines[0] : first!;
  const plain = message.replace(': ERROR: ', ': ').trim();
  if (/top-level await|await is only valid/i.test(plain))
    return `${plain}: rename the file so that it ends in .mts (.mjs), which makes it an ES module`;
  if (/outside a module|unexpected token 'export'/i.test(plain))
    return `${plain}: rename the file so that it ends in .mjs, or add "type": "module" to package.json`;
  if (/not defined in ES module scope/.test(plain))
    return `${plain.replace(/, you can use import instead$/, '')}: use import and import.meta.url, or rename the file so that it ends in .cts (.cjs)`;
  return plain;
}

/**
 * Whether Node would take a `.js` file for CommonJS although it is written with `import` and `export`: in a project of
 * "type": "commonjs". Anywhere else Node looks itself.
 */
export async function isMistakenForCommonJs(file: string): Promise<boolean> {
  if (!/^[ \t]*(import|export)\b(?!\s*\()/m.test(await readFile(file, 'utf8'))) return false;
  for (let at = dirname(file); ; at = dirname(at)) {
    const text = await readFile(join(at, 'package.json'), 'utf8').catch(() => undefined);
    if (text !== undefined) return /"type"\s*:\s*"commonjs"/.test(text);
    if (dirname(at) === at) return false;
  }
}

/**
 * Whether tsx's namespace holds a file, of the user and not of a package, that is to be a module. Written out in the hook
 * below, too: it may use nothing from outside.
 */
function isModule(url: string, source: string): boolean {
  const code = source.replace(/\/\*[\s\S]*?\*\/|(^|[^:])\/\/.*/g, '$1');
  if (/\bimport\.meta\b/.test(code)) return true;
  if (/\brequire\s*\(|\bmodule\.exports\b|\bexports\.\w|\b__(dir|file)name\b|^\s*export\s*=/m.test(code))
    return false;
  return !/\.js\?/.test(url) || /^\s*(import|export)\b(?!\s*\()/m.test(code);
}

/** A user's `.ts`, `.tsx` or `.js` that {@link importThroughTsx} asked for, directly or by an import. */
const own = /^file:(?!.*\/node_modules\/)[^?#]*\.(tsx?|js)\?(.*&)?tsx-namespace=/;

let registered = false;

function callFilesModules(): void {
  if (registered) return;
  registered = true;
  const { registerHooks } = module as { registerHooks?: (hooks: { load: SyncLoad }) => unknown };
  if (registerHooks !== undefined && tsxIsSynchronous()) {
    registerHooks({
      load(url, context, next) {
        if (context.format === 'module' || !own.test(url)) return next(url, context);
        if (!isModule(url, readFileSync(fileURLToPath(url.replace(/\?.*/s, '')), 'utf8')))
          return next(url, context);
        return { ...next(url, { ...context, format: 'module' }), format: 'module-typescript' };
      },
    });
    return;
  }
  // Its own source, because it runs in a thread of its own, which may not know how to load this file.
  const hook = `
import { readFile } from 'node:fs/promises';
const own = ${own};
const isModule = ${isModule};
export async function load(url, context, next) {
  if (context.format === 'module' || !own.test(url)) return next(url, context);
  if (!isModule(url, await readFile(new URL(url.replace(/\\?.*/s, '')), 'utf8'))) return next(url, context);
  return { ...(await next(url, { ...context, format: 'module' })), format: 'module-typescript' };
}`;
  module.register(`data:text/javascript,${encodeURIComponent(hook)}`);
}

interface LoadContext {
  readonly format?: string | null | undefined;
}
type Loaded = { readonly format?: string | null | undefined };
type SyncLoad = (
  url: string,
  context: LoadContext,
  next: (url: string, context: LoadContext) => Loaded,
) => Loaded;

/** Which of Node's two kinds of hooks tsx uses, so that ours is of the same kind: from these versions on the newer. */
function tsxIsSynchronous(): boolean {
  const [major = 0, minor = 0, patch = 0] = process.versions.node.split('.').map(Number);
  const since: Record<number, readonly [number, number]> = { 22: [22, 3], 24: [11, 1], 25: [1, 0] };
  const [leastMinor, leastPatch] = since[major] ?? [major > 25 ? 0 : Number.POSITIVE_INFINITY, 0];
  return minor > leastMinor || (minor === leastMinor && patch >= leastPatch);
}
