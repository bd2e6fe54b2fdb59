/** Damages files in the ways that disks, kills, editors and attackers do. */
import { gzipSync } from 'node:zlib';
import type { Rng } from '../../src/random/index.ts';
import { bytesField, varintField } from '../../test/doctor/support/proto.ts';
import { tfRecord, versionEvent } from '../../test/doctor/support/tensorboard-file.ts';
import { wandbFile } from '../../test/doctor/support/wandb-file.ts';

const spellings = [
  'NaN',
  'nan',
  '"nan"',
  'null',
  'None',
  'inf',
  '-Infinity',
  'np.float64(nan)',
  '1e999',
  '-0',
  '0x10',
  '1e-400',
  '""',
  'True',
  '9'.repeat(500),
  'tensor(',
  '{',
  '}',
  '[',
  '"',
  '\\',
  '\u0000',
  '\ud800',
  '|',
  '#',
  ':',
  "{'",
  '__proto__',
  'constructor',
  '-1',
  '99999999999999999999',
  '1e15',
  '\ufeff',
  '\x1b[31m',
  '\u202e',
  '"schema":9',
  '{"__proto__":{"polluted":1}}',
  '"constructor":{"prototype":{"polluted":1}},',
  '../../../etc/passwd',
  '%2e%2e%2f',
  '*a',
  '&a',
  '<<: ',
  '? ',
  '- ',
  '!!js/function ',
];

/** Pieces of text that have made parsers slow. */
const bombs = [
  '['.repeat(4000),
  '{"a":'.repeat(1500),
  '\\"'.repeat(3000),
  '"'.repeat(4001),
  ','.repeat(6000),
  "{'a': ".repeat(1000),
  '-'.repeat(8000),
  '| '.repeat(3000),
  ' '.repeat(9000),
  '\r'.repeat(3000),
  '\n'.repeat(3000),
  'step:1 - '.repeat(800),
  '('.repeat(5000),
  '\x1b['.repeat(3000),
  '"log_history": ['.repeat(300),
  `${'a'.repeat(5000)}/`,
  '{'.repeat(1000),
  '? '.repeat(1000),
  '- '.repeat(2000),
  Array.from({ length: 2000 }, (_, i) => `k${i}: 1\n`).join(''),
  `${'9'.repeat(3000)}e${'9'.repeat(300)}`,
  '('.repeat(300),
  '%'.repeat(2000),
];

function pick<T>(rng: Rng, list: readonly T[]): T {
  return list[rng.integer(list.length)]!;
}

type Mutation = (bytes: Buffer, rng: Rng) => Buffer;

const mutations: readonly Mutation[] = [
  function flipBits(bytes, rng) {
    const out = Buffer.from(bytes);
    for (let i = 0; i <= rng.integer(12) && out.length > 0; i++) {
      const at = rng.integer(out.length);
      out[at] = out[at] ^ (1 << rng.integer(8));
    }
    return out;
  },
  function truncate(bytes, rng) {
    return bytes.subarray(0, rng.integer(bytes.length + 1));
  },
  function cutBeginning(bytes, rng) {
    return bytes.subarray(rng.integer(bytes.length + 1));
  },
  function remove(bytes, rng) {
    const from = rng.integer(bytes.length + 1);
    return Buffer.concat([bytes.subarray(0, from), bytes.subarray(from + rng.integer(40))]);
  },
  function repeat(bytes, rng) {
    const from = rng.integer(bytes.length + 1);
    const piece = bytes.subarray(from, from + rng.integer(400));
    return Buffer.concat([bytes.subarray(0, from), piece, piece, bytes.subarray(from)]);
  },
  function hugeCount(bytes, rng) {
    const out = Buffer.from(bytes);
    if (out.length < 10) return out;
    const at = rng.integer(out.length - 9);
    const huge = pick(rng, [
      0xffffffffffffffffn,
      0x7fffffffffffffffn,
      0x7fffffffn,
      0xffffffffn,
      0x100000000n,
      0n,
    ]);
    out.writeBigUInt64LE(huge, at);
    return out;
  },
  function hugeVarint(bytes, rng) {
    const at = rng.integer(bytes.length + 1);
    const varint = Buffer.from(
      pick(rng, ['ffffffff07', 'ffffffffffffffffff01', 'ffffffffffffffffffff', '808080808000']),
      'hex',
    );
    return Buffer.concat([bytes.subarray(0, at), varint, bytes.subarray(at + varint.length)]);
  },
  function otherNumber(bytes, rng) {
    const text = bytes.toString('latin1');
    const numbers = [...text.matchAll(/-?\d+\.?\d*/g)];
    if (numbers.length === 0) return bytes;
    const found = pick(rng, numbers);
    return Buffer.from(
      text.slice(0, found.index) + pick(rng, spellings) + text.slice(found.index + found[0].length),
      'latin1',
    );
  },
  function insert(bytes, rng) {
    const at = rng.integer(bytes.length + 1);
    const piece = rng.integer(2) === 0 ? pick(rng, spellings) : pick(rng, bombs);
    return Buffer.concat([bytes.subarray(0, at), Buffer.from(piece), bytes.subarray(at)]);
  },
  /** Pieces of the same file change places, as tokens of a grammar do. */
  function swap(bytes, rng) {
    const parts = bytes.toString('latin1').split(/([\s,:{}[\]"'=/]+)/);
    const [a, b] = [rng.integer(parts.length), rng.integer(parts.length)];
    [parts[a], parts[b]] = [parts[b], parts[a]];
    return Buffer.from(parts.join(''), 'latin1');
  },
  function splice(bytes, rng) {
    const [to, from] = [rng.integer(bytes.length + 1), rng.integer(bytes.length + 1)];
    return Buffer.concat([bytes.subarray(0, to), bytes.subarray(from)]);
  },
  function hugeNumbers(bytes, rng) {
    const text = bytes.toString('latin1').replace(/\d+/g, n => (rng.integer(8) === 0 ? '1e15' : n));
    return Buffer.from(text, 'latin1');
  },
  function zeros(bytes) {
    return Buffer.alloc(bytes.length);
  },
  function lineBreaks(bytes) {
    return Buffer.from(bytes.toString('latin1').replaceAll('\n', '\r\n'), 'latin1');
  },
  function utf16(bytes, rng) {
    const text = Buffer.from(bytes.toString('utf8'), 'utf16le');
    const [mark, body] = rng.integer(2) === 0 ? ['fffe', text] : ['feff', text.swap16()];
    return Buffer.concat([Buffer.from(mark, 'hex'), body.subarray(0, body.length - rng.integer(2))]);
  },
  function byteOrderMark(bytes) {
    return Buffer.concat([Buffer.from('efbbbf', 'hex'), bytes]);
  },
  function gzip(bytes, rng) {
    const packed = gzipSync(bytes, { level: 1 });
    if (rng.integer(3) === 0) return packed;
    const at = rng.integer(packed.length);
    packed[at] = packed[at] ^ (1 << rng.integer(8));
    return rng.integer(2) === 0 ? packed : packed.subarray(0, rng.integer(packed.length + 1));
  },
  /** Damage inside, with checksums that are right. */
  function inEventFile(bytes, rng) {
    const inner = Buffer.from(bytes.subarray(0, 300 + rng.integer(300)));
    for (let i = 0; i < 4 && inner.length > 0; i++) inner[rng.integer(inner.length)] = rng.integer(256);
    return Buffer.concat([
      versionEvent(1),
      tfRecord(inner),
      tfRecord(bytesField(5, inner)),
      tfRecord(bytesField(5, bytesField(1, inner))),
    ]);
  },
  function inWandbFile(bytes, rng) {
    const inner = Buffer.from(bytes.subarray(0, rng.integer(500)));
    for (let i = 0; i < 4 && inner.length > 0; i++) inner[rng.integer(inner.length)] = rng.integer(256);
    return wandbFile([
      inner,
      bytesField(2, inner),
      bytesField(2, bytesField(1, inner)),
      varintField(17, 3),
      bytesField(17, inner),
    ]);
  },
];

/** One to three mutations of a file. */
export function mutate(bytes: Uint8Array, rng: Rng): Buffer {
  let out: Buffer = Buffer.from(bytes);
  for (let i = rng.integer(3); i >= 0; i--) out = pick(rng, mutations)(out, rng);
  // Small files only: it is the number of them that finds faults.
  return out.subarray(0, 2 ** 17);
}
