/** Tar archives, packed with gzip or not: POSIX ustar, with GNU's and pax's long names. Nothing is written to the disk. */
import { gunzipSync } from 'node:zlib';
import { expansionLimit, largestMember, mostMembers, safeName, tellLeftOut } from './archive-limits.ts';
import { type ByteSource, inMemory, type Member } from './byte-source.ts';
import { ReadError } from './errors.ts';

const block = 512;
/** A packed archive is unpacked as a whole, into memory. */
const largestUnpacked = 2 ** 28;
const longestName = 4096;

export function isTar(head: Buffer): boolean {
  return head.length >= block && head.toString('latin1', 257, 262) === 'ustar';
}

const text = (bytes: Buffer, from: number, to: number): string => {
  const end = bytes.indexOf(0, from);
  return bytes.toString('utf8', from, end < 0 || end > to ? to : end);
};

/** An octal number; the base-256 form is of files that are no logs. */
const octal = (bytes: Buffer, from: number, to: number): number => {
  const digits = text(bytes, from, to).trim();
  return /^[0-7]{1,11}$/.test(digits) ? Number.parseInt(digits, 8) : Number.NaN;
};

/** The files in an archive that may be read; what is left out is told by {@link leftOutOf}. */
export function tarMembers(path: string, source: ByteSource): Member[] {
  const leftOut = tellLeftOut(path);
  const packed = source.read(0, 2).toString('hex') === '1f8b';
  const plain = packed ? unpacked(path, source) : undefined;
  const from = plain === undefined ? source : inMemory(plain);
  const members: Member[] = [];
  let longName: string | undefined;
  for (let at = 0, i = 0; at + block <= from.size; i++) {
    if (i >= mostMembers)
      throw new ReadError(path, `a tar archive of more than ${mostMembers} files: unpack it`);
    const header = from.read(at, block);
    if (header.length < block || header[0] === 0) break;
    const size = octal(header, 124, 136);
    if (header.toString('latin1', 257, 262) !== 'ustar' || Number.isNaN(size)) {
      leftOut('what comes after a damaged header');
      break;
    }
    const type = String.fromCharCode(header[156]);
    const start = at + block;
    at = start + Math.ceil(size / block) * block;
    if (type === 'L' || type === 'x') {
      const bytes = from.read(start, Math.min(size, longestName));
      longName =
        type === 'L'
          ? text(bytes, 0, bytes.length)
          : /(?:^|\n)\d+ path=(.*)\n/.exec(bytes.toString('utf8'))?.[1];
      continue;
    }
    const prefix = text(header, 345, 500);
    const raw = longName ?? (prefix === '' ? text(header, 0, 100) : `${prefix}/${text(header, 0, 100)}`);
    longName = undefined;
    // Links and devices lead elsewhere.
    if (type !== '0' && type !== '\0') continue;
    const name = safeName(raw);
    if (name === undefined) leftOut('names that lead out of it');
    else if (size > largestMember) leftOut('files too large for a log');
    else
      members.push({
        name,
        bytes: container =>
          plain === undefined
            ? Buffer.from(container.read(start, size))
            : plain.subarray(start, start + size),
      });
  }
  return members;
}

function unpacked(path: string, source: ByteSource): Buffer {
  const limit = Math.min(largestUnpacked, expansionLimit(source.size));
  try {
    return gunzipSync(source.read(0, source.size), { maxOutputLength: limit });
  } catch (error) {
    const isLarge = (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE';
    throw new ReadError(
      path,
      isLarge
        ? `a tar archive that unpacks to more than ${limit} bytes: unpack it and give the directory`
        : 'a tar archive whose gzip data is cut or damaged: unpack what there is and give the directory',
    );
  }
}
