/**
 * A reader of TensorBoard event files that shares nothing with the writer: checksums bit by bit, messages by the general
 * wire format. It is itself held to a file that PyTorch wrote (see tensorboard.test.ts).
 */
export interface DecodedEvent {
  readonly wallTime: number;
  readonly step: bigint;
  readonly fileVersion?: string;
  readonly sessionStatus?: bigint;
  readonly scalars: ReadonlyMap<string, number>;
  readonly texts: ReadonlyMap<
    string,
    { readonly plugin: string; readonly dims: bigint[]; readonly text: string }
  >;
}

export function crcBitByBit(bytes: Uint8Array): number {
  let crc = 0xffffffffn;
  for (const byte of bytes) {
    crc ^= BigInt(byte);
    for (let bit = 0; bit < 8; bit++) crc = crc & 1n ? (crc >> 1n) ^ 0x82f63b78n : crc >> 1n;
  }
  return Number(crc ^ 0xffffffffn);
}

function masked(bytes: Uint8Array): number {
  const crc = BigInt(crcBitByBit(bytes));
  const rotated = ((crc >> 15n) | (crc << 17n)) & 0xffffffffn;
  return Number((rotated + 0xa282ead8n) & 0xffffffffn);
}

export function splitRecords(file: Buffer): Buffer[] {
  const records: Buffer[] = [];
  for (let at = 0; at < file.length; ) {
    const length = Number(file.readBigUInt64LE(at));
    if (file.readUInt32LE(at + 8) !== masked(file.subarray(at, at + 8)))
      throw new Error(`length crc at ${at}`);
    const data = file.subarray(at + 12, at + 12 + length);
    if (data.length !== length) throw new Error(`half a record at ${at}`);
    if (file.readUInt32LE(at + 12 + length) !== masked(data)) throw new Error(`data crc at ${at}`);
    records.push(data);
    at += 16 + length;
  }
  return records;
}

type Field = { readonly number: number; readonly type: number; readonly value: bigint | Buffer };

function fields(message: Buffer): Field[] {
  const out: Field[] = [];
  let at = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = message.readUInt8(at++);
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  const take = (length: number): Buffer => {
    if (at + length > message.length) throw new Error('field longer than its message');
    at += length;
    return message.subarray(at - length, at);
  };
  while (at < message.length) {
    const key = Number(varint());
    const [number, type] = [key >> 3, key & 7];
    if (type === 0) out.push({ number, type, value: varint() });
    else if (type === 1) out.push({ number, type, value: take(8) });
    else if (type === 2) out.push({ number, type, value: take(Number(varint())) });
    else if (type === 5) out.push({ number, type, value: take(4) });
    else throw new Error(`wire type ${type}`);
  }
  return out;
}

const bytesOf = (field: Field): Buffer => field.value as Buffer;
const all = (message: Buffer, number: number): Field[] => fields(message).filter(f => f.number === number);
const one = (message: Buffer, number: number): Field | undefined => all(message, number).at(-1);

export function decodeEvents(file: Buffer): DecodedEvent[] {
  return splitRecords(file).map(record => {
    const scalars = new Map<string, number>();
    const texts = new Map<string, { plugin: string; dims: bigint[]; text: string }>();
    const summary = one(record, 5);
    for (const value of summary === undefined ? [] : all(bytesOf(summary), 1)) {
      const tag = bytesOf(one(bytesOf(value), 1)!).toString();
      const simple = one(bytesOf(value), 2);
      const tensor = one(bytesOf(value), 8);
      if (simple !== undefined) scalars.set(tag, bytesOf(simple).readFloatLE(0));
      if (tensor !== undefined) {
        const plugin = bytesOf(one(bytesOf(one(bytesOf(value), 9)!), 1)!);
        const shape = one(bytesOf(tensor), 2);
        texts.set(tag, {
          plugin: bytesOf(one(plugin, 1)!).toString(),
          dims:
            shape === undefined ? [] : all(bytesOf(shape), 2).map(d => one(bytesOf(d), 1)!.value as bigint),
          text: bytesOf(one(bytesOf(tensor), 8)!).toString(),
        });
      }
    }
    const version = one(record, 3);
    const session = one(record, 7);
    return {
      wallTime: bytesOf(one(record, 1)!).readDoubleLE(0),
      step: (one(record, 2)?.value as bigint | undefined) ?? 0n,
      ...(version && { fileVersion: bytesOf(version).toString() }),
      ...(session && { sessionStatus: one(bytesOf(session), 1)?.value as bigint }),
      scalars,
      texts,
    };
  });
}
