/**
 * As much of the protocol-buffer wire format as logs need (https://protobuf.dev/programming-guides/encoding/), without
 * making an object for each field. Damaged bytes end a message early; nothing is read outside of it.
 */

/** A place in a message. Fields are visited with {@link next}; what a field holds is in `start`, `end` and `low`. */
export class ProtoCursor {
  bytes: Uint8Array = new Uint8Array(0);
  #view: DataView = new DataView(new ArrayBuffer(0));
  #at = 0;
  #end = 0;
  field = 0;
  /** 0 varint, 1 eight bytes, 2 a length and so many bytes, 5 four bytes. */
  wire = 0;
  /** Of a field with a length: where its bytes are. Of one of four or eight bytes: where they begin. */
  start = 0;
  end = 0;
  /** Of a varint: its low and high 32 bits. */
  low = 0;
  high = 0;
  /** Whether the message was damaged. */
  damaged = false;

  /** Begins a message. `start` and `end` must lie in `bytes`. */
  open(bytes: Uint8Array, start: number, end: number): this {
    if (bytes !== this.bytes) {
      this.bytes = bytes;
      this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    }
    this.#at = start;
    this.#end = end;
    this.damaged = false;
    return this;
  }

  /** Goes to the next field; false at the end. */
  next(): boolean {
    if (this.#at >= this.#end) return false;
    const first = this.bytes[this.#at];
    if (first < 0x80) {
      this.#at++;
      this.field = first >>> 3;
      this.wire = first & 7;
    } else {
      if (!this.#varint() || this.high !== 0) return this.#damage();
      this.field = this.low >>> 3;
      this.wire = this.low & 7;
    }
    switch (this.wire) {
      case 0:
        return this.#varint() || this.#damage();
      case 1:
        return this.#fixed(8);
      case 2: {
        if (!this.#varint() || this.high !== 0) return this.#damage();
        return this.#fixed(this.low);
      }
      case 5:
        return this.#fixed(4);
      default:
        return this.#damage();
    }
  }

  double(): number {
    return this.#view.getFloat64(this.start, true);
  }

  float(): number {
    return this.#view.getFloat32(this.start, true);
  }

  floatAt(at: number): number {
    return this.#view.getFloat32(at, true);
  }

  doubleAt(at: number): number {
    return this.#view.getFloat64(at, true);
  }

  /** A varint as a signed number; above 2^53 it is rounded. */
  int(): number {
    return (this.high | 0) * 2 ** 32 + this.low;
  }

  text(): string {
    return Buffer.from(this.bytes.buffer, this.bytes.byteOffset + this.start, this.end - this.start).toString(
      'utf8',
    );
  }

  #fixed(length: number): boolean {
    if (length > this.#end - this.#at) return this.#damage();
    this.start = this.#at;
    this.#at += length;
    this.end = this.#at;
    return true;
  }

  #damage(): boolean {
    this.damaged = true;
    this.#at = this.#end;
    return false;
  }

  #varint(): boolean {
    let low = 0;
    let high = 0;
    for (let i = 0; i < 10; i++) {
      if (this.#at >= this.#end) return false;
      const byte = this.bytes[this.#at++];
      const bits = byte & 0x7f;
      if (i < 4) low |= bits << (7 * i);
      else if (i === 4) {
        low |= bits << 28;
        high = bits >>> 4;
      } else high |= bits << (7 * i - 32);
      if (byte < 0x80) {
        this.low = low >>> 0;
        this.high = high >>> 0;
        return true;
      }
    }
    return false;
  }
}
