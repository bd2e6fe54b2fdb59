/** Latency at the beginning of training from a warm start, with the reference schedule and without, as an SVG. */
import { writeFileAtomic } from '../../src/base/files.ts';

export interface Evaluation {
  readonly step: number;
  /** Mean latency against the demonstrator's. */
  readonly percent: number;
  readonly error: number;
}

const [WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM] = [720, 360, 60, 20, 150, 45];
/** Later on all are far better than the demonstrator. */
const LAST_STEP = 24_576;

/** Writes the picture: a line for each seed. */
export function drawWarmStarts(
  path: string,
  demonstrator: string,
  curves: {
    readonly with: readonly (readonly Evaluation[])[];
    readonly without: readonly (readonly Evaluation[])[];
  },
): void {
  const values = [...curves.with, ...curves.without]
    .flat()
    .filter(({ step }) => step <= LAST_STEP)
    .map(({ percent }) => percent);
  const [low, high] = [Math.floor(Math.min(...values)), Math.ceil(Math.max(...values, 0.5))];
  const x = (step: number): number => LEFT + (step / LAST_STEP) * (WIDTH - LEFT - RIGHT);
  const y = (percent: number): number => TOP + ((high - percent) / (high - low)) * (HEIGHT - TOP - BOTTOM);
  const lines = (seeds: readonly (readonly Evaluation[])[], colour: string): string =>
    seeds
      .map(curve => {
        const d = curve
          .filter(({ step }) => step <= LAST_STEP)
          .map(
            ({ step, percent }, i) => `${i === 0 ? 'M' : 'L'}${x(step).toFixed(1)} ${y(percent).toFixed(1)}`,
          );
        return `<path d="${d.join('')}" fill="none" stroke="${colour}" stroke-width="1.5"/>`;
      })
      .join('');
  const level = y(0).toFixed(1);
  const legend = [
    ['#1f5fa8', '', 'as --from does'],
    ['#c2560c', '', 'plainly'],
    ['#666', '5 4', demonstrator],
  ].map(
    ([colour, dashes, name], i) =>
      `<line x1="${WIDTH - RIGHT + 14}" x2="${WIDTH - RIGHT + 38}" y1="${TOP + 8 + 20 * i}" y2="${TOP + 8 + 20 * i}" stroke="${colour}" stroke-width="2" stroke-dasharray="${dashes}"/><text x="${WIDTH - RIGHT + 44}" y="${TOP + 12 + 20 * i}" fill="${colour}">${name}</text>`,
  );
  const ticks = Array.from({ length: high - low + 1 }, (_, i) => low + i).map(
    value =>
      `<line x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${y(value).toFixed(1)}" y2="${y(value).toFixed(1)}" stroke="#e4e6e8"/><text x="${LEFT - 8}" y="${(y(value) + 4).toFixed(1)}" text-anchor="end" fill="#666">${value}</text>`,
  );
  const stepTicks = [0, 0.5, 1].map(
    share =>
      `<text x="${x(share * LAST_STEP).toFixed(1)}" y="${HEIGHT - BOTTOM + 18}" text-anchor="middle" fill="#666">${Math.round((share * LAST_STEP) / 1000)}k</text>`,
  );
  writeFileAtomic(
    path,
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="system-ui, sans-serif" font-size="12"><title>Mean latency during training from a warm start</title><rect width="${WIDTH}" height="${HEIGHT}" fill="#fff"/>${ticks.join('')}<line x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${level}" y2="${level}" stroke="#666" stroke-dasharray="5 4"/>${lines(curves.without, '#c2560c')}${lines(curves.with, '#1f5fa8')}${legend.join('')}${stepTicks.join('')}<text x="${LEFT}" y="${HEIGHT - 8}" fill="#1d232a">decisions trained; mean latency against the demonstrator, percent, at a load of 0.8</text></svg>\n`,
  );
}
