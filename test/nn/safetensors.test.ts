import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import {
  type Dtype,
  decodeSafetensors,
  encodeSafetensors,
  readSafetensors,
  SafetensorsError,
  type TensorInput,
  writeSafetensors,
} from '../../src/nn/safetensors.ts';

/** What the disk does wrong: transfers a few bytes at a time, fails after some, or loses the end of a file. */
const disk = vi.hoisted(() => ({
  maxBytes: Number.POSITIVE_INFINITY,
  failAfterBytes: Number.POSITIVE_INFINITY,
  endsAt: Number.POSITIVE_INFINITY,
  calls: [] as string[],
}));
vi.mock('node:fs/promises', async original => {
  const real = await original<typeof import('node:fs/promises')>();
  const open = async (...args: Parameters<typeof real.open>) => {
    const handle = await real.open(...args);
    // biome-ignore lint/suspicious/noExplicitAny: stands in for the overloads that the module uses
    const patched = handle as any;
    const { read, write, sync } = patched;
    patched.sync = () => {
      disk.calls.push('sync');
      return sync.call(handle);
    };
    patched.read = (bytes: Uint8Array, offset: number, length: number, position: number) =>
      position >= disk.endsAt
        ? Promise.resolve({ bytesRead: 0, buffer: bytes })
        : read.call(handle, bytes, offset, Math.min(length, disk.maxBytes), position);
    patched.write = (bytes: Uint8Array, offset: number, length: number, position: number) =>
      position >= disk.failAfterBytes
        ? Promise.reject(new Error('ENOSPC: no space left on device, write'))
        : write.call(handle, bytes, offset, Math.min(length, disk.maxBytes), position);
    return handle;
  };
  const rename: typeof real.rename = (from, to) => {
    disk.calls.push('rename');
    return real.rename(from, to);
  };
  return { ...real, open, rename, default: { ...real, open, rename } };
});

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'keel-safetensors-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));
afterEach(() => {
  disk.maxBytes = Number.POSITIVE_INFINITY;
  disk.failAfterBytes = Number.POSITIVE_INFINITY;
  disk.endsAt = Number.POSITIVE_INFINITY;
  vi.unstubAllGlobals();
});

/** A file built by hand, so that the reader is not only checked against our own writer. */
function fileOf(header: unknown, data: readonly number[] = [], headerLength?: bigint): Uint8Array {
  const json = Buffer.from(typeof header === 'string' ? header : JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(headerLength ?? BigInt(json.length));
  return new Uint8Array(Buffer.concat([length, json, Buffer.from(data)]));
}

const entry = (dtype: string, shape: unknown, begin: unknown, end: unknown) => ({
  dtype,
  shape,
  data_offsets: [begin, end],
});

const bytesOf = (data: ArrayBufferView) =>
  new Uint8Array(data.buffer, data.byteOffset, data.byteLength).slice();

/** One tensor `t` of these bytes. */
const single = (dtype: Dtype, bytes: Uint8Array, shape: number[]) =>
  decodeSafetensors(encodeSafetensors({ t: { dtype, shape, data: bytes } })).float32('t');

/** Written by safetensors 0.8.0 (Python): checks order, padding, escapes, sorting by UTF-8 and not UTF-16. */
const referenceFile = Buffer.from(
  '8AEAAAAAAAB7Il9fbWV0YWRhdGFfXyI6eyJmb3JtYXQiOiJrZWVsIn0sInUiOnsiZHR5cGUiOiJVNjQiLCJzaGFwZSI6WzFdLCJkYXRhX29mZnNldHMi' +
    'OlswLDhdfSwiMTAiOnsiZHR5cGUiOiJJNjQiLCJzaGFwZSI6WzFdLCJkYXRhX29mZnNldHMiOls4LDE2XX0sImVtcHR5Ijp7ImR0eXBlIjoiRjY0Iiwi' +
    'c2hhcGUiOlswLDRdLCJkYXRhX29mZnNldHMiOlsxNiwxNl19LCJ3LjEiOnsiZHR5cGUiOiJGMzIiLCJzaGFwZSI6WzIsMV0sImRhdGFfb2Zmc2V0cyI6' +
    'WzE2LDI0XX0sIjkiOnsiZHR5cGUiOiJGMTYiLCJzaGFwZSI6WzJdLCJkYXRhX29mZnNldHMiOlsyNCwyOF19LCLvv64iOnsiZHR5cGUiOiJVOCIsInNo' +
    'YXBlIjpbMV0sImRhdGFfb2Zmc2V0cyI6WzI4LDI5XX0sIvCfmIAiOnsiZHR5cGUiOiJVOCIsInNoYXBlIjpbXSwiZGF0YV9vZmZzZXRzIjpbMjksMzBd' +
    'fSwiw6lcIlxuIjp7ImR0eXBlIjoiQk9PTCIsInNoYXBlIjpbM10sImRhdGFfb2Zmc2V0cyI6WzMwLDMzXX19ICAgICAgBQAAAAAAAAD9/////////wAA' +
    'wD8AAADAADwAwAcIAAEB',
  'base64',
);
const referenceTensors: Record<string, TensorInput> = {
  'é"\n': { shape: [3], dtype: 'BOOL', data: Uint8Array.of(0, 1, 1) },
  '9': { shape: [2], dtype: 'F16', data: Uint8Array.of(0, 0x3c, 0, 0xc0) },
  '10': { shape: [1], data: BigInt64Array.of(-3n) },
  '😀': { shape: [], data: Uint8Array.of(8) },
  '\uffee': { shape: [1], data: Uint8Array.of(7) },
  'w.1': { shape: [2, 1], data: Float32Array.of(1.5, -2) },
  empty: { shape: [0, 4], data: new Float64Array(0) },
  u: { shape: [1], data: BigUint64Array.of(5n) },
};

describe('format', () => {
  test('reads a file built byte by byte', () => {
    // 1.0f and -2.5f, little-endian, after a header with odd spaces.
    const header = '{"w":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]} \n }';
    const bytes = Uint8Array.of(
      ...[header.length, 0, 0, 0, 0, 0, 0, 0],
      ...Buffer.from(header, 'latin1'),
      ...[0x00, 0x00, 0x80, 0x3f, 0x00, 0x00, 0x20, 0xc0],
    );
    const file = decodeSafetensors(bytes);
    expect(file.names).toEqual(['w']);
    expect(file.metadata).toEqual({});
    expect(file.info('w')).toEqual({ dtype: 'F32', shape: [1, 2] });
    expect(file.float32('w')).toEqual(Float32Array.of(1, -2.5));
    expect(file.raw('w')).toEqual(bytes.slice(-8));
  });

  test('writes the bytes that the reference implementation writes, whatever the order of the keys', () => {
    expect(Buffer.from(encodeSafetensors(referenceTensors, { format: 'keel' }))).toEqual(referenceFile);
    const reversed = Object.fromEntries(Object.entries(referenceTensors).reverse());
    expect(Buffer.from(encodeSafetensors(reversed, { format: 'keel' }))).toEqual(referenceFile);
  });

  test('reads what the reference implementation writes', () => {
    const file = decodeSafetensors(referenceFile);
    expect(file.names).toEqual(['u', '10', 'empty', 'w.1', '9', '\uffee', '😀', 'é"\n']);
    expect(file.metadata).toEqual({ format: 'keel' });
    expect(file.float32('w.1')).toEqual(Float32Array.of(1.5, -2));
    expect(file.float32('9')).toEqual(Float32Array.of(1, -2));
    expect(file.float32('10')).toEqual(Float32Array.of(-3));
    expect(file.float32('é"\n')).toEqual(Float32Array.of(0, 1, 1));
    expect(file.float32('😀')).toEqual(Float32Array.of(8));
    expect(file.info('😀').shape).toEqual([]);
    expect(file.float32('empty')).toEqual(new Float32Array(0));
    expect(file.info('empty').shape).toEqual([0, 4]);
  });

  test('a file without tensors', () => {
    const bytes = encodeSafetensors({});
    expect(bytes).toEqual(fileOf('{}      '));
    expect(decodeSafetensors(bytes).names).toEqual([]);
  });

  test('metadata is sorted, and an empty one is left out', () => {
    const text = Buffer.from(encodeSafetensors({}, { b: '2', a: 'line\nbreak' }).subarray(8)).toString();
    expect(text.trimEnd()).toBe('{"__metadata__":{"a":"line\\nbreak","b":"2"}}');
    expect(encodeSafetensors({}, {})).toEqual(encodeSafetensors({}));
  });

  test('__proto__, constructor and toString are names like any other', () => {
    const tensors = Object.fromEntries(
      ['__proto__', 'constructor', 'toString'].map((name, i) => [
        name,
        { shape: [1], data: Float32Array.of(i) },
      ]),
    );
    const metadata = JSON.parse('{"__proto__":"p","constructor":"c"}');
    const file = decodeSafetensors(encodeSafetensors(tensors, metadata));
    expect(file.names).toEqual(['__proto__', 'constructor', 'toString']);
    expect(file.float32('__proto__')).toEqual(Float32Array.of(0));
    expect(file.float32('toString')).toEqual(Float32Array.of(2));
    expect(Object.entries(file.metadata)).toEqual([
      ['__proto__', 'p'],
      ['constructor', 'c'],
    ]);
    expect(file.metadata.toString).toBeUndefined();
    expect(({} as Record<string, unknown>).shape).toBeUndefined();
    expect(() => decodeSafetensors(encodeSafetensors({})).info('__proto__')).toThrow('no tensor "__proto__"');
    // Without an own dtype, an inherited one must not count.
    expect(() =>
      decodeSafetensors(fileOf('{"t":{"__proto__":{"dtype":"U8"},"shape":[0],"data_offsets":[0,0]}}')),
    ).toThrow('has no dtype');
  });

  test('unknown fields of an entry are left alone, as by the reference', () => {
    const file = decodeSafetensors(fileOf({ t: { ...entry('U8', [1], 0, 1), extra: [{}] } }, [7]));
    expect(file.float32('t')).toEqual(Float32Array.of(7));
  });

  test('names are in the order of the data, not of the header', () => {
    const header = { b: entry('U8', [1], 1, 2), z: entry('U8', [0], 1, 1), a: entry('U8', [1], 0, 1) };
    expect(decodeSafetensors(fileOf(header, [1, 2])).names).toEqual(['a', 'z', 'b']);
  });
});

describe('memory', () => {
  test('aligned F32 is a view of the bytes, unaligned F32 a copy', () => {
    const encoded = encodeSafetensors({ t: { shape: [3], data: Float32Array.of(1, 2, 3) } });
    const view = decodeSafetensors(encoded).float32('t');
    expect(view.buffer).toBe(encoded.buffer);

    const shifted = new Uint8Array(encoded.byteLength + 1);
    shifted.set(encoded, 1);
    // As a Buffer too, whose slice() is a view where Uint8Array's is a copy.
    for (const bytes of [shifted.subarray(1), Buffer.from(shifted.buffer, 1)]) {
      const copy = decodeSafetensors(bytes).float32('t');
      expect(copy).toEqual(Float32Array.of(1, 2, 3));
      expect(copy.buffer).not.toBe(shifted.buffer);
    }
  });

  test('raw shares the memory, and can be written again', () => {
    const file = decodeSafetensors(referenceFile);
    const again = Object.fromEntries(
      file.names.map(name => [name, { ...file.info(name), data: file.raw(name) }]),
    );
    expect(Buffer.from(encodeSafetensors(again, file.metadata))).toEqual(referenceFile);
    expect(file.raw('u').buffer).toBe(referenceFile.buffer);
  });

  test('unaligned elements of every width are read', () => {
    for (const [dtype, data] of [
      ['F64', Float64Array.of(0.5)],
      ['I64', BigInt64Array.of(-9n)],
      ['U16', Uint16Array.of(500)],
      ['BF16', Uint16Array.of(0x3fc0)],
    ] as const) {
      const bytes = bytesOf(data);
      const header = { a: entry('U8', [1], 0, 1), t: entry(dtype, [1], 1, 1 + bytes.length) };
      const value = decodeSafetensors(fileOf(header, [0, ...bytes])).float32('t')[0];
      expect(value).toBe({ F64: 0.5, I64: -9, U16: 500, BF16: 1.5 }[dtype]);
    }
  });
});

describe('conversion to float32', () => {
  const every16 = bytesOf(Uint16Array.from({ length: 65536 }, (_, i) => i));
  const every8 = Uint8Array.from({ length: 256 }, (_, i) => i);

  /** NaNs have many patterns: all count as one. */
  const hash = (values: Float32Array) => {
    const bits = new Uint32Array(values.slice().buffer).map((pattern, i) =>
      Number.isNaN(values[i]) ? 0x7fc00000 : pattern,
    );
    return createHash('sha256').update(bits).digest('hex');
  };

  test('all 65,536 F16', () => {
    const values = single('F16', every16, [256, 256]);
    const bits = new DataView(new ArrayBuffer(4));
    for (let pattern = 0; pattern < 65536; pattern++) {
      // By float32's bits where the half is normal, by 2^-24 steps where it is not.
      const sign = pattern >>> 15;
      const exponent = (pattern >>> 10) & 31;
      const mantissa = pattern & 1023;
      let expected = (sign ? -1 : 1) * mantissa * 2 ** -24;
      if (exponent > 0) {
        bits.setUint32(
          0,
          ((sign << 31) | ((exponent === 31 ? 255 : exponent + 112) << 23) | (mantissa << 13)) >>> 0,
        );
        expected = bits.getFloat32(0);
      }
      if (!Object.is(values[pattern], expected))
        expect([pattern, values[pattern]]).toEqual([pattern, expected]);
    }
    // numpy 2.4.6: np.arange(65536, dtype=np.uint16).view(np.float16).astype(np.float32)
    expect(hash(values)).toBe('385ff5fe69182797cda5f1827e20cf423f4416bc9246f27d0eec27cac9039259');
    expect([values[0x3c00], values[0x7bff], values[0x0001], values[0x3555]]).toEqual([
      1,
      65504,
      2 ** -24,
      0.333251953125,
    ]);
  });

  test('all 65,536 BF16', () => {
    const values = single('BF16', every16, [65536]);
    for (let pattern = 0; pattern < 65536; pattern++) {
      const sign = pattern >= 32768 ? -1 : 1;
      const exponent = (pattern >>> 7) & 255;
      const mantissa = pattern & 127;
      const expected =
        exponent === 255
          ? mantissa === 0
            ? sign / 0
            : Number.NaN
          : exponent === 0
            ? sign * mantissa * 2 ** -133
            : sign * (128 + mantissa) * 2 ** (exponent - 134);
      if (!Object.is(values[pattern], expected))
        expect([pattern, values[pattern]]).toEqual([pattern, expected]);
    }
    // ml_dtypes 0.6.0: bfloat16
    expect(hash(values)).toBe('f12e27efe34841dfd6391497b86f389096b03a376586e1d9691bba0a8de3980a');
  });

  test('all 256 F8_E4M3: no infinity, one NaN of each sign', () => {
    const values = single('F8_E4M3', every8, [256]);
    for (let pattern = 0; pattern < 256; pattern++) {
      const sign = pattern >= 128 ? -1 : 1;
      const exponent = (pattern >>> 3) & 15;
      const mantissa = pattern & 7;
      const expected =
        (pattern & 127) === 127
          ? Number.NaN
          : sign * (exponent === 0 ? mantissa * 2 ** -9 : (8 + mantissa) * 2 ** (exponent - 10));
      expect(values[pattern]).toBe(expected);
    }
    // The table of the OCP specification: 1, the largest, the smallest normal and the smallest.
    expect([values[0x38], values[0x7e], values[0x08], values[0x01]]).toEqual([1, 448, 2 ** -6, 2 ** -9]);
    // ml_dtypes 0.6.0: float8_e4m3fn
    expect(hash(values)).toBe('422eccfaa21e72a6b26855bb10cdcfead6c1ce3262ecd813c99d8cbf9677f2e2');
  });

  test('all 256 F8_E5M2: the upper half of F16', () => {
    const values = single('F8_E5M2', every8, [256]);
    const halves = single('F16', bytesOf(Uint16Array.from(every8, byte => byte << 8)), [256]);
    expect(values).toEqual(halves);
    expect([values[0x3c], values[0x7b], values[0x04], values[0x01]]).toEqual([1, 57344, 2 ** -14, 2 ** -16]);
    expect([values[0x7c], values[0xfc], values[0x7d]]).toEqual([
      Number.POSITIVE_INFINITY,
      Number.NEGATIVE_INFINITY,
      Number.NaN,
    ]);
    // ml_dtypes 0.6.0: float8_e5m2
    expect(hash(values)).toBe('229a94c5f728edf2259da970a0e1dfb45cc1d69cce2b30e37659f3212ec4b8b9');
  });

  test.each<[TensorInput['data'], number[]]>([
    [Float64Array.of(0.1, -0, 1e300, 2 ** -150), [Math.fround(0.1), -0, Number.POSITIVE_INFINITY, 0]],
    [Float32Array.of(0.1, -0), [Math.fround(0.1), -0]],
    [Int8Array.of(-128, 127), [-128, 127]],
    [Uint8Array.of(0, 255), [0, 255]],
    [Int16Array.of(-32768, 32767), [-32768, 32767]],
    [Uint16Array.of(0, 65535), [0, 65535]],
    [Int32Array.of(-(2 ** 31), 16777217, 16777219), [-(2 ** 31), 16777216, 16777220]],
    [Uint32Array.of(2 ** 32 - 1), [2 ** 32]],
    [BigInt64Array.of(-1n, -(2n ** 63n), 2n ** 63n - 1n), [-1, -(2 ** 63), 2 ** 63]],
    [BigUint64Array.of(0n, 2n ** 64n - 1n), [0, 2 ** 64]],
  ])('%o', (data, expected) => {
    const file = decodeSafetensors(encodeSafetensors({ t: { shape: [data.length], data } }));
    expect([...file.float32('t')]).toEqual(expected);
  });

  test('BOOL is 0 or 1, whatever the byte', () => {
    expect(single('BOOL', Uint8Array.of(0, 1, 2, 255), [4])).toEqual(Float32Array.of(0, 1, 1, 1));
  });

  test('64-bit integers round once', () => {
    // Just above half way between two floats: through a double they would fall to the even one.
    const above = 2n ** 62n + 2n ** 38n;
    const step = 2 ** 39;
    const data = BigInt64Array.of(above + 1n, above, above - 1n, -above - 1n, 2n ** 53n + 2n ** 29n + 1n);
    expect([...single('I64', bytesOf(data), [5])]).toEqual([
      2 ** 62 + step,
      2 ** 62,
      2 ** 62,
      -(2 ** 62) - step,
      2 ** 53 + 2 ** 30,
    ]);
    const unsigned = BigUint64Array.of(2n ** 63n + 2n ** 39n + 1n, 2n ** 63n + 2n ** 39n);
    expect([...single('U64', bytesOf(unsigned), [2])]).toEqual([2 ** 63 + 2 ** 40, 2 ** 63]);

    fc.assert(
      fc.property(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), integer => {
        const value = BigInt(single('I64', bytesOf(BigInt64Array.of(integer)), [1])[0]);
        const size = (n: bigint) => (n < 0n ? -n : n);
        // No float32 is nearer: the neighbours are 2^(bits - 24) away, or half of it below a power of two.
        const bits = size(integer).toString(2).length;
        expect(size(value - integer) * 2n <= 2n ** BigInt(Math.max(bits - 24, 0))).toBe(true);
        expect(Math.fround(Number(value))).toBe(Number(value));
      }),
    );
  });

  test('what has no float32 can be read raw', () => {
    const file = decodeSafetensors(
      fileOf({ c: entry('C64', [1], 0, 8), f: entry('F4', [2], 8, 9) }, Array(9).fill(1)),
    );
    expect(file.raw('c')).toEqual(new Uint8Array(8).fill(1));
    expect(() => file.float32('c')).toThrow(
      /^safetensors data: tensor "c" is C64, float32 takes BOOL, .*; use raw$/,
    );
    expect(file.raw('f')).toEqual(Uint8Array.of(1));
  });
});

const anyName = fc
  .oneof(
    fc.string({ maxLength: 12 }),
    fc.string({ unit: 'binary', maxLength: 6 }),
    fc.constantFrom('__proto__', 'constructor', '0', '10', 'layer.0.weight'),
  )
  .filter(name => name !== '__metadata__' && !/\p{Surrogate}/u.test(name));
const anyShape = fc.array(fc.nat({ max: 4 }), { maxLength: 4 });
const sized = (shape: readonly number[]) => shape.reduce((a, b) => a * b, 1);
const ofLength = (n: number) => ({ minLength: n, maxLength: n });
const anyTensor: fc.Arbitrary<TensorInput> = anyShape.chain(shape => {
  const n = ofLength(sized(shape));
  return fc
    .oneof(
      fc.float32Array(n),
      fc.float64Array(n),
      fc.int8Array(n),
      fc.uint8Array(n),
      fc.int16Array(n),
      fc.uint16Array(n),
      fc.int32Array(n),
      fc.uint32Array(n),
      fc.bigInt64Array(n),
      fc.bigUint64Array(n),
    )
    .map(data => ({ shape, data }) as TensorInput);
});
const anyTensors = fc
  .array(fc.tuple(anyName, anyTensor), { maxLength: 6 })
  .map(pairs => Object.fromEntries(pairs) as Record<string, TensorInput>);
const anyMetadata = fc
  .array(fc.tuple(anyName, fc.string({ unit: 'grapheme' })), { maxLength: 3 })
  .map(pairs => Object.fromEntries(pairs) as Record<string, string>);

describe('round trip', () => {
  test('random tensors, in memory', () => {
    fc.assert(
      fc.property(anyTensors, anyMetadata, (tensors, metadata) => {
        const bytes = encodeSafetensors(tensors, metadata);
        const file = decodeSafetensors(bytes);
        expect([...file.names].sort()).toEqual(Object.keys(tensors).sort());
        expect(Object.entries(file.metadata).sort()).toEqual(Object.entries(metadata).sort());
        for (const [name, { shape, data }] of Object.entries(tensors)) {
          expect(file.info(name).shape).toEqual(shape);
          expect(file.raw(name)).toEqual(bytesOf(data));
          if (data instanceof Float32Array) expect(file.float32(name)).toEqual(data);
        }
        const again = Object.fromEntries(
          file.names.map(name => [name, { ...file.info(name), data: file.raw(name) }]),
        );
        expect(encodeSafetensors(again, file.metadata)).toEqual(bytes);
      }),
    );
  });

  test('random tensors, on a disk that transfers a few bytes at a time', async () => {
    const path = join(folder, 'round-trip.safetensors');
    await fc.assert(
      fc.asyncProperty(
        anyTensors,
        anyMetadata,
        fc.integer({ min: 1, max: 64 }),
        async (tensors, metadata, maxBytes) => {
          disk.maxBytes = maxBytes;
          await writeSafetensors(path, tensors, metadata);
          expect(new Uint8Array(await readFile(path))).toEqual(encodeSafetensors(tensors, metadata));
          const file = await readSafetensors(path);
          for (const [name, { data }] of Object.entries(tensors))
            expect(file.raw(name)).toEqual(bytesOf(data));
        },
      ),
      { numRuns: 30 },
    );
  });

  test('only the part of a buffer that an array views is written', () => {
    const data = new Float32Array(10).fill(9).subarray(2, 4);
    expect(decodeSafetensors(encodeSafetensors({ t: { shape: [2], data } })).float32('t')).toEqual(
      Float32Array.of(9, 9),
    );
  });
});

/** Calls back before an array of some length is allocated. */
function onConstruct(
  type: { new (length: number): object; name: string },
  callback: (length: number) => void,
): void {
  vi.stubGlobal(
    type.name,
    new Proxy(type, {
      construct(target, args: [number], newTarget) {
        if (typeof args[0] === 'number') callback(args[0]);
        return Reflect.construct(target, args, newTarget);
      },
    }),
  );
}

/** The message of the refusal; anything but a SafetensorsError of one line fails. */
async function refusal(work: () => unknown): Promise<string> {
  try {
    await work();
  } catch (error) {
    expect(error).toBeInstanceOf(SafetensorsError);
    expect((error as Error).name).toBe('SafetensorsError');
    // biome-ignore lint/suspicious/noControlCharactersInRegex: that is what must not be there
    expect((error as Error).message).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/);
    return (error as Error).message;
  }
  return expect.unreachable('was not refused');
}

const safest = Number.MAX_SAFE_INTEGER;
const u8 = (begin: unknown, end: unknown, shape: unknown = [2]) => entry('U8', shape, begin, end);
const refusedFiles: [string, Uint8Array, string | RegExp][] = [
  [
    'empty',
    new Uint8Array(0),
    '0 bytes, a safetensors file has at least 8; it was cut short or is another format',
  ],
  [
    '7 bytes',
    new Uint8Array(7),
    '7 bytes, a safetensors file has at least 8; it was cut short or is another format',
  ],
  [
    'header length 0',
    fileOf('', [1, 2]),
    'header length 0, must be 1 to 100000000 bytes; not a safetensors file, or a damaged one',
  ],
  [
    'header length above the limit',
    fileOf('{}', [], 100_000_001n),
    'header length 100000001, must be 1 to 100000000 bytes; not a safetensors file, or a damaged one',
  ],
  [
    'header length of 64 bits',
    fileOf('{}', [], 2n ** 64n - 1n),
    'header length 18446744073709551615, must be 1 to 100000000 bytes; not a safetensors file, or a damaged one',
  ],
  [
    'header beyond the file',
    fileOf('{}', [], 100n),
    'header length 100, but 2 bytes follow: 98 are missing; copy or download it again',
  ],
  [
    'not UTF-8',
    new Uint8Array(Buffer.concat([fileOf('', [], 3n), Buffer.of(0x7b, 0xff, 0x7d)])),
    'header is not UTF-8; not a safetensors file, or a damaged one',
  ],
  [
    'not JSON',
    fileOf('{"a":}'),
    // The middle is V8's, and differs between versions of Node.
    /^header is not JSON \(Unexpected token .+\); not a safetensors file, or a damaged one$/,
  ],
  ['a list', fileOf('[]'), 'header starts with byte 0x5b, must start with "{"; not a safetensors file'],
  [
    'spaces first',
    fileOf(' {}'),
    'header starts with byte 0x20, must start with "{"; not a safetensors file',
  ],
  [
    'a byte order mark first',
    fileOf('\ufeff{}'),
    'header starts with byte 0xef, must start with "{"; not a safetensors file',
  ],
  [
    'a tensor twice',
    fileOf(
      '{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"I8","shape":[1],"data_offsets":[0,1]}}',
      [1],
    ),
    'header has the name "a" twice, names must be unique; export the file again',
  ],
  [
    'a tensor twice, once escaped',
    fileOf(
      '{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"\\u0061" :{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}',
    ),
    'header has the name "a" twice, names must be unique; export the file again',
  ],
  [
    'a tensor twice, its name with a quote and a brace',
    fileOf(
      '{"}\\"":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"}\\"":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}',
    ),
    'header has the name "}\\"" twice, names must be unique; export the file again',
  ],
  [
    '__proto__ twice',
    fileOf(
      '{"__proto__":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"__proto__":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}',
    ),
    'header has the name "__proto__" twice, names must be unique; export the file again',
  ],
  [
    'a field twice',
    fileOf('{"a":{"dtype":"U8","dtype":"I8","shape":[0],"data_offsets":[0,0]}}'),
    'header has the name "dtype" twice, names must be unique; export the file again',
  ],
  [
    'a metadata key twice',
    fileOf('{"__metadata__":{"k":"1","k":"2"}}'),
    'header has the name "k" twice, names must be unique; export the file again',
  ],
  [
    'deep nesting',
    fileOf(`{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`),
    "header nests deeper than 8, a tensor's entry needs 3; export the file again",
  ],
  [
    'a long list',
    fileOf(`{"a":[${'[],'.repeat(100_000)}[]]}`),
    "header has a list of more than 64 values, a shape's limit; merge dimensions",
  ],
  [
    'an entry that is a number',
    fileOf({ a: 3 }),
    'tensor "a" is 3, must be an object; export the file again',
  ],
  [
    'an entry that is null',
    fileOf({ a: null }),
    'tensor "a" is null, must be an object; export the file again',
  ],
  [
    'an entry that is a list',
    fileOf({ a: [1] }),
    'tensor "a" is [1], must be an object; export the file again',
  ],
  ...(['dtype', 'shape', 'data_offsets'] as const).map((field): [string, Uint8Array, string] => [
    `no ${field}`,
    fileOf({ a: { ...u8(0, 2), [field]: undefined } }, [1, 2]),
    `tensor "a" has no ${field}, needs dtype, shape and data_offsets; export the file again`,
  ]),
  ...['F128', 'f32', 'constructor', '__proto__', 7, null].map((dtype): [string, Uint8Array, string] => [
    `dtype ${dtype}`,
    fileOf({ a: { ...u8(0, 2), dtype } }, [1, 2]),
    `tensor "a": unknown dtype ${JSON.stringify(dtype)}; convert it to one of BOOL, F4, F6_E2M3, F6_E3M2, U8, I8, F8_E5M2, F8_E4M3, F8_E8M0, F8_E4M3FNUZ, F8_E5M2FNUZ, I16, U16, F16, BF16, I32, U32, F32, C64, F64, I64, U64`,
  ]),
  ...['[-1]', '[1.5]', '[-0]', '["2"]', '[null]', '[9007199254740993]', '2', '{}', '[[2]]'].map(
    (shape): [string, Uint8Array, string] => [
      `shape ${shape}`,
      fileOf(`{"a":{"dtype":"U8","shape":${shape},"data_offsets":[0,2]}}`, [1, 2]),
      `tensor "a": shape ${JSON.stringify(JSON.parse(shape))}, must be integers from 0 to ${safest}; correct the shape`,
    ],
  ),
  [
    'a shape whose product overflows',
    fileOf({ a: u8(0, 2, [2 ** 40, 2 ** 40]) }, [1, 2]),
    `tensor "a": shape [1099511627776,1099511627776] of U8 has more than ${safest} bits; correct the shape`,
  ],
  [
    'a shape whose product times the size overflows',
    fileOf({ a: entry('F64', [2 ** 50], 0, 2) }, [1, 2]),
    `tensor "a": shape [1125899906842624] of F64 has more than ${safest} bits; correct the shape`,
  ],
  [
    'a part of a byte',
    fileOf({ a: entry('F4', [3], 0, 2) }, [1, 2]),
    'tensor "a": shape [3] of F4 is 12 bits, must be whole bytes; pad it',
  ],
  ...['[0]', '[0,1,2]', '[-1,1]', '[0,2.5]', '["0","2"]', '[0,1e300]', '{"0":0,"1":2}', 'null'].map(
    (offsets): [string, Uint8Array, string] => [
      `data_offsets ${offsets}`,
      fileOf(`{"a":{"dtype":"U8","shape":[2],"data_offsets":${offsets}}}`, [1, 2]),
      `tensor "a": data_offsets ${JSON.stringify(JSON.parse(offsets))}, must be two integers from 0 to ${safest}; export the file again`,
    ],
  ),
  [
    'data_offsets backwards',
    fileOf({ a: u8(2, 0) }, [1, 2]),
    'tensor "a": data_offsets [2,0] end before they begin; export the file again',
  ],
  [
    'data_offsets that do not fit the shape',
    fileOf({ a: entry('F32', [3], 0, 8) }, Array(8).fill(0)),
    'tensor "a": data_offsets [0,8] hold 8 bytes, but shape [3] of F32 takes 12; export the file again',
  ],
  [
    'overlap',
    fileOf({ a: u8(0, 2), b: u8(1, 3) }, [1, 2, 3]),
    'tensor "b" begins at data byte 1, inside tensor "a", which ends at 2; tensors must not overlap: export the file again',
  ],
  [
    'two names for the same bytes',
    fileOf({ a: u8(0, 2), b: u8(0, 2) }, [1, 2]),
    'tensor "b" begins at data byte 0, inside tensor "a", which ends at 2; tensors must not overlap: export the file again',
  ],
  [
    'a hole between tensors',
    fileOf({ a: u8(0, 2), b: u8(5, 7) }, [1, 2, 0, 0, 0, 3, 4]),
    'tensor "b" begins at data byte 5, but tensor "a" ends at 2: 3 bytes belong to no tensor; export the file again',
  ],
  [
    'a hole before the first tensor',
    fileOf({ a: u8(1, 3) }, [0, 1, 2]),
    'tensor "a" begins at data byte 1, but the header ends at 0: 1 bytes belong to no tensor; export the file again',
  ],
  [
    'trailing bytes',
    fileOf({ a: u8(0, 2) }, [1, 2, 3, 4, 5]),
    'data of 5 bytes, but the tensors end at 2: 3 trailing bytes belong to no tensor; export the file again',
  ],
  [
    'trailing bytes without a tensor',
    fileOf({}, [1]),
    'data of 1 bytes, but the tensors end at 0: 1 trailing bytes belong to no tensor; export the file again',
  ],
  [
    'cut short',
    fileOf({ a: u8(0, 2), b: u8(2, 4), c: u8(4, 6) }, [1, 2, 3]),
    'data of 3 bytes, the header promises 6: 3 are missing, from tensor "b" on; copy or download it again',
  ],
  [
    'data_offsets far out of range',
    fileOf({ a: u8(0, 2 ** 49, [2 ** 49]) }, [1]),
    'data of 1 bytes, the header promises 562949953421312: 562949953421311 are missing, from tensor "a" on; copy or download it again',
  ],
  [
    'metadata that is not an object',
    fileOf({ __metadata__: ['x'] }),
    '__metadata__ is ["x"], must be an object; export the file again',
  ],
  [
    'a metadata value that is not a string',
    fileOf({ __metadata__: { epoch: 3 } }),
    'metadata "epoch" is 3, must be a string; quote it in the header',
  ],
  [
    'half a surrogate pair in a name',
    fileOf('{"\\ud800":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}'),
    'tensor name "\\ud800" has half of a surrogate pair, which UTF-8 cannot hold; rename it',
  ],
  [
    'control characters in a name',
    fileOf({ '\u001b[31m\n\u2028\u009b': 1 }),
    'tensor "\\u001b[31m\\n " is 1, must be an object; export the file again',
  ],
  [
    'control characters where JSON is broken',
    fileOf('{\n\u001b[31m'),
    /^header is not JSON \(.+\); not a safetensors file, or a damaged one$/,
  ],
  [
    'a very long name',
    fileOf({ ['x'.repeat(1000)]: 1 }),
    `tensor "${'x'.repeat(76)}... is 1, must be an object; export the file again`,
  ],
];

describe('refuses', () => {
  test.each(refusedFiles)('%s', async (_, bytes, message) => {
    const path = join(folder, 'refused.safetensors');
    await writeFile(path, bytes);
    for (const [source, read] of [
      ['model.safetensors', () => decodeSafetensors(bytes, 'model.safetensors')],
      [path, () => readSafetensors(path)],
    ] as const) {
      const text = await refusal(read);
      expect(text.slice(0, source.length + 2)).toBe(`${source}: `);
      if (typeof message === 'string') expect(text.slice(source.length + 2)).toBe(message);
      else expect(text.slice(source.length + 2)).toMatch(message);
    }
  });

  test('a tensor that is not there', async () => {
    const file = decodeSafetensors(fileOf({ a: u8(0, 2) }, [1, 2]), 'm');
    for (const get of [file.info, file.raw, file.float32]) {
      expect(await refusal(() => get('b'))).toBe('m: no tensor "b"; it has 1: "a"');
    }
    expect(await refusal(() => decodeSafetensors(fileOf('{}')).raw('b'))).toBe(
      'safetensors data: no tensor "b"; it has 0: none',
    );
  });

  test("a directory; a missing file stays the system's error", async () => {
    await expect(readSafetensors(folder)).rejects.toThrow(
      `${folder}: is not a regular file; give the path of a .safetensors file`,
    );
    await expect(readSafetensors(join(folder, 'none'))).rejects.toThrow('ENOENT');
  });

  test('a file that shrinks while it is read', async () => {
    const path = join(folder, 'shrinks.safetensors');
    const bytes = fileOf({ a: u8(0, 2) }, [1, 2]);
    await writeFile(path, bytes);
    disk.endsAt = bytes.length - 1;
    disk.maxBytes = 1;
    await expect(readSafetensors(path)).rejects.toThrow(
      `${path}: ended at byte ${bytes.length - 1} while being read, expected ${bytes.length}; read it when nothing writes to it`,
    );
  });

  test('data that no buffer can hold', async () => {
    const path = join(folder, 'huge.safetensors');
    await writeFile(path, fileOf({ a: u8(0, 11, [11]) }, Array(11).fill(0)));
    onConstruct(Uint8Array, length => {
      if (length === 11) throw new RangeError('Array buffer allocation failed');
    });
    await expect(readSafetensors(path)).rejects.toThrow(
      `${path}: 11 bytes do not fit in one buffer; split the file into shards`,
    );
  });

  const f32 = (shape: number[], length: number) => ({ t: { shape, data: new Float32Array(length) } });
  test.each<[string, () => unknown, string]>([
    [
      'to write more data than a shape takes',
      () => encodeSafetensors(f32([2, 2], 5)),
      'tensor "t": 20 bytes of data, but shape [2,2] of F32 takes 16; correct the shape or the data',
    ],
    [
      'to write a shape that does not fit',
      () => encodeSafetensors(f32([2, 2], 3)),
      'tensor "t": 12 bytes of data, but shape [2,2] of F32 takes 16; correct the shape or the data',
    ],
    [
      'to write a negative shape',
      () => encodeSafetensors(f32([-1, -3], 3)),
      `tensor "t": shape [-1,-3], must be integers from 0 to ${safest}; correct the shape`,
    ],
    [
      'to write 65 dimensions',
      () => encodeSafetensors(f32(Array(65).fill(1), 1)),
      'tensor "t": 65 dimensions, at most 64; merge some',
    ],
    [
      'to write a tensor named __metadata__',
      () => encodeSafetensors({ __metadata__: { shape: [0], data: new Float32Array(0) } }),
      'tensor "__metadata__": the format keeps this name for its metadata; rename the tensor',
    ],
    [
      'to write half a surrogate pair',
      () => encodeSafetensors({ '\ud800': { shape: [0], data: new Float32Array(0) } }),
      'tensor name "\\ud800" has half of a surrogate pair, which UTF-8 cannot hold; rename it',
    ],
    [
      'to write an array without a dtype',
      () => encodeSafetensors({ t: { shape: [0], data: new Uint8ClampedArray(0) as never } }),
      'tensor "t": Uint8ClampedArray has no dtype; use one of Float32Array, Float64Array, Int8Array, Uint8Array, Int16Array, Uint16Array, Int32Array, Uint32Array, BigInt64Array, BigUint64Array',
    ],
    [
      'to write a list of numbers',
      () => encodeSafetensors({ t: { shape: [1], data: [1] as never } }),
      'tensor "t": undefined has no dtype; use one of Float32Array, Float64Array, Int8Array, Uint8Array, Int16Array, Uint16Array, Int32Array, Uint32Array, BigInt64Array, BigUint64Array',
    ],
    [
      'to write a dtype against the array',
      () => encodeSafetensors({ t: { shape: [1], dtype: 'I32', data: new Float32Array(1) } }),
      'tensor "t": Float32Array is F32, not I32; leave dtype out, or give bytes (Uint8Array)',
    ],
    [
      'to write metadata that is not a string',
      () => encodeSafetensors({}, { epoch: 3 as never }),
      'metadata "epoch" is 3, must be a string; use JSON.stringify',
    ],
    [
      'to write a header that nobody would read',
      () => encodeSafetensors({}, { text: 'x'.repeat(100_000_000) }),
      'header of 100000032 bytes, at most 100000000 are readable; shorten the metadata or split the file',
    ],
  ])('%s', async (_, work, message) => {
    expect(await refusal(work)).toBe(`encodeSafetensors: ${message}`);
  });
});

describe('damage', () => {
  // Most files keep their length: one that is cut is refused at once, and tries nothing deeper.
  const seldom = <T>(some: fc.Arbitrary<T>, otherwise: T) =>
    fc.oneof({ weight: 1, arbitrary: some }, { weight: 4, arbitrary: fc.constant(otherwise) });
  const mutated = fc
    .record({
      cut: seldom(fc.nat({ max: referenceFile.length }), referenceFile.length),
      edits: fc.array(
        fc.record({
          // Half of them in the length and the first entries, where they hurt most.
          at: fc.oneof(fc.nat({ max: 60 }), fc.nat({ max: referenceFile.length - 1 })),
          byte: fc.oneof(fc.nat({ max: 255 }), fc.constantFrom(...Buffer.from('{}[]":,0123456789-e\\ '))),
        }),
        { maxLength: 4 },
      ),
      grown: seldom(fc.uint8Array({ maxLength: 4 }), new Uint8Array(0)),
    })
    .map(({ cut, edits, grown }) => {
      const bytes = Buffer.from(referenceFile);
      for (const { at, byte } of edits) bytes[at] = byte;
      return new Uint8Array(Buffer.concat([bytes.subarray(0, cut), grown]));
    });

  const readAll = (file: ReturnType<typeof decodeSafetensors>) => {
    for (const name of file.names) {
      expect(file.raw(name).byteLength).toBeLessThanOrEqual(referenceFile.length + 4);
      try {
        file.float32(name);
      } catch (error) {
        expect(error).toBeInstanceOf(SafetensorsError); // a dtype without float32
      }
    }
  };

  test('2,000 mutations and truncations are read or refused, nothing else', () => {
    let refused = 0;
    fc.assert(
      fc.property(mutated, bytes => {
        try {
          readAll(decodeSafetensors(bytes));
        } catch (error) {
          if (!(error instanceof SafetensorsError)) throw error;
          refused++;
        }
      }),
      { numRuns: 2000 },
    );
    expect(refused).toBeGreaterThan(1000);
    expect(refused).toBeLessThan(2000);
  });

  test('every truncation is refused', async () => {
    for (let length = 0; length < referenceFile.length; length++) {
      await refusal(() => decodeSafetensors(referenceFile.subarray(0, length)));
    }
  });

  test('no more is allocated than the file holds, whatever it claims', async () => {
    const path = join(folder, 'damaged.safetensors');
    let largest = 0;
    const watch = (length: number) => {
      largest = Math.max(largest, length);
    };
    onConstruct(Uint8Array, watch);
    onConstruct(Float32Array, watch);
    const read = async (bytes: Uint8Array) => {
      await writeFile(path, bytes);
      largest = 0;
      try {
        readAll(await readSafetensors(path));
      } catch (error) {
        if (!(error instanceof SafetensorsError)) throw error;
      }
      // Eight bytes are read before anything is known.
      expect(largest).toBeLessThanOrEqual(Math.max(bytes.length, 8));
    };
    for (const [, bytes] of refusedFiles) await read(bytes);
    await read(fileOf({ a: entry('U8', [2 ** 31], 0, 2 ** 31) }, [1]));
    expect(largest).toBeGreaterThan(0); // the stub is in use
    await fc.assert(fc.asyncProperty(mutated, read), { numRuns: 300 });
  });
});

describe('writing', () => {
  const tensors = { t: { shape: [4], data: Float32Array.of(1, 2, 3, 4) } };

  test('replaces a file, and leaves nothing else behind', async () => {
    const dir = await mkdtemp(join(folder, 'replace-'));
    const path = join(dir, 'policy.safetensors');
    await writeFile(path, 'old');
    await writeSafetensors(path, tensors, { step: '7' });
    expect(await readdir(dir)).toEqual(['policy.safetensors']);
    const file = await readSafetensors(path);
    expect(file.metadata).toEqual({ step: '7' });
    expect(file.float32('t')).toEqual(tensors.t.data);
  });

  test('the data reaches the disk before the name does', async () => {
    disk.calls = [];
    await writeSafetensors(join(folder, 'order.safetensors'), tensors);
    expect(disk.calls).toEqual(['sync', 'rename', 'sync']);
  });

  test('a read F32 tensor is a view of the one buffer that was read', async () => {
    const path = join(folder, 'view.safetensors');
    await writeSafetensors(path, tensors);
    const file = await readSafetensors(path);
    expect(file.float32('t').buffer).toBe(file.raw('t').buffer);
    expect(file.raw('t').buffer.byteLength).toBe(16);
  });

  test('a full disk leaves the old file as it was, and no temporary one', async () => {
    const dir = await mkdtemp(join(folder, 'full-'));
    const path = join(dir, 'policy.safetensors');
    await writeFile(path, 'old');
    disk.maxBytes = 16;
    disk.failAfterBytes = 40;
    await expect(writeSafetensors(path, tensors)).rejects.toThrow('ENOSPC');
    expect(await readdir(dir)).toEqual(['policy.safetensors']);
    expect(await readFile(path, 'utf8')).toBe('old');
  });

  test('a rename that fails leaves no temporary file', async () => {
    const dir = await mkdtemp(join(folder, 'rename-'));
    const path = join(dir, 'policy.safetensors');
    await mkdir(path);
    await expect(writeSafetensors(path, tensors)).rejects.toThrow(/EISDIR|ENOTEMPTY|EEXIST|EPERM/);
    expect(await readdir(dir)).toEqual(['policy.safetensors']);
  });

  test('what is refused touches no file, and names the path', async () => {
    const dir = await mkdtemp(join(folder, 'refuse-'));
    const path = join(dir, 'policy.safetensors');
    await expect(writeSafetensors(path, { t: { shape: [5], data: new Float32Array(4) } })).rejects.toThrow(
      `${path}: tensor "t": 16 bytes of data, but shape [5] of F32 takes 20`,
    );
    expect(await readdir(dir)).toEqual([]);
    await expect(writeSafetensors(join(dir, 'none', 'x'), tensors)).rejects.toThrow('ENOENT');
  });

  test('a reader never sees a part of it', async () => {
    const dir = await mkdtemp(join(folder, 'live-'));
    const path = join(dir, 'policy.safetensors');
    await writeSafetensors(path, tensors);
    disk.maxBytes = 8;
    let writing = true;
    const done = writeSafetensors(path, { t: { shape: [400], data: new Float32Array(400) } }).finally(() => {
      writing = false;
    });
    const lengths = new Set<number>();
    while (writing) lengths.add((await readSafetensors(path)).float32('t').length);
    await done;
    lengths.add((await readSafetensors(path)).float32('t').length);
    expect([...lengths]).toEqual([4, 400]);
  });

  test('reads through a symbolic link', async () => {
    const dir = await mkdtemp(join(folder, 'link-'));
    await writeSafetensors(join(dir, 'a.safetensors'), tensors);
    await symlink('a.safetensors', join(dir, 'last.safetensors'));
    expect((await readSafetensors(join(dir, 'last.safetensors'))).names).toEqual(['t']);
    expect(existsSync(join(dir, 'last.safetensors'))).toBe(true);
  });
});
