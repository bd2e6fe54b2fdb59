/** Curves as an SVG picture: panels side by side, several lines in each, values to compare with as dashed lines. */

export interface Line {
  readonly xs: readonly number[];
  readonly ys: readonly number[];
  /** Colours go by the line's place unless given. */
  readonly colour?: string;
  /** Said in its colour, in the panel's upper left. */
  readonly name?: string;
  /** For what was worked out, not measured. */
  readonly dashed?: boolean;
}

export interface Panel {
  readonly title: string;
  readonly lines: readonly Line[];
  /** At most two are told apart: the first is named below its line, the others above. */
  readonly levels: readonly { readonly name: string; readonly value: number; readonly colour: string }[];
  /** What the end of the x axis says. */
  xEnd(last: number): string;
  /** Decimals of the y axis's ends; none unless told. */
  readonly digits?: number;
  /** Both axes by their logarithms, the x axis from its first value on, which is said too. */
  readonly logarithmic?: boolean;
}

const WIDTH = 300;
const HEIGHT = 190;
const MARGIN = { left: 46, right: 10, top: 26, bottom: 24 } as const;
const COLUMNS = 4;
const POINTS = 160;
export const lineColours = ['#2563eb', '#d97706', '#059669', '#9333ea', '#dc2626'] as const;

export const panelsSvg = (title: string, panels: readonly Panel[]): string =>
  gridSvg(title, panels.map(panelSvg), { width: WIDTH, height: HEIGHT });

/** Panels that are drawn already, at most four beside each other. */
export function gridSvg(
  title: string,
  panels: readonly string[],
  each: { readonly width: number; readonly height: number },
): string {
  const columns = Math.min(COLUMNS, panels.length);
  const [width, height] = [columns * each.width, Math.ceil(panels.length / columns) * each.height];
  const drawn = panels.map((panel, i) => {
    const [x, y] = [(i % columns) * each.width, Math.floor(i / columns) * each.height];
    return `<g transform="translate(${x} ${y})">${panel}</g>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="system-ui, sans-serif" font-size="10">
<title>${title}</title>
<rect width="${width}" height="${height}" fill="#fff"/>
${drawn.join('\n')}
</svg>
`;
}

function panelSvg({ title, lines, levels, xEnd, digits = 0, logarithmic = false }: Panel): string {
  const values = [...levels.map(({ value }) => value), ...lines.flatMap(({ ys }) => ys)];
  const [lowest, highest] = [Math.min(...values), Math.max(...values)];
  const allXs = lines.flatMap(({ xs }) => xs);
  const [first, last] = [logarithmic ? Math.min(...allXs) : 0, Math.max(...allXs)];
  /** How far along an axis a value is: 0 to 1. */
  const along = (value: number, from: number, to: number): number => {
    const [at, start, end] = logarithmic ? [value, from, to].map(Math.log) : [value, from, to];
    return (at - start) / (end - start || 1);
  };
  const x = (value: number): number =>
    MARGIN.left + along(value, first, last) * (WIDTH - MARGIN.left - MARGIN.right);
  const y = (value: number): number =>
    MARGIN.top + (1 - along(value, lowest, highest)) * (HEIGHT - MARGIN.top - MARGIN.bottom);
  const drawnLevels = levels.map(({ name, value, colour }, i) => {
    const at = y(value).toFixed(1);
    return `<line x1="${MARGIN.left}" x2="${WIDTH - MARGIN.right}" y1="${at}" y2="${at}" stroke="${colour}" stroke-dasharray="4 3"/><text x="${WIDTH - MARGIN.right}" y="${(y(value) + (i === 0 ? 10 : -3)).toFixed(1)}" text-anchor="end" fill="${colour}">${name} ${value}</text>`;
  });
  const drawnLines = lines.map(({ xs, ys, colour, dashed = false }, i) => {
    const every = Math.max(1, Math.ceil(xs.length / POINTS));
    const points = xs
      .map((value, k) => [value, ys[k]] as const)
      .filter((_, k) => k % every === 0 || k === xs.length - 1)
      .map(([at, value]) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`);
    const stroke = colour ?? lineColours[i % lineColours.length];
    return `<polyline fill="none" stroke-width="1.5"${dashed ? ' stroke-dasharray="2 3"' : ''} stroke="${stroke}" points="${points.join(' ')}"/>`;
  });
  const legend = lines
    .map(({ name, colour }, i) => ({ name, colour: colour ?? lineColours[i % lineColours.length] }))
    .filter(({ name }) => name !== undefined)
    .map(
      ({ name, colour }, i) =>
        `<text x="${MARGIN.left + 6}" y="${MARGIN.top + 12 * (i + 1)}" fill="${colour}">${name}</text>`,
    );
  const axis = [lowest, highest].map(
    value =>
      `<text x="${MARGIN.left - 4}" y="${(y(value) + 3).toFixed(1)}" text-anchor="end" fill="#555">${value.toFixed(digits)}</text>`,
  );
  return [
    `<text x="${MARGIN.left}" y="16" font-size="12" font-weight="600" fill="#111">${title}</text>`,
    `<path d="M${MARGIN.left} ${MARGIN.top}V${HEIGHT - MARGIN.bottom}H${WIDTH - MARGIN.right}" fill="none" stroke="#999"/>`,
    ...axis,
    ...(logarithmic ? [`<text x="${MARGIN.left}" y="${HEIGHT - 8}" fill="#555">${first}</text>`] : []),
    `<text x="${WIDTH - MARGIN.right}" y="${HEIGHT - 8}" text-anchor="end" fill="#555">${xEnd(last)}</text>`,
    ...drawnLevels,
    ...drawnLines,
    ...legend,
  ].join('');
}
