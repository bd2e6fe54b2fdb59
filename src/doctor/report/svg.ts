/** A plot as an SVG picture for the page: axes, bands, the cited stretches, and no script. */

import { amount, whole } from '../../base/numbers.ts';
import { type KlBand, klMarks } from '../../metrics/registry.ts';
import { html, type Markup } from './escape.ts';
import { type Plot, type PlotLevel, type PlotPoint, rangeOf } from './plot.ts';
import { logTicks, shareOf, ticks } from './scale.ts';

/** In the picture's own units; the page scales it. */
const size = { width: 720, height: 236, left: 62, right: 56, top: 10, bottom: 40 } as const;
const [innerWidth, innerHeight] = [
  size.width - size.left - size.right,
  size.height - size.top - size.bottom,
] as const;

export interface SvgOptions {
  /** Unique on the page: the picture's title and description are referred to by it. */
  readonly id: string;
  readonly xUnit: string;
  /** The x axis, so that pictures under each other line up. */
  readonly range?: readonly [number, number];
  readonly restarts?: readonly number[];
}

/** Places in the picture. */
interface Frame {
  readonly from: number;
  readonly to: number;
  readonly low: number;
  readonly high: number;
  readonly log: boolean;
  x(value: number): number;
  y(value: number): number;
}

export function svgChart(plot: Plot, options: SvgOptions): Markup {
  const frame = frameOf(plot, options.range ?? rangeOf(plot.points));
  const [title, description] = [`${options.id}-title`, `${options.id}-text`];
  return html`<svg viewBox="0 0 ${size.width} ${size.height}" role="img" aria-labelledby="${title} ${description}">
<title id="${title}">${plot.title} (${plot.theirs})</title>
<desc id="${description}">${inWords(plot, frame, options.xUnit)}</desc>
${(plot.bands ?? []).map(band => bandArea(band, frame))}${yAxis(frame)}${xAxis(frame, options.xUnit)}${plot.bands === undefined ? [] : klMarks.map(value => quietMark(value, frame))}
${(options.restarts ?? []).map(at => restartLine(at, frame))}${plot.marks.map(mark => {
  const [left, right] = [frame.x(mark.from), frame.x(mark.to)];
  return html`<g class="mark ${mark.severity}"><rect x="${place(left - 1)}" y="${size.top}" width="${place(Math.max(3, right - left + 2))}" height="${innerHeight}"/><path d="M${place(left - 1)} ${size.top + innerHeight}h${place(Math.max(3, right - left + 2))}"/></g>`;
})}
${envelope(plot.points, frame)}<path class="line" d="${line(plot.points, frame)}"/>${plot.levels.map(level => levelLine(level, frame))}${plot.points
    .filter(({ broken }) => broken > 0)
    .map(({ x }) => html`<path class="broken" d="M${place(frame.x(x) - 3)} ${size.top + 2}l6 6m0 -6l-6 6"/>`)}
</svg>`;
}

/** Two digits after the point are enough for any screen, and keep the file small. */
const place = (value: number): string => String(Math.round(value * 100) / 100);

function frameOf(plot: Plot, [from, to]: readonly [number, number]): Frame {
  const [low, high] = limits(plot);
  return {
    from,
    to,
    low,
    high,
    log: plot.log,
    x: value => size.left + shareOf(value, from, to, false) * innerWidth,
    y: value => size.top + (1 - shareOf(value, low, high, plot.log)) * innerHeight,
  };
}

/** A little more than the values, so that no line runs along the edge. */
function limits({ low, high, log, bands }: Plot): [number, number] {
  if (Number.isNaN(low)) return [0, 1];
  if (log) return [low / 1.3, Math.min(high * 1.3, Number.MAX_VALUE)];
  const room = low === high ? Math.abs(low) / 10 || 1 : (high - low) * 0.06;
  if (!Number.isFinite(room)) return [low, high];
  // The scale of a KL begins at 0 already.
  const floor = bands !== undefined && low === 0 ? 0 : low - room;
  return [floor, high + room];
}

function bandArea({ name, from, to, tone }: KlBand, frame: Frame): Markup {
  const [bottom, top] = [Math.max(from, frame.low), Math.min(to, frame.high)];
  // Below the healthy band a plot stays as it is.
  if (!(top > bottom) || name === 'frozen' || name === 'small') return html``;
  const [y, height] = [frame.y(top), frame.y(bottom) - frame.y(top)];
  const label =
    height >= 12
      ? html`<text class="band-name" x="${size.width - size.right + 5}" y="${place(y + height / 2 + 3.5)}">${name}</text>`
      : html``;
  return html`<rect class="band ${tone}" x="${size.left}" y="${place(y)}" width="${innerWidth}" height="${place(height)}"/>${label}`;
}

/** An absolute mark: thin, without a colour and without words, whatever the run is held to. */
function quietMark(value: number, frame: Frame): Markup {
  if (!(value > frame.low && value < frame.high)) return html``;
  return html`<path class="quiet" d="M${size.left} ${place(frame.y(value))}h${innerWidth}"><title>${value}</title></path>`;
}

/** What the run holds itself to, with its name. */
function levelLine({ value, label, tone }: PlotLevel, frame: Frame): Markup {
  if (!(value > frame.low && value < frame.high)) return html``;
  const y = frame.y(value);
  return html`<g class="level ${tone}"><path d="M${size.left} ${place(y)}h${innerWidth}"/><text x="${size.left + 6}" y="${place(y < size.top + 16 ? y + 12 : y - 4)}">${label}</text></g>`;
}

function yAxis(frame: Frame): Markup {
  const values = frame.log ? logTicks(frame.low, frame.high, 5) : ticks(frame.low, frame.high, 4);
  return html`<g class="axis">${values.map(value => {
    const y = place(frame.y(value));
    return html`<path d="M${size.left} ${y}h${innerWidth}"/><text x="${size.left - 6}" y="${place(frame.y(value) + 4)}" text-anchor="end">${amount(value)}</text>`;
  })}</g>`;
}

function xAxis(frame: Frame, unit: string): Markup {
  const bottom = size.top + innerHeight;
  const values = frame.from === frame.to ? [frame.from] : ticks(frame.from, frame.to, 7);
  return html`<g class="axis base"><path d="M${size.left} ${bottom}h${innerWidth}"/>${values.map(
    value =>
      html`<text x="${place(frame.x(value))}" y="${bottom + 16}" text-anchor="middle">${short(value)}</text>`,
  )}<text x="${place(size.left + innerWidth / 2)}" y="${size.height - 6}" text-anchor="middle">${unit}</text></g>`;
}

/** `20k`, `1.5M`: a tick has little room. */
function short(value: number): string {
  for (const [letter, power] of [
    ['G', 1e9],
    ['M', 1e6],
    ['k', 1e3],
  ] as const) {
    if (Math.abs(value) >= power) return `${amount(value / power)}${letter}`;
  }
  return amount(value);
}

const restartLine = (at: number, frame: Frame): Markup =>
  at < frame.from || at > frame.to
    ? html``
    : html`<path class="restart" d="M${place(frame.x(at))} ${size.top}v${innerHeight}"><title>the log began anew</title></path>`;

/** Broken where nothing was finite and where x goes back. A point without neighbours is a dot. */
function line(points: readonly PlotPoint[], frame: Frame): string {
  let [path, before] = ['', Number.NaN];
  for (const { x, mean } of points) {
    if (Number.isNaN(mean)) {
      before = Number.NaN;
      continue;
    }
    const at = `${place(frame.x(x))} ${place(frame.y(mean))}`;
    path += before <= x ? `L${at}` : `M${at}h.01`;
    before = x;
  }
  return path;
}

/** The area between the smallest and largest values of points that were put together. */
function envelope(points: readonly PlotPoint[], frame: Frame): Markup {
  const finite = points.filter(({ mean }) => !Number.isNaN(mean));
  if (!finite.some(({ min, max }) => max > min)) return html``;
  const upper = finite.map(({ x, max }) => `${place(frame.x(x))} ${place(frame.y(max))}`);
  const lower = finite.map(({ x, min }) => `${place(frame.x(x))} ${place(frame.y(min))}`).reverse();
  return html`<path class="spread" d="M${upper.join('L')}L${lower.join('L')}Z"/>`;
}

/** What the picture shows, for those who do not see it. */
function inWords(plot: Plot, { from, to }: Frame, unit: string): string {
  const last = plot.points.findLast(({ mean }) => !Number.isNaN(mean));
  const marks = plot.marks.map(mark => `${whole(mark.from)} to ${whole(mark.to)}`);
  const broken = plot.points.reduce((sum, point) => sum + point.broken, 0);
  return [
    `From ${whole(from)} to ${whole(to)} ${unit}.`,
    last === undefined
      ? 'No value is a finite number.'
      : `Lowest ${amount(plot.lowest)}, highest ${amount(plot.highest)}, last ${amount(last.mean)}.`,
    ...(broken > 0 ? [`${whole(broken)} values are not finite.`] : []),
    ...(marks.length > 0 ? [`Marked: ${marks.join(', ')}.`] : []),
  ].join(' ');
}
