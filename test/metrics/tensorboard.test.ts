import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { RunError } from '../../src/base/errors.ts';
import { ProtoWriter } from '../../src/base/protobuf.ts';
import { crc32c, maskedCrc32c } from '../../src/metrics/sinks/crc32c.ts';
import { tensorboardSink } from '../../src/metrics/sinks/tensorboard.ts';
import { parseCsv } from './support/parse-csv.ts';
import { crcBitByBit, decodeEvents, splitRecords } from './support/read-events.ts';

const root = mkdtempSync(join(tmpdir(), 'keel-tensorboard-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
let files = 0;
const fresh = (): string => join(root, `events.out.tfevents.${++files}`);
/** A run of Stable-Baselines3 that ended in NaN. */
const fixture = (name: string): Buffer =>
  readFileSync(new URL(`../doctor/fixtures/sb3/cartpole-nan/${name}`, import.meta.url));
const eventFile = 'events.out.tfevents.1794771377.vm';

describe('crc32c', () => {
  it('has the values of RFC 3720, appendix B.4, and the usual check value', () => {
    expect(crc32c(Buffer.from('123456789'))).toBe(0xe3069283);
    expect(crc32c(new Uint8Array(32))).toBe(0x8a9136aa);
    expect(crc32c(new Uint8Array(32).fill(0xff))).toBe(0x62a8ab43);
    expect(crc32c(Uint8Array.from({ length: 32 }, (_, i) => i))).toBe(0x46dd794e);
    expect(crc32c(new Uint8Array(0))).toBe(0);
  });

  it('agrees with a calculation bit by bit', () => {
    fc.assert(fc.property(fc.uint8Array(), bytes => crc32c(bytes) === crcBitByBit(bytes)));
  });

  it('masks as TFRecord does', () => {
    // The first record of every event file has 24 data bytes: 9 of time, 15 of version.
    expect(maskedCrc32c(Uint8Array.of(24, 0, 0, 0, 0, 0, 0, 0))).toBe(fixture(eventFile).readUInt32LE(8));
  });
});

describe('the tests’ own reader', () => {
  it('reads what PyTorch wrote as Stable-Baselines3’s CSV of the same run has it', () => {
    const events = decodeEvents(fixture(eventFile));
    expect(events[0].fileVersion).toBe('brain.Event:2');
    const [header, ...records] = parseCsv(fixture('progress.csv').toString());
    const column = header.indexOf('train/value_loss');
    const step = header.indexOf('time/total_timesteps');
    const wanted = records
      .filter(record => record[column] !== '')
      .map(record => [BigInt(record[step]), Math.fround(Number(record[column]))]);
    const found = events
      .filter(({ scalars }) => scalars.has('train/value_loss'))
      .map(event => [event.step, event.scalars.get('train/value_loss')]);
    expect(wanted.length).toBeGreaterThan(3);
    expect(found).toEqual(wanted);
  });
});

describe('proto writer', () => {
  it('writes the examples of the format’s documentation', () => {
    expect(Buffer.from(new ProtoWriter().int(1, 150).finish()).toString('hex')).toBe('089601');
    expect(Buffer.from(new ProtoWriter().text(2, 'testing').finish()).toString('hex')).toBe(
      '120774657374696e67',
    );
    const nested = new ProtoWriter().message(3, new ProtoWriter().int(1, 150));
    expect(Buffer.from(nested.finish()).toString('hex')).toBe('1a03089601');
  });

  it('writes whole numbers up to 2^53 - 1, and messages of any length', () => {
    expect(Buffer.from(new ProtoWriter().int(1, Number.MAX_SAFE_INTEGER).finish()).toString('hex')).toBe(
      '08ffffffffffffff0f',
    );
    const long = new ProtoWriter().bytes(1, new Uint8Array(100_000).fill(7)).finish();
    expect(long.length).toBe(100_004);
    expect(long.at(-1)).toBe(7);
  });
});

describe('tensorboard sink', () => {
  it('begins with the version, a session start and the hyper-parameters as a table', () => {
    const path = fresh();
    const hyperparameters = { lr: 3e-4, kl: { target: 0.01, note: 'a|b\nc' }, hidden: [64, 64], none: null };
    tensorboardSink(path, { startedUnixS: 1_768_473_000.25, hyperparameters }).close();
    const [version, session, text, ...rest] = decodeEvents(readFileSync(path));
    expect(rest).toEqual([]);
    expect(version).toMatchObject({ fileVersion: 'brain.Event:2', wallTime: 1_768_473_000.25, step: 0n });
    expect(session.sessionStatus).toBe(1n);
    expect(text.texts.get('hyperparameters/text_summary')).toEqual({
      plugin: 'text',
      dims: [1n],
      text: [
        '|param|value|',
        '|-|-|',
        '|lr|0.0003|',
        '|kl.target|0.01|',
        '|kl.note|a\\|b c|',
        '|hidden|[64,64]|',
        '|none|null|',
      ].join('\n'),
    });
  });

  it('puts large steps and the row’s own time on the event', () => {
    const path = fresh();
    const sink = tensorboardSink(path, { startedUnixS: 1 });
    sink.write({
      'train/iteration': 1,
      'train/step': 2 ** 40 + 1,
      'kl/step': 0.5,
      'time/unix_s': 1.7e9 + 0.125,
    });
    sink.close();
    const event = decodeEvents(readFileSync(path)).at(-1)!;
    expect(event).toMatchObject({ step: 2n ** 40n + 1n, wallTime: 1.7e9 + 0.125 });
    expect([...event.scalars]).toEqual([
      ['train/iteration', 1],
      ['kl/step', 0.5],
    ]);
  });

  it('cuts off half a record that a kill left, at any byte', () => {
    const path = fresh();
    const sink = tensorboardSink(path, { startedUnixS: 1 });
    for (let i = 1; i <= 3; i++) sink.write({ 'train/iteration': i, 'train/step': i, 'kl/step': i });
    sink.close();
    const whole = readFileSync(path);
    const count = decodeEvents(whole).length;
    const lastRecord = 16 + splitRecords(whole).at(-1)!.length;
    for (let length = whole.length - lastRecord; length < whole.length; length++) {
      const copy = fresh();
      writeFileSync(copy, whole);
      truncateSync(copy, length);
      tensorboardSink(copy, { startedUnixS: 1 }).close();
      expect(decodeEvents(readFileSync(copy))).toHaveLength(count - 1);
      const again = tensorboardSink(copy, { startedUnixS: 1 });
      again.write({ 'train/iteration': 9, 'train/step': 9 });
      again.close();
      expect(decodeEvents(readFileSync(copy)).at(-1)!.scalars.get('train/iteration')).toBe(9);
    }
  });

  it('opens any bytes without a crash, a hang or a huge allocation', () => {
    const path = fresh();
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 100 }), bytes => {
        writeFileSync(path, bytes);
        try {
          tensorboardSink(path, { startedUnixS: 1 }).close();
        } catch (error) {
          expect(error).toBeInstanceOf(RunError);
        }
      }),
      { numRuns: 300 },
    );
  });
});
