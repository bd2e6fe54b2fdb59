/** Server-sent events from chunks of text, as the standard has it, as far as the page needs it. */
export interface ServerEvent {
  readonly id: string | null;
  readonly data: string;
}

/** Feed it chunks of any size; it gives back the events that are complete. */
export function createEventParser(): (chunk: string) => ServerEvent[] {
  let rest = '';
  let id: string | null = null;
  let data: string[] = [];
  /** A \r at the end of a chunk may have its \n in the next. */
  let afterReturn = false;

  return chunk => {
    const events: ServerEvent[] = [];
    let text = chunk;
    if (afterReturn && text.startsWith('\n')) text = text.slice(1);
    afterReturn = text === '' ? afterReturn : text.endsWith('\r');
    const lines = (rest + text).split(/\r\n|\r|\n/);
    rest = lines.pop()!;
    for (const line of lines) {
      if (line === '') {
        if (data.length > 0) events.push({ id, data: data.join('\n') });
        data = [];
        continue;
      }
      const colon = line.indexOf(':');
      if (colon === 0) continue;
      const field = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
      if (field === 'data') data.push(value);
      else if (field === 'id' && !value.includes('\0')) id = value;
    }
    return events;
  };
}

/** Milliseconds to wait before the n-th attempt (from 0): doubling to 15 s, a little apart for each page. */
export function backoffMs(attempt: number, apart = 0): number {
  const base = Math.min(15_000, 500 * 2 ** Math.min(attempt, 10));
  return Math.round(base * (0.85 + 0.3 * Math.min(1, Math.max(0, apart))));
}

/** Half a frame: what costs less is done in every frame. */
const freeMs = 8;
const longestRestMs = 500;

/**
 * How long messages wait for others after some that took the page so many milliseconds. Two thousand runs that are judged
 * one after the other would fill every frame: so they leave four fifths of the time to the one who looks.
 */
export const restAfter = (costMs: number): number =>
  costMs < freeMs ? 0 : Math.min(longestRestMs, 4 * costMs);
