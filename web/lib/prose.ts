/** Sentences of the doctor: names in backticks are code. */

export interface Span {
  readonly text: string;
  readonly code: boolean;
}

/** The parts of a sentence; a backtick without its other one is text. */
export function spansOf(sentence: string): Span[] {
  const parts = sentence.split(/`([^`]+)`/);
  return parts.map((text, i) => ({ text, code: i % 2 === 1 })).filter(span => span.text !== '');
}

/** The same, where there is only text. */
export function plain(sentence: string): string {
  return spansOf(sentence)
    .map(span => span.text)
    .join('');
}
