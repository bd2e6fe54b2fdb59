/** Reads a zip archive from memory (https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT): names, sizes and sums are checked before anything is unpacked. */
import { crc32, inflateRawSync } from 'node:zlib';
import { show } from '../base/errors.ts';
import { PickleError } from './values.ts';

/** What an archive may be at most. */
const zipLimits = {
  entries: 10_000,
  /** Of all files together, unpacked. */
  bytes: 2 ** 28,
  /** Weights hardly shrink; text does by ten. What is small may shrink more. */
  ratio: 200,
  freeBytes: 2 ** 20,
} as const;

/** The files of an archive. */
export interface Zip {
  readonly names: readonly string[];
  has(name: string): boolean;
  /** A file's bytes, whole and with the right sum; shares memory with the archive where it is not packed. */
  read(name: string): Uint8Array;
}

interface Entry {
  readonly packed: number;
  readonly size: number;
  readonly method: number;
  readonly crc: number;
  readonly offset: number;
}

const END = 0x06054b50;
const END64 = 0x06064b50;
const LOCATOR64 = 0x07064b50;
const CENTRAL = 0x02014b50;
const LOCAL = 0x04034b50;
const STORED = 0;
const DEFLATED = 8;

/** Whether bytes begin as an archive does. */
export const looksLikeZip = (bytes: Uint8Array): boolean =>
  bytes.length > 4 && bytes[0] === 0x50 && bytes[1] === 0x4b && bytes[2] === 3 && bytes[3] === 4;

/** Checks an archive's list of files; `source` names it in errors. */
export function openZip(bytes: Uint8Array, source: string): Zip {
  const refuse = (problem: string): never => {
    throw new PickleError(`${source}: ${problem}`);
  };
  const damaged = (what: string): never => refuse(`not a whole zip archive: ${what}; copy or save it again`);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const within = (offset: number, length: number): boolean =>
    Number.isSafeInteger(offset) && offset >= 0 && length >= 0 && offset + length <= bytes.length;
  const u64 = (offset: number): number => {
    const value = view.getBigUint64(offset, true);
    return value > BigInt(bytes.length)
      ? damaged(`an offset of ${value} in ${bytes.length} bytes`)
      : Number(value);
  };

  // ---- where the list is
  let end = bytes.length - 22;
  const first = Math.max(0, bytes.length - 22 - 0xffff);
  while (end >= first && view.getUint32(end, true) !== END) end--;
  if (end < first) damaged('its end is missing');
  let count = view.getUint16(end + 10, true);
  let at = view.getUint32(end + 16, true);
  if ((count === 0xffff || at === 0xffffffff) && within(end - 20, 20)) {
    if (view.getUint32(end - 20, true) !== LOCATOR64) damaged('its end is missing');
    const end64 = u64(end - 12);
    if (!within(end64, 56) || view.getUint32(end64, true) !== END64) damaged('its end is missing');
    count = u64(end64 + 32);
    at = u64(end64 + 48);
  }
  if (count > zipLimits.entries)
    refuse(`${count} files, at most ${zipLimits.entries} are read: is it a model?`);

  // ---- the list
  const entries = new Map<string, Entry>();
  let [packedSum, sum] = [0, 0];
  for (let i = 0; i < count; i++) {
    if (!within(at, 46) || view.getUint32(at, true) !== CENTRAL) damaged('its list of files is cut');
    const flags = view.getUint16(at + 8, true);
    const [nameLength, extraLength, commentLength] = [28, 30, 32].map(field =>
      view.getUint16(at + field, true),
    );
    if (!within(at + 46, nameLength + extraLength + commentLength)) damaged('its list of files is cut');
    const name = Buffer.from(bytes.buffer, bytes.byteOffset + at + 46, nameLength).toString('utf8');
    if (flags & 1) refuse(`${show(name)} is encrypted: save it without a password`);
    let [packed, size] = [view.getUint32(at + 20, true), view.getUint32(at + 24, true)];
    let offset = view.getUint32(at + 42, true);
    // The wide sizes stand in an extra field, those alone that do not fit, in this order.
    const extraEnd = at + 46 + nameLength + extraLength;
    for (let extra = at + 46 + nameLength; extra + 4 <= extraEnd; ) {
      const length = view.getUint16(extra + 2, true);
      if (extra + 4 + length > extraEnd) break;
      if (view.getUint16(extra, true) === 1) {
        let field = extra + 4;
        const wide = (value: number): number => {
          if (value !== 0xffffffff) return value;
          if (field + 8 > extra + 4 + length) return damaged(`the sizes of ${show(name)} are missing`);
          field += 8;
          return u64Any(view, field - 8) ?? damaged(`the sizes of ${show(name)} are impossible`);
        };
        size = wide(size);
        packed = wide(packed);
        offset = wide(offset);
      }
      extra += 4 + length;
    }
    if (entries.has(name)) refuse(`has ${show(name)} twice: save it again`);
    packedSum += packed;
    sum += size;
    if (packedSum > bytes.length) damaged('its files are longer than itself');
    if (sum > zipLimits.bytes)
      refuse(
        `its files are more than ${zipLimits.bytes} bytes, which is the most that is read: is it a model?`,
      );
    if (size > zipLimits.freeBytes && size > zipLimits.ratio * packed)
      refuse(
        `${show(name)} would grow from ${packed} to ${size} bytes, at most ${zipLimits.ratio} times is unpacked: it is no model`,
      );
    entries.set(name, {
      packed,
      size,
      method: view.getUint16(at + 10, true),
      crc: view.getUint32(at + 16, true),
      offset,
    });
    at += 46 + nameLength + extraLength + commentLength;
  }

  return {
    names: [...entries.keys()],
    has: name => entries.has(name),
    read(name) {
      const entry = entries.get(name);
      if (entry === undefined) {
        const some = [...entries.keys()].slice(0, 8).map(show).join(', ');
        return refuse(`has no ${show(name)}, it has ${some || 'no files'}: is it what you think it is?`);
      }
      const { packed, size, method, crc, offset } = entry;
      if (!within(offset, 30) || view.getUint32(offset, true) !== LOCAL)
        damaged(`${show(name)} is not where it should be`);
      const start = offset + 30 + view.getUint16(offset + 26, true) + view.getUint16(offset + 28, true);
      if (!within(start, packed)) damaged(`${show(name)} is cut`);
      const data = bytes.subarray(start, start + packed);
      let content = data;
      if (method === DEFLATED) content = inflated(data, size) ?? damaged(`${show(name)} cannot be unpacked`);
      else if (method !== STORED)
        refuse(
          `${show(name)} is packed by method ${method}, stored and deflated files are read: save it again`,
        );
      if (content.length !== size)
        damaged(`${show(name)} has ${content.length} bytes, its entry says ${size}`);
      if (crc32(content) !== crc) damaged(`the sum of ${show(name)} is another one`);
      return content;
    },
  };
}

function u64Any(view: DataView, offset: number): number | undefined {
  const value = view.getBigUint64(offset, true);
  return value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : undefined;
}

/** Undefined for what is no deflated data, or longer than its entry says. */
function inflated(data: Uint8Array, size: number): Uint8Array | undefined {
  try {
    return inflateRawSync(data, { maxOutputLength: Math.max(1, size) });
  } catch {
    return undefined;
  }
}
