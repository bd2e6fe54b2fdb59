/** Text from a log, made harmless: it may name a metric, but never drive a terminal, a page or a document. */

const ESCAPE = '\u001b';
/** Longest text of a log that any report shows. */
const MOST = 4000;

/** Whole sequences first, so that nothing of `ESC[31m` stays; what is left of a broken one goes with the controls. */
const sequences = new RegExp(
  [
    // Operating system commands, device strings and the like, up to their end.
    `(?:${ESCAPE}[\\]PX^_]|[\\u0090\\u0098\\u009d-\\u009f])[^\\u0000-\\u001f\\u007f-\\u009f]*(?:\\u0007|${ESCAPE}\\\\|\\u009c)`,
    // Colours, cursor movements, modes.
    `(?:${ESCAPE}\\[|\\u009b)[0-?]*[ -/]*[@-~]`,
    // Two and three character escapes.
    `${ESCAPE}[ -/]*[0-Z\\\\^-~]`,
  ].join('|'),
  'g',
);
const breaks = /[\t-\r\u0085\u2028\u2029]+/g;
/** Controls, marks that turn the direction of text, and characters without a width or a shape. */
const hidden =
  /[\p{Cc}\u061c\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;

/** One line without anything that is not a character to read. */
export function clean(text: string): string {
  const bounded = text.length > MOST ? `${text.slice(0, MOST - 1)}…` : text;
  return bounded
    .replaceAll(sequences, '')
    .replaceAll(breaks, ' ')
    .replaceAll(hidden, '')
    .replaceAll(/\p{Surrogate}/gu, '\ufffd')
    .trim();
}

/** The same for a text that may have several lines, such as a change to copy. */
export function cleanLines(text: string): string[] {
  return text
    .slice(0, MOST)
    .split(/\r?\n/)
    .map(line => {
      const indent = /^ {0,16}/.exec(line)![0];
      return indent + clean(line);
    })
    .filter((line, i, all) => line.trim() !== '' || (i > 0 && i < all.length - 1));
}

const plainForms: Readonly<Record<string, string>> = {
  '…': '...',
  '–': '-',
  '—': '-',
  '−': '-',
  '·': '-',
  '•': '*',
  '×': 'x',
  '±': '+-',
  '≤': '<=',
  '≥': '>=',
  '≈': '~',
  '→': '->',
  '‖': '||',
  '‘': "'",
  '’': "'",
  '“': '"',
  '”': '"',
  '²': '^2',
  '✓': 'ok',
  '✗': 'x',
  '\u00a0': ' ',
};

/** For terminals that show ASCII alone. What has no plain form becomes a question mark. */
export function toAscii(text: string): string {
  return text
    .replaceAll(/[^ -~]/gu, character => plainForms[character] ?? character)
    .normalize('NFKD')
    .replaceAll(/\p{Mn}/gu, '')
    .replaceAll(/[^ -~]/gu, '?');
}

/** The same for lines that are laid out and may be painted: each character becomes one, so that they still line up. */
export function laidOutAscii(lines: string): string {
  const forms: Readonly<Record<string, string>> = { '…': '~', '→': '>', '•': '*' };
  return lines.replaceAll(/[^ -~\p{Cc}]/gu, character => forms[character] ?? '?');
}
