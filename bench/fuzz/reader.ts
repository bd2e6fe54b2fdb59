/** What is fuzzed: something that reads, with sound inputs to damage. */

/** A reader that is ready, in a directory of its own. */
export interface ReadyReader {
  /** Sound inputs, each a file's bytes. */
  readonly samples: readonly Uint8Array[];
  /**
   * Reads a damaged copy of a sample; `index` counts the inputs of a seed. What is refused is a `KeelError` of one line; anything else that is thrown is a fault,
   * and so is a {@link Wrong}. `resumed` says that training would go on with what was read.
   */
  read(bytes: Buffer, sample: number, index: number): 'resumed' | unknown;
}

/** A reader by its name. `open` makes it ready in an empty directory. */
export interface FuzzedReader {
  readonly name: string;
  open(directory: string): ReadyReader | Promise<ReadyReader>;
}

/** Something that was read, and must not have been read so. */
export class Wrong extends Error {
  override name = 'Wrong';
}

/** `expect` would take most of the time. */
export function insist(holds: boolean, what: () => string): void {
  if (!holds) throw new Wrong(what());
}
