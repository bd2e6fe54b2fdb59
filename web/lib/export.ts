/** A plot as CSV and as SVG. */
import type { XAxis } from '../../src/server/api.ts';
import { formatTicks } from './axis.ts';
import { type Line, lowerBound, upperBound } from './envelope.ts';
import { formatTick } from './format.ts';
import type { Curve } from './plot-data.ts';
import { decades, niceTicks } from './ticks.ts';

/** The buckets between two places, one line each, with the header's names. */
export function lineToCsv(metric: string, axis: XAxis, line: Line, from: number, to: number): string {
  const rows = [
    `${axis},${['min', 'mean', 'max'].map(part => csvCell(`${metric} ${part}`)).join(',')},points`,
  ];
  const number = (v: number | null | undefined) => (v === null || v === undefined ? '' : String(v));
  for (let i = lowerBound(line.x, from); i < upperBound(line.x, to); i++) {
    const values = [line.min[i], line.mean[i], line.max[i]].map(number);
    rows.push(`${line.x[i]},${values.join(',')},${line.count[i]}`);
  }
  return `${rows.join('\n')}\n`;
}

/** A name as a cell: quoted where it must be, and never a formula for a spreadsheet. */
export function csvCell(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export interface SvgPlot {
  readonly title: string;
  readonly axis: XAxis;
  readonly origin: number;
  readonly from: number;
  readonly to: number;
  readonly low: number;
  readonly high: number;
  readonly log: boolean;
  readonly curves: readonly Curve[];
  readonly colors: {
    readonly paper: string;
    readonly ink: string;
    readonly grid: string;
    readonly lines: readonly string[];
  };
  /** Stretches of the scale to tint. */
  readonly tints: readonly { readonly from: number; readonly to: number; readonly color: string }[];
  readonly levels: readonly { readonly value: number; readonly label: string }[];
}

/** Text for XML, which has no way to write most control characters. */
const escapeXml = (text: string) =>
  text.replace(/\p{Cc}/gu, ' ').replace(/[<>&"']/g, c => `&#${c.charCodeAt(0)};`);

/** A picture that needs nothing else: no script, no fonts of its own. */
export function plotToSvg(plot: SvgPlot, width = 800, height = 400): string {
  const box = { left: 64, top: 40, right: width - 16, bottom: height - 32 };
  const scale = (v: number) => (plot.log ? Math.log10(v) : v);
  const [lo, hi] = [scale(plot.low), scale(plot.high)];
  const px = (x: number) =>
    box.left + ((x - plot.from) / (plot.to - plot.from || 1)) * (box.right - box.left);
  const py = (y: number) => box.bottom - ((scale(y) - lo) / (hi - lo || 1)) * (box.bottom - box.top);
  const n = (v: number) => String(Math.round(v * 100) / 100);
  const clampY = (y: number) => Math.min(box.bottom, Math.max(box.top, y));
  const parts: string[] = [];
  const text = (x: number, y: number, body: string, anchor = 'start', extra = '') =>
    parts.push(`<text x="${n(x)}" y="${n(y)}" text-anchor="${anchor}"${extra}>${escapeXml(body)}</text>`);

  for (const tint of plot.tints) {
    const top = clampY(Number.isFinite(tint.to) ? py(tint.to) : box.top);
    const bottom = clampY(tint.from > 0 || !plot.log ? py(tint.from) : box.bottom);
    if (bottom - top > 0.1) {
      parts.push(
        `<rect x="${box.left}" y="${n(top)}" width="${box.right - box.left}" height="${n(bottom - top)}" fill="${tint.color}"/>`,
      );
    }
  }
  const xTicks = niceTicks(plot.from, plot.to, 7);
  formatTicks(plot.axis, xTicks, plot.origin).forEach((label, i) => {
    text(px(xTicks[i]), box.bottom + 18, label, 'middle');
  });
  for (const y of plot.log ? decades(plot.low, plot.high) : niceTicks(plot.low, plot.high, 6)) {
    parts.push(`<path d="M${box.left} ${n(py(y))}H${box.right}" stroke="${plot.colors.grid}"/>`);
    text(box.left - 8, py(y) + 4, formatTick(y, plot.log ? y : (plot.high - plot.low) / 6), 'end');
  }
  parts.push(`<g clip-path="url(#box)" fill="none">`);
  for (const curve of plot.curves) {
    const color = plot.colors.lines[curve.color % plot.colors.lines.length];
    const first = Math.max(0, lowerBound(curve.x, plot.from) - 1);
    const last = Math.min(curve.x.length, upperBound(curve.x, plot.to) + 1);
    const area = bandPath(curve, first, last, px, py, n);
    if (area !== '') parts.push(`<path d="${area}" fill="${color}" fill-opacity=".18"/>`);
    const path = linePath(curve.x, curve.line, first, last, px, py, n);
    parts.push(`<path d="${path}" stroke="${color}" stroke-width="1.6" stroke-linejoin="round"/>`);
  }
  parts.push('</g>');
  for (const { value, label } of plot.levels) {
    if (value < plot.low || value > plot.high) continue;
    parts.push(
      `<path d="M${box.left} ${n(py(value))}H${box.right}" stroke="${plot.colors.ink}" stroke-dasharray="5 4"/>`,
    );
    text(box.right - 4, py(value) - 4, label, 'end');
  }
  text(box.left, 22, plot.title, 'start', ' font-weight="600" font-size="14"');
  if (plot.curves.length > 1) {
    plot.curves.forEach((curve, i) => {
      const color = plot.colors.lines[curve.color % plot.colors.lines.length];
      text(box.right - 8, box.top + 14 + i * 15, curve.label, 'end', ` fill="${color}"`);
    });
  }
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" ` +
    `font-family="system-ui, sans-serif" font-size="12" fill="${plot.colors.ink}"><title>${escapeXml(plot.title)}</title>` +
    `<clipPath id="box"><rect x="${box.left}" y="${box.top}" width="${box.right - box.left}" height="${box.bottom - box.top}"/></clipPath>` +
    `<rect width="${width}" height="${height}" fill="${plot.colors.paper}"/>${parts.join('')}</svg>\n`
  );
}

type Project = (value: number) => number;

function linePath(
  xs: readonly number[],
  ys: readonly (number | null)[],
  first: number,
  last: number,
  px: Project,
  py: Project,
  n: (v: number) => string,
): string {
  let path = '';
  let open = false;
  for (let i = first; i < last; i++) {
    const y = ys[i];
    if (y === null || y === undefined) {
      open = false;
      continue;
    }
    path += `${open ? 'L' : 'M'}${n(px(xs[i]))} ${n(py(y))}`;
    open = true;
  }
  return path;
}

function bandPath(
  curve: Curve,
  first: number,
  last: number,
  px: Project,
  py: Project,
  n: (v: number) => string,
): string {
  let path = '';
  let start = first;
  for (let i = first; i <= last; i++) {
    const hole = i === last || curve.low[i] == null || curve.high[i] == null;
    if (!hole) continue;
    if (i - start > 1) {
      path += linePath(curve.x, curve.high, start, i, px, py, n);
      for (let j = i - 1; j >= start; j--) path += `L${n(px(curve.x[j]))} ${n(py(curve.low[j]!))}`;
      path += 'Z';
    }
    start = i + 1;
  }
  return path;
}
