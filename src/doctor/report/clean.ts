/** Text from a log, made harmless: it may name a metric, but never drive a terminal, a page or a document. */

import { breaks, hidden, sequences } from '../../base/controls.ts';

/** Longest text of a log that any report shows. */
const MOST = 4000;

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
