/** Zip archives, by their central directory (APPNOTE.TXT 4.3). Nothing is written to the disk. */
import { inflateRawSync } from 'node:zlib';
import {
  expansionLimit,
  largestMember,
  mostMembers,
  mostUnpacked,
  safeName,
  tellLeftOut,
} from './archive-limits.ts';
import type { ByteSource, Member } from './byte-source.ts';
import { ReadError } from './errors.ts';

const endMark = 0x06054b50;
const entryMark = 0x02014b50;
const localMark = 0x04034b50;
const endBytes = 22;
const longestComment = 2 ** 16;

export function isZip(head: Buffer): boolean {
  return head.length >= 4 && (head.readUInt32LE(0) === localMark || head.readUInt32LE(0) === endMark);
}

/** The files in an archive that may be read; what is left out is told by {@link leftOutOf}. */
export function zipMembers(path: string, source: ByteSource): Member[] {
  const leftOut = tellLeftOut(path);
  const refuse = (why: string): never => {
    throw new ReadError(path, `${why}: unpack it and give the directory`);
  };
  const from = Math.max(0, source.size - endBytes - longestComment);
  const tail = source.read(from, source.size - from);
  let end = tail.length - endBytes;
  while (end >= 0 && tail.readUInt32LE(end) !== endMark) end--;
  if (end < 0) refuse('a zip archive without its directory, cut or damaged');
  const count = tail.readUInt16LE(end + 10);
  const size = tail.readUInt32LE(end + 12);
  const start = tail.readUInt32LE(end + 16);
  if (count === 0xffff || start === 0xffffffff) refuse('a zip archive of the 64-bit kind');
  if (count > mostMembers) refuse(`a zip archive of ${count} files, more than ${mostMembers}`);
  if (start + size > source.size) refuse('a zip archive with a damaged directory');
  const directory = source.read(start, size);
  const members: Member[] = [];
  let [packedTotal, unpackedTotal] = [0, 0];
  for (let at = 0, i = 0; i < count; i++) {
    if (at + 46 > directory.length || directory.readUInt32LE(at) !== entryMark)
      refuse('a zip archive with a damaged directory');
    const flags = directory.readUInt16LE(at + 8);
    const method = directory.readUInt16LE(at + 10);
    const packed = directory.readUInt32LE(at + 20);
    const unpacked = directory.readUInt32LE(at + 24);
    const nameLength = directory.readUInt16LE(at + 28);
    const local = directory.readUInt32LE(at + 42);
    const raw = directory.toString('utf8', at + 46, at + 46 + nameLength);
    at += 46 + nameLength + directory.readUInt16LE(at + 30) + directory.readUInt16LE(at + 32);
    if (raw.endsWith('/')) continue;
    packedTotal += packed;
    // Entries that share their bytes are how a small archive unpacks to terabytes.
    if (packedTotal > source.size) refuse('a zip archive whose files overlap');
    const name = safeName(raw);
    if (name === undefined) leftOut('names that lead out of it');
    else if ((flags & 1) !== 0) leftOut('encrypted files');
    else if (method !== 0 && method !== 8) leftOut('files packed in another way than deflate');
    else if (unpacked > Math.min(largestMember, expansionLimit(packed))) leftOut('files too large for a log');
    else if (unpackedTotal + unpacked > mostUnpacked) leftOut('files beyond the size that is unpacked');
    else {
      unpackedTotal += unpacked;
      members.push({
        name,
        bytes: container => unpack(container, { name, method, packed, unpacked, local }),
      });
    }
  }
  return members;
}

interface Entry {
  readonly name: string;
  readonly method: number;
  readonly packed: number;
  readonly unpacked: number;
  readonly local: number;
}

function unpack(source: ByteSource, { name, method, packed, unpacked, local }: Entry): Buffer {
  const header = source.read(local, 30);
  if (header.length < 30 || header.readUInt32LE(0) !== localMark)
    throw new ReadError(name, 'damaged in its zip archive: make the archive again');
  const start = local + 30 + header.readUInt16LE(26) + header.readUInt16LE(28);
  const bytes = Buffer.from(source.read(start, packed));
  if (method === 0) return bytes.subarray(0, unpacked);
  try {
    return inflateRawSync(bytes, { maxOutputLength: Math.max(1, unpacked) });
  } catch {
    throw new ReadError(name, 'damaged in its zip archive, or longer than it says: make the archive again');
  }
}
