/**
 * Paths of what is read: plain files, and parts of files that are read as files of their own. `logs.zip!/a/progress.csv`
 * is the member `a/progress.csv` of `logs.zip`. A member may hold members in turn, but only once.
 */
import { statSync } from 'node:fs';
import { type ByteSource, inMemory, type Member, openFile } from './byte-source.ts';
import { membersOf } from './containers.ts';
import { ReadError } from './errors.ts';

/** What stands between a container's path and its member's. */
const within = '!/';
/** A container in a container is opened; one in that is not. */
export const deepestNesting = 2;

/** How many containers a path is inside of. */
export const nesting = (path: string): number => path.split(within).length - 1;

export const placeIn = (container: string, member: string): string => `${container}${within}${member}`;

/** The file on the disk that a path is, or is inside of. */
export function fileOf(path: string): string {
  // Of a member at the top the directory is the container with its mark.
  if (path.endsWith('!') && isPlainFile(path.slice(0, -1))) return path.slice(0, -1);
  for (let at = path.indexOf(within); at > 0; at = path.indexOf(within, at + 1)) {
    const file = path.slice(0, at);
    if (isPlainFile(file)) return file;
  }
  return path;
}

const isPlainFile = (path: string): boolean => {
  try {
    return statSync(path).isFile();
  } catch {
    return false;
  }
};

/** Whether there is a plain file, or a member that is read as one. */
export function isFile(path: string): boolean {
  if (isPlainFile(path)) return true;
  const at = path.lastIndexOf(within);
  if (at < 0) return false;
  try {
    return indexOf(path.slice(0, at)).has(path.slice(at + within.length));
  } catch {
    return false;
  }
}

/** Opens a file, or a member of one. */
export function openPlace(path: string): ByteSource {
  const at = path.lastIndexOf(within);
  if (at < 0 || isPlainFile(path)) return openFile(path);
  const container = path.slice(0, at);
  const member = indexOf(container).get(path.slice(at + within.length));
  if (member === undefined) throw new ReadError(path, 'there is no such file in it any more: search again');
  const source = openPlace(container);
  try {
    return inMemory(member.bytes(source));
  } finally {
    source.close();
  }
}

/** The container that was opened last: its members are read one after the other. Memory that is needed goes first. */
let last: { key: string; members: WeakRef<ReadonlyMap<string, Member>> } | undefined;

/** The members of a container, by their names. */
export function indexOf(path: string): ReadonlyMap<string, Member> {
  if (nesting(path) >= deepestNesting)
    throw new ReadError(
      path,
      `archives in archives are not opened further than ${deepestNesting}: unpack it`,
    );
  const source = openPlace(path);
  try {
    const stat = statSync(fileOf(path));
    const key = `${path}\n${stat.size}\n${stat.mtimeMs}`;
    const kept = last?.key === key ? last.members.deref() : undefined;
    if (kept !== undefined) return kept;
    const members = new Map(membersOf(path, source).map(member => [member.name, member]));
    last = { key, members: new WeakRef(members) };
    return members;
  } finally {
    source.close();
  }
}
