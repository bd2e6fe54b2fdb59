/** A queue of request ids that grows; ids can also be put at its front. */
export class IdQueue {
  #ids = new Int32Array(64);
  #head = 0;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** The id at a position from the front. */
  at(position: number): number {
    return this.#ids[(this.#head + position) & (this.#ids.length - 1)];
  }

  push(id: number): void {
    if (this.#length === this.#ids.length) this.#grow();
    this.#ids[(this.#head + this.#length) & (this.#ids.length - 1)] = id;
    this.#length++;
  }

  unshift(id: number): void {
    if (this.#length === this.#ids.length) this.#grow();
    this.#head = (this.#head - 1) & (this.#ids.length - 1);
    this.#ids[this.#head] = id;
    this.#length++;
  }

  shift(): number {
    const id = this.#ids[this.#head];
    this.#head = (this.#head + 1) & (this.#ids.length - 1);
    this.#length--;
    return id;
  }

  clear(): void {
    this.#head = 0;
    this.#length = 0;
  }

  copyFrom(other: IdQueue): void {
    this.clear();
    for (let i = 0; i < other.length; i++) this.push(other.at(i));
  }

  toArray(): number[] {
    return Array.from({ length: this.#length }, (_, i) => this.at(i));
  }

  /** Twice the room; a power of two, so that positions wrap with a mask. */
  #grow(): void {
    const ids = new Int32Array(this.#ids.length * 2);
    for (let i = 0; i < this.#length; i++) ids[i] = this.at(i);
    this.#ids = ids;
    this.#head = 0;
  }
}
