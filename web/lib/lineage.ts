/** A run and the one that it went on from: what was changed between them, and what came of it. */
import type { RunDetail } from '../../src/server/api.ts';
import type { Line } from './envelope.ts';

/** A setting that the child has otherwise than its parent. */
export interface Change {
  readonly name: string;
  readonly from: RunDetail['config'][string] | undefined;
  readonly to: RunDetail['config'][string] | undefined;
}

/** What was changed, without the versions of programs, which nobody set. */
export function changesBetween(parent: RunDetail['config'], child: RunDetail['config']): Change[] {
  return [...new Set([...Object.keys(parent), ...Object.keys(child)])]
    .filter(name => !name.startsWith('versions.') && parent[name] !== child[name])
    .map(name => ({ name, from: parent[name], to: child[name] }));
}

/** How a line ends: the mean of its last tenth, by points; null of an empty one. */
export function endOf({ mean, count }: Pick<Line, 'mean' | 'count'>): number | null {
  const total = count.reduce((sum, n) => sum + n, 0);
  let [sum, seen] = [0, 0];
  for (let i = mean.length - 1; i >= 0 && seen * 10 < total; i--) {
    const value = mean[i];
    if (value === null || value === undefined) continue;
    sum += value * count[i];
    seen += count[i];
  }
  return seen === 0 ? null : sum / seen;
}

export interface Extent {
  readonly x: readonly [number, number];
  readonly y: readonly [number, number];
}

/** What both lines need; null while there is nothing to draw. */
export function extentOf(lines: readonly Line[]): Extent | null {
  const xs = lines.flatMap(({ x }) => (x.length === 0 ? [] : [x[0], x.at(-1)!]));
  const ys = lines.flatMap(({ mean }) => mean.filter(value => value !== null));
  if (ys.length === 0) return null;
  const low = ys.reduce((a, b) => Math.min(a, b));
  const high = ys.reduce((a, b) => Math.max(a, b));
  return {
    x: [Math.min(...xs), Math.max(...xs)],
    // From 0 where that is near, so that 64 and 500 are seen as what they are.
    y: [low > 0 && low < high / 2 ? 0 : low, high > low ? high : low + 1],
  };
}

/** A share of an extent, from 0 to 1. */
export const shareOf = (value: number, [from, to]: readonly [number, number]): number =>
  to > from ? (value - from) / (to - from) : 0.5;

/** The path of a line in a box; a hole where there is no value. */
export function pathIn({ x, mean }: Line, extent: Extent, width: number, height: number): string {
  let path = '';
  let open = false;
  for (let i = 0; i < x.length; i++) {
    const value = mean[i];
    if (value === null || value === undefined) {
      open = false;
      continue;
    }
    const at = (shareOf(x[i], extent.x) * width).toFixed(1);
    path += `${open ? 'L' : 'M'}${at} ${((1 - shareOf(value, extent.y)) * height).toFixed(1)}`;
    open = true;
  }
  return path;
}
