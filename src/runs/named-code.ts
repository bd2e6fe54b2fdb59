/**
 * The code that a manifest names: the file that defines its environment or task, and programs that options of it start.
 * This is found out from the manifest alone, before anything of it is loaded.
 */
import { createHash } from 'node:crypto';
import { closeSync, constants, fstatSync, openSync, readSync, realpathSync } from 'node:fs';
import { codeFileOf, isEnvFile, isGymReference } from '../base/code-reference.ts';
import { attempt } from '../base/files.ts';
import { findProgram } from '../base/programs.ts';
import type { Manifest } from './schema.ts';

/** A file or a program that would run because a manifest names it. */
export interface NamedCode {
  /** Where the manifest names it: `config.env`, `environment.options.engine`. */
  readonly field: string;
  /** As the manifest has it. */
  readonly value: string;
  /** The whole path, links followed; where nothing is, that at which it would be. */
  readonly path: string;
  /** Of its content; undefined if there is no such file that can be read. */
  readonly sha256: string | undefined;
}

/** What the user has named instead: that of the manifest is then not used. */
export interface NamedByUser {
  /** The file that defines the environment or the task. */
  readonly envFile?: string | undefined;
  readonly options?: object | undefined;
}

/**
 * Options that name a program which is started, whatever environment or task has them: chess has `engine`, an environment in
 * Python the `python` that runs it.
 */
const programOptions = ['engine', 'program', 'command', 'python'] as const;

/** As much of a manifest as names code. */
export interface Named extends Pick<Manifest, 'config'> {
  readonly environment: Pick<Manifest['environment'], 'id' | 'options'>;
}

/** What a run learns in, as its manifest names it, and where. */
export function subjectReference({ config, environment }: Named): { field: string; value: string } {
  for (const name of ['env', 'task'])
    if (Object.hasOwn(config, name) && typeof config[name] === 'string')
      return { field: `config.${name}`, value: config[name] };
  return { field: 'environment.id', value: environment.id };
}

/** All code that opening the run would run because its manifest says so. */
export function namedCode(manifest: Named, { envFile, options = {} }: NamedByUser = {}): NamedCode[] {
  const code: NamedCode[] = [];
  const { field, value } = subjectReference(manifest);
  if (envFile === undefined && isEnvFile(value)) code.push(codeAt(field, value, codeFileOf(value).file));
  const saved = manifest.environment.options;
  if (envFile === undefined && isGymReference(value)) code.push(gymCode(field, value, saved.args));
  for (const name of programOptions) {
    const program = Object.hasOwn(saved, name) ? saved[name] : undefined;
    if (typeof program === 'string' && program !== '' && !Object.hasOwn(options, name))
      code.push(codeAt(`environment.options.${name}`, program, findProgram(program)));
  }
  return code;
}

/** Gymnasium imports what an id names (`gym:module:Env-v0`) and gives it the arguments: no file, but code that is named. */
function gymCode(field: string, value: string, args: unknown): NamedCode {
  const sha256 = createHash('sha256')
    .update(JSON.stringify([value, args ?? null]))
    .digest('hex');
  return { field, value, path: value, sha256 };
}

function codeAt(field: string, value: string, path: string | undefined): NamedCode {
  const sha256 = path === undefined ? undefined : sha256Of(path);
  if (path === undefined || sha256 === undefined) return { field, value, path: path ?? value, sha256 };
  return { field, value, path: realpathSync(path), sha256 };
}

/** Of chess engines a hundred megabytes are known; a file that takes minutes to read is none. */
const mostBytes = 2 ** 30;

/** Of a file's content; undefined if there is no such file that can be read. */
export function sha256Of(path: string): string | undefined {
  let fd: number;
  try {
    // A named pipe would be waited for.
    fd = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  } catch {
    return undefined;
  }
  try {
    const stat = fstatSync(fd);
    if (!stat.isFile() || stat.size > mostBytes) return undefined;
    return attempt('read', path, () => {
      const hash = createHash('sha256');
      const piece = Buffer.alloc(2 ** 20);
      // No further than its size: the system has files that never end.
      for (let done = 0; done < stat.size; ) {
        const count = readSync(fd, piece, 0, Math.min(piece.length, stat.size - done), done);
        if (count === 0) break;
        hash.update(piece.subarray(0, count));
        done += count;
      }
      return hash.digest('hex');
    });
  } finally {
    closeSync(fd);
  }
}
