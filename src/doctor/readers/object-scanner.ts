/** Takes the objects out of a long list in JSON one by one, as its text comes in pieces. */
import { isObject, type JsonObject, parseJson } from './json.ts';

/** A row with more is damage. */
const longestObject = 4 * 2 ** 20;

export class ObjectScanner {
  readonly #onObject: (object: JsonObject) => void;
  #parts: string[] = [];
  #length = 0;
  #depth = 0;
  #inString = false;
  #escaped = false;
  /** Objects that could not be read. */
  broken = 0;

  constructor(onObject: (object: JsonObject) => void) {
    this.#onObject = onObject;
  }

  /** Whether the text so far ends inside of an object. */
  get inObject(): boolean {
    return this.#depth > 0;
  }

  /** Takes text from `start` on; returns where the list ended (after its bracket), or -1 if it goes on. */
  push(text: string, start = 0): number {
    let from = start;
    for (let i = start; i < text.length; i++) {
      const c = text.charCodeAt(i);
      if (this.#inString) {
        if (this.#escaped) this.#escaped = false;
        else if (c === 92) this.#escaped = true;
        else if (c === 34) this.#inString = false;
        continue;
      }
      if (c === 34) this.#inString = true;
      else if (c === 123 || c === 91) {
        if (this.#depth++ === 0) from = i;
      } else if (c === 125 || c === 93) {
        if (this.#depth === 0) {
          if (c === 93) return i + 1;
          continue;
        }
        if (--this.#depth === 0) {
          this.#keep(text.slice(from, i + 1));
          this.#finish();
        }
      }
    }
    if (this.#depth > 0) this.#keep(text.slice(from));
    return -1;
  }

  #keep(part: string): void {
    this.#length += part.length;
    if (this.#length > longestObject) this.#parts = [];
    else this.#parts.push(part);
  }

  #finish(): void {
    const value = this.#length > longestObject ? undefined : parseJson(this.#parts.join(''));
    this.#parts = [];
    this.#length = 0;
    if (isObject(value)) this.#onObject(value);
    else this.broken++;
  }
}
