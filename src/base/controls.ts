/** Characters that drive a terminal instead of being read: whatever comes from outside is shown without them. */

const ESCAPE = '\u001b';

/** Whole sequences first, so that nothing of `ESC[31m` stays; what is left of a broken one goes with the controls. */
export const sequences = new RegExp(
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
export const breaks = /[\t-\r\u0085\u2028\u2029]+/g;
/** Controls, marks that turn the direction of text, and characters without a width or a shape. */
export const hidden =
  /[\p{Cc}\u061c\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;

/** A text of any number of lines with nothing in it but characters, line ends and tabs. */
export function withoutControls(text: string): string {
  // Most texts have none.
  if (!/[^\n\t -~]/.test(text)) return text;
  return text.replaceAll(sequences, '').replaceAll(hidden, at => (at === '\n' || at === '\t' ? at : ''));
}

/** JSON in which such characters are written as escapes: it reads back as it was, and a terminal sees none of them. */
export function escapeControls(json: string): string {
  if (!/[^\n -~]/.test(json)) return json;
  const escaped = (text: string): string =>
    Array.from(
      { length: text.length },
      (_, i) => `\\u${text.charCodeAt(i).toString(16).padStart(4, '0')}`,
    ).join('');
  // Outside of texts JSON has line ends and spaces alone, and inside them no line ends.
  return json
    .replaceAll(hidden, at => (at === '\n' ? at : escaped(at)))
    .replaceAll(/[\u2028\u2029]/g, escaped);
}
