/**
 * Protocol-buffer messages for fixtures, written from the specification alone: no code of the readers or writers under
 * test is used here. Slow and plain on purpose.
 */

/** Bytes of a number as a varint; negative ones as their 64-bit complement. */
export function varint(value: number | bigint): number[] {
  let rest = BigInt.asUintN(64, BigInt(value));
  const bytes: number[] = [];
  do {
    const low = Number(rest & 0x7fn);
    rest >>= 7n;
    bytes.push(rest === 0n ? low : low | 0x80);
  } while (rest !== 0n);
  return bytes;
}

export function varintField(field: number, value: number | bigint): Buffer {
  return Buffer.from([...varint(field * 8), ...varint(value)]);
}

export function bytesField(field: number, value: Uint8Array | string): Buffer {
  const bytes = Buffer.from(value as string);
  return Buffer.concat([Buffer.from([...varint(field * 8 + 2), ...varint(bytes.length)]), bytes]);
}

export function floatField(field: number, value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeFloatLE(value);
  return Buffer.concat([Buffer.from(varint(field * 8 + 5)), bytes]);
}

export function doubleField(field: number, value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleLE(value);
  return Buffer.concat([Buffer.from(varint(field * 8 + 1)), bytes]);
}

/** The checksum bit by bit, as its polynomial is defined: 0x82f63b78 for CRC-32C, 0xedb88320 for CRC-32. */
export function bitwiseCrc(bytes: Uint8Array, polynomial: number): number {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ polynomial : crc >>> 1;
  }
  return ~crc >>> 0;
}
