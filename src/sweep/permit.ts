/**
 * What code a job may run here. A job is data that came from somewhere: it may name what Keel has built in, and files and
 * programs that this machine's user has named (`keel worker --file ./my-env.ts --engine stockfish`). Files are matched by
 * the SHA-256 of their content, wherever the study has them; what such a file imports is its user's own, as in
 * src/runs/trust.ts.
 */
import { realpathSync } from 'node:fs';
import { codeFileOf, isEnvFile, isGymReference } from '../base/code-reference.ts';
import { show } from '../base/errors.ts';
import { findProgram } from '../base/programs.ts';
import { namedCode, sha256Of } from '../runs/named-code.ts';
import type { StudySubject } from '../studies/schema.ts';
import { ElsewhereError } from './elsewhere.ts';

/** What the user of this machine has named. */
export interface NamedHere {
  /** Paths of files that define environments or tasks. */
  readonly files?: readonly string[] | undefined;
  /** Programs that an option of a task may start, such as a chess engine. */
  readonly engines?: readonly string[] | undefined;
}

/** What the job learns in, as it is called here. */
export interface Permitted {
  readonly reference: string;
  /** The file, if it is one. */
  readonly file: string | undefined;
  /** Whether a program at this path may run. */
  readonly mayStart: (path: string) => boolean;
}

const refuse = (message: string): never => {
  throw new ElsewhereError(message, { code: 'refused' });
};

/** Says what a job's subject is here, or refuses it with a sentence. Nothing of it is loaded. */
export function permit(subject: StudySubject, { files = [], engines = [] }: NamedHere): Permitted {
  const { reference, sha256, options } = subject;
  const programs = engines.map(engine => {
    const found = findProgram(engine);
    return found === undefined ? engine : realpathSync(found);
  });
  const mayStart = (path: string): boolean => programs.includes(path);
  // The subject is looked at below; here options alone, by the same list that a run directory's are looked at with.
  for (const { field, value, path } of namedCode(
    { config: {}, environment: { id: reference, options } },
    { envFile: reference },
  )) {
    if (!mayStart(path))
      refuse(
        `the job starts a program, ${show(value)} (${field.replace('environment.', '')}), which was not named here: --engine ${value} allows it, if you know what it does`,
      );
  }
  if (isGymReference(reference) && !files.includes(reference))
    refuse(
      `the job runs ${show(reference)} in Python, which was not named here: --file ${reference} allows it, if you know what it does`,
    );
  if (!isEnvFile(reference)) {
    if (sha256 !== null) refuse(`the job names ${show(reference)}, which is no file, with the hash of one`);
    return { reference, file: undefined, mayStart };
  }
  const { file: named, id } = codeFileOf(reference);
  if (sha256 === null)
    return refuse(`the job names the file ${show(named)} without its hash: only files of known content run`);
  const file = files.map(path => codeFileOf(path).file).find(path => sha256Of(path) === sha256);
  if (file === undefined)
    return refuse(
      `the job runs a file, ${show(named)} with SHA-256 ${sha256.slice(0, 12)}…, which was not named here or has other content: --file ${named} allows it, if you know what it does`,
    );
  return { reference: id === undefined ? file : `${file}#${id}`, file, mayStart };
}
