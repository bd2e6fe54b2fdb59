/** Latency over training, with the reference schedule and without, as an SVG. */
import { writeFileAtomic } from '../../src/runs/atomic.ts';

interface Point {
  readonly step: number;
  readonly meanS: number;
}

const [WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM] = [720, 360, 60, 20, 150, 45];

/** Writes the picture. */
export function drawWarmStarts(
  path: string,
  demonstrators: readonly { readonly name: string; readonly meanS: number }[],
  curves: { readonly with: readonly Point[]; readonly without: readonly Point[] },
): void {
  const points = [...curves.with, ...curves.without];
  const values = [...points.map(({ meanS }) => meanS), ...demonstrators.map(({ meanS }) => meanS)];
  const [low, high] = [Math.floor(Math.min(...values) * 2) / 2, Math.ceil(Math.max(...values) * 2) / 2];
  const steps = Math.max(...points.map(({ step }) => step));
  const x = (step: number): number => LEFT + (step / steps) * (WIDTH - LEFT - RIGHT);
  const y = (meanS: number): number => TOP + ((high - meanS) / (high - low)) * (HEIGHT - TOP - BOTTOM);
  const line = (curve: readonly Point[], colour: string, name: string): string => {
    const path_ = curve.map(
      ({ step, meanS }, i) => `${i === 0 ? 'M' : 'L'}${x(step).toFixed(1)} ${y(meanS).toFixed(1)}`,
    );
    const last = curve.at(-1)!;
    return `<path d="${path_.join('')}" fill="none" stroke="${colour}" stroke-width="2"/><text x="${x(last.step) + 6}" y="${(y(last.meanS) + 4).toFixed(1)}" fill="${colour}">${name}</text>`;
  };
  const levels = demonstrators.map(
    ({ name, meanS }) =>
      `<line x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${y(meanS).toFixed(1)}" y2="${y(meanS).toFixed(1)}" stroke="#888" stroke-dasharray="5 4"/><text x="${WIDTH - RIGHT + 6}" y="${(y(meanS) + 4).toFixed(1)}" fill="#666">${name}</text>`,
  );
  const ticks = Array.from({ length: 5 }, (_, i) => low + ((high - low) * i) / 4).map(
    value =>
      `<line x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${y(value).toFixed(1)}" y2="${y(value).toFixed(1)}" stroke="#e4e6e8"/><text x="${LEFT - 8}" y="${(y(value) + 4).toFixed(1)}" text-anchor="end" fill="#666">${Number(value.toFixed(2))}</text>`,
  );
  const stepTicks = [0, 0.5, 1].map(
    share =>
      `<text x="${x(share * steps).toFixed(1)}" y="${HEIGHT - BOTTOM + 18}" text-anchor="middle" fill="#666">${Math.round((share * steps) / 1000)}k</text>`,
  );
  writeFileAtomic(
    path,
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="system-ui, sans-serif" font-size="12"><title>Mean latency during training from a warm start</title><rect width="${WIDTH}" height="${HEIGHT}" fill="#fff"/>${ticks.join('')}${levels.join('')}${line(curves.without, '#c2560c', 'without reference')}${line(curves.with, '#1f5fa8', 'with reference')}${stepTicks.join('')}<text x="${LEFT}" y="${HEIGHT - 8}" fill="#1d232a">decisions trained; mean seconds end to end at a load of 0.8</text></svg>\n`,
  );
}
