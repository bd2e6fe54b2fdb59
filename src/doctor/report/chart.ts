/** A plot in a terminal: braille dots where the terminal has them, ASCII where not. */

import { amount, whole } from '../../base/numbers.ts';
import { columnsOf, fit, fitMiddle, type Paint, pad, type Tone } from '../../base/terminal.ts';
import { healthyWords } from '../../metrics/registry.ts';
import { severityTones } from './paint.ts';
import { type Plot, type PlotMark, type PlotPoint, placeOf, rangeOf, together } from './plot.ts';
import { shareOf } from './scale.ts';

export interface ChartOptions {
  /** Columns in all, labels included. */
  readonly columns: number;
  /** Lines of the drawing, without caption and axis. */
  readonly rows: number;
  readonly unicode: boolean;
  readonly paint: Paint;
  /** The x axis, so that charts under each other line up. */
  readonly range?: readonly [number, number];
  /** What x counts. */
  readonly xUnit?: string;
  /** Columns for the labels of the y axis, likewise; see {@link gutterOf}. */
  readonly gutter?: number;
}

/** How a cell is made of dots: braille has 2 by 4 of them, ASCII an upper and a lower half. */
interface Cells {
  readonly across: number;
  readonly down: number;
  /** The character of a cell; bit `x * down + y` is the dot in column x, row y. */
  character(bits: number): string;
  readonly axis: {
    readonly side: string;
    readonly tick: string;
    readonly corner: string;
    readonly line: string;
  };
  readonly marked: string;
  readonly broken: string;
}

/** The bit of each dot, column by column, as Unicode numbers them. */
const brailleBits = [0x01, 0x02, 0x04, 0x40, 0x08, 0x10, 0x20, 0x80];
const braille: Cells = {
  across: 2,
  down: 4,
  character: bits =>
    bits === 0
      ? ' '
      : String.fromCharCode(0x2800 + brailleBits.reduce((sum, bit, i) => sum + ((bits >> i) & 1) * bit, 0)),
  axis: { side: '│', tick: '┤', corner: '└', line: '─' },
  marked: '━',
  broken: '×',
};
const ascii: Cells = {
  across: 1,
  down: 2,
  character: bits => [' ', "'", '.', ':'][bits],
  axis: { side: '|', tick: '+', corner: '+', line: '-' },
  marked: '=',
  broken: 'x',
};

/** Caption, drawing, axis with the cited stretch, and the steps at its ends. */
export function chart(plot: Plot, options: ChartOptions): string[] {
  const { columns, rows, unicode, paint } = options;
  const cells = unicode ? braille : ascii;
  const [from, to] = options.range ?? rangeOf(plot.points);
  const labels = labelsOf(plot);
  const gutter = options.gutter ?? gutterOf(plot);
  const width = Math.max(8, columns - gutter - 2);
  // A line that never moves runs through the middle.
  const labelRow = plot.low === plot.high ? Math.floor(rows / 2) : 0;
  const tones = markTones(plot.marks, from, to, width);
  const drawing = draw(plot, cells, { from, to, width, rows });
  const lines = drawing.rows.map((line, row) => {
    const label = row === labelRow ? labels[0] : row === rows - 1 ? labels[1] : '';
    const edge = `${pad(label, gutter, 'left')} ${label === '' ? cells.axis.side : cells.axis.tick}`;
    return `${paint(edge, 'dim')}${painted(line, i => tones[i] ?? 'dim', paint)}`;
  });
  const axis = tones.map((tone, i) => {
    if (drawing.broken[i]) return cells.broken;
    return tone === undefined ? cells.axis.line : cells.marked;
  });
  const axisTone = (i: number): Tone => (drawing.broken[i] ? 'red' : (tones[i] ?? 'dim'));
  return [
    caption(plot, columns, paint),
    ...lines,
    `${' '.repeat(gutter + 1)}${paint(cells.axis.corner, 'dim')}${painted(axis, axisTone, paint)}`,
    `${' '.repeat(gutter + 2)}${paint(steps(plot.marks, from, to, options.xUnit ?? '', width), 'dim')}`,
  ];
}

function caption(plot: Plot, columns: number, paint: Paint): string {
  const hints = [
    ...(plot.log ? ['log scale'] : []),
    ...(plot.bands === undefined ? [] : [healthyWords(plot.bands)]),
  ].join(', ');
  const title = fit(plot.title, columns);
  const room = columns - columnsOf(title) - (hints === '' ? 0 : columnsOf(hints) + 2);
  const theirs = plot.theirs === plot.title || room < 8 ? '' : fitMiddle(plot.theirs, room - 2);
  const left = `${paint(title, 'bold')}${theirs === '' ? '' : `  ${paint(theirs, 'cyan')}`}`;
  const used = columnsOf(title) + (theirs === '' ? 0 : 2 + columnsOf(theirs));
  if (hints === '' || used + 2 + columnsOf(hints) > columns) return left;
  return `${left}${' '.repeat(columns - used - columnsOf(hints))}${paint(hints, 'dim')}`;
}

/** At the top and at the foot of the y axis. */
function labelsOf({ low, high, lowest }: Plot): [string, string] {
  if (Number.isNaN(low)) return ['', ''];
  return [amount(high), low === high ? '' : `${lowest < low ? '<' : ''}${amount(low)}`];
}

/** Columns that the labels of the y axis take. */
export function gutterOf(plot: Plot): number {
  return Math.max(...labelsOf(plot).map(columnsOf));
}

/** The steps at both ends of the axis, and where the first cited stretch begins if there is room for it. */
function steps(marks: readonly PlotMark[], from: number, to: number, unit: string, width: number): string {
  const [left, right] = [whole(from), `${whole(to)}${unit === '' ? '' : ` ${unit}`}`];
  const gap = width - columnsOf(left) - columnsOf(right);
  if (gap < 1) return pad(fit(right, width), width, 'left');
  const [mark] = marks;
  if (mark !== undefined && mark.from > from) {
    const label = whole(mark.from);
    const [before, after] = [2, 2 + columnsOf(label)];
    const at = placeOf(mark.from, from, to, width) - columnsOf(left);
    if (at >= before && at + after <= gap)
      return `${left}${' '.repeat(at)}${label}${' '.repeat(gap - at - columnsOf(label))}${right}`;
  }
  return `${left}${' '.repeat(gap)}${right}`;
}

/** The loudest mark over each column. A stretch of one step still has a column. */
function markTones(
  marks: readonly PlotMark[],
  from: number,
  to: number,
  width: number,
): (Tone | undefined)[] {
  const tones: (Tone | undefined)[] = Array.from({ length: width }, () => undefined);
  for (const severity of ['info', 'warning', 'critical'] as const) {
    for (const mark of marks) {
      if (mark.severity !== severity || mark.to < from || mark.from > to) continue;
      const last = placeOf(mark.to, from, to, width);
      for (let i = placeOf(mark.from, from, to, width); i <= last; i++) tones[i] = severityTones[severity];
    }
  }
  return tones;
}

interface Area {
  readonly from: number;
  readonly to: number;
  readonly width: number;
  readonly rows: number;
}

/** Each column of dots spans from the smallest to the largest value in it, and is joined to the one before. */
function draw(plot: Plot, cells: Cells, { from, to, width, rows }: Area) {
  const [dotsAcross, dotsDown] = [width * cells.across, rows * cells.down];
  const bits = Array.from({ length: rows }, () => new Uint8Array(width));
  const broken: boolean[] = Array.from({ length: width }, () => false);
  const dot = (x: number, y: number): void => {
    const [cellX, cellY] = [Math.floor(x / cells.across), Math.floor(y / cells.down)];
    bits[cellY][cellX] |= 1 << ((x % cells.across) * cells.down + (y % cells.down));
  };
  const heightOf = (value: number): number =>
    Math.round((1 - shareOf(value, plot.low, plot.high, plot.log)) * (dotsDown - 1));
  const columns: PlotPoint[][] = Array.from({ length: dotsAcross }, () => []);
  for (const point of plot.points) columns[placeOf(point.x, from, to, dotsAcross)].push(point);
  let before: { readonly x: number; readonly y: number } | undefined;
  columns.forEach((points, x) => {
    if (points.length === 0) return;
    const { mean, min, max, broken: bad } = together(points);
    if (bad > 0) broken[Math.floor(x / cells.across)] = true;
    if (Number.isNaN(mean)) {
      before = undefined;
      return;
    }
    for (let y = heightOf(max); y <= heightOf(min); y++) dot(x, y);
    const y = heightOf(mean);
    if (before !== undefined) {
      const { x: fromX, y: fromY } = before;
      const steps = Math.max(x - fromX, Math.abs(y - fromY));
      for (let i = 1; i < steps; i++) {
        dot(Math.round(fromX + ((x - fromX) * i) / steps), Math.round(fromY + ((y - fromY) * i) / steps));
      }
    }
    before = { x, y };
  });
  return { rows: bits.map(row => Array.from(row, value => cells.character(value))), broken };
}

/** Neighbours of one colour are painted together, not one by one. */
function painted(cells: readonly string[], toneOf: (i: number) => Tone, paint: Paint): string {
  let [out, held, tone] = ['', '', toneOf(0)];
  cells.forEach((cell, i) => {
    const next = cell === ' ' ? tone : toneOf(i);
    if (next !== tone) {
      out += paint(held, tone);
      [held, tone] = ['', next];
    }
    held += cell;
  });
  return out + paint(held.trimEnd(), tone);
}

const levels = { unicode: '▁▂▃▄▅▆▇█', ascii: '_.-=*#' } as const;

/** One line of blocks, for tables and Markdown; `×` where nothing was finite. */
export function sparkline(plot: Plot, width: number, unicode = true): string {
  const [from, to] = rangeOf(plot.points);
  const columns: PlotPoint[][] = Array.from(
    { length: Math.min(width, Math.max(1, plot.points.length)) },
    () => [],
  );
  for (const point of plot.points) columns[placeOf(point.x, from, to, columns.length)].push(point);
  const blocks = unicode ? levels.unicode : levels.ascii;
  return columns
    .map(points => {
      if (points.length === 0) return ' ';
      const { mean, min, max } = together(points);
      if (Number.isNaN(mean)) return unicode ? '×' : 'x';
      // A peak must show even if its neighbours share its column.
      const value = Math.abs(max - mean) >= Math.abs(mean - min) ? max : min;
      const far = points.length > 1 ? value : mean;
      return blocks[
        Math.min(blocks.length - 1, Math.floor(shareOf(far, plot.low, plot.high, plot.log) * blocks.length))
      ];
    })
    .join('');
}
