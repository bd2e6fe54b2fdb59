/**
 * Event files for TensorBoard: a projection of `metrics.jsonl`.
 *
 * A file is a sequence of TFRecords (u64le length, masked crc32c of the length, data, masked crc32c of the data), each
 * an `Event` message; field numbers are those of tensorflow/core/util/event.proto and framework/summary.proto.
 * A row is one event with a scalar for each metric, at the row's `train/step` and `time/unix_s`.
 */
import { AppendFile, readAt } from '../../base/files.ts';
import { ProtoWriter } from '../../base/protobuf.ts';
import { compareMetricIds } from '../registry.ts';
import type { Row } from '../row.ts';
import { maskedCrc32c } from './crc32c.ts';
import type { Sink } from './sink.ts';

/** What an event file says before its first row. */
export interface TensorboardOptions {
  /** Seconds since 1970: the time of the file's first events, and of rows without `time/unix_s`. */
  readonly startedUnixS: number;
  /** Shown under Text as a table; nested objects become dotted names. */
  readonly hyperparameters?: Readonly<Record<string, unknown>>;
}

/** What the scalars of an event need not repeat: they are its step and its time. */
const notScalars = new Set(['train/step', 'time/unix_s']);

/** Half a record that a kill left at the end of an existing file is cut off. Events are not in it. */
export function tensorboardSink(path: string, options: TensorboardOptions): Sink {
  const file = new AppendFile(path, endOfLastRecord);
  const { startedUnixS } = options;
  if (file.size === 0) {
    try {
      file.append(
        Buffer.concat([
          record(event(startedUnixS, 0).text(3, 'brain.Event:2')),
          // A session starts: a TensorBoard that has read an earlier projection of this run drops it.
          record(event(startedUnixS, 0).message(7, new ProtoWriter().int(1, 1))),
          ...(options.hyperparameters === undefined
            ? []
            : [record(hyperparameterEvent(startedUnixS, options.hyperparameters))]),
        ]),
      );
    } catch (error) {
      file.close();
      throw error;
    }
  }
  let closed = false;
  return {
    write: row => file.append(record(rowEvent(row, startedUnixS))),
    event() {},
    flush: () => file.sync(),
    close() {
      if (closed) return;
      closed = true;
      try {
        file.sync();
      } finally {
        file.close();
      }
    },
  };
}

function event(wallTimeS: number, step: number): ProtoWriter {
  return new ProtoWriter().double(1, wallTimeS).int(2, step);
}

function rowEvent(row: Row, startedUnixS: number): ProtoWriter {
  const summary = new ProtoWriter();
  for (const id of Object.keys(row).sort(compareMetricIds)) {
    if (!notScalars.has(id)) summary.bytes(1, scalar(id, row[id]));
  }
  return event(row['time/unix_s'] ?? startedUnixS, row['train/step']).message(5, summary);
}

/** The message of each tag, with its number at the end: it is most of a row's cost, and only the number changes. */
const scalars = new Map<string, DataView<ArrayBuffer>>();

function scalar(id: string, value: number): Uint8Array {
  let message = scalars.get(id);
  if (message === undefined) {
    message = new DataView(Uint8Array.from(new ProtoWriter().text(1, id).float(2, 0).finish()).buffer);
    scalars.set(id, message);
  }
  message.setFloat32(message.byteLength - 4, value, true);
  return new Uint8Array(message.buffer);
}

/** As PyTorch's and CleanRL's writers do: tag `hyperparameters/text_summary`, a table in Markdown. */
function hyperparameterEvent(
  startedUnixS: number,
  hyperparameters: Readonly<Record<string, unknown>>,
): ProtoWriter {
  const inCell = (text: string): string => text.replaceAll('|', '\\|').replace(/\s+/g, ' ');
  const lines = flatten(hyperparameters).map(([key, value]) => `|${inCell(key)}|${inCell(value)}|`);
  const table = ['|param|value|', '|-|-|', ...lines].join('\n');
  const stringDtype = 7;
  const tensor = new ProtoWriter()
    .int(1, stringDtype)
    .message(2, new ProtoWriter().message(2, new ProtoWriter().int(1, 1))) // shape [1]
    .text(8, table);
  const metadata = new ProtoWriter().message(1, new ProtoWriter().text(1, 'text'));
  const value = new ProtoWriter()
    .text(1, 'hyperparameters/text_summary')
    .message(8, tensor)
    .message(9, metadata);
  return event(startedUnixS, 0).message(5, new ProtoWriter().message(1, value));
}

function flatten(value: Readonly<Record<string, unknown>>, prefix = ''): [string, string][] {
  return Object.entries(value).flatMap(([key, item]): [string, string][] => {
    const isGroup = typeof item === 'object' && item !== null && !Array.isArray(item);
    if (isGroup) return flatten(item as Record<string, unknown>, `${prefix}${key}.`);
    return [[`${prefix}${key}`, typeof item === 'string' ? item : (JSON.stringify(item) ?? String(item))]];
  });
}

const headBytes = 12;
const tailBytes = 4;

function record(message: ProtoWriter): Uint8Array {
  const data = message.finish();
  const bytes = new Uint8Array(headBytes + data.length + tailBytes);
  const view = new DataView(bytes.buffer);
  view.setBigUint64(0, BigInt(data.length), true);
  view.setUint32(8, maskedCrc32c(bytes.subarray(0, 8)), true);
  bytes.set(data, headBytes);
  view.setUint32(headBytes + data.length, maskedCrc32c(data), true);
  return bytes;
}

/** Where the last whole record ends. Lengths are believed only if their checksum and the file's size agree. */
function endOfLastRecord(fd: number, size: number): number {
  const head = new Uint8Array(headBytes);
  const view = new DataView(head.buffer);
  let end = 0;
  while (size - end >= headBytes + tailBytes) {
    readAt(fd, head, headBytes, end);
    const length = Number(view.getBigUint64(0, true));
    if (view.getUint32(8, true) !== maskedCrc32c(head.subarray(0, 8))) break;
    const next = end + headBytes + length + tailBytes;
    if (next > size) break;
    end = next;
  }
  return end;
}
