/**
 * Whose code runs. A run directory is data, and may come from anybody: code that its manifest names runs only if the user
 * named it, or has trusted this run. What was trusted is remembered among the user's own settings, in a file for each run,
 * so that trainings which begin at the same time do not overwrite each other: the run's real path, the fields that name
 * code, and the code's real path and hash. What differs in any of these is asked for again.
 *
 * The hash is of the file that is named, not of what that imports: who can change those can change the user's programs.
 */
import { createHash } from 'node:crypto';
import { existsSync, lstatSync, mkdirSync, realpathSync, rmSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import * as z from 'zod/mini';
import { readNames } from '../base/directories.ts';
import { KeelError, RunError } from '../base/errors.ts';
import { attempt, readBounded, writeFileAtomic } from '../base/files.ts';
import { parseJson } from '../base/json.ts';
import { typed } from '../base/typed.ts';
import { isAnothers, makeUserDirectory, userDirectory } from '../base/user-directory.ts';
import { type Named, type NamedByUser, type NamedCode, namedCode } from './named-code.ts';

/** Beyond this the oldest are forgotten, those whose run is gone first. */
const mostEntries = 4000;
/** A few paths and hashes. */
const mostBytes = 2 ** 18;

const entrySchema = z.object({
  run: z.string(),
  code: z.array(z.object({ field: z.string(), value: z.string(), path: z.string(), sha256: z.string() })),
});
type Trusted = z.infer<typeof entrySchema>['code'];

/** A run, as far as it names code. */
export interface Naming {
  readonly dir: string;
  readonly manifest: Named;
}

/** Code that a run names and that its user has not trusted. */
export interface UntrustedCode {
  /** The run's directory. */
  readonly dir: string;
  /** `changed`: the same was trusted before, with another content. */
  readonly code: readonly (NamedCode & { readonly changed: boolean })[];
  /** The file that should say what was trusted, where it cannot be read. */
  readonly damaged: string | undefined;
}

/** What of a run's code the user has neither named nor trusted; undefined if nothing stands in the way. */
export function untrustedCode({ dir, manifest }: Naming, named?: NamedByUser): UntrustedCode | undefined {
  const all = namedCode(manifest, named);
  if (all.length === 0) return undefined;
  const missing = all.find(({ sha256 }) => sha256 === undefined);
  if (missing !== undefined)
    throw new RunError(
      `${missing.path} is no file here that can be run, and ${dir} names it (${missing.field}): ${insteadOf(missing)}`,
      { code: 'file-not-found' },
    );
  const { trusted, damaged } = readEntry(dir);
  const code = all.flatMap(one => {
    // Also at the same place: the same text elsewhere has other imports beside it.
    const before = trusted.find(
      ({ field, value, path }) => field === one.field && value === one.value && path === one.path,
    );
    return before?.sha256 === one.sha256 ? [] : [{ ...one, changed: before !== undefined }];
  });
  return code.length === 0 ? undefined : { dir, code, damaged };
}

/** What would run and why that is a question, in a sentence without its end. */
export function whatWouldRun({ dir, code, damaged }: UntrustedCode): string {
  const all = code.map(({ path, field, changed }) =>
    changed
      ? `${path} has changed since it was last trusted in ${dir}`
      : `${path} would run, because ${dir} names it (${field}), and you have not trusted that`,
  );
  const lost = damaged === undefined ? [] : [`what you trusted before cannot be read (${damaged})`];
  return [...all, ...lost].join('; ');
}

/** The refusal, with what to do about it. */
export function refusal(untrusted: UntrustedCode): RunError {
  const { code } = untrusted;
  const [own, it] = code.some(({ changed }) => !changed)
    ? ['if you know what it does', 'runs it']
    : ['if the change is yours', 'goes on with it'];
  const others = [...new Set(code.map(insteadOf))].join('; ');
  return new RunError(
    `${whatWouldRun(untrusted)}: ${own}, --trust ${it} and is remembered (trust: true from code); ${others}`,
    { code: 'untrusted' },
  );
}

const insteadOf = ({ field }: NamedCode): string =>
  field.startsWith('environment.options.')
    ? `${typed('eval')} takes one of your own instead (--set envOptions.${field.split('.').at(-1)}=…)`
    : '--defined-in ./my-env.ts names a file of your own instead (envFile)';

/** Remembers that this user trusts code of a run; what else of it was trusted stays so. */
export function trustCode(dir: string, code: readonly NamedCode[], most = mostEntries): void {
  const added = code.flatMap(({ field, value, path, sha256 }) =>
    sha256 === undefined ? [] : [{ field, value, path, sha256 }],
  );
  if (added.length === 0) return;
  quietly(() => {
    const fields = new Set(added.map(({ field }) => field));
    const kept = readEntry(dir).trusted.filter(({ field }) => !fields.has(field));
    const run = realPath(dir);
    makeUserDirectory();
    attempt('create', entries(), () => mkdirSync(entries(), { recursive: true, mode: 0o700 }));
    const entry = { run, code: [...kept, ...added] };
    writeFileAtomic(entryOf(run), `${JSON.stringify(entry, null, 2)}\n`, true, 0o600);
    forgetOldest(most);
  });
}

/** Remembers that a run was made here by this user, or went on: what it names is trusted. */
export function trustOwnRun({ dir, manifest }: Naming): void {
  quietly(() => trustCode(dir, namedCode(manifest)));
}

/** A home that cannot be written must not keep anybody from training: it is asked for again next time. */
function quietly(work: () => void): void {
  try {
    work();
  } catch (error) {
    if (!(error instanceof KeelError)) throw error;
  }
}

/** Forgets what was trusted of a run, such as one that is deleted. */
export function forgetTrust(dir: string): void {
  try {
    rmSync(entryOf(realPath(dir)), { force: true });
  } catch {
    // It trusts nothing that is there any more.
  }
}

const entries = (): string => join(userDirectory(), 'trusted-runs');
const entryOf = (run: string): string =>
  join(entries(), `${createHash('sha256').update(run).digest('hex')}.json`);

function realPath(dir: string): string {
  const absolute = resolve(dir);
  return attempt('find', absolute, () => realpathSync(absolute));
}

function readEntry(dir: string): { readonly trusted: Trusted; readonly damaged?: string } {
  const run = realPath(dir);
  const path = entryOf(run);
  const entry = entryAt(path);
  if (entry === undefined) return { trusted: [] };
  return entry !== 'damaged' && entry.run === run ? { trusted: entry.code } : { trusted: [], damaged: path };
}

/** What a file says, if it is this user's own and nobody else can have written it. */
function entryAt(path: string): z.infer<typeof entrySchema> | 'damaged' | undefined {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat === undefined) return undefined;
  const foreign = isAnothers(stat.uid) || (process.getuid !== undefined && (stat.mode & 0o022) !== 0);
  if (foreign || !stat.isFile()) return 'damaged';
  try {
    const result = z.safeParse(entrySchema, parseJson(readBounded(path, mostBytes), path));
    return result.success ? result.data : 'damaged';
  } catch {
    return 'damaged';
  }
}

/** A tenth at a time, because all of them are read for it. */
function forgetOldest(most: number): void {
  const names = readNames(entries()).filter(name => name.endsWith('.json'));
  if (names.length <= most) return;
  const aged = names.map(name => {
    const path = join(entries(), name);
    const entry = entryAt(path);
    const isThere = typeof entry === 'object' && existsSync(entry.run);
    return { path, isThere, at: statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0 };
  });
  aged.sort((a, b) => Number(a.isThere) - Number(b.isThere) || a.at - b.at);
  for (const { path } of aged.slice(0, names.length - Math.floor(most * 0.9))) rmSync(path, { force: true });
}
