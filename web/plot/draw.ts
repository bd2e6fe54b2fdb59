/** What is drawn on a plot besides its curves: tinted bands, cited stretches, levels, pins, places that were not finite. */
import type { PinGroup } from '../lib/pins.ts';
import { type Box, freeBox } from '../lib/plot-data.ts';
import type { Colors } from './colors.ts';
import { lookOf, type Shape } from './events.ts';

/** The drawing area in canvas pixels, and how values get there. */
export interface Area {
  readonly ctx: CanvasRenderingContext2D;
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
  readonly ratio: number;
  readonly x: (value: number) => number;
  readonly y: (value: number) => number;
  readonly colors: Colors;
}

export interface Tint {
  readonly from: number;
  readonly to: number;
  readonly tone: keyof Colors['tint'];
  readonly name?: string;
}
export interface Level {
  readonly value: number;
  readonly label: string;
  readonly tone: keyof Colors['tone'];
}
/** A stretch of x. */
export interface Stretch {
  readonly from: number;
  readonly to: number;
  readonly tone: keyof Colors['mark'];
}

/** Height of the strip above the x axis that holds pins, in CSS pixels. */
export const pinStrip = 16;

export function inside(area: Area, draw: () => void): void {
  const { ctx } = area;
  ctx.save();
  ctx.beginPath();
  ctx.rect(area.left, area.top, area.width, area.height);
  ctx.clip();
  draw();
  ctx.restore();
}

/** Bands of the value scale, where it shows them, with their names where there is room; on a logarithmic scale the lowest reaches down to its end. */
export function drawTints(
  area: Area,
  tints: readonly Tint[],
  low: number,
  high: number,
  traces: readonly Trace[],
): void {
  inside(area, () => {
    for (const tint of tints) {
      const from = Math.max(tint.from, low);
      const to = Math.min(tint.to, high);
      if (!(to > from)) continue;
      const top = area.y(to);
      const tall = area.y(from) - top;
      area.ctx.fillStyle = area.colors.tint[tint.tone];
      area.ctx.fillRect(area.left, top, area.width, tall);
      if (tint.name === undefined || tall < 13 * area.ratio) continue;
      area.ctx.font = `${10 * area.ratio}px system-ui, sans-serif`;
      area.ctx.textAlign = 'right';
      const boxes = [1, 0.8, 0.6, 0.4].map((share): Box => {
        const right = area.left + share * area.width;
        return { left: right - 50 * area.ratio, top, right, bottom: top + 14 * area.ratio };
      });
      area.ctx.textBaseline = 'top';
      area.ctx.fillStyle = area.colors.tone[tint.tone];
      area.ctx.fillText(tint.name, freeBox(boxes, traces).right - 4 * area.ratio, top + 2 * area.ratio);
    }
  });
}

/** Absolute marks of the value scale: thin, without a colour and without words. */
export function drawMarks(area: Area, marks: readonly number[], low: number, high: number): void {
  inside(area, () => {
    area.ctx.strokeStyle = area.colors.faint;
    area.ctx.lineWidth = Math.max(1, 0.6 * area.ratio);
    area.ctx.globalAlpha = 0.28;
    for (const value of marks) {
      if (!(value > low && value < high)) continue;
      const y = Math.round(area.y(value)) + 0.5;
      area.ctx.beginPath();
      area.ctx.moveTo(area.left, y);
      area.ctx.lineTo(area.left + area.width, y);
      area.ctx.stroke();
    }
  });
}

/**
 * What is cited stays as it is, and everything beside it is veiled: a colour of its own would be lost on bands of the same
 * colour. Lines of ink at its ends, a bracket in its tone above.
 */
export function drawStretches(area: Area, stretches: readonly Stretch[]): void {
  const { ctx, ratio, colors } = area;
  const right = area.left + area.width;
  // A single step is still seen.
  const boxes = stretches
    .map(({ from, to, tone }) => {
      const left = area.x(from);
      return { left, right: Math.max(area.x(to), left + 3 * ratio), tone };
    })
    .sort((a, b) => a.left - b.left);
  inside(area, () => {
    ctx.fillStyle = colors.paper;
    ctx.globalAlpha = 0.72;
    let at = area.left;
    for (const box of [...boxes, { left: right, right }]) {
      const end = Math.min(box.left, right);
      if (boxes.length > 0 && end > at) ctx.fillRect(at, area.top, end - at, area.height);
      at = Math.max(at, box.right);
    }
    ctx.globalAlpha = 1;
    for (const { left, right, tone } of boxes) {
      ctx.fillStyle = colors.mark[tone];
      ctx.fillRect(left, area.top, right - left, area.height);
      ctx.fillStyle = colors.faint;
      for (const edge of right - left > 8 * ratio ? [left, right - ratio] : [])
        ctx.fillRect(edge, area.top, ratio, area.height);
      ctx.fillStyle = colors.tone[tone];
      ctx.fillRect(left, area.top, right - left, 3 * ratio);
    }
  });
}

/** The curves as pixels: x, and the top and bottom of the band there. */
export type Trace = readonly (readonly [number, number, number])[];

export function drawLevels(
  area: Area,
  levels: readonly Level[],
  low: number,
  high: number,
  traces: readonly Trace[] = [],
): void {
  const { ctx, ratio } = area;
  inside(area, () => {
    ctx.font = `${10.5 * ratio}px system-ui, sans-serif`;
    ctx.textAlign = 'left';
    ctx.textBaseline = 'bottom';
    ctx.lineWidth = ratio;
    for (const { value, label, tone } of levels) {
      if (!(value >= low && value <= high)) continue;
      const y = Math.round(area.y(value)) + 0.5;
      ctx.strokeStyle = area.colors.tone[tone];
      ctx.setLineDash([5 * ratio, 4 * ratio]);
      ctx.beginPath();
      ctx.moveTo(area.left, y);
      ctx.lineTo(area.left + area.width, y);
      ctx.stroke();
      ctx.setLineDash([]);
      // Where the curve is not; on paper of its own, so that it is read even if it is everywhere.
      const width = ctx.measureText(label).width + 6 * ratio;
      const boxes = [0.01, 0.25, 0.5, 0.7].flatMap(share =>
        [y - 15 * ratio, y + 2 * ratio]
          .filter(top => top >= area.top && top + 14 * ratio <= area.top + area.height)
          .map((top): Box => {
            const left = area.left + share * area.width;
            return { left, top, right: left + width, bottom: top + 14 * ratio };
          }),
      );
      if (boxes.length === 0) continue;
      const { left, bottom } = freeBox(boxes, traces);
      ctx.globalAlpha = 0.8;
      ctx.fillStyle = area.colors.paper;
      ctx.fillRect(left, bottom - 14 * ratio, width, 14 * ratio);
      ctx.globalAlpha = 1;
      ctx.fillStyle = area.colors.tone[tone];
      ctx.fillText(label, left + 3 * ratio, bottom - ratio);
    }
  });
}

/** Red ticks at the top edge. */
export function drawBroken(area: Area, places: readonly { readonly x: number }[]): void {
  if (places.length === 0) return;
  inside(area, () => {
    area.ctx.fillStyle = area.colors.tone.bad;
    for (const { x } of places)
      area.ctx.fillRect(area.x(x) - area.ratio, area.top, 2 * area.ratio, 7 * area.ratio);
  });
}

export function drawPins(area: Area, groups: readonly PinGroup[]): void {
  const { ctx, ratio } = area;
  const base = area.top + area.height - 7 * ratio;
  inside(area, () => {
    // The louder ones last: where two last at the same time, the louder is seen.
    const lasting = groups.flatMap(c => c.pins.filter(pin => pin.to !== undefined));
    for (const pin of lasting.sort((a, b) => a.weight - b.weight)) {
      const left = area.x(pin.x);
      ctx.fillStyle = area.colors.tone[lookOf(pin.kind).tone];
      ctx.fillRect(
        left,
        area.top + area.height - 2 * ratio,
        Math.max(area.x(pin.to ?? pin.x) - left, 2 * ratio),
        2 * ratio,
      );
    }
  });
  for (const { left, lead } of groups) {
    const look = lookOf(lead.kind);
    const x = area.left + left * ratio;
    // The same small glyph whether one or many, as its loudest: hovering tells the rest. Paper around lifts it off the curve.
    drawShape(ctx, look.shape, x, base, 3.4 * ratio, area.colors.tone[look.tone], area.colors.paper, ratio);
  }
}

/** One glyph around a place. */
function drawShape(
  ctx: CanvasRenderingContext2D,
  shape: Shape,
  x: number,
  y: number,
  r: number,
  color: string,
  paper: string,
  ratio: number,
): void {
  ctx.beginPath();
  if (shape === 'dot' || shape === 'ring') ctx.arc(x, y, shape === 'dot' ? r * 0.62 : r * 0.8, 0, 7);
  else if (shape === 'square') ctx.rect(x - r * 0.85, y - r * 0.85, r * 1.7, r * 1.7);
  else if (shape === 'bar') ctx.rect(x - ratio, y - r * 1.5, 2 * ratio, r * 3);
  else if (shape === 'cross') {
    for (const [dx, dy] of [
      [1, 1],
      [1, -1],
    ] as const) {
      ctx.moveTo(x - dx * r * 0.8, y - dy * r * 0.8);
      ctx.lineTo(x + dx * r * 0.8, y + dy * r * 0.8);
    }
  } else {
    const points: readonly (readonly [number, number])[] =
      shape === 'up'
        ? [
            [0, -1],
            [1, 0.8],
            [-1, 0.8],
          ]
        : shape === 'down'
          ? [
              [0, 1],
              [1, -0.8],
              [-1, -0.8],
            ]
          : [
              [0, -1.15],
              [1.15, 0],
              [0, 1.15],
              [-1.15, 0],
            ];
    for (const [dx, dy] of points) ctx.lineTo(x + dx * r, y + dy * r);
    ctx.closePath();
  }
  ctx.lineJoin = 'round';
  ctx.strokeStyle = paper;
  ctx.lineWidth = shape === 'cross' ? 5 * ratio : 2.5 * ratio;
  ctx.stroke();
  if (shape === 'ring' || shape === 'cross') {
    ctx.strokeStyle = color;
    ctx.lineWidth = 1.6 * ratio;
    ctx.stroke();
    if (shape === 'ring') {
      ctx.fillStyle = paper;
      ctx.fill();
    }
  } else {
    ctx.fillStyle = color;
    ctx.fill();
  }
}
