/** Files that hold other files, by their first bytes. */
import type { ByteSource, Member } from './byte-source.ts';
import { dockerMembers, isDockerLog } from './docker-log.ts';
import { ReadError } from './errors.ts';
import { isNotebook, notebookMembers } from './notebook.ts';
import { isTar, tarMembers } from './tar.ts';
import { isZip, zipMembers } from './zip.ts';

export type ContainerKind = 'zip' | 'tar' | 'notebook' | 'docker';

/** What a file holds, told by its first bytes, unpacked if they are gzip. */
export function containerKind(head: Buffer): ContainerKind | undefined {
  if (isZip(head)) return 'zip';
  if (isTar(head)) return 'tar';
  // White space may stand before JSON.
  const first = head.subarray(0, 64).toString('latin1').trimStart();
  if (!first.startsWith('{')) return undefined;
  if (isDockerLog(head)) return 'docker';
  return isNotebook(head) ? 'notebook' : undefined;
}

/** The files in a container that may be read. */
export function membersOf(path: string, source: ByteSource): readonly Member[] {
  const head = source.read(0, 2 ** 16);
  // Of what gzip packs only archives have members.
  const kind = isGzip(head) ? 'tar' : containerKind(head);
  switch (kind) {
    case 'zip':
      return zipMembers(path, source);
    case 'tar':
      return tarMembers(path, source);
    case 'docker':
      return dockerMembers(path, source);
    case 'notebook':
      return notebookMembers(path, source);
    case undefined:
      throw new ReadError(path, 'it held other files and does not any more: search again');
    default:
      return kind satisfies never;
  }
}

export const isGzip = (head: Uint8Array): boolean =>
  head.length > 2 && head[0] === 0x1f && head[1] === 0x8b && head[2] === 8;
