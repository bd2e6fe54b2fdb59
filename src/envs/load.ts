/**
 * Environments from a user's file: `keel train ./my-env.ts`.
 *
 * The file exports a definition as its default (`export default defineEnv({ … })`), or calls `registerEnv` for several.
 * JavaScript (`.js`, `.mjs`, `.cjs`) is imported as it is. TypeScript (`.ts`, `.mts`, `.cts`, `.tsx`) goes through tsx,
 * which removes the types without checking them (run `tsc --noEmit` for that), finds imports with and without their
 * extension, and reads `paths` of the nearest tsconfig.json; it is an ES module whatever package.json says, see
 * load-typescript.ts. Nothing is compiled to disk. What either imports from 'keel' is the Keel that runs, see
 * running-copy.ts.
 */
import { stat } from 'node:fs/promises';
import { extname } from 'node:path';
import { pathToFileURL } from 'node:url';
import {
  codeFileOf,
  isEnvFile,
  isPythonFile,
  javascriptEndings,
  modelEndings,
  typescriptEndings,
} from '../base/code-reference.ts';
import { documentPath } from '../base/documents.ts';
import { definitionProblem, type EnvDefinition, exportedIn } from './definition.ts';
import { EnvError, fail, show } from './errors.ts';
import { importNatively, importThroughTsx, isMistakenForCommonJs, loadProblem } from './load-typescript.ts';
import { pythonFileDefinition } from './python/definition.ts';
import { findEnv, type RegisteredEnv, registerEnv, registeringFrom } from './registry.ts';
import { SPACES_ID, spacesOnly } from './spaces-only.ts';

/**
 * The environment that a command line means, ready to be made: an id, an alias, a file, or `file#id` for one of a file's several.
 * `others` are names that may have been meant instead.
 */
export async function resolveEnv(reference: string, others?: readonly string[]): Promise<RegisteredEnv> {
  // Not in the registry before a run names it.
  if (reference === SPACES_ID) return registerEnv(spacesOnly);
  const env = isEnvFile(reference) ? await loadEnvFile(reference) : findEnv(reference, others);
  await env.definition.prepare?.();
  return env;
}

/** What a file gave. */
interface LoadedFile {
  /** Its default export's. */
  readonly main: RegisteredEnv | undefined;
  /** All that it registered, the default export included. */
  readonly all: readonly RegisteredEnv[];
}

const loaded = new Map<string, LoadedFile>();
/** One file at a time: what registers meanwhile belongs to it. */
let turn: Promise<unknown> = Promise.resolve();

/**
 * Loads a user's file and returns its environment, registered. Of a file with several, `./file.ts#Id-v0` is one; without
 * an id it is the default export. A file is loaded once a process.
 */
export async function loadEnvFile(reference: string): Promise<RegisteredEnv> {
  const { file, id } = codeFileOf(reference);
  if (isPythonFile(file)) return loadPythonFile(file, id);
  const next = turn.then(() => loadOnce(file));
  turn = next.catch(() => {});
  const { main, all } = await next;
  const ids = all.map(env => env.id).join(', ');
  if (id) {
    const found = all.find(env => env.id === id || env.name === id);
    return found ?? fail('file-invalid', `${file} defines no ${show(id)}: it has ${ids}`);
  }
  if (main) return main;
  if (all.length === 1) return all[0];
  return fail(
    'file-invalid',
    `${file} defines ${ids}: say which, as ${reference.replace(/#$/, '')}#${all[0].id}`,
  );
}

/** Of Python nothing is run here: what is in the file is found out when an environment is made. */
async function loadPythonFile(file: string, name: string | undefined): Promise<RegisteredEnv> {
  await requireFile(file);
  return registerEnv(pythonFileDefinition(file, name), file);
}

async function loadOnce(file: string): Promise<LoadedFile> {
  const known = loaded.get(file);
  if (known) return known;
  let main: RegisteredEnv | undefined;
  const all = await registeringFrom(file, async () => {
    const definition = await importDefault(file);
    if (definition === undefined) return;
    const problem = definitionProblem(definition);
    if (problem) fail('file-invalid', `${file}: the default export is no environment: ${problem}`);
    main = registerEnv(definition as EnvDefinition);
  });
  if (all.length === 0) {
    fail(
      'file-invalid',
      `${file} defines no environment: add export default defineEnv({ id, description, maxEpisodeSteps, make })`,
    );
  }
  const result: LoadedFile = { main, all };
  loaded.set(file, result);
  return result;
}

/** What a user's file exports as its default; undefined if it has none. Text tasks are loaded by it too. */
export async function importDefault(file: string): Promise<unknown> {
  const extension = extname(file).toLowerCase();
  if (modelEndings.includes(extension)) {
    const what =
      extension === '.urdf' ? 'a URDF model, which has to become MJCF first,' : 'a model of MuJoCo';
    fail(
      'file-invalid',
      `${file}: ${what} is no environment yet: write one around it with physicsEnv (${documentPath('docs/robots.md')})`,
    );
  }
  if (![...javascriptEndings, ...typescriptEndings].includes(extension)) {
    if ((await stat(file).catch(() => undefined))?.isDirectory())
      fail('file-invalid', `${file} is a directory: name the file in it`);
    const all = [...typescriptEndings, ...javascriptEndings].join(' ');
    fail('file-invalid', `${file}: files that end in ${show(extension)} cannot be loaded: use one of ${all}`);
  }
  await requireFile(file);
  try {
    return exportedIn((await importFile(file, extension)).default);
  } catch (error) {
    if (error instanceof EnvError) throw error;
    throw new EnvError('file-threw', `${file} failed to load: ${loadProblem(error)}`, { cause: error });
  }
}

async function requireFile(file: string): Promise<void> {
  const found = await stat(file).catch(() => undefined);
  if (!found?.isFile()) {
    fail(
      'file-not-found',
      `${file}: there is no such file: check the path, which begins at ${process.cwd()}`,
    );
  }
}

async function importFile(file: string, extension: string): Promise<{ readonly default?: unknown }> {
  const url = pathToFileURL(file).href;
  const native =
    javascriptEndings.includes(extension) && !(extension === '.js' && (await isMistakenForCommonJs(file)));
  return native ? importNatively(url) : importThroughTsx(url);
}
