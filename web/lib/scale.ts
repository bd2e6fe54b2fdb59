/**
 * Where a value is on an axis of a study, as a share from 0 (its low end) to 1; and brushes, which are two such shares.
 * Nothing here knows about pixels.
 */
import type { Domain, ParamValue } from '../../src/studies/schema.ts';
import { formatSetting, formatTick } from './format.ts';
import { decades, niceTicks } from './ticks.ts';

export interface ScaleTick {
  readonly at: number;
  readonly text: string;
}

export interface Scale {
  readonly log: boolean;
  readonly ticks: readonly ScaleTick[];
  /** Null for what has no place on it: an absent value, or one of another kind. */
  at(value: ParamValue | undefined): number | null;
  /** What is at a share, in words. */
  textAt(share: number): string;
}

/** A parameter's value as one would type it. */
export function paramText(value: ParamValue | undefined): string {
  if (value === undefined) return '–';
  if (typeof value === 'number') return formatSetting(value);
  if (typeof value === 'string') return value;
  return JSON.stringify(value);
}

/** The axis of a setting: as wide as its domain, and wider where a trial was told to go beyond it. */
export function settingScale(domain: Domain, values: readonly (ParamValue | undefined)[] = []): Scale {
  if (domain.kind === 'choice') return choiceScale(domain.values);
  const { low, high } = ends([domain.low, domain.high, ...values]);
  return domain.log && low > 0 ? logScale(low, high) : linearScale(low, high);
}

/** The axis of results: from the smallest to the largest, with some room at both ends. */
export function resultScale(values: readonly (number | null)[]): Scale {
  const { low, high } = ends(values);
  if (!(high >= low)) return linearScale(0, 1);
  const room = high > low ? 0.04 * (high - low) : Math.abs(high) * 0.1 || 1;
  return linearScale(low - room, high + room);
}

function ends(values: readonly unknown[]): { low: number; high: number } {
  let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const value of values) {
    if (typeof value !== 'number' || !Number.isFinite(value)) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  return { low, high };
}

function linearScale(low: number, high: number): Scale {
  const span = high - low || 1;
  const ticks = niceTicks(low, high, 4);
  const step = ticks.length > 1 ? ticks[1] - ticks[0] : span;
  return {
    log: false,
    ticks: ticks.map(tick => ({ at: (tick - low) / span, text: formatTick(tick, step) })),
    at: value => (typeof value === 'number' && Number.isFinite(value) ? (value - low) / span : null),
    textAt: share => formatSetting(Number((low + share * span).toPrecision(3))),
  };
}

function logScale(low: number, high: number): Scale {
  const [from, span] = [Math.log(low), Math.log(high / low) || 1];
  return {
    log: true,
    ticks: decades(low * (1 - 1e-12), high * (1 + 1e-12)).map(tick => ({
      at: (Math.log(tick) - from) / span,
      text: formatTick(tick, tick),
    })),
    at: value => (typeof value === 'number' && value > 0 ? (Math.log(value) - from) / span : null),
    textAt: share => formatSetting(Number(Math.exp(from + share * span).toPrecision(3))),
  };
}

function choiceScale(values: readonly ParamValue[]): Scale {
  const names = values.map(value => JSON.stringify(value));
  const place = (i: number): number => (i + 0.5) / Math.max(1, values.length);
  const text = (i: number): string => paramText(values[i]);
  return {
    log: false,
    ticks: values.map((_, i) => ({ at: place(i), text: text(i) })),
    at: value => {
      const i = names.indexOf(JSON.stringify(value));
      return i < 0 ? null : place(i);
    },
    textAt: share => text(Math.min(values.length - 1, Math.max(0, Math.floor(share * values.length)))),
  };
}

/** A part of an axis that was marked: shares, the lower first. */
export type Brush = readonly [from: number, to: number];
export type Brushes = Readonly<Record<string, Brush>>;

const clamp = (share: number): number => Math.min(1, Math.max(0, share));
/** Less than this was a click, which takes a brush away. */
const leastBrush = 0.02;

/** The part between where a drag began and where it is. */
export function dragBrush(began: number, now: number): Brush | undefined {
  const [from, to] = [clamp(Math.min(began, now)), clamp(Math.max(began, now))];
  return to - from < leastBrush ? undefined : [from, to];
}

/** One end of a brush, or of the whole axis, moved; a brush over the whole axis is none. */
export function moveEnd(brush: Brush | undefined, end: 0 | 1, to: number): Brush | undefined {
  const [from, till] = brush ?? [0, 1];
  const moved: Brush =
    end === 0
      ? [Math.min(clamp(to), till - leastBrush), till]
      : [from, Math.max(clamp(to), from + leastBrush)];
  return moved[0] <= 0 && moved[1] >= 1 ? undefined : moved;
}

/** The brushes with one of them changed. */
export function withBrush(brushes: Brushes, key: string, brush: Brush | undefined): Brushes {
  const { [key]: _, ...others } = brushes;
  return brush === undefined ? others : { ...others, [key]: brush };
}

/** Whether something is within all brushes; what has no place on an axis is in no part of it. */
export function isWithin(brushes: Brushes, placeOf: (key: string) => number | null): boolean {
  return Object.entries(brushes).every(([key, [from, to]]) => {
    const place = placeOf(key);
    return place !== null && place >= from - 1e-9 && place <= to + 1e-9;
  });
}

/** A line over axes: a height for each, null where it has none. */
export interface AxesLine {
  readonly number: number;
  readonly ys: readonly (number | null)[];
}

/** The line that is nearest to a point, at most so far from it; `xs` are the axes' places, from left to right. */
export function nearestLine(
  lines: readonly AxesLine[],
  xs: readonly number[],
  x: number,
  y: number,
  reach: number,
): number | null {
  let right = xs.findIndex(at => at >= x);
  if (right < 0) right = xs.length - 1;
  const left = Math.max(0, right - 1);
  const share = right === left ? 0 : (x - xs[left]) / (xs[right] - xs[left]);
  let [nearest, least]: [number | null, number] = [null, reach];
  for (const { number, ys } of lines) {
    const [a, b] = [ys[left], ys[right]];
    if (a === null || b === null || a === undefined || b === undefined) continue;
    const away = Math.abs(a + clamp(share) * (b - a) - y);
    if (away >= least) continue;
    [nearest, least] = [number, away];
  }
  return nearest;
}

/** A path through the heights that there are; it is broken where there is none. */
export function axesPath(ys: readonly (number | null)[], xs: readonly number[]): string {
  let path = '';
  ys.forEach((y, i) => {
    if (y === null) return;
    const isOn = i > 0 && ys[i - 1] !== null;
    path += `${isOn ? 'L' : 'M'}${xs[i].toFixed(1)} ${y.toFixed(1)}`;
  });
  return path;
}

/** The point that is nearest to a place, at most so far from it. */
export function nearestPoint(
  points: readonly { readonly number: number; readonly x: number; readonly y: number }[],
  x: number,
  y: number,
  reach: number,
): number | null {
  let [nearest, least]: [number | null, number] = [null, reach];
  for (const point of points) {
    const away = Math.hypot(point.x - x, point.y - y);
    if (away >= least) continue;
    [nearest, least] = [point.number, away];
  }
  return nearest;
}
