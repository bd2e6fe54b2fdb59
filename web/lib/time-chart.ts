/** Curves over time as SVG paths, for recordings that need no zoom. */

export interface ChartBox {
  readonly width: number;
  readonly height: number;
  readonly fromS: number;
  readonly toS: number;
  /** The value at the top; the bottom is 0. */
  readonly top: number;
}

/** A line through the values that there are; it is broken where there is none. */
export function linePath(
  timeS: readonly number[],
  values: readonly (number | null)[],
  box: ChartBox,
): string {
  const { width, height, fromS, toS, top } = box;
  const spanS = toS > fromS ? toS - fromS : 1;
  let path = '';
  let isDown = false;
  values.forEach((value, i) => {
    if (value === null || !Number.isFinite(value)) {
      isDown = false;
      return;
    }
    const x = ((timeS[i] - fromS) / spanS) * width;
    const y = height - (top > 0 ? Math.min(1, value / top) : 0) * height;
    path += `${isDown ? 'L' : 'M'}${x.toFixed(1)} ${y.toFixed(1)}`;
    isDown = true;
  });
  return path;
}

/** A round number that no value is above: 1, 2 or 5 times a power of ten. */
export function niceTop(series: readonly (readonly (number | null)[])[]): number {
  let most = 0;
  for (const values of series) for (const value of values) if (value !== null && value > most) most = value;
  if (most === 0) return 1;
  const power = 10 ** Math.floor(Math.log10(most));
  return power * ([1, 2, 5, 10].find(factor => factor * power >= most) ?? 10);
}

/** Which of the moments, in order, is nearest to a time; null where there is none. */
export function nearestMoment(timeS: readonly number[], wantedS: number): number | null {
  let nearest: number | null = null;
  timeS.forEach((momentS, i) => {
    if (nearest === null || Math.abs(momentS - wantedS) < Math.abs(timeS[nearest] - wantedS)) nearest = i;
  });
  return nearest;
}
