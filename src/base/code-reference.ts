/**
 * References that name a file of code: `./my-env.ts`, `file:///home/me/my-env.ts`, `./envs.ts#Walk-v0`, and of Python
 * `./my_env.py:MyEnv`, for which `./my_env.py#MyEnv` may stand. Whoever loads such a file and whoever asks first whether it
 * may be loaded read them here, so that both mean the same file. `gym:Hopper-v5` names an environment that the Python
 * package Gymnasium knows: no file, and yet code that is not Keel's.
 */
import { extname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { KeelError, show } from './errors.ts';

/** What Node imports as it is. */
export const javascriptEndings: readonly string[] = ['.js', '.mjs', '.cjs'];
/** What goes through tsx. */
export const typescriptEndings: readonly string[] = ['.ts', '.mts', '.cts', '.tsx'];
/** Models of robots: not code, but files all the same, of which it can be said what they need. */
export const modelEndings: readonly string[] = ['.xml', '.mjcf', '.urdf'];

/** What an environment of the Python package Gymnasium is named with. */
const gymScheme = 'gym:';
const pythonName = /^(.*\.py)(?::([A-Za-z_]\w*))?$/is;

/** Whether the reference means an environment that Gymnasium, in Python, makes by its id. */
export const isGymReference = (reference: string): boolean => reference.startsWith(gymScheme);
/** The id that Gymnasium knows: `Hopper-v5`, `ALE/Pong-v5`. */
export const gymIdOf = (reference: string): string => reference.slice(gymScheme.length);
/** Whether the id is that of an environment which a Python process has. */
export const isPythonId = (id: string): boolean => /^(gym|py):/.test(id);
/** Whether a file, named without what is in it, is Python's. */
export const isPythonFile = (file: string): boolean => /\.py$/i.test(file);

/** Whether the reference means a file and not an id. */
export function isEnvFile(reference: string): boolean {
  if (isGymReference(reference)) return false;
  const path = reference.replace(/#[^#/\\]*$/, '');
  if (pythonName.test(path)) return true;
  const endings = [...javascriptEndings, ...typescriptEndings, ...modelEndings];
  return /[/\\]/.test(path) || endings.includes(extname(path).toLowerCase());
}

/** The absolute path of the file that is meant, and which of its several definitions. */
export function codeFileOf(reference: string): { readonly file: string; readonly id: string | undefined } {
  const [, whole = reference, named] = /^(.*?)(?:#([^#/\\]*))?$/s.exec(reference) ?? [];
  const [, path = whole, id = named] = pythonName.exec(whole) ?? [];
  if (!path.startsWith('file:')) return { file: resolve(path), id };
  try {
    return { file: fileURLToPath(path), id };
  } catch (cause) {
    throw new KeelError(`${show(reference)} is no address of a file here: write its path`, {
      code: 'file-invalid',
      cause,
    });
  }
}
