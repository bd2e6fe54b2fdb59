import { describe, expect, it } from 'vitest';
import { momentsOf, numberOf } from '../../src/pickle/numpy.ts';
import { pickleLimits, readPickle } from '../../src/pickle/pickle.ts';
import {
  callOf,
  describe as described,
  dictOf,
  globalName,
  PickleError,
  type PickleValue,
} from '../../src/pickle/values.ts';
import { bytesOf, type Parts, u32 } from './support.ts';

/** `{'a': [1, -2, 3.5, None, True, False, 2**70, -300, 70000], 't': (1,), …, 'f': os.system, …}` as CPython writes it. */
const written = [
  'KGRwMApWYQpwMQoobHAyCkkxCmFJLTIKYUYzLjUKYU5hSTAxCmFJMDAKYUwxMTgwNTkxNjIwNzE3NDExMzAzNDI0TAphSS0zMDAKYUk3MDAwMAphc1Z0CnAzCihJMQp0cDQKc1Z1CnA1CihJMQpJMgpWeApwNgp0cDcKc1ZzCnA4ClZo6elcdTAwMGFxCnA5CnNWYgpwMTAKY19jb2RlY3MKZW5jb2RlCnAxMQooVlx1MDAwMP8KcDEyClZsYXRpbjEKcDEzCnRwMTQKUnAxNQpzVnNldApwMTYKY19fYnVpbHRpbl9fCnNldApwMTcKKChscDE4CkkxCmF0cDE5ClJwMjAKc1ZvZApwMjEKY2NvbGxlY3Rpb25zCk9yZGVyZWREaWN0CnAyMgoodFJwMjMKVmsKcDI0CkkxCnNzVmYKcDI1CmNwb3NpeApzeXN0ZW0KcDI2CnNWaW5mCnAyNwpGaW5mCnMu',
  'fXEAKFgBAAAAYXEBXXECKEsBSv7///9HQAwAAAAAAABOSTAxCkkwMApMMTE4MDU5MTYyMDcxNzQxMTMwMzQyNEwKStT+//9KcBEBAGVYAQAAAHRxAyhLAXRxBFgBAAAAdXEFKEsBSwJYAQAAAHhxBnRxB1gBAAAAc3EIWAcAAABow6nDqQpxcQlYAQAAAGJxCmNfY29kZWNzCmVuY29kZQpxCyhYAwAAAADDv3EMWAYAAABsYXRpbjFxDXRxDlJxD1gDAAAAc2V0cRBjX19idWlsdGluX18Kc2V0CnERKF1xEksBYXRxE1JxFFgCAAAAb2RxFWNjb2xsZWN0aW9ucwpPcmRlcmVkRGljdApxFilScRdYAQAAAGtxGEsBc1gBAAAAZnEZY3Bvc2l4CnN5c3RlbQpxGlgDAAAAaW5mcRtHf/AAAAAAAAB1Lg==',
  'gAJ9cQAoWAEAAABhcQFdcQIoSwFK/v///0dADAAAAAAAAE6IiYoJAAAAAAAAAABAStT+//9KcBEBAGVYAQAAAHRxA0sBhXEEWAEAAAB1cQVLAUsCWAEAAAB4cQaHcQdYAQAAAHNxCFgHAAAAaMOpw6kKcXEJWAEAAABicQpjX2NvZGVjcwplbmNvZGUKcQtYAwAAAADDv3EMWAYAAABsYXRpbjFxDYZxDlJxD1gDAAAAc2V0cRBjX19idWlsdGluX18Kc2V0CnERXXESSwFhhXETUnEUWAIAAABvZHEVY2NvbGxlY3Rpb25zCk9yZGVyZWREaWN0CnEWKVJxF1gBAAAAa3EYSwFzWAEAAABmcRljcG9zaXgKc3lzdGVtCnEaWAMAAABpbmZxG0d/8AAAAAAAAHUu',
  'gAN9cQAoWAEAAABhcQFdcQIoSwFK/v///0dADAAAAAAAAE6IiYoJAAAAAAAAAABAStT+//9KcBEBAGVYAQAAAHRxA0sBhXEEWAEAAAB1cQVLAUsCWAEAAAB4cQaHcQdYAQAAAHNxCFgHAAAAaMOpw6kKcXEJWAEAAABicQpDAgD/cQtYAwAAAHNldHEMY2J1aWx0aW5zCnNldApxDV1xDksBYYVxD1JxEFgCAAAAb2RxEWNjb2xsZWN0aW9ucwpPcmRlcmVkRGljdApxEilScRNYAQAAAGtxFEsBc1gBAAAAZnEVY3Bvc2l4CnN5c3RlbQpxFlgDAAAAaW5mcRdHf/AAAAAAAAB1Lg==',
  'gASVwQAAAAAAAAB9lCiMAWGUXZQoSwFK/v///0dADAAAAAAAAE6IiYoJAAAAAAAAAABAStT+//9KcBEBAGWMAXSUSwGFlIwBdZRLAUsCjAF4lIeUjAFzlIwHaMOpw6kKcZSMAWKUQwIA/5SMA3NldJSPlChLAZCMAm9klIwLY29sbGVjdGlvbnOUjAtPcmRlcmVkRGljdJSTlClSlIwBa5RLAXOMAWaUjAVwb3NpeJSMBnN5c3RlbZSTlIwDaW5mlEd/8AAAAAAAAHUu',
  'gAWVwQAAAAAAAAB9lCiMAWGUXZQoSwFK/v///0dADAAAAAAAAE6IiYoJAAAAAAAAAABAStT+//9KcBEBAGWMAXSUSwGFlIwBdZRLAUsCjAF4lIeUjAFzlIwHaMOpw6kKcZSMAWKUQwIA/5SMA3NldJSPlChLAZCMAm9klIwLY29sbGVjdGlvbnOUjAtPcmRlcmVkRGljdJSTlClSlIwBa5RLAXOMAWaUjAVwb3NpeJSMBnN5c3RlbZSTlIwDaW5mlEd/8AAAAAAAAHUu',
];

const read = (bytes: Uint8Array): PickleValue => readPickle(bytes, 'it');
const pickle = (...parts: Parts): PickleValue => read(bytesOf(...parts));

describe('plain values', () => {
  it.each(written.map((text, protocol) => [protocol, text] as const))('of protocol %i', (_, text) => {
    const value = dictOf(read(Buffer.from(text, 'base64')))!;
    expect(value.get('a')).toEqual([1, -2, 3.5, null, true, false, 2n ** 70n, -300, 70000]);
    expect(value.get('t')).toEqual([1]);
    expect(value.get('u')).toEqual([1, 2, 'x']);
    expect(value.get('s')).toBe('héé\nq');
    expect(value.get('inf')).toBe(Number.POSITIVE_INFINITY);
    expect(dictOf(value.get('od'))).toEqual(new Map([['k', 1]]));
  });

  it('reads bytes and sets as such where the protocol has them', () => {
    const value = dictOf(read(Buffer.from(written[5], 'base64')))!;
    expect(Buffer.from(value.get('b') as Uint8Array)).toEqual(Buffer.of(0, 255));
    expect(value.get('set')).toEqual(new Set([1]));
  });

  it('keeps whatever a name would be, to which nothing is done', () => {
    for (const text of written) {
      const value = dictOf(read(Buffer.from(text, 'base64')))!;
      expect(globalName(value.get('f'))).toBe('posix.system');
      expect(described(value.get('f'))).toBe('posix.system, which is not run');
    }
    const call = callOf(pickle('cos\nsystem\n(X', u32(5), 'touch', 'tR.'));
    expect([call!.name, call!.args]).toEqual(['os.system', ['touch']]);
  });

  it('has no name that means anything to JavaScript', () => {
    const value = pickle('}X', u32(9), '__proto__', '}X', u32(1), 'x', 'K\x01ss.') as Map<
      PickleValue,
      PickleValue
    >;
    expect([...value.keys()]).toEqual(['__proto__']);
    expect(({} as { x?: number }).x).toBeUndefined();
  });
});

describe('is refused with one line', () => {
  const cases: [why: string, bytes: () => Uint8Array, message: RegExp][] = [
    ['nothing', () => bytesOf(), /not a whole pickle: 1 bytes are missing/],
    ['a cut string', () => bytesOf('X', u32(100), 'abc'), /100 bytes are missing/],
    [
      'a length beyond all',
      () => bytesOf(0x8d, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f),
      /a length of/,
    ],
    ['an empty stack', () => bytesOf('.'), /operation without operand/],
    ['a mark as a value', () => bytesOf('(.'), /operation without operand/],
    ['two values', () => bytesOf('NN.'), /more than one value/],
    ['no mark', () => bytesOf('Nt.'), /an end without beginning/],
    ['a memo that is not there', () => bytesOf('h\x05.'), /memo 5, which is not there/],
    ['an unknown operation', () => bytesOf(0xff), /operation 0xff/],
    ['a newer protocol', () => bytesOf(0x80, 6, 'N.'), /pickle protocol 6, 0 to 5 are read/],
    ['an extension', () => bytesOf(0x82, 1, '.'), /copyreg extensions/],
    ['bytes that are elsewhere', () => bytesOf(0x80, 5, 0x97, '.'), /out-of-band/],
    ['items for a number', () => bytesOf('K\x01(K\x02e.'), /an item for 1/],
    ['entries for None', () => bytesOf('N(K\x01K\x02u.'), /an entry for None/],
    ['a key without value', () => bytesOf('(K\x01d.'), /a key without value/],
    ['arguments that are none', () => bytesOf('cos\nsystem\nK\x01R.'), /arguments that are 1/],
    ['a name that is a number', () => bytesOf('K\x01K\x02', 0x93, '.'), /a name that is/],
    [
      'an integer of a megabyte',
      () => bytesOf(0x8b, u32(2 ** 20), Buffer.alloc(2 ** 20), '.'),
      /an integer of 1048576 bytes, at most 256/,
    ],
    [
      'an integer of many digits',
      () => bytesOf('L', '9'.repeat(100_000), 'L\n.'),
      /an integer of 100000 digits/,
    ],
    ['a number that is none', () => bytesOf('Fone\n.'), /a number that is none/],
    ['lists in lists', () => bytesOf('('.repeat(2000), 'l'.repeat(2000), '.'), /nests deeper than 1000/],
  ];
  it.each(cases)('%s', (_, bytes, message) => {
    let thrown: unknown;
    try {
      read(bytes());
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toBeInstanceOf(PickleError);
    expect((thrown as Error).message).toMatch(message);
    expect((thrown as Error).message).toMatch(/^it: [^\n]+$/);
  });

  it('more operations, more memory of values, or more bytes than there may be', () => {
    const limits = { ...pickleLimits, operations: 1000, memo: 10, bytes: 5000 };
    const limited = (bytes: Uint8Array) => () => readPickle(bytes, 'it', limits);
    expect(limited(bytesOf('N0'.repeat(600), 'N.'))).toThrow(/more than 1000 operations/);
    expect(
      limited(bytesOf('N', 0x94, 0x94, 0x94, 0x94, 0x94, 0x94, 0x94, 0x94, 0x94, 0x94, 0x94, '.')),
    ).toThrow(/remembers more than 10 values/);
    expect(limited(Buffer.alloc(5001))).toThrow(/5001 bytes, at most 5000/);
  });
});

describe('what would grow', () => {
  it('stays as small as it is: a billion laughs are a hundred references', () => {
    // Each list has the one before ten times.
    const level = (i: number): Uint8Array =>
      bytesOf('(', ...Array.from({ length: 10 }, () => bytesOf('h', i)), 'lq', i + 1, '0');
    const levels = Array.from({ length: 60 }, (_, i) => level(i));
    const value = pickle('K\x01q\x000', ...levels, 'h', 60, '.') as PickleValue[];
    expect(value).toHaveLength(10);
    expect(new Set(value).size).toBe(1);
    expect(() => numberOf(value, 'count')).toThrow('count is a list of 10, a number is needed');
  });

  it('may be inside of itself, and is refused where it is needed', () => {
    const list = pickle(']q\x00h\x00a.') as PickleValue[];
    expect(list[0]).toBe(list);
    expect(() => momentsOf(list, 'obs_rms')).toThrow('obs_rms is a list of 1, running moments are needed');
    // An array whose type is itself.
    const array = pickle('cnumpy\ndtype\n(X', u32(2), 'f4', 'tRq\x00h\x00b.');
    expect(() => numberOf(array, 'count')).toThrow(/^count is what numpy.dtype makes/);
  });

  it('may count its memo from anywhere', () => {
    expect(pickle('K\x07r', u32(0xffff_fff0), 'j', u32(0xffff_fff0), '0.')).toBe(7);
  });
});
