/** Where the time of an iteration goes. */

export interface Stopwatch {
  /** What has passed since the last lap belongs to this part. */
  lap(part: 'collect' | 'update' | 'guard'): void;
  /** The time columns of a row; the rate is of so many steps. */
  columns(steps: number): Record<string, number>;
}

/** Starts to measure an iteration. Parts may come several times. */
export function stopwatch(): Stopwatch {
  const startedAt = performance.now();
  let lappedAt = startedAt;
  const seconds: Record<string, number> = {};
  return {
    lap(part) {
      const now = performance.now();
      seconds[part] = (seconds[part] ?? 0) + (now - lappedAt) / 1000;
      lappedAt = now;
    },
    columns: steps => ({
      ...Object.fromEntries(Object.entries(seconds).map(([part, spent]) => [`time/${part}_s`, spent])),
      'time/steps_per_second': steps / ((lappedAt - startedAt) / 1000),
    }),
  };
}
