/** How wide a text is in a terminal, and how to make it fit. The texts have no escape sequences: paint comes after. */

/** Too narrow a column for a word to be read in. */
const NARROWEST = 8;

const wide =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{16fe0}-\u{18dff}\u{1aff0}-\u{1b2ff}\u{1f1e6}-\u{1f1ff}\u{1f200}-\u{1faff}\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}/u;
/** A variation selector can make the character before it wide, and a soft hyphen may show: both count. */
const narrow = /[\p{Mn}\p{Me}\p{Cf}]/u;
const selectors = /[\ufe0f\u00ad]/;

/** Columns of one character: 0, 1 or 2, rather too many than too few. */
function columnsOfOne(character: string): number {
  if (character < '\u0300' && character !== '\u00ad') return 1;
  if (selectors.test(character)) return 1;
  if (narrow.test(character)) return 0;
  return wide.test(character) ? 2 : 1;
}

/** Columns that a text takes. */
export function columnsOf(text: string): number {
  let columns = 0;
  for (const character of text) columns += columnsOfOne(character);
  return columns;
}

/** At most so many columns, with `…` in place of what was cut off. */
export function fit(text: string, columns: number): string {
  if (columnsOf(text) <= columns) return text;
  return columns < 1 ? '' : `${head(text, columns - 1)}…`;
}

/** Keeps both ends, as a path needs: the run's name is at its end. */
export function fitMiddle(text: string, columns: number): string {
  if (columnsOf(text) <= columns) return text;
  if (columns < 3) return fit(text, columns);
  const front = Math.floor((columns - 1) / 3);
  const start = head(text, front);
  const reversed = [...text].reverse().join('');
  const end = [...head(reversed, columns - 1 - columnsOf(start))].reverse().join('');
  return `${start}…${end}`;
}

function head(text: string, columns: number): string {
  let [out, used] = ['', 0];
  for (const character of text) {
    used += columnsOfOne(character);
    if (used > columns) break;
    out += character;
  }
  return out;
}

/** To exactly so many columns, if it is not wider. */
export function pad(text: string, columns: number, side: 'left' | 'right' = 'right'): string {
  const gap = ' '.repeat(Math.max(0, columns - columnsOf(text)));
  return side === 'right' ? text + gap : gap + text;
}

/** Lines of at most so many columns, broken at spaces; a word that is wider than a line is cut. */
export function wrap(text: string, columns: number): string[] {
  const width = Math.max(NARROWEST, columns);
  const lines: string[] = [];
  let [line, used] = ['', 0];
  for (let word of text.split(' ').filter(part => part !== '')) {
    let size = columnsOf(word);
    if (used > 0 && used + 1 + size <= width) {
      line += ` ${word}`;
      used += 1 + size;
      continue;
    }
    if (used > 0) lines.push(line);
    while (size > width) {
      const part = head(word, width);
      lines.push(part);
      word = word.slice(part.length);
      size = columnsOf(word);
    }
    [line, used] = [word, size];
  }
  if (used > 0) lines.push(line);
  return lines;
}

/** Wrapped lines under a first one that starts with `lead`; the others are indented as far. */
export function hang(lead: string, text: string, columns: number): string[] {
  const indent = ' '.repeat(columnsOf(lead));
  return wrap(text, columns - indent.length).map((line, i) => (i === 0 ? lead : indent) + line);
}
