/**
 * verl prints a step as one line of thousands of characters. A terminal that was copied from has it in pieces as wide as
 * itself, and some tools put each metric on a line of its own: here such pieces are one line again.
 */
import { cleanLine, isBareStep, isOwnLine, verlCells, withoutColours } from './console-lines.ts';
import type { OnLine } from './text.ts';

/** No terminal is wider; a longer line was not wrapped. */
const widest = 512;
const narrowest = 40;
const longestRecord = 2 ** 16;
const morePairs = /(?:^|\s)- [\w/@.-]+:\S|^[\w/@.:+-]* - /;
/** What begins a line of its own: a log's date, a progress bar, an error. */
const another = /^\s*$|^\[?\d{4}-\d\d-\d\d|\d%\||^Traceback|^\(/;

/** Hands lines on to `onLine`, those of a step in one piece. `end` hands on what is held. */
export function joinVerl(onLine: OnLine): { readonly line: OnLine; end(): void } {
  let held:
    | { text: string; last: number; width: number; pieces: number; own: boolean; whole: boolean }
    | undefined;
  /** How wide the terminal was, once that is known. */
  let known = 0;
  const isFull = (length: number, width: number): boolean => length >= width - 1 && length <= width + 1;
  const end = (): void => {
    if (held === undefined) return;
    const { text, last, own, whole, pieces } = held;
    // As wide as the terminal, and nothing after it: its last value was cut.
    const cut = !own && pieces === 1 && known > 0 && last === known;
    held = undefined;
    onLine(text, whole && !cut);
  };
  const goesOn = (line: string): boolean => {
    if (held === undefined || held.text.length > longestRecord) return false;
    if (held.own) return isOwnLine(line);
    if (!isFull(held.last, held.width) || line.length > held.width + 1 || another.test(line)) return false;
    return held.pieces > 1 || isFull(held.width, known) || endsInName(held.text) || morePairs.test(line);
  };
  return {
    line(raw, whole) {
      const plain = withoutColours(raw);
      if (held !== undefined) {
        const starts = plain.includes('step:') && verlCells(cleanLine(plain), true) !== undefined;
        if (!starts && goesOn(plain)) {
          const gap = held.own || spaceLost(held.text, plain) ? ' ' : '';
          if (!held.own) known = Math.max(held.width, plain.length);
          const { text, width, pieces, own } = held;
          held = {
            text: text + gap + (own ? plain.trim() : plain),
            last: plain.length,
            width: own ? width : Math.max(width, plain.length),
            pieces: pieces + 1,
            own,
            whole,
          };
          return;
        }
        end();
      }
      const own = isBareStep(plain);
      const wraps = plain.length >= narrowest && plain.length <= widest && plain.includes('step:');
      if (own || (wraps && verlCells(cleanLine(plain), true) !== undefined))
        held = { text: plain, last: plain.length, width: plain.length, pieces: 1, own, whole };
      else onLine(raw, whole);
    },
    end,
  };
}

/** Whether the space between two cells was at the end of a piece, where copying loses it. */
const spaceLost = (text: string, next: string): boolean =>
  (next.startsWith('- ') && !text.endsWith(' ')) || (text.endsWith(' -') && /^[a-z]/i.test(next));

/** Whether a piece ends where a cell has no value yet: what comes next is the rest of it. */
function endsInName(text: string): boolean {
  const last = text.slice(text.lastIndexOf(' - ') + 3);
  return last.endsWith(' -') || last.endsWith(':') || !last.includes(':');
}
