/** The events of one run, in bounded memory: of each kind the newest, and how many there were. */
import type { EventsAnswer, PageEvent } from '../api.ts';

const mostOfAKind = 2000;
const mostKinds = 100;

export class EventStore {
  #kinds = new Map<string, { count: number; events: PageEvent[] }>();
  #next = 0;

  get total(): number {
    return this.#next;
  }

  /** Adds an event, and gives it its number. */
  add(event: Omit<PageEvent, 'sequence'>): PageEvent {
    const numbered = { sequence: this.#next++, ...event };
    let kind = this.#kinds.get(event.type);
    if (kind === undefined) {
      if (this.#kinds.size >= mostKinds) return numbered;
      kind = { count: 0, events: [] };
      this.#kinds.set(event.type, kind);
    }
    kind.count++;
    kind.events.push(numbered);
    // In portions, or each event would move them all.
    if (kind.events.length >= 2 * mostOfAKind) kind.events = kind.events.slice(-mostOfAKind);
    return numbered;
  }

  /** Numbers go on after those of what is forgotten, so that a client that asks for later ones gets them all. */
  clear(): void {
    this.#kinds.clear();
  }

  answer(after: number): EventsAnswer {
    const events: PageEvent[] = [];
    const counts: Record<string, number> = {};
    for (const [type, kind] of this.#kinds) {
      const kept = kind.events.slice(-mostOfAKind);
      counts[type] = kind.count;
      for (const event of kept) if (event.sequence > after) events.push(event);
    }
    return { events: events.sort((a, b) => a.sequence - b.sequence), counts };
  }
}
