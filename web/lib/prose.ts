/** Sentences of the doctor where there is only text. */
import { spansOf } from '../../src/doctor/findings.ts';

/** A sentence without the marks of what is code in it. */
export function plain(sentence: string): string {
  return spansOf(sentence)
    .map(span => span.text)
    .join('');
}
