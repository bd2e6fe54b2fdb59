type Values = readonly (number | null)[];

/** The paths of some runs on one scale. */
export function sparklinePaths(lines: readonly Values[], width: number, height: number): string[] {
  let min = Number.POSITIVE_INFINITY;
  let max = Number.NEGATIVE_INFINITY;
  for (const values of lines) {
    for (const v of values) {
      if (v === null || !Number.isFinite(v)) continue;
      if (v < min) min = v;
      if (v > max) max = v;
    }
  }
  return lines.map(values => (min <= max ? pathOf(values, min, max, width, height) : ''));
}

/** The path of a sparkline: one subpath for each stretch without holes, flat in the middle if nothing changes. */
function pathOf(values: Values, min: number, max: number, width: number, height: number): string {
  const dx = width / Math.max(1, values.length - 1);
  const y = (v: number) => (max === min ? height / 2 : height - ((v - min) / (max - min)) * height);
  const round = (n: number) => Math.round(n * 10) / 10;
  let path = '';
  let open = false;
  values.forEach((v, i) => {
    if (v === null || !Number.isFinite(v)) {
      open = false;
      return;
    }
    path += `${open ? 'L' : 'M'}${round(i * dx)} ${round(y(v))}`;
    // A point without neighbours is a dot.
    if (!open && (values[i + 1] === null || values[i + 1] === undefined)) path += 'h.01';
    open = true;
  });
  return path;
}
