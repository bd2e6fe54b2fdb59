/**
 * TFRecords out of chunks: u64le length, masked crc32c of the length, data, masked crc32c of the data. A length counts
 * only with its checksum; after damage the next length whose checksum is right is where reading goes on.
 */
import { maskedCrc32c } from '../../metrics/sinks/crc32c.ts';

/** Called with each whole record; the buffer is valid during the call only. */
export type OnRecord = (bytes: Buffer, start: number, end: number) => void;

const headBytes = 12;
const tailBytes = 4;
/** Pictures, graphs and videos are larger, and have no numbers: they are skipped without being kept. */
const largestRecord = 4 * 2 ** 20;

/** Checksums of the lengths that most records have, which are few. */
const cachedLengths = 4096;
const lengthCrcs = new Uint32Array(cachedLengths);
{
  const bytes = new Uint8Array(8);
  for (let length = 0; length < cachedLengths; length++) {
    bytes[0] = length & 0xff;
    bytes[1] = length >> 8;
    lengthCrcs[length] = maskedCrc32c(bytes, 0, 8);
  }
}

/** The length at this place, or -1 if there is none that its checksum confirms. Needs twelve bytes. */
export function recordLength(bytes: Buffer, at: number): number {
  const low = uint32(bytes, at);
  const high = uint32(bytes, at + 4);
  // A petabyte is not a record even if its checksum is right.
  if (high > 0xffff) return -1;
  const crc = uint32(bytes, at + 8);
  const right = high === 0 && low < cachedLengths ? lengthCrcs[low] : maskedCrc32c(bytes, at, at + 8);
  return crc === right ? high * 2 ** 32 + low : -1;
}

/** As Buffer's readUInt32LE, without its checks: callers know that the bytes are there. */
function uint32(bytes: Uint8Array, at: number): number {
  return (bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16) | (bytes[at + 3] << 24)) >>> 0;
}

export class RecordSplitter {
  readonly #onRecord: OnRecord;
  #buffer = Buffer.alloc(0);
  #used = 0;
  #skip = 0;
  #lost = false;
  /** Records whose data does not match its checksum. */
  wrongData = 0;
  /** Places where a length was damaged, and bytes that were passed over to find the next. */
  lostPlaces = 0;
  lostBytes = 0;
  /** Records too large to hold numbers. */
  skipped = 0;

  constructor(onRecord: OnRecord) {
    this.#onRecord = onRecord;
  }

  push(chunk: Buffer): void {
    let rest = chunk;
    if (this.#skip > 0) {
      const gone = Math.min(this.#skip, rest.length);
      this.#skip -= gone;
      rest = rest.subarray(gone);
      if (rest.length === 0) return;
    }
    if (this.#used === 0) {
      const done = this.#scan(rest, rest.length);
      this.#keep(rest, done);
      return;
    }
    const needed = this.#used + rest.length;
    if (needed > this.#buffer.length) {
      const larger = Buffer.allocUnsafe(Math.max(needed, 2 * this.#buffer.length));
      this.#buffer.copy(larger, 0, 0, this.#used);
      this.#buffer = larger;
    }
    rest.copy(this.#buffer, this.#used);
    this.#used = needed;
    const done = this.#scan(this.#buffer, needed);
    if (done >= needed) this.#used = 0;
    else if (done > 0) {
      this.#buffer.copy(this.#buffer, 0, done, needed);
      this.#used = needed - done;
    }
  }

  /** True if the bytes end in half a record. */
  end(): boolean {
    return this.#used > 0 || this.#skip > 0;
  }

  #keep(bytes: Buffer, from: number): void {
    const count = bytes.length - from;
    if (count <= 0) return;
    if (count > this.#buffer.length) this.#buffer = Buffer.allocUnsafe(2 * count);
    bytes.copy(this.#buffer, 0, from);
    this.#used = count;
  }

  /** Handles the whole records of `bytes` up to `end`; returns where the first that is not whole begins. */
  #scan(bytes: Buffer, end: number): number {
    let at = 0;
    while (at + headBytes <= end) {
      const length = recordLength(bytes, at);
      if (length < 0 || (this.#lost && length > largestRecord)) {
        if (!this.#lost) {
          this.#lost = true;
          this.lostPlaces++;
        }
        at++;
        this.lostBytes++;
        continue;
      }
      this.#lost = false;
      const next = at + headBytes + length + tailBytes;
      if (length > largestRecord) {
        this.skipped++;
        if (next > end) {
          this.#skip = next - end;
          return end;
        }
        at = next;
        continue;
      }
      if (next > end) return at;
      const dataEnd = next - tailBytes;
      if (uint32(bytes, dataEnd) === maskedCrc32c(bytes, at + headBytes, dataEnd)) {
        this.#onRecord(bytes, at + headBytes, dataEnd);
      } else this.wrongData++;
      at = next;
    }
    return at;
  }
}
