/** Keys on a focused plot: the cursor goes from point to point and from event to event, and what is there is said. */
import { formatPlace } from '../lib/axis.ts';
import { type Line, nearestIndex } from '../lib/envelope.ts';
import { formatValue } from '../lib/format.ts';
import type { Pin } from '../lib/pins.ts';
import { say } from '../state/say.svelte.ts';
import { titleOf } from './events.ts';
import type { Stage } from './stage.svelte.ts';

/** Whether the key was for the plot. */
export function plotKey(event: KeyboardEvent, stage: Stage, line: Line, pins: readonly Pin[]): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return false;
  const place = (x: number) => formatPlace(stage.axis, x, stage.origin);
  if (event.key === 'ArrowLeft' || event.key === 'ArrowRight') {
    const from = stage.cursor === null ? line.x.length : nearestIndex(line.x, stage.cursor);
    const i = Math.min(line.x.length - 1, Math.max(0, from + (event.key === 'ArrowLeft' ? -1 : 1)));
    const x = line.x[i];
    if (x === undefined) return true;
    stage.cursor = x;
    say.aloud(`${place(x)}: ${formatValue(line.mean[i])}`);
    return true;
  }
  if (event.key !== '[' && event.key !== ']') return false;
  const on = event.key === ']';
  const at = stage.cursor ?? (on ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY);
  const next = on ? pins.find(pin => pin.x > at) : pins.findLast(pin => pin.x < at);
  if (next === undefined) say.briefly('No further event.', 1500);
  else {
    stage.cursor = next.x;
    say.briefly(`${titleOf(next.kind)} at ${place(next.x)}: ${next.text}`);
  }
  return true;
}
