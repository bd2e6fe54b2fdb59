/** Draws a two-dimensional picture without a display: each shape by its distance from a pixel, which makes edges smooth. */
import {
  type Colour,
  type Drawing,
  type DrawnShape,
  lineWidthOf,
  placeIn,
  rgbaOf,
  squaresOf,
} from '../drawing.ts';
import { dotsOf } from './letters.ts';

/** A letter's dots, the gap between letters and the height of capitals, in text of size 1. */
const dot = 0.1;
const advance = 6 * dot;
const capital = 7 * dot;

/** What is behind and around a drawing. */
const grounds = { light: '#ffffff', dark: '#16191d' } as const;

/** Paints drawings one after the other into the same array, (height, width, 3), bytes. */
export function createBoardPainter(
  width: number,
  height: number,
  dark: boolean,
): (drawing: Drawing) => Uint8Array {
  const pixels = new Uint8Array(width * height * 3);
  /** Mixes a colour into the pixels of a box where `cover`, of a pixel's middle, is above 0. */
  const mix = (
    colour: Colour,
    [left, top, right, bottom]: readonly [number, number, number, number],
    cover: (x: number, y: number) => number,
  ): void => {
    const rgba = rgbaOf(colour);
    const [x0, x1] = [Math.max(0, Math.floor(left)), Math.min(width, Math.ceil(right))];
    const [y0, y1] = [Math.max(0, Math.floor(top)), Math.min(height, Math.ceil(bottom))];
    for (let y = y0; y < y1; y++) {
      for (let x = x0; x < x1; x++) {
        const share = Math.min(1, cover(x + 0.5, y + 0.5)) * rgba[3];
        if (!(share > 0)) continue;
        const at = 3 * (y * width + x);
        for (let k = 0; k < 3; k++)
          pixels[at + k] = Math.round(pixels[at + k] + share * (255 * rgba[k] - pixels[at + k]));
      }
    }
  };
  /** How much of a pixel is inside of a rectangle. */
  const rectangle = (colour: Colour, x: number, y: number, right: number, bottom: number): void =>
    mix(colour, [x, y, right, bottom], (px, py) => overlap(px, x, right) * overlap(py, y, bottom));

  return drawing => {
    const ground = rgbaOf(grounds[dark ? 'dark' : 'light']);
    for (let i = 0; i < pixels.length; i++) pixels[i] = Math.round(255 * ground[i % 3]);
    const { scale, left, top } = placeIn(drawing, width, height);
    const atX = (x: number): number => left + scale * x;
    const atY = (y: number): number => top + scale * y;
    if (drawing.background) rectangle(drawing.background, left, top, atX(drawing.width), atY(drawing.height));
    const paint = (shape: DrawnShape): void => {
      switch (shape.kind) {
        case 'rectangle': {
          const [x, y, right, bottom] = [
            atX(shape.x),
            atY(shape.y),
            atX(shape.x + shape.width),
            atY(shape.y + shape.height),
          ];
          if (shape.fill) rectangle(shape.fill, x, y, right, bottom);
          if (shape.stroke) {
            const half = (scale * lineWidthOf(drawing, shape.lineWidth)) / 2;
            const [inner, outer] = [-half, half].map(
              by => (px: number, py: number) =>
                overlap(px, x - by, right + by) * overlap(py, y - by, bottom + by),
            );
            mix(
              shape.stroke,
              [x - half, y - half, right + half, bottom + half],
              (px, py) => outer(px, py) - inner(px, py),
            );
          }
          break;
        }
        case 'circle': {
          const [x, y, radius] = [atX(shape.x), atY(shape.y), scale * shape.radius];
          const half = (scale * lineWidthOf(drawing, shape.lineWidth)) / 2;
          const reach = radius + half + 1;
          const box = [x - reach, y - reach, x + reach, y + reach] as const;
          const outside = (px: number, py: number): number => Math.hypot(px - x, py - y) - radius;
          if (shape.fill) mix(shape.fill, box, (px, py) => 0.5 - outside(px, py));
          if (shape.stroke) mix(shape.stroke, box, (px, py) => half + 0.5 - Math.abs(outside(px, py)));
          break;
        }
        case 'line': {
          const half = (scale * lineWidthOf(drawing, shape.lineWidth)) / 2;
          const xs = shape.points.filter((_, i) => i % 2 === 0).map(atX);
          const ys = shape.points.filter((_, i) => i % 2 === 1).map(atY);
          const reach = half + 1;
          const box = [
            Math.min(...xs) - reach,
            Math.min(...ys) - reach,
            Math.max(...xs) + reach,
            Math.max(...ys) + reach,
          ] as const;
          // As one shape, so that its parts do not darken each other where they meet.
          mix(shape.stroke, box, (px, py) => {
            let nearest = Infinity;
            for (let i = 1; i < xs.length; i++)
              nearest = Math.min(nearest, distance(px, py, xs[i - 1], ys[i - 1], xs[i], ys[i]));
            return half + 0.5 - nearest;
          });
          break;
        }
        case 'text': {
          const letters = [...shape.text];
          const unit = scale * shape.size;
          const wide = unit * (letters.length * advance - dot);
          const from = atX(shape.x) - { start: 0, middle: 0.5, end: 1 }[shape.align ?? 'start'] * wide;
          const above = atY(shape.y) - (unit * capital) / 2;
          letters.forEach((letter, i) => {
            for (const [column, row] of dotsOf(letter)) {
              const x = from + unit * (i * advance + column * dot);
              const y = above + unit * row * dot;
              rectangle(shape.fill ?? (dark ? 'white' : 'black'), x, y, x + unit * dot, y + unit * dot);
            }
          });
          break;
        }
        case 'cells':
          for (const square of squaresOf(shape)) paint(square);
          break;
        default:
          shape satisfies never;
      }
    };
    for (const shape of drawing.shapes) paint(shape);
    return pixels;
  };
}

/** How much of the pixel around `middle` lies between two bounds. */
const overlap = (middle: number, low: number, high: number): number =>
  Math.max(0, Math.min(middle + 0.5, high) - Math.max(middle - 0.5, low));

/** From a point to the nearest of a straight line between two others. */
function distance(x: number, y: number, x0: number, y0: number, x1: number, y1: number): number {
  const [dx, dy] = [x1 - x0, y1 - y0];
  const length = dx * dx + dy * dy;
  const along = length === 0 ? 0 : Math.min(1, Math.max(0, ((x - x0) * dx + (y - y0) * dy) / length));
  return Math.hypot(x - x0 - along * dx, y - y0 - along * dy);
}
