/**
 * References that name a file of code: `./my-env.ts`, `file:///home/me/my-env.ts`, `./envs.ts#Walk-v0`. Whoever loads such
 * a file and whoever asks first whether it may be loaded read them here, so that both mean the same file.
 */
import { extname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { KeelError, show } from './errors.ts';

/** What Node imports as it is. */
export const javascriptEndings: readonly string[] = ['.js', '.mjs', '.cjs'];
/** What goes through tsx. */
export const typescriptEndings: readonly string[] = ['.ts', '.mts', '.cts', '.tsx'];

/** Whether the reference means a file and not an id. */
export function isEnvFile(reference: string): boolean {
  const path = reference.replace(/#[^#/\\]*$/, '');
  return (
    /[/\\]/.test(path) || [...javascriptEndings, ...typescriptEndings].includes(extname(path).toLowerCase())
  );
}

/** The absolute path of the file that is meant, and which of its several definitions. */
export function codeFileOf(reference: string): { readonly file: string; readonly id: string | undefined } {
  const [, path = reference, id] = /^(.*?)(?:#([^#/\\]*))?$/s.exec(reference) ?? [];
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
