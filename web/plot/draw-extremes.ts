/** What an average of many must not hide: extremes, and where runs of a group end. */
import { type Curve, FOOT } from '../lib/plot-data.ts';
import { type Area, inside } from './draw.ts';

/** How much further than is usual in a plot an extreme reaches that has a line of its own; and the least, in pixels. */
const outlying = 4;
const leastReach = 7;

/**
 * Extremes at full strength, where the band around is faint: a line up (or down) to what stands out from its place far more
 * than is usual in this plot, and to what is in a worse band than the mean. So one value among a million is seen, whatever
 * the others in its pixel are.
 */
export function drawPeaks(
  area: Area,
  { x, line, low, peak, grouped }: Pick<Curve, 'x' | 'line' | 'low' | 'peak' | 'grouped'>,
  [from, to]: readonly [number, number],
  color: string,
  isPeak: ((mean: number, max: number) => boolean) | null,
): void {
  const foot = area.top + area.height;
  const heightOf = (value: number): number => Math.min(value === FOOT ? foot : area.y(value), foot);
  const seen: { left: number; at: number; top: number; bottom: number; loud: boolean }[] = [];
  x.forEach((place, i) => {
    const mean = line[i];
    const max = peak[i];
    if (place < from || place > to || max == null) return;
    // Without a mean on this axis its bucket is at the foot of it.
    const at = mean == null ? foot : heightOf(mean);
    const min = low[i];
    seen.push({
      left: area.x(place),
      at,
      top: heightOf(max),
      bottom: min == null || min === FOOT ? at : heightOf(min),
      loud: mean != null && isPeak?.(mean === FOOT ? 0 : mean, max) === true,
    });
  });
  const reaches = seen.map(({ at, top, bottom }) => Math.max(at - top, bottom - at)).sort((a, b) => a - b);
  const usual = reaches[Math.floor(reaches.length / 2)] ?? 0;
  const far = grouped ? Number.POSITIVE_INFINITY : Math.max(leastReach * area.ratio, outlying * usual);
  const { ctx, ratio } = area;
  inside(area, () => {
    ctx.strokeStyle = color;
    ctx.fillStyle = color;
    ctx.lineWidth = ratio;
    const mark = (left: number, at: number, end: number): void => {
      ctx.beginPath();
      ctx.moveTo(left, at);
      ctx.lineTo(left, end);
      ctx.stroke();
      ctx.fillRect(left - 1.5 * ratio, end - 1.5 * ratio, 3 * ratio, 3 * ratio);
    };
    for (const { left, at, top, bottom, loud } of seen) {
      if (loud || at - top > far) mark(left, at, top);
      if (bottom - at > far) mark(left, at, bottom);
    }
  });
}

/** Where runs of a group end: what follows is of fewer, and may jump for that alone. */
export function drawEnds(area: Area, ends: Curve['ends'], color: string): void {
  if (ends.length === 0) return;
  const { ctx, ratio } = area;
  inside(area, () => {
    ctx.font = `${10.5 * ratio}px system-ui, sans-serif`;
    ctx.textBaseline = 'top';
    for (const { x, left } of ends) {
      const at = Math.round(area.x(x)) + 0.5;
      ctx.strokeStyle = color;
      ctx.lineWidth = ratio;
      ctx.setLineDash([2 * ratio, 3 * ratio]);
      ctx.beginPath();
      ctx.moveTo(at, area.top);
      ctx.lineTo(at, area.top + area.height);
      ctx.stroke();
      ctx.setLineDash([]);
      const text = `${left} left`;
      const width = ctx.measureText(text).width + 6 * ratio;
      const right = at + width > area.left + area.width;
      ctx.fillStyle = area.colors.paper;
      ctx.fillRect(right ? at - width : at, area.top + 2 * ratio, width, 13 * ratio);
      ctx.fillStyle = color;
      ctx.textAlign = right ? 'right' : 'left';
      ctx.fillText(text, at + (right ? -3 : 3) * ratio, area.top + 3 * ratio);
    }
  });
}
