/**
 * A picture in two dimensions as plain data: what an environment of one's own looks like at a moment, such as a board. A
 * replay holds one a frame; the page and the renderer draw it, and neither runs the environment. Runs in a browser:
 * nothing here may import a Node module.
 *
 * Lengths are in units of the drawing's own, from the upper left corner, y down. What comes later is drawn over what came before.
 */
import { fail, show } from '../base/errors.ts';

/** Colours that have a name; every other is `#rgb`, `#rrggbb` or `#rrggbbaa`. */
export const namedColours = {
  black: '#1b1f24',
  white: '#ffffff',
  grey: '#8b949e',
  red: '#d1242f',
  orange: '#e16f24',
  yellow: '#e3b341',
  green: '#2da44e',
  blue: '#2f6fdb',
  purple: '#8250df',
  brown: '#8a5a3b',
} as const;

/** A name of {@link namedColours}, or `#rrggbb`. */
export type Colour = keyof typeof namedColours | `#${string}`;

interface Painted {
  /** What is inside; nothing unless given. */
  readonly fill?: Colour;
  /** The line around it; none unless given. */
  readonly stroke?: Colour;
  readonly lineWidth?: number;
}

/** Corner (x, y) and extent. */
export interface DrawnRectangle extends Painted {
  readonly kind: 'rectangle';
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** Middle (x, y). */
export interface DrawnCircle extends Painted {
  readonly kind: 'circle';
  readonly x: number;
  readonly y: number;
  readonly radius: number;
}

/** From point to point: `[x0, y0, x1, y1, …]`. */
export interface DrawnLine {
  readonly kind: 'line';
  readonly points: readonly number[];
  readonly stroke: Colour;
  readonly lineWidth?: number;
}

/** One line of text whose middle is at height y; x is its start unless `align` says otherwise. */
export interface DrawnText {
  readonly kind: 'text';
  readonly x: number;
  readonly y: number;
  readonly text: string;
  readonly size: number;
  readonly fill?: Colour;
  readonly align?: 'start' | 'middle' | 'end';
}

/** A grid of squares, row by row from (x, y): each number is an index of `colours`, where null is left as it is. */
export interface DrawnCells {
  readonly kind: 'cells';
  readonly x: number;
  readonly y: number;
  /** Edge of a square. */
  readonly size: number;
  readonly columns: number;
  readonly cells: readonly number[];
  readonly colours: readonly (Colour | null)[];
}

/** One of the shapes that a {@link Drawing} is made of. */
export type DrawnShape = DrawnRectangle | DrawnCircle | DrawnLine | DrawnText | DrawnCells;

/** What an environment looks like at a moment, for `draw` of `simulation`. */
export interface Drawing {
  readonly width: number;
  readonly height: number;
  readonly background?: Colour;
  readonly shapes: readonly DrawnShape[];
}

/** What a drawing may be at most, as it comes from a file too. */
export const drawingLimits = { shapes: 2000, cells: 65_536, numbers: 4096, text: 200, units: 1e5 } as const;

type Fields = Readonly<Record<string, unknown>>;

/** The keys of each kind, with what must be there first. */
const keys: Readonly<Record<DrawnShape['kind'], readonly [needed: string[], allowed: string[]]>> = {
  rectangle: [
    ['x', 'y', 'width', 'height'],
    ['fill', 'stroke', 'lineWidth'],
  ],
  circle: [
    ['x', 'y', 'radius'],
    ['fill', 'stroke', 'lineWidth'],
  ],
  line: [['points', 'stroke'], ['lineWidth']],
  text: [
    ['x', 'y', 'text', 'size'],
    ['fill', 'align'],
  ],
  cells: [['x', 'y', 'size', 'columns', 'cells', 'colours'], []],
};

/** A checked drawing from plain data; `source` names it in errors. */
export function parseDrawing(value: unknown, source = 'drawing'): Drawing {
  const fields = fieldsOf(value, source, ['width', 'height', 'shapes'], ['background']);
  const shapes = listOf(fields.shapes, drawingLimits.shapes, `${source}.shapes`).map((shape, i) =>
    shapeOf(shape, `${source}.shapes[${i}]`),
  );
  return {
    width: numberOf(fields.width, `${source}.width`, true),
    height: numberOf(fields.height, `${source}.height`, true),
    ...(fields.background !== undefined && {
      background: colourOf(fields.background, `${source}.background`),
    }),
    shapes,
  };
}

function shapeOf(value: unknown, where: string): DrawnShape {
  const kind = (value as Fields | null)?.kind;
  if (typeof kind !== 'string' || !Object.hasOwn(keys, kind))
    fail(`${where}.kind is ${show(kind)}: it can be ${Object.keys(keys).join(', ')}`, 'invalid');
  const [needed, allowed] = keys[kind as DrawnShape['kind']];
  const fields = fieldsOf(value, where, ['kind', ...needed], allowed);
  const shape: Record<string, unknown> = { kind };
  for (const name of [...needed, ...allowed]) {
    const part = fields[name];
    if (part !== undefined) shape[name] = partOf(name, part, `${where}.${name}`);
  }
  if (kind === 'cells') {
    const { cells, colours } = shape as unknown as DrawnCells;
    const wrong = cells.findIndex(cell => !Number.isSafeInteger(cell) || cell < 0 || cell >= colours.length);
    if (wrong !== -1)
      fail(
        `${where}.cells[${wrong}] is ${show(cells[wrong])}, not an index of its ${colours.length} colours`,
        'invalid',
      );
  }
  return shape as unknown as DrawnShape;
}

function partOf(name: string, value: unknown, where: string): unknown {
  switch (name) {
    case 'fill':
    case 'stroke':
      return colourOf(value, where);
    case 'align':
      if (value === 'start' || value === 'middle' || value === 'end') return value;
      return fail(`${where} is ${show(value)}: it can be start, middle or end`, 'invalid');
    case 'text':
      if (typeof value === 'string' && value.length <= drawingLimits.text) return value;
      return fail(
        `${where} is ${show(value)}, not text of at most ${drawingLimits.text} characters`,
        'invalid',
      );
    case 'points': {
      const points = listOf(value, drawingLimits.numbers, where);
      if (points.length < 4 || points.length % 2 !== 0)
        fail(`${where} has ${points.length} numbers: give x and y of at least two points`, 'invalid');
      return points.map((point, i) => numberOf(point, `${where}[${i}]`));
    }
    case 'cells':
      return listOf(value, drawingLimits.cells, where);
    case 'colours':
      return listOf(value, 256, where).map((colour, i) =>
        colour === null ? null : colourOf(colour, `${where}[${i}]`),
      );
    case 'columns':
      if (Number.isSafeInteger(value) && (value as number) > 0 && (value as number) <= drawingLimits.cells)
        return value;
      return fail(`${where} is ${show(value)}, not a whole number above 0`, 'invalid');
    default:
      return numberOf(value, where, ['width', 'height', 'radius', 'size', 'lineWidth'].includes(name));
  }
}

function fieldsOf(
  value: unknown,
  where: string,
  needed: readonly string[],
  allowed: readonly string[],
): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    fail(`${where} is ${show(value)}, not an object`, 'invalid');
  for (const name of Object.keys(value))
    if (!needed.includes(name) && !allowed.includes(name))
      fail(`${where}.${name} is unknown: it has ${[...needed, ...allowed].join(', ')}`, 'invalid');
  const missing = needed.find(name => (value as Fields)[name] === undefined);
  if (missing !== undefined) fail(`${where}.${missing} is missing`, 'invalid');
  return value as Fields;
}

function listOf(value: unknown, most: number, where: string): readonly unknown[] {
  const list = ArrayBuffer.isView(value) ? Array.from(value as unknown as ArrayLike<unknown>) : value;
  if (!Array.isArray(list)) fail(`${where} is ${show(value)}, not a list`, 'invalid');
  if (list.length > most) fail(`${where} has ${list.length} parts: at most ${most}`, 'invalid');
  return list;
}

function numberOf(value: unknown, where: string, positive = false): number {
  if (typeof value === 'number' && Math.abs(value) <= drawingLimits.units && !(positive && value <= 0))
    return value;
  return fail(
    `${where} is ${show(value)}, not a number ${positive ? 'above 0 and ' : ''}of at most ${drawingLimits.units} in size`,
    'invalid',
  );
}

function colourOf(value: unknown, where: string): Colour {
  if (
    typeof value === 'string' &&
    (Object.hasOwn(namedColours, value) || /^#([\da-f]{3}|[\da-f]{6}|[\da-f]{8})$/i.test(value))
  )
    return value as Colour;
  return fail(
    `${where} is ${show(value)}: use #rrggbb, or ${Object.keys(namedColours).join(', ')}`,
    'invalid',
  );
}

/** Red, green, blue and opacity of a colour, in 0..1. */
export function rgbaOf(colour: Colour): readonly [number, number, number, number] {
  const hex: string = Object.hasOwn(namedColours, colour)
    ? namedColours[colour as keyof typeof namedColours]
    : colour;
  const long = hex.length === 4 ? [...hex.slice(1)].map(digit => digit + digit).join('') : hex.slice(1);
  const part = (k: number): number => Number.parseInt(long.slice(2 * k, 2 * k + 2), 16) / 255;
  return [part(0), part(1), part(2), long.length === 8 ? part(3) : 1];
}

/** Where the drawing lies in a picture of some size: as large as it fits, in the middle. */
export function placeIn(
  { width, height }: Pick<Drawing, 'width' | 'height'>,
  pixelsWide: number,
  pixelsHigh: number,
): { readonly scale: number; readonly left: number; readonly top: number } {
  const scale = Math.min(pixelsWide / width, pixelsHigh / height);
  return { scale, left: (pixelsWide - scale * width) / 2, top: (pixelsHigh - scale * height) / 2 };
}

/** Width of a line that says none, in units: one pixel of a picture of 300. */
export const lineWidthOf = (drawing: Drawing, lineWidth: number | undefined): number =>
  lineWidth ?? Math.max(drawing.width, drawing.height) / 300;

/** The squares of a grid that have a colour. */
export function squaresOf({ x, y, size, columns, cells, colours }: DrawnCells): DrawnRectangle[] {
  return cells.flatMap((cell, i): DrawnRectangle[] => {
    const fill = colours[cell];
    if (fill === null || fill === undefined) return [];
    const [column, row] = [i % columns, Math.floor(i / columns)];
    return [{ kind: 'rectangle', x: x + column * size, y: y + row * size, width: size, height: size, fill }];
  });
}
