/** Pointer and keys on one plot: shift-drag pans, a finger moves the cursor, a double click shows the whole run. */
import { describeGroup, groupAt } from '../lib/pins.ts';
import { tips } from '../parts/tip.svelte.ts';
import type { Chart } from './chart.ts';
import { pinStrip } from './draw.ts';
import { titleOf } from './events.ts';
import type { Stage } from './stage.svelte.ts';

/** Listens on the plot's host, which stays when the canvas inside is made again. */
export function bindPointer(host: HTMLElement, chart: () => Chart | null, stage: Stage): () => void {
  const abort = new AbortController();
  const { signal } = abort;

  host.addEventListener(
    'mousedown',
    event => {
      const over = chart()?.over;
      if (
        over === undefined ||
        !(event.shiftKey || event.button === 1) ||
        !over.contains(event.target as Node)
      )
        return;
      event.preventDefault();
      event.stopImmediatePropagation();
      const start = event.clientX;
      const [from, to] = stage.range;
      const perPixel = (to - from) / over.clientWidth;
      const drag = new AbortController();
      const move = (e: MouseEvent) =>
        stage.zoomTo(from - (e.clientX - start) * perPixel, to - (e.clientX - start) * perPixel);
      addEventListener('mousemove', move, { signal: drag.signal });
      addEventListener('mouseup', () => drag.abort(), { signal: drag.signal });
    },
    { capture: true, signal },
  );
  host.addEventListener('dblclick', () => stage.reset(), { signal });
  host.addEventListener(
    'wheel',
    event => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      stage.scale(event.deltaY > 0 ? 1.25 : 0.8);
    },
    { passive: false, signal },
  );

  let telling = false;
  host.addEventListener(
    'pointermove',
    event => {
      const c = chart();
      if (c === null) return;
      const box = c.over.getBoundingClientRect();
      const left = event.clientX - box.left;
      if (event.pointerType === 'touch') stage.cursor = c.toX(Math.min(box.width, Math.max(0, left)));
      const low = box.bottom - event.clientY;
      const group = low >= -4 && low <= pinStrip ? groupAt(c.groups(), left, 7) : null;
      if (group !== null) {
        telling = true;
        tips.show(
          { lines: describeGroup(group, titleOf) },
          { left: box.left + group.left, bottom: box.bottom + 4, top: box.bottom - pinStrip },
        );
      } else if (telling) {
        telling = false;
        tips.hide();
      }
    },
    { signal },
  );
  host.addEventListener(
    'pointerleave',
    () => {
      if (telling) tips.hide();
      telling = false;
    },
    { signal },
  );
  return () => abort.abort();
}
