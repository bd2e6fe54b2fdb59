/**
 * Records out of a LevelDB log, as W&B uses it: blocks of 32,768 bytes that hold whole records or pieces of them. Each
 * piece: u32le crc32 of its type and data, u16le length, u8 type (1 whole, 2 first, 3 middle, 4 last).
 * https://github.com/google/leveldb/blob/main/doc/log_format.md; W&B's checksum is CRC-32 and not masked.
 */
import { crc32 } from 'node:zlib';

const blockBytes = 32_768;
const headBytes = 7;
/** A record with more is not one of numbers. */
const largestRecord = 16 * 2 ** 20;

export class LogSplitter {
  readonly #onRecord: (bytes: Buffer) => void;
  readonly #block = Buffer.allocUnsafe(blockBytes);
  #used = 0;
  /** Where the first piece of this block begins: after the file's header in the first one. */
  #start: number;
  #parts: Buffer[] | undefined;
  #length = 0;
  /** Pieces that do not match their checksum, or claim more than their block has. */
  damaged = 0;
  tooLarge = 0;

  constructor(fileHeaderBytes: number, onRecord: (bytes: Buffer) => void) {
    this.#start = fileHeaderBytes;
    this.#onRecord = onRecord;
  }

  push(chunk: Buffer): void {
    for (let at = 0; at < chunk.length; ) {
      const count = Math.min(blockBytes - this.#used, chunk.length - at);
      chunk.copy(this.#block, this.#used, at, at + count);
      this.#used += count;
      at += count;
      if (this.#used === blockBytes) {
        this.#readBlock(blockBytes);
        this.#used = 0;
        this.#start = 0;
      }
    }
  }

  /** True if the bytes end in the middle of a record. */
  end(): boolean {
    const half = this.#readBlock(this.#used);
    return half || this.#parts !== undefined;
  }

  /** Returns whether the bytes end before a piece does. */
  #readBlock(end: number): boolean {
    const block = this.#block;
    let at = this.#start;
    while (at + headBytes <= end) {
      const crc = block.readUInt32LE(at);
      const length = block.readUInt16LE(at + 4);
      const type = block[at + 6];
      // The rest of the block is padding, or was set aside and not written.
      if (type === 0 && length === 0 && crc === 0) return false;
      const next = at + headBytes + length;
      if (next > end) {
        if (end < blockBytes && next <= blockBytes) return true;
        this.#damage();
        return false;
      }
      if (crc32(block.subarray(at + 6, next)) !== crc) this.#damage();
      else this.#piece(type, block.subarray(at + headBytes, next));
      at = next;
    }
    return end < blockBytes && at < end;
  }

  #piece(type: number, data: Buffer): void {
    switch (type) {
      case 1:
        if (this.#parts !== undefined) this.#damage();
        this.#onRecord(data);
        return;
      case 2:
        if (this.#parts !== undefined) this.#damage();
        this.#parts = [Buffer.from(data)];
        this.#length = data.length;
        return;
      case 3:
      case 4:
        // Without its beginning, which was damaged.
        if (this.#parts === undefined) return;
        this.#length += data.length;
        if (this.#length > largestRecord) this.#parts = [];
        else this.#parts.push(Buffer.from(data));
        if (type === 3) return;
        if (this.#length > largestRecord) this.tooLarge++;
        else this.#onRecord(Buffer.concat(this.#parts));
        this.#parts = undefined;
        return;
      default:
        this.#damage();
    }
  }

  #damage(): void {
    this.damaged++;
    this.#parts = undefined;
  }
}
