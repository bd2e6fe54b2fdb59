/** Which rows of a long table are drawn: those near the window. Rows have one height, so that their places are known. */

/** Fewer are all drawn. */
const few = 250;
/** Rows beyond the window on both sides. */
const beyond = 15;

export interface RowWindow {
  readonly from: number;
  readonly to: number;
  readonly rowHeight: number;
  /** Looks again in the next frame. */
  soon(): void;
  /** Scrolls to a row that is not drawn; whether it had to. */
  bringTo(index: number): boolean;
}

export function createRowWindow(bodyOf: () => HTMLElement | undefined, countOf: () => number): RowWindow {
  let rowHeight = $state(49);
  let part = $state({ from: 0, to: 80 });
  const count = $derived(countOf());
  const from = $derived(count <= few ? 0 : Math.max(0, Math.min(part.from, count)));
  const to = $derived(count <= few ? count : Math.min(count, part.to));

  function look(): void {
    const body = bodyOf();
    if (count <= few || body === undefined) return;
    const row = body.querySelector<HTMLElement>('.row');
    // With its border, and also where the browser makes rows of other heights than whole pixels.
    if (row !== null) rowHeight = row.getBoundingClientRect().height;
    const { top } = body.getBoundingClientRect();
    const first = Math.floor(-top / rowHeight) - beyond;
    const next = { from: Math.max(0, first), to: first + Math.ceil(innerHeight / rowHeight) + 2 * beyond };
    if (next.from !== part.from || next.to !== part.to) part = next;
  }
  let asked = false;
  function soon(): void {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      look();
    });
  }
  $effect(() => {
    void count;
    soon();
  });

  return {
    get from() {
      return from;
    },
    get to() {
      return to;
    },
    get rowHeight() {
      return rowHeight;
    },
    soon,
    bringTo(index) {
      const body = bodyOf();
      if (body === undefined || (index >= from && index < to)) return false;
      scrollTo(0, body.getBoundingClientRect().top + scrollY + index * rowHeight - innerHeight / 2);
      look();
      return true;
    },
  };
}
