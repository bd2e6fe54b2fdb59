/**
 * Tags by their bytes, so that a record costs no string. Most files write the same tags in the same order again and
 * again: the tag that came after this one last time is looked at first.
 */
import type { SeriesBuilder } from '../series.ts';

export interface Tag {
  readonly name: string;
  readonly bytes: Uint8Array;
  series: SeriesBuilder | undefined;
  /** No series, because there are too many. */
  dropped: boolean;
  hasPlugin: boolean;
  plugin: string;
  texts: number;
  /** Number of the file that its newest value came from, and whether that file's values are left out. */
  file: number;
  blocked: boolean;
  next: Tag | undefined;
  sibling: Tag | undefined;
}

/** Beyond this many a file is damaged or a bomb: one tag stands for the rest. */
const mostTags = 65_536;
const longestTag = 1024;

export class TagTable {
  readonly #byHash = new Map<number, Tag>();
  readonly #rest: Tag = newTag('', new Uint8Array(0));
  #last: Tag = this.#rest;
  #count = 0;

  constructor() {
    this.#rest.dropped = true;
  }

  find(bytes: Uint8Array, start: number, end: number): Tag {
    const guess = this.#last.next;
    if (guess !== undefined && same(guess.bytes, bytes, start, end)) {
      this.#last = guess;
      return guess;
    }
    const found = this.#lookUp(bytes, start, end);
    this.#last.next = found;
    this.#last = found;
    return found;
  }

  *[Symbol.iterator](): Generator<Tag> {
    for (const first of this.#byHash.values()) {
      for (let tag: Tag | undefined = first; tag !== undefined; tag = tag.sibling) yield tag;
    }
  }

  #lookUp(bytes: Uint8Array, start: number, end: number): Tag {
    let hash = 0x811c9dc5 ^ (end - start);
    for (let i = start; i < end; i++) hash = Math.imul(hash ^ bytes[i], 0x01000193);
    const first = this.#byHash.get(hash);
    for (let tag = first; tag !== undefined; tag = tag.sibling) {
      if (same(tag.bytes, bytes, start, end)) return tag;
    }
    if (this.#count >= mostTags || end - start > longestTag) return this.#rest;
    this.#count++;
    const own = bytes.slice(start, end);
    const made = newTag(Buffer.from(own).toString('utf8'), own);
    made.sibling = first;
    this.#byHash.set(hash, made);
    return made;
  }
}

function newTag(name: string, bytes: Uint8Array): Tag {
  return {
    name,
    bytes,
    series: undefined,
    dropped: false,
    hasPlugin: false,
    plugin: '',
    texts: 0,
    file: 0,
    blocked: false,
    next: undefined,
    sibling: undefined,
  };
}

function same(tag: Uint8Array, bytes: Uint8Array, start: number, end: number): boolean {
  const length = end - start;
  if (tag.length !== length) return false;
  // From the end: names of one group differ there.
  for (let i = length - 1; i >= 0; i--) if (tag[i] !== bytes[start + i]) return false;
  return true;
}
