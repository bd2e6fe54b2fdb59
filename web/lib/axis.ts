/** Ticks and labels along x: steps and iterations in short form, time since the first point. */
import type { XAxis } from '../../src/server/api.ts';
import { formatCount, formatDuration, formatMoment, formatTick } from './format.ts';

/** What an axis is called. */
export const axisTitles: Readonly<Record<XAxis, string>> = {
  step: 'Steps',
  iteration: 'Iterations',
  time: 'Time',
};

const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;

/** Distances between ticks on a time axis, in milliseconds. */
const timeIncrements: readonly number[] = [
  ...[1, 2, 5, 10, 15, 30].map(n => n * second),
  ...[1, 2, 5, 10, 15, 30].map(n => n * minute),
  ...[1, 2, 3, 6, 12].map(n => n * hour),
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500].map(n => n * day),
];

/** Ticks of a time axis: round distances from `origin`, at least `room` pixels apart. */
export function timeTicks(from: number, to: number, origin: number, pixels: number, room = 70): number[] {
  const wanted = ((to - from) / Math.max(1, pixels)) * room;
  const increment = timeIncrements.find(n => n >= wanted) ?? Math.ceil(wanted / day) * day;
  const ticks: number[] = [];
  for (let t = Math.ceil((from - origin) / increment) * increment + origin; t <= to; t += increment)
    ticks.push(t);
  return ticks;
}

/** A tick since the origin: `1:30`, `2 h`, `3 d`. */
export function formatTimeTick(value: number, origin: number, increment: number): string {
  const ms = Math.round(value - origin);
  if (ms === 0) return '0';
  const sign = ms < 0 ? '−' : '';
  const t = Math.abs(ms);
  if (increment >= day) return `${sign}${Math.round(t / day)} d`;
  if (increment >= hour) return `${sign}${trim(t / hour)} h`;
  if (t >= hour) return `${sign}${Math.floor(t / hour)}:${two(Math.floor((t % hour) / minute))} h`;
  if (increment >= minute) return `${sign}${Math.round(t / minute)} min`;
  if (t >= minute) return `${sign}${Math.floor(t / minute)}:${two(Math.round((t % minute) / second))} min`;
  return `${sign}${trim(t / second)} s`;
}

const two = (n: number) => String(n).padStart(2, '0');
const trim = (n: number) => String(Math.round(n * 100) / 100);

/** The tick labels of an axis. */
export function formatTicks(axis: XAxis, ticks: readonly number[], origin: number): string[] {
  const step = ticks.length > 1 ? ticks[1] - ticks[0] : 0;
  if (axis === 'time') return ticks.map(tick => formatTimeTick(tick, origin, step));
  return ticks.map(tick => {
    // There is nothing between two steps.
    if (Math.abs(tick - Math.round(tick)) > 1e-6) return '';
    const short = formatTick(tick, Math.abs(step) || Math.abs(tick));
    return short.length > 6 ? formatCount(tick) : short;
  });
}

/** Where something is, in words: `step 12,288`. */
export function formatPlace(axis: XAxis, x: number, origin: number): string {
  if (axis === 'time') return `${formatDuration(x - origin)} · ${formatMoment(x, Date.now())}`;
  return `${axis} ${formatCount(x)}`;
}
