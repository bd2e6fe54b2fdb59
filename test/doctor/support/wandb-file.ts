/** `.wandb` files for tests: LevelDB's log format and W&B's messages from their specifications alone. */
import { bitwiseCrc, bytesField, varintField } from './proto.ts';

const blockBytes = 32_768;

/** The file's header and its records, in blocks. */
export function wandbFile(records: readonly Uint8Array[]): Buffer {
  let file = Buffer.from([0x3a, 0x57, 0x26, 0x42, 0xe1, 0xbe, 0]);
  const parts: Buffer[] = [file];
  let position = file.length;
  for (const record of records) {
    let rest = Buffer.from(record);
    let first = true;
    for (;;) {
      const left = blockBytes - (position % blockBytes);
      if (left < 7) {
        parts.push(Buffer.alloc(left));
        position += left;
        continue;
      }
      const size = Math.min(rest.length, left - 7);
      const last = size === rest.length;
      const type = first ? (last ? 1 : 2) : last ? 4 : 3;
      const body = Buffer.concat([Buffer.from([type]), rest.subarray(0, size)]);
      const head = Buffer.alloc(6);
      head.writeUInt32LE(bitwiseCrc(body, 0xedb88320));
      head.writeUInt16LE(size, 4);
      parts.push(head, body);
      position += 6 + body.length;
      rest = rest.subarray(size);
      first = false;
      if (last) break;
    }
  }
  file = Buffer.concat(parts);
  return file;
}

type Key = string | readonly string[];

function item(key: Key, json: string): Buffer {
  const name = typeof key === 'string' ? [bytesField(1, key)] : key.map(part => bytesField(2, part));
  return bytesField(1, Buffer.concat([...name, bytesField(16, json)]));
}

/** A row; keys that are lists are written as `nested_key`, as new versions do. */
export function historyRecord(step: number | undefined, items: readonly (readonly [Key, string])[]): Buffer {
  const parts = items.map(([key, json]) => item(key, json));
  // Protobuf leaves out a zero.
  if (step !== undefined) parts.push(bytesField(2, step === 0 ? Buffer.alloc(0) : varintField(1, step)));
  return Buffer.concat([varintField(1, 7), bytesField(2, Buffer.concat(parts))]);
}

export function configRecord(items: readonly (readonly [Key, string])[]): Buffer {
  return bytesField(5, Buffer.concat(items.map(([key, json]) => item(key, json))));
}

export function runRecord(
  id: string,
  project: string,
  items: readonly (readonly [Key, string])[] = [],
): Buffer {
  const config = Buffer.concat(items.map(([key, json]) => item(key, json)));
  return bytesField(17, Buffer.concat([bytesField(1, id), bytesField(3, project), bytesField(4, config)]));
}

export function exitRecord(code: number): Buffer {
  return bytesField(18, code === 0 ? Buffer.alloc(0) : varintField(1, code));
}
