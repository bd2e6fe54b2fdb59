/** SQLite's write-ahead log: what a live writer has not put into its database yet. */
import type { ByteSource } from './byte-source.ts';
import { isFile, openPlace } from './places.ts';

/** Pages of a log that was not written back; SQLite does so at a thousand. */
const largestWal = 2 ** 30;

/** The newest committed frame of each page, if there is a log; what was torn off is not committed. */
export function openWal(
  path: string,
  pageBytes: number,
): { source: ByteSource; frames: ReadonlyMap<number, number> } | undefined {
  if (!isFile(path)) return undefined;
  const source = openPlace(path);
  const head = source.read(0, 32);
  const frames = new Map<number, number>();
  const mark = head.length === 32 ? head.readUInt32BE(0) : 0;
  if ((mark !== 0x377f0682 && mark !== 0x377f0683) || head.readUInt32BE(8) !== pageBytes)
    return { source, frames };
  const sum = checksum(mark === 0x377f0683);
  sum(head, 0, 24);
  const pending = new Map<number, number>();
  const frameBytes = 24 + pageBytes;
  for (let at = 32; at + frameBytes <= Math.min(source.size, largestWal); at += frameBytes) {
    const frame = source.read(at, frameBytes);
    if (frame.length < frameBytes || frame.compare(head, 16, 24, 8, 16) !== 0) break;
    sum(frame, 0, 8);
    const [a, b] = sum(frame, 24, frameBytes);
    if (a !== frame.readUInt32BE(16) || b !== frame.readUInt32BE(20)) break;
    pending.set(frame.readUInt32BE(0), at + 24);
    if (frame.readUInt32BE(4) === 0) continue;
    for (const [page, place] of pending) frames.set(page, place);
    pending.clear();
  }
  return { source, frames };
}

/** The sum that goes on from frame to frame. */
function checksum(isBig: boolean): (bytes: Buffer, from: number, to: number) => [number, number] {
  let [a, b] = [0, 0];
  return (bytes, from, to) => {
    for (let at = from; at < to; at += 8) {
      const [x, y] = isBig
        ? [bytes.readUInt32BE(at), bytes.readUInt32BE(at + 4)]
        : [bytes.readUInt32LE(at), bytes.readUInt32LE(at + 4)];
      a = (a + x + b) >>> 0;
      b = (b + y + a) >>> 0;
    }
    return [a, b];
  };
}
