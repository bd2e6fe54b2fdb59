/** Bounds that damage alone does not reach, because a checksum stops it before: here the checksums are right. */
import { crc32 } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { LogSplitter } from '../../../src/doctor/readers/leveldb-log.ts';
import { ProtoCursor } from '../../../src/doctor/readers/protobuf.ts';
import { RecordSplitter } from '../../../src/doctor/readers/tf-records.ts';
import { maskedCrc32c } from '../../../src/metrics/sinks/crc32c.ts';
import { readContent, values } from '../support/files.ts';
import { bytesField, floatField, varint } from '../support/proto.ts';
import { simpleValue, summaryEvent, tfRecord, versionEvent } from '../support/tensorboard-file.ts';

describe('a length inside a message that is longer than the message', () => {
  /** Field 1 with a length that is `more` too long. */
  const tooLong = (data: Buffer, more: number): Buffer =>
    Buffer.concat([Buffer.from([10, ...varint(data.length + more)]), data]);

  it.each([1, 10, 2 ** 31, 2 ** 32 - 10])('ends it, by %d', more => {
    const message = tooLong(Buffer.from('ab'), more);
    const cursor = new ProtoCursor().open(Buffer.concat([message, Buffer.alloc(64, 1)]), 0, message.length);
    expect(cursor.next()).toBe(false);
    expect(cursor.damaged).toBe(true);
  });

  it('reads nothing of the next record of an event file', async () => {
    const value = Buffer.concat([bytesField(1, 'stolen'), floatField(2, 7)]);
    const record = tfRecord(bytesField(5, tooLong(value, 40)));
    const good = [1, 2, 3].map(step => summaryEvent({ step }, simpleValue('loss', step)));
    const run = await readContent(Buffer.concat([versionEvent(1), record, ...good]));
    expect([...run.series.keys()]).toEqual(['loss']);
    expect(values(run, 'loss')).toEqual([1, 2, 3]);
  });
});

/** A piece of a record, as LevelDB writes it. */
function piece(type: number, data: Buffer): Buffer {
  const head = Buffer.alloc(7);
  head.writeUInt32LE(crc32(Buffer.concat([Buffer.from([type]), data])));
  head.writeUInt16LE(data.length, 4);
  head[6] = type;
  return Buffer.concat([head, data]);
}

describe('a record of a LevelDB log in pieces', () => {
  it.each([
    [512, 'kept', 1],
    [514, 'left out', 0],
  ])('of %d blocks is %s', (blocks, _, kept) => {
    const lengths: number[] = [];
    const splitter = new LogSplitter(0, record => lengths.push(record.length));
    const data = Buffer.alloc(32_761);
    for (let i = 0; i < blocks; i++) splitter.push(piece(i === 0 ? 2 : i < blocks - 1 ? 3 : 4, data));
    splitter.push(piece(1, Buffer.from('next')));
    splitter.end();
    expect(lengths).toEqual(kept === 1 ? [512 * 32_761, 4] : [4]);
    expect(splitter.tooLarge).toBe(1 - kept);
    expect(splitter.damaged).toBe(0);
  });
});

it('a record that never ends is not kept', () => {
  const splitter = new LogSplitter(0, () => {});
  const data = Buffer.alloc(32_761);
  splitter.push(piece(2, data));
  const middle = piece(3, data);
  const before = process.memoryUsage().arrayBuffers;
  for (let i = 0; i < 3000; i++) splitter.push(middle);
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(48 * 2 ** 20);
});

describe('a length of a TFRecord with its checksum', () => {
  const head = (length: bigint): Buffer => {
    const bytes = Buffer.alloc(12);
    bytes.writeBigUInt64LE(length);
    bytes.writeUInt32LE(maskedCrc32c(bytes, 0, 8), 8);
    return bytes;
  };

  it('is not believed after damage if no record of numbers is that long', () => {
    const found: string[] = [];
    const splitter = new RecordSplitter((bytes, start, end) =>
      found.push(bytes.toString('latin1', start, end)),
    );
    splitter.push(Buffer.concat([tfRecord(Buffer.from('one')), Buffer.alloc(20, 0xff), head(2n ** 40n)]));
    splitter.push(tfRecord(Buffer.from('two')));
    expect(found).toEqual(['one', 'two']);
    expect(splitter.end()).toBe(false);
  });

  it('is believed where there was none: a picture is passed over', () => {
    const found: string[] = [];
    const splitter = new RecordSplitter((bytes, start, end) =>
      found.push(bytes.toString('latin1', start, end)),
    );
    splitter.push(head(5n * 2n ** 20n));
    for (let i = 0; i < 5; i++) splitter.push(Buffer.alloc(2 ** 20));
    splitter.push(Buffer.concat([Buffer.alloc(4), tfRecord(Buffer.from('two'))]));
    expect(found).toEqual(['two']);
    expect(splitter.skipped).toBe(1);
  });
});
