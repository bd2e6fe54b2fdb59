/**
 * A writer for the protocol-buffer wire format, as much of it as an ONNX file needs
 * (https://protobuf.dev/programming-guides/encoding/).
 */
export class ProtoWriter {
  readonly #parts: Uint8Array[] = [];
  #length = 0;

  /** A whole number; negative ones take ten bytes, as the format has it for int64. */
  int(field: number, value: number | bigint): this {
    this.#key(field, 0);
    return this.#varint(BigInt.asUintN(64, BigInt(value)));
  }

  float(field: number, value: number): this {
    this.#key(field, 5);
    const bytes = new Uint8Array(4);
    new DataView(bytes.buffer).setFloat32(0, value, true);
    return this.#push(bytes);
  }

  text(field: number, value: string): this {
    return this.bytes(field, new TextEncoder().encode(value));
  }

  bytes(field: number, value: Uint8Array): this {
    this.#key(field, 2);
    this.#varint(BigInt(value.length));
    return this.#push(value);
  }

  message(field: number, value: ProtoWriter): this {
    this.#key(field, 2);
    this.#varint(BigInt(value.#length));
    for (const part of value.#parts) this.#push(part);
    return this;
  }

  /** Everything that was written, in one array. */
  finish(): Uint8Array {
    const out = new Uint8Array(this.#length);
    let at = 0;
    for (const part of this.#parts) {
      out.set(part, at);
      at += part.length;
    }
    return out;
  }

  #key(field: number, wireType: number): void {
    this.#varint(BigInt((field << 3) | wireType));
  }

  #varint(value: bigint): this {
    const bytes: number[] = [];
    let rest = value;
    while (rest > 0x7fn) {
      bytes.push(Number(rest & 0x7fn) | 0x80);
      rest >>= 7n;
    }
    bytes.push(Number(rest));
    return this.#push(Uint8Array.from(bytes));
  }

  #push(bytes: Uint8Array): this {
    this.#parts.push(bytes);
    this.#length += bytes.length;
    return this;
  }
}
