import { describe, expect, test } from 'vitest';
import { ProtoWriter } from '../../src/base/protobuf.ts';

const hex = (writer: ProtoWriter): string => Buffer.from(writer.finish()).toString('hex');

// The format's own examples: https://protobuf.dev/programming-guides/encoding/
describe('the wire format', () => {
  test('whole numbers of every size', () => {
    expect(hex(new ProtoWriter().int(1, 150))).toBe('089601');
    expect(hex(new ProtoWriter().int(1, 0))).toBe('0800');
    expect(hex(new ProtoWriter().int(1, 127))).toBe('087f');
    expect(hex(new ProtoWriter().int(1, 128))).toBe('088001');
    expect(hex(new ProtoWriter().int(1, 16_384))).toBe('08808001');
    expect(hex(new ProtoWriter().int(1, -2))).toBe('08feffffffffffffffff01');
    expect(hex(new ProtoWriter().int(1, -2n))).toBe('08feffffffffffffffff01');
    expect(hex(new ProtoWriter().int(1, 2n ** 63n - 1n))).toBe('08ffffffffffffffff7f');
    expect(hex(new ProtoWriter().int(1, Number.MAX_SAFE_INTEGER))).toBe('08ffffffffffffff0f');
    expect(hex(new ProtoWriter().int(20, 5))).toBe('a00105');
    expect(() => new ProtoWriter().int(1, 1.5)).toThrow(RangeError);
  });

  test('numbers with a point, texts and messages', () => {
    expect(hex(new ProtoWriter().float(2, 1))).toBe('150000803f');
    expect(hex(new ProtoWriter().double(1, 1))).toBe('09000000000000f03f');
    expect(hex(new ProtoWriter().text(2, 'testing'))).toBe('120774657374696e67');
    expect(hex(new ProtoWriter().message(3, new ProtoWriter().int(1, 150)))).toBe('1a03089601');
  });

  test('its buffer grows in time, wherever a value would cross its end', () => {
    for (let length = 0; length < 130; length++) {
      const text = 'x'.repeat(length);
      const bytes = new ProtoWriter().text(1, text).double(2, 1).text(3, text).finish();
      const head = length < 128 ? [length] : [(length & 0x7f) | 0x80, 1];
      const expected = [
        [0x0a, ...head],
        [0x11, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f],
        [0x1a, ...head],
      ].map(Buffer.from);
      const [first, middle, last] = expected as Buffer[];
      const all = Buffer.concat([first, Buffer.from(text), middle, last, Buffer.from(text)]);
      expect(Buffer.from(bytes).equals(all), `${length}`).toBe(true);
    }
  });

  test('small and large parts keep their order, at any depth', () => {
    const large = new Uint8Array(5000).map((_, i) => i);
    const inner = new ProtoWriter().int(1, 1).bytes(2, large).int(3, 3).bytes(2, large);
    const outer = new ProtoWriter().text(1, 'before').message(2, inner).text(3, 'after');
    const once = Buffer.concat([Buffer.from([0x12, 0x88, 0x27]), large]);
    const innerBytes = Buffer.concat([Buffer.from([0x08, 1]), once, Buffer.from([0x18, 3]), once]);
    expect(Buffer.from(inner.finish()).equals(innerBytes)).toBe(true);
    const length = [(innerBytes.length & 0x7f) | 0x80, innerBytes.length >> 7];
    const expected = Buffer.concat([
      Buffer.from([0x0a, 6]),
      Buffer.from('before'),
      Buffer.from([0x12, ...length]),
      innerBytes,
      Buffer.from([0x1a, 5]),
      Buffer.from('after'),
    ]);
    expect(Buffer.from(outer.finish()).equals(expected)).toBe(true);
  });
});
