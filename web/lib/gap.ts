/** The gap that an ellipsis leaves: a browser cuts at a letter, and what is left of the width stays empty. */

/** How much of `width` is empty after as much of the text as fits with an ellipsis. */
export function gapAfter(text: string, width: number, measure: (text: string) => number): number {
  let [fits, beyond] = [0, text.length];
  while (beyond - fits > 1) {
    const middle = (fits + beyond) >> 1;
    if (measure(`${text.slice(0, middle)}…`) <= width) fits = middle;
    else beyond = middle;
  }
  return Math.max(0, width - measure(`${text.slice(0, fits)}…`));
}
