/**
 * Notes, tags and whether a run is archived. Those of a Keel run are in its directory; those of another trainer's log are
 * in one file in the user's state directory, because nothing is ever written into a directory that is not ours.
 */
import { createHash } from 'node:crypto';
import { statSync } from 'node:fs';
import { homedir, platform } from 'node:os';
import { join, resolve } from 'node:path';
import * as z from 'zod/mini';
import { makeDirectories } from '../../base/directories.ts';
import { readBounded, writeFileAtomic } from '../../base/files.ts';
import { parseJson } from '../../base/json.ts';
import type { Notes } from '../api.ts';
import { Problem } from '../problem.ts';

export const noNotes: Notes = { tags: [], note: '', archived: false };
const mostBytes = 2 ** 20;
const mostStateBytes = 64 * 2 ** 20;

const tag = z.string().check(z.minLength(1), z.maxLength(60));
const patchSchema = z.strictObject({
  tags: z.optional(z.array(tag).check(z.maxLength(50))),
  note: z.optional(z.string().check(z.maxLength(20_000))),
  archived: z.optional(z.boolean()),
});
const notesSchema = z.object({
  tags: z.array(tag),
  note: z.string(),
  archived: z.boolean(),
  insteadOf: z.optional(z.string()),
});
const stateSchema = z.record(z.string(), z.unknown());

/** Where a program of this user keeps what is not a setting. */
function stateDirectory(env: NodeJS.ProcessEnv = process.env): string {
  if (env.KEEL_STATE_DIR) return resolve(env.KEEL_STATE_DIR);
  if (platform() === 'win32') return join(env.LOCALAPPDATA ?? join(homedir(), 'AppData', 'Local'), 'keel');
  if (platform() === 'darwin') return join(homedir(), 'Library', 'Application Support', 'keel');
  return join(env.XDG_STATE_HOME || join(homedir(), '.local', 'state'), 'keel');
}

/** What a request may change, checked. */
export function parsePatch(value: unknown): Partial<Notes> {
  const result = z.safeParse(patchSchema, value);
  if (!result.success) {
    const issue = result.error.issues[0];
    throw new Problem(
      422,
      'invalid-notes',
      `${issue.path.join('.') || 'the body'} is not as expected: send tags (at most 50, each up to 60 characters), note (up to 20000 characters) and archived (true or false), any of them`,
    );
  }
  const { tags, note, archived } = result.data;
  return {
    ...(tags === undefined ? {} : { tags: [...new Set(tags.map(t => t.trim()).filter(t => t !== ''))] }),
    ...(note === undefined ? {} : { note }),
    ...(archived === undefined ? {} : { archived }),
  };
}

export interface NotesStore {
  get(run: { readonly kind: 'keel' | 'foreign'; readonly path: string }): Notes;
  set(run: { readonly kind: 'keel' | 'foreign'; readonly path: string }, patch: Partial<Notes>): Notes;
}

export function createNotesStore(directory = stateDirectory()): NotesStore {
  const stateFile = join(directory, 'notes.json');
  const keyOf = (path: string): string => createHash('sha256').update(resolve(path)).digest('hex');
  const cache = new Map<string, { readonly stamp: string; readonly value: unknown }>();

  /** The content of a file, read again only when it changed. */
  function load(file: string, limit: number): unknown {
    const stat = statSync(file, { throwIfNoEntry: false });
    if (stat === undefined) {
      cache.delete(file);
      return undefined;
    }
    const stamp = `${stat.size}:${stat.mtimeMs}:${stat.ino}`;
    const known = cache.get(file);
    if (known?.stamp === stamp) return known.value;
    let value: unknown;
    try {
      value = parseJson(readBounded(file, limit), file);
    } catch {
      // Damaged by hand: as if there were none, until the next note.
    }
    if (cache.size > 10_000) cache.clear();
    cache.set(file, { stamp, value });
    return value;
  }

  const check = (value: unknown): Notes => {
    const result = z.safeParse(notesSchema, value);
    return result.success ? result.data : noNotes;
  };
  const state = (): Record<string, unknown> => {
    const result = z.safeParse(stateSchema, load(stateFile, mostStateBytes));
    return result.success ? result.data : {};
  };
  const get: NotesStore['get'] = ({ kind, path }) =>
    check(kind === 'keel' ? load(join(path, 'notes.json'), mostBytes) : state()[keyOf(path)]);

  return {
    get,
    set(run, patch) {
      const notes = { ...get(run), ...patch };
      if (run.kind === 'keel') {
        writeFileAtomic(join(run.path, 'notes.json'), `${JSON.stringify(notes, null, 2)}\n`);
        return notes;
      }
      makeDirectories(directory);
      const all = { ...state(), [keyOf(run.path)]: notes };
      writeFileAtomic(stateFile, `${JSON.stringify(all)}\n`);
      return notes;
    },
  };
}
