/** The events of one run of Keel, read on from where they ended; from the start when a resume wrote the file anew. */
import { runPaths } from '../../runs/layout.ts';
import { readEvents } from '../../runs/log.ts';
import type { EventsAnswer, PageEvent } from '../api.ts';
import { EventStore } from './events.ts';
import { pageEvent, sizeOf } from './reading.ts';
import { mostRows } from './run.ts';

export class EventsFile {
  readonly #run: string;
  readonly #store = new EventStore();
  #end = 0;
  #resumedAt: number[] = [];

  constructor(run: string) {
    this.#run = run;
  }

  /** Steps at which a resume went on. */
  get resumedAt(): readonly number[] {
    return this.#resumedAt;
  }

  answer(after: number): EventsAnswer {
    return this.#store.answer(after);
  }

  /** The newest of what is new, and whether what was known no longer holds. */
  read(): { readonly fresh: readonly PageEvent[]; readonly rewritten: boolean } {
    const size = sizeOf(runPaths(this.#run).events);
    if (size === this.#end) return { fresh: [], rewritten: false };
    let part = size < this.#end ? undefined : readEvents(this.#run, this.#end);
    // A resume writes the file anew: what was the middle of a line now is its beginning, or it names itself.
    const resumed = part?.items.some(({ type }) => type === 'resumed') ?? false;
    const rewritten = part === undefined || (this.#end > 0 && (resumed || part.broken.length > 0));
    if (part === undefined || rewritten) {
      this.#store.clear();
      this.#resumedAt = [];
      part = readEvents(this.#run, 0);
    }
    this.#end = part.end;
    const fresh = part.items.map(event => this.#store.add(pageEvent(event)));
    for (const event of part.items) {
      if (event.type !== 'resumed') continue;
      this.#resumedAt.push(typeof event.checkpoint === 'number' ? event.checkpoint : 0);
    }
    return { fresh: fresh.slice(-mostRows), rewritten };
  }
}
