const encoder = new TextEncoder();

/** Bytes from which on an array is kept as it is and not copied: weights, which are most of an ONNX file. */
const LARGE = 1024;

/**
 * A writer for the protocol-buffer wire format, as much of it as ONNX and event files need
 * (https://protobuf.dev/programming-guides/encoding/). What is small grows one buffer: a row has fifty small messages, a
 * graph thousands. What is large must not change until `finish`.
 */
export class ProtoWriter {
  /** What comes before the buffer. */
  readonly #before: Uint8Array[] = [];
  #beforeLength = 0;
  #bytes = new Uint8Array(64);
  #view = new DataView(this.#bytes.buffer);
  #length = 0;

  /** A whole number; negative ones take ten bytes, as the format has it for int64. */
  int(field: number, value: number | bigint): this {
    this.#varint(field * 8);
    if (typeof value === 'number' && value >= 0 && Number.isSafeInteger(value)) this.#varint(value);
    else this.#longVarint(BigInt.asUintN(64, BigInt(value)));
    return this;
  }

  double(field: number, value: number): this {
    this.#varint(field * 8 + 1);
    this.#reserve(8);
    this.#view.setFloat64(this.#length, value, true);
    this.#length += 8;
    return this;
  }

  float(field: number, value: number): this {
    this.#varint(field * 8 + 5);
    this.#reserve(4);
    this.#view.setFloat32(this.#length, value, true);
    this.#length += 4;
    return this;
  }

  text(field: number, value: string): this {
    return this.bytes(field, encoder.encode(value));
  }

  bytes(field: number, value: Uint8Array): this {
    this.#varint(field * 8 + 2);
    this.#varint(value.length);
    return this.#push(value);
  }

  message(field: number, value: ProtoWriter): this {
    this.#varint(field * 8 + 2);
    this.#varint(value.#beforeLength + value.#length);
    for (const part of value.#before) this.#push(part);
    return this.#push(value.#bytes.subarray(0, value.#length));
  }

  /** Everything that was written, in one array of its own. */
  finish(): Uint8Array {
    const out = new Uint8Array(this.#beforeLength + this.#length);
    let at = 0;
    for (const part of this.#before) {
      out.set(part, at);
      at += part.length;
    }
    out.set(this.#bytes.subarray(0, this.#length), at);
    return out;
  }

  #push(bytes: Uint8Array): this {
    if (bytes.length >= LARGE) {
      this.#before.push(this.#bytes.subarray(0, this.#length), bytes);
      this.#beforeLength += this.#length + bytes.length;
      this.#use(new Uint8Array(64));
      this.#length = 0;
      return this;
    }
    this.#reserve(bytes.length);
    this.#bytes.set(bytes, this.#length);
    this.#length += bytes.length;
    return this;
  }

  /** Of a number from 0 to 2^53 - 1. */
  #varint(value: number): void {
    this.#reserve(8);
    let rest = value;
    while (rest > 0x7f) {
      this.#bytes[this.#length++] = (rest % 0x80) | 0x80;
      rest = Math.floor(rest / 0x80);
    }
    this.#bytes[this.#length++] = rest;
  }

  /** Of a number below 2^64. */
  #longVarint(value: bigint): void {
    this.#reserve(10);
    let rest = value;
    while (rest > 0x7fn) {
      this.#bytes[this.#length++] = Number(rest & 0x7fn) | 0x80;
      rest >>= 7n;
    }
    this.#bytes[this.#length++] = Number(rest);
  }

  #reserve(count: number): void {
    const needed = this.#length + count;
    if (needed <= this.#bytes.length) return;
    const larger = new Uint8Array(Math.max(needed, 2 * this.#bytes.length));
    larger.set(this.#bytes.subarray(0, this.#length));
    this.#use(larger);
  }

  #use(buffer: Uint8Array<ArrayBuffer>): void {
    this.#bytes = buffer;
    this.#view = new DataView(buffer.buffer);
  }
}
