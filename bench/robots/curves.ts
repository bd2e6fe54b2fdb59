/** Learning curves as an SVG picture: a panel a task, a line a seed, published scores as dashed lines. */

export interface Curve {
  readonly steps: readonly number[];
  readonly returns: readonly number[];
}

export interface Panel {
  readonly title: string;
  readonly least: number;
  readonly tuned: number;
  readonly curves: readonly Curve[];
}

const WIDTH = 300;
const HEIGHT = 190;
const MARGIN = { left: 46, right: 10, top: 26, bottom: 24 } as const;
const COLUMNS = 4;
const POINTS = 160;
const LINES = ['#2563eb', '#d97706', '#059669', '#9333ea', '#dc2626'];

export function curvesSvg(panels: readonly Panel[]): string {
  const columns = Math.min(COLUMNS, panels.length);
  const [width, height] = [columns * WIDTH, Math.ceil(panels.length / columns) * HEIGHT];
  const drawn = panels.map((panel, i) => {
    const [x, y] = [(i % columns) * WIDTH, Math.floor(i / columns) * HEIGHT];
    return `<g transform="translate(${x} ${y})">${panelSvg(panel)}</g>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="system-ui, sans-serif" font-size="10">
<title>Learning curves</title>
<rect width="${width}" height="${height}" fill="#fff"/>
${drawn.join('\n')}
</svg>
`;
}

function panelSvg({ title, least, tuned, curves }: Panel): string {
  const returns = curves.flatMap(curve => curve.returns);
  const lowest = Math.min(least, ...returns);
  const highest = Math.max(least, tuned, ...returns);
  const lastStep = Math.max(1, ...curves.flatMap(curve => curve.steps));
  const x = (step: number): number => MARGIN.left + (step / lastStep) * (WIDTH - MARGIN.left - MARGIN.right);
  const y = (value: number): number =>
    MARGIN.top + ((highest - value) / (highest - lowest || 1)) * (HEIGHT - MARGIN.top - MARGIN.bottom);
  // One above its line and one below: the two scores may be close.
  const line = (value: number, name: string, colour: string, below = 0): string =>
    `<line x1="${MARGIN.left}" x2="${WIDTH - MARGIN.right}" y1="${y(value).toFixed(1)}" y2="${y(value).toFixed(1)}" stroke="${colour}" stroke-dasharray="4 3"/><text x="${WIDTH - MARGIN.right}" y="${(y(value) - 3 + below).toFixed(1)}" text-anchor="end" fill="${colour}">${name} ${value}</text>`;
  const seeds = curves.map((curve, i) => {
    const every = Math.max(1, Math.ceil(curve.steps.length / POINTS));
    const points = curve.steps
      .map((step, k) => [step, curve.returns[k]!] as const)
      .filter((_, k) => k % every === 0 || k === curve.steps.length - 1)
      .map(([step, value]) => `${x(step).toFixed(1)},${y(value).toFixed(1)}`);
    return `<polyline fill="none" stroke-width="1.5" stroke="${LINES[i % LINES.length]}" points="${points.join(' ')}"/>`;
  });
  const axis = [lowest, highest].map(
    value =>
      `<text x="${MARGIN.left - 4}" y="${(y(value) + 3).toFixed(1)}" text-anchor="end" fill="#555">${Math.round(value)}</text>`,
  );
  return [
    `<text x="${MARGIN.left}" y="16" font-size="12" font-weight="600" fill="#111">${title}</text>`,
    `<path d="M${MARGIN.left} ${MARGIN.top}V${HEIGHT - MARGIN.bottom}H${WIDTH - MARGIN.right}" fill="none" stroke="#999"/>`,
    ...axis,
    `<text x="${WIDTH - MARGIN.right}" y="${HEIGHT - 8}" text-anchor="end" fill="#555">${(lastStep / 1e6).toFixed(1)}M steps</text>`,
    line(least, 'published', '#888', 13),
    line(tuned, 'tuned', '#b45309'),
    ...seeds,
  ].join('');
}
