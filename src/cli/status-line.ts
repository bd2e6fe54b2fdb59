/** A line on stderr that is drawn again and again, where somebody sees it: how far something is. */
import { fit, shownText } from '../base/terminal.ts';

/** Between two drawings. */
const EVERY_MS = 100;

/** Nothing is drawn in the first `waitMs`: what is done by then needs no line. */
export function statusLine(waitMs = 0): { show(text: string): void; clear(): void } {
  const { stderr } = process;
  const isSeen = stderr.isTTY === true && process.env.TERM !== 'dumb';
  let nextAt = performance.now() + waitMs;
  let isDrawn = false;
  return {
    show(text) {
      const now = performance.now();
      if (!isSeen || now < nextAt) return;
      stderr.write(`\r\u001b[K${fit(shownText(text, true), (stderr.columns || 80) - 1)}`);
      nextAt = now + EVERY_MS;
      isDrawn = true;
    },
    clear() {
      if (isDrawn) stderr.write('\r\u001b[K');
      nextAt = 0;
      isDrawn = false;
    },
  };
}
