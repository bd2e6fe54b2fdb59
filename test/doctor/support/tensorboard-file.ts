/** Event files for tests, made by an encoder that shares nothing with the reader or with Keel's own writer. */
import { bitwiseCrc, bytesField, doubleField, floatField, varint, varintField } from './proto.ts';

function maskedCrc(bytes: Uint8Array): number {
  const crc = BigInt(bitwiseCrc(bytes, 0x82f63b78));
  const rotated = ((crc >> 15n) | (crc << 17n)) & 0xffffffffn;
  return Number((rotated + 0xa282ead8n) & 0xffffffffn);
}

/** Data as a TFRecord. */
export function tfRecord(data: Uint8Array): Buffer {
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(data.length));
  const crc = (bytes: Uint8Array): Buffer => {
    const out = Buffer.alloc(4);
    out.writeUInt32LE(maskedCrc(bytes));
    return out;
  };
  return Buffer.concat([length, crc(length), data, crc(data)]);
}

export interface EventHead {
  readonly wallTime?: number;
  readonly step?: number | bigint;
}

function event(head: EventHead, rest: Buffer): Buffer {
  const parts: Buffer[] = [];
  if (head.wallTime !== undefined) parts.push(doubleField(1, head.wallTime));
  if (head.step !== undefined) parts.push(varintField(2, head.step));
  return tfRecord(Buffer.concat([...parts, rest]));
}

/** The first record of every event file. */
export function versionEvent(wallTime: number): Buffer {
  return event({ wallTime }, bytesField(3, 'brain.Event:2'));
}

/** A session begins (1), stops (2). */
export function sessionEvent(head: EventHead, status: number): Buffer {
  return event(head, bytesField(7, varintField(1, status)));
}

/** Values of one event, each made by one of the functions below. */
export function summaryEvent(head: EventHead, ...values: Buffer[]): Buffer {
  return event(head, bytesField(5, Buffer.concat(values.map(value => bytesField(1, value)))));
}

export function simpleValue(tag: string, value: number): Buffer {
  return Buffer.concat([bytesField(1, tag), floatField(2, value)]);
}

export const dtype = { float: 1, double: 2, int32: 3, string: 7, int64: 9, bool: 10, bfloat16: 14, half: 19 };

export function shape(...dims: number[]): Buffer {
  return bytesField(2, Buffer.concat(dims.map(dim => bytesField(2, varintField(1, dim)))));
}

/** A value that is a tensor; `parts` are the fields of the TensorProto. */
export function tensorValue(tag: string, plugin: string | undefined, ...parts: Buffer[]): Buffer {
  const metadata = plugin === undefined ? [] : [bytesField(9, bytesField(1, bytesField(1, plugin)))];
  return Buffer.concat([bytesField(1, tag), bytesField(8, Buffer.concat(parts)), ...metadata]);
}

export function packedFloats(field: number, ...values: number[]): Buffer {
  const bytes = Buffer.alloc(4 * values.length);
  values.forEach((value, i) => {
    bytes.writeFloatLE(value, 4 * i);
  });
  return bytesField(field, bytes);
}

export function packedVarints(field: number, ...values: number[]): Buffer {
  return bytesField(field, Buffer.from(values.flatMap(value => varint(value))));
}

export function textValue(tag: string, text: string): Buffer {
  return tensorValue(tag, 'text', varintField(1, dtype.string), shape(1), bytesField(8, text));
}

/** What SummaryWriter.add_hparams writes about the settings. */
export function hparamsValue(settings: Readonly<Record<string, number | string | boolean>>): Buffer {
  const entries = Object.entries(settings).map(([name, value]) => {
    const held =
      typeof value === 'number'
        ? doubleField(2, value)
        : typeof value === 'string'
          ? bytesField(3, value)
          : varintField(4, value ? 1 : 0);
    return bytesField(1, Buffer.concat([bytesField(1, name), bytesField(2, held)]));
  });
  const content = Buffer.concat([varintField(1, 0), bytesField(3, Buffer.concat(entries))]);
  const plugin = Buffer.concat([bytesField(1, 'hparams'), bytesField(2, content)]);
  return Buffer.concat([bytesField(1, '_hparams_/session_start_info'), bytesField(9, bytesField(1, plugin))]);
}

/** A file of scalars: `rows` of step, wall time and values by tag, one event a value as PyTorch writes them. */
export function scalarFile(
  rows: readonly { step: number; wallTime?: number; values: Readonly<Record<string, number>> }[],
  startedAt = 1_700_000_000,
): Buffer {
  const parts = [versionEvent(startedAt)];
  for (const { step, wallTime = startedAt + step, values } of rows) {
    for (const [tag, value] of Object.entries(values)) {
      parts.push(summaryEvent({ step, wallTime }, simpleValue(tag, value)));
    }
  }
  return Buffer.concat(parts);
}
