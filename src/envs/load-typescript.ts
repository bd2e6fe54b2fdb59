/**
 * A user's file through tsx, as an ES module wherever it can be one.
 *
 * tsx follows package.json: outside of a project with "type": "module" a `.ts` file becomes CommonJS, in which `await` at
 * the top level and `import.meta` do not work. Who writes `import` and `export` means an ES module, whatever the folder
 * says, so a hook below tsx's calls the file one; a file that uses CommonJS's own names (`require`, `module.exports`,
 * `__dirname`) stays what it is. `.mts` and `.cts` say it themselves.
 */
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import module from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { EnvError, messageOf } from './errors.ts';
import { keelModules, loadedByNode, preferRunningCopy, tsxIsSynchronous } from './running-copy.ts';

/** Loads a file and what it imports. tsx is imported only here, only when a file needs it. */
export async function importThroughTsx(url: string): Promise<{ readonly default?: unknown }> {
  let esm: typeof import('tsx/esm/api');
  let common: typeof import('tsx/cjs/api');
  try {
    [esm, common] = await Promise.all([import('tsx/esm/api'), import('tsx/cjs/api')]);
  } catch (error) {
    throw new EnvError(
      'file-invalid',
      `${url}: TypeScript is loaded by the package tsx, which is missing: npm install tsx, or compile the file to .js`,
      { cause: error },
    );
  }
  callFilesModules();
  if (!loadedByNode) preferRunningCopy(); // below, so that tsx reads our sources
  // What `tsImport` does, with room for hooks above.
  const namespace = randomUUID();
  common.register({ namespace });
  const scoped = esm.register({ namespace });
  if (loadedByNode) preferRunningCopy();
  return scoped.import(url, import.meta.url);
}

/** Loads a file that Node can read as it is. */
export async function importNatively(url: string): Promise<{ readonly default?: unknown }> {
  preferRunningCopy();
  return import(/* @vite-ignore */ url);
}

/** Why a file did not load, in one line; where the kind of module is to blame, with what to do about it. */
export function loadProblem(error: unknown): string {
  const [first, ...lines] = messageOf(error).split('\n');
  // esbuild says "Transform failed", then `file:line:column: ERROR: why`.
  const message = /^(Transform|Build) failed/.test(first) && lines[0] ? lines[0] : first;
  const plain = withoutNamespace(message.replace(': ERROR: ', ': ').trim());
  const missing = missingImport(plain);
  if (missing !== undefined) return missing;
  if (/top-level await|await is only valid/i.test(plain))
    return `${plain}: rename the file so that it ends in .mts (.mjs), which makes it an ES module`;
  if (/outside a module|unexpected token 'export'/i.test(plain))
    return `${plain}: rename the file so that it ends in .mjs, or add "type": "module" to package.json`;
  if (/not defined in ES module scope/.test(plain))
    return `${plain.replace(/, you can use import instead$/, '')}: use import and import.meta.url, or rename the file so that it ends in .cts (.cjs)`;
  return plain;
}

/** Without what tsx adds to the paths of the files that it loads. */
const withoutNamespace = (text: string): string => text.replaceAll(/(\?|%3F)(tsx-)?namespace=[\w-]+/gi, '');

/** What to do about an import of something that is not there. */
function missingImport(message: string): string | undefined {
  const [, what, by] =
    /^(?:Cannot find (?:package|module)|Package subpath) '([^']+)'(?:.* imported from (.*))?/.exec(message) ??
    [];
  if (what === undefined) return undefined;
  const importer = by === undefined ? '' : `, which ${by} imports`;
  const name = /^(?:@[^/]+\/)?[^./\\][^/\\:]*/.exec(what)?.[0];
  if (name === 'keel' || message.startsWith('Package subpath'))
    return `${message}: Keel has ${[...keelModules.keys()].join(', ')}`;
  if (name === undefined || /^[a-z]:$/i.test(name)) return `cannot find ${what}${importer}: check the path`;
  return `cannot find the package ${name}${importer}: npm install ${name}`;
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
