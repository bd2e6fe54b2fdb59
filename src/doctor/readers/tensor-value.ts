/** The one number or text that a TensorProto of a summary holds, and the settings of TensorBoard's hparams plugin. */
import { ProtoCursor } from './protobuf.ts';
import type { Setting } from './run-builder.ts';

export interface TensorValue {
  kind: 'number' | 'text' | 'other';
  number: number;
  text: string;
}

/** tensorflow/core/framework/types.proto */
const dtypes = {
  float: 1,
  double: 2,
  int32: 3,
  string: 7,
  int64: 9,
  bool: 10,
  bfloat16: 14,
  half: 19,
} as const;
const numeric = new Set<number>(Object.values(dtypes).filter(dtype => dtype !== dtypes.string));

const cursor = new ProtoCursor();
const inner = new ProtoCursor();
const dimension = new ProtoCursor();
/** A text of a summary that is longer than this is cut. */
const longestText = 2 ** 18;

/** Fills `out` from a TensorProto: number if it has one element, text if it has strings. */
export function tensorValue(bytes: Uint8Array, start: number, end: number, out: TensorValue): void {
  out.kind = 'other';
  out.text = '';
  let dtype = 0;
  let elements = 1;
  let values = 0;
  let number = Number.NaN;
  let [contentStart, contentEnd] = [0, 0];
  cursor.open(bytes, start, end);
  while (cursor.next()) {
    const { field, wire } = cursor;
    if (field === 1 && wire === 0) dtype = cursor.low;
    else if (field === 2 && wire === 2) elements = elementsOf(bytes, cursor.start, cursor.end);
    else if (field === 4 && wire === 2) [contentStart, contentEnd] = [cursor.start, cursor.end];
    else if (field === 5) {
      if (wire === 5) {
        number = cursor.float();
        values++;
      } else if (wire === 2 && cursor.end - cursor.start >= 4) {
        number = cursor.floatAt(cursor.start);
        values += (cursor.end - cursor.start) >> 2;
      }
    } else if (field === 6) {
      if (wire === 1) {
        number = cursor.double();
        values++;
      } else if (wire === 2 && cursor.end - cursor.start >= 8) {
        number = cursor.doubleAt(cursor.start);
        values += (cursor.end - cursor.start) >> 3;
      }
    } else if (field === 8 && wire === 2) {
      if (out.text.length < longestText) {
        cursor.end = Math.min(cursor.end, cursor.start + longestText);
        out.text = out.text === '' ? cursor.text() : `${out.text}\n${cursor.text()}`;
      }
      out.kind = 'text';
    } else if (field === 7 || field === 10 || field === 11 || field === 13) {
      // int_val, int64_val, bool_val, half_val: varints, packed or not.
      const raw = firstVarint(bytes, wire);
      if (raw === undefined) continue;
      number = field !== 13 ? raw : dtype === dtypes.bfloat16 ? bfloat16(raw) : half(raw);
      values += wire === 2 ? Math.max(1, elements) : 1;
    }
  }
  if (out.kind === 'text') return;
  if (elements !== 1 || values > 1) return;
  if (values === 0) {
    // A tensor of a numeric type without any bytes is a zero that was left out.
    const content = contentStart < contentEnd ? fromContent(bytes, contentStart, contentEnd, dtype) : 0;
    if (content === undefined || !numeric.has(dtype)) return;
    number = content;
  }
  out.kind = 'number';
  out.number = number;
}

function firstVarint(bytes: Uint8Array, wire: number): number | undefined {
  if (wire === 0) return cursor.int();
  if (wire !== 2) return undefined;
  let value = 0;
  let scale = 1;
  for (let i = cursor.start; i < Math.min(cursor.end, cursor.start + 10); i++) {
    const byte = bytes[i];
    value += (byte & 0x7f) * scale;
    if (byte < 0x80) return value >= 2 ** 63 ? value - 2 ** 64 : value;
    scale *= 128;
  }
  return undefined;
}

function fromContent(bytes: Uint8Array, start: number, end: number, dtype: number): number | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset + start, end - start);
  switch (dtype) {
    case dtypes.float:
      return end - start === 4 ? view.getFloat32(0, true) : undefined;
    case dtypes.double:
      return end - start === 8 ? view.getFloat64(0, true) : undefined;
    case dtypes.int32:
      return end - start === 4 ? view.getInt32(0, true) : undefined;
    case dtypes.int64:
      return end - start === 8 ? Number(view.getBigInt64(0, true)) : undefined;
    case dtypes.bool:
      return end - start === 1 ? view.getUint8(0) : undefined;
    case dtypes.half:
      return end - start === 2 ? half(view.getUint16(0, true)) : undefined;
    case dtypes.bfloat16:
      return end - start === 2 ? bfloat16(view.getUint16(0, true)) : undefined;
    default:
      return undefined;
  }
}

function elementsOf(bytes: Uint8Array, start: number, end: number): number {
  let elements = 1;
  inner.open(bytes, start, end);
  while (inner.next()) {
    if (inner.field !== 2 || inner.wire !== 2) continue;
    let size = 0;
    dimension.open(bytes, inner.start, inner.end);
    while (dimension.next()) if (dimension.field === 1 && dimension.wire === 0) size = dimension.int();
    elements *= size;
  }
  return elements;
}

function half(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0x1f) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

const scratch = new DataView(new ArrayBuffer(4));

function bfloat16(bits: number): number {
  scratch.setUint32(0, (bits & 0xffff) << 16);
  return scratch.getFloat32(0);
}

/** HParamsPluginData: 3 session_start_info {1 hparams: map of text to google.protobuf.Value}. */
export function readHparams(
  bytes: Uint8Array,
  start: number,
  end: number,
  setting: (name: string, value: Setting) => void,
): void {
  const [data, info, entry, value] = [
    new ProtoCursor(),
    new ProtoCursor(),
    new ProtoCursor(),
    new ProtoCursor(),
  ];
  data.open(bytes, start, end);
  while (data.next()) {
    if (data.field !== 3 || data.wire !== 2) continue;
    info.open(bytes, data.start, data.end);
    while (info.next()) {
      if (info.field !== 1 || info.wire !== 2) continue;
      let name = '';
      let found: Setting = null;
      entry.open(bytes, info.start, info.end);
      while (entry.next()) {
        if (entry.wire !== 2) continue;
        if (entry.field === 1) name = entry.text();
        if (entry.field !== 2) continue;
        value.open(bytes, entry.start, entry.end);
        while (value.next()) {
          if (value.field === 2 && value.wire === 1) found = value.double();
          else if (value.field === 3 && value.wire === 2) found = value.text();
          else if (value.field === 4 && value.wire === 0) found = value.low !== 0;
        }
      }
      if (name !== '') setting(name, found);
    }
  }
}
