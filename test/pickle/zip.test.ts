import { expect, it } from 'vitest';
import { openTorch, stateDict } from '../../src/pickle/torch.ts';
import { openZip } from '../../src/pickle/zip.ts';
import { bytesOf, floats, tensorPickle, torchOf, u32, type ZipFile, zipOf } from './support.ts';

const text = (content: string, more: Partial<ZipFile> = {}): ZipFile => ({
  name: 'a.txt',
  content: Buffer.from(content),
  ...more,
});
const open = (...files: readonly ZipFile[]) => openZip(zipOf(files), 'it');

it('reads files that are stored and deflated', () => {
  const zip = open(text('hello'), { name: 'b', content: Buffer.from('x'.repeat(1000)), deflate: true });
  expect(zip.names).toEqual(['a.txt', 'b']);
  expect(Buffer.from(zip.read('a.txt')).toString()).toBe('hello');
  expect(Buffer.from(zip.read('b')).toString()).toBe('x'.repeat(1000));
});

it.each<[string, () => unknown, RegExp]>([
  ['no archive', () => openZip(Buffer.from('hello'), 'it'), /its end is missing/],
  ['a cut one', () => openZip(zipOf([text('hello')]).subarray(0, 60), 'it'), /its end is missing/],
  [
    'a list that is cut',
    () => openZip(zipOf([text('hello')]).subarray(40), 'it').read('a.txt'),
    /it: not a whole zip archive/,
  ],
  ['a file that is not there', () => open(text('hello')).read('data'), /has no "data", it has "a.txt"/],
  ['a name twice', () => open(text('1'), text('2')), /has "a.txt" twice/],
  ['a password', () => open(text('1', { says: { flags: 1 } })), /encrypted/],
  ['another method', () => open(text('1', { says: { method: 14 } })).read('a.txt'), /packed by method 14/],
  [
    'another sum',
    () => open(text('1', { says: { crc: 7 } })).read('a.txt'),
    /the sum of "a.txt" is another one/,
  ],
  [
    'a size that is less',
    () => open(text('12', { says: { size: 1 } })).read('a.txt'),
    /has 2 bytes, its entry says 1/,
  ],
  [
    'a bomb that says how large it is',
    () => open({ name: 'bomb', content: Buffer.alloc(2 ** 24), deflate: true }),
    /"bomb" would grow from \d+ to 16777216 bytes, at most 200 times/,
  ],
  [
    'a bomb that lies',
    () =>
      open({ name: 'bomb', content: Buffer.alloc(2 ** 24), deflate: true, says: { size: 1000 } }).read(
        'bomb',
      ),
    /"bomb" cannot be unpacked/,
  ],
  [
    'more than is read of any model',
    () =>
      open(
        ...['a', 'b', 'c'].map(name => ({
          name,
          content: Buffer.alloc(2 ** 20, name),
          says: { size: 2 ** 27 },
        })),
      ),
    /its files are more than 268435456 bytes/,
  ],
])('refuses %s', (_, act, message) => {
  expect(act).toThrow(message);
});

it('refuses files that share their bytes', () => {
  // Both entries point to the whole: together they are longer than the archive.
  const archive = Buffer.from(zipOf([text('x'.repeat(2000)), { name: 'b.txt', content: Buffer.alloc(0) }]));
  const second = archive.lastIndexOf('PK\x01\x02');
  u32(2000).forEach((byte, i) => {
    archive[second + 20 + i] = byte;
    archive[second + 24 + i] = byte;
  });
  expect(() => openZip(archive, 'it')).toThrow(/its files are longer than itself/);
});

const tensor = (given: Parameters<typeof tensorPickle>[0], ...values: number[]) => {
  const file = openTorch(torchOf(tensorPickle(given), { 0: floats(...values) }), 'it');
  return stateDict(file, file.root, 'it').get('w')!;
};

it('reads tensors by their strides', () => {
  expect(tensor({ shape: [2, 3], stride: [3, 1], length: 6 }, 1, 2, 3, 4, 5, 6).data.join()).toBe(
    '1,2,3,4,5,6',
  );
  expect(tensor({ shape: [3, 2], stride: [1, 3], length: 6 }, 1, 2, 3, 4, 5, 6).data.join()).toBe(
    '1,4,2,5,3,6',
  );
  expect(tensor({ shape: [2], stride: [2], offset: 1, length: 4 }, 1, 2, 3, 4).data.join()).toBe('2,4');
  expect(tensor({ shape: [], stride: [], length: 1 }, 7)).toEqual({ shape: [], data: Float32Array.of(7) });
});

it.each<[string, () => unknown, RegExp]>([
  [
    'a tensor larger than its storage',
    () => tensor({ shape: [1e9], stride: [0], length: 1 }, 1),
    /1000000000 numbers in a storage of 1/,
  ],
  [
    'one that ends behind it',
    () => tensor({ shape: [2], stride: [3], length: 3 }, 1, 2, 3),
    /2 numbers in a storage of 3/,
  ],
  [
    'a storage that is cut',
    () => tensor({ shape: [4], stride: [1], length: 4 }, 1, 2),
    /its storage is too short/,
  ],
  [
    'half precision',
    () => tensor({ shape: [1], stride: [1], length: 1, type: 'HalfStorage' }, 1),
    /torch.HalfStorage, float32 and float64/,
  ],
  [
    'a whole module',
    () => {
      const file = openTorch(torchOf(bytesOf('c__main__\nAgent\n)', 0x81, '.')), 'it');
      return stateDict(file, file.root, 'it');
    },
    /it is what __main__.Agent makes, which is not run, a state dict is needed/,
  ],
  [
    'what torch wrote before 1.6',
    () => openTorch(bytesOf(0x80, 2, 'N.'), 'it'),
    /no file of torch.save since PyTorch 1.6/,
  ],
  ['an archive without a pickle', () => openTorch(zipOf([text('1')]), 'it'), /has 0 data.pkl/],
])('refuses %s', (_, act, message) => {
  expect(act).toThrow(message);
});
