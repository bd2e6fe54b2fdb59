/** Closes the gap that an ellipsis leaves: the browser cuts at a letter, and what is left of the width stays empty. */
import { gapAfter } from '../lib/gap.ts';

const pen = document.createElement('canvas').getContext('2d');

/** One for all: first everything is measured, then everything is moved, so that the page is laid out once. */
const observer =
  pen === null
    ? null
    : new ResizeObserver(entries => {
        const heads = entries.map(entry => entry.target as HTMLElement);
        const gaps = entries.map(({ contentRect }, i) => {
          const head = heads[i];
          if (head.scrollWidth <= head.clientWidth) return 0;
          pen.font = getComputedStyle(head).font;
          return gapAfter(head.textContent, contentRect.width, text => pen.measureText(text).width);
        });
        heads.forEach((head, i) => {
          (head.nextElementSibling as HTMLElement | null)?.style.setProperty('left', `${-gaps[i]}px`);
        });
      });

/** For the element with the ellipsis; the one after it is moved to it. */
export function tuck(head: HTMLElement): () => void {
  observer?.observe(head);
  return () => observer?.unobserve(head);
}
