/** The comparison as a table for docs/kl.md and as a picture: the mean sampled gradient over the exact one, logit by logit. */
import { gridSvg } from '../line-panels.ts';
import type { Comparison, Comparisons } from './compare.ts';

/** Below this a difference is single precision's. */
const ROUNDING = 1e-5;

const share = (value: number): string => (value < ROUNDING ? '0' : `${(100 * value).toFixed(0)} %`);

export function tableOf({ rows }: Comparisons): string {
  const line = ({ name, of, bias, standardErrors, variance, biasOlder }: Comparison): string =>
    `| ${name} | ${of} | ${share(bias)} | ${standardErrors.toFixed(1)} | ${variance.toPrecision(2)} | ${share(biasOlder)} |`;
  return [
    '| | compared with the gradient of | bias | sample mean, off by | variance | bias, older sampler |',
    '|---|---|---|---|---|---|',
    ...rows.map(line),
  ].join('\n');
}

const SIDE = 250;
const MARGIN = { left: 30, right: 12, top: 44, bottom: 24 } as const;
const [FINE, OFF] = ['#2563eb', '#dc2626'];

/** Bars are of a batch of so many, as GRPO has by default: of all that were drawn they would be too short to see. */
const BATCH = 64;

export const pictureOf = ({ rows, samples }: Comparisons): string =>
  gridSvg(
    `Mean gradients of KL penalties over ${samples} completions, by the exact gradient; bars are a standard error of ${BATCH} completions`,
    rows
      .filter(({ of }) => !of.startsWith('KL(reference'))
      .map(row => panelOf(row, Math.sqrt(samples / BATCH))),
    { width: SIDE, height: SIDE + MARGIN.top - MARGIN.bottom },
  );

/** Most derivatives are small: by their square roots they come apart, and what is equal stays on the diagonal. */
const scaled = (value: number): number => Math.sign(value) * Math.sqrt(Math.abs(value));

function panelOf({ name, of, exact, mean, standardError, bias }: Comparison, widen: number): string {
  const most = 1.15 * Math.max(...[...exact, ...mean].map(value => Math.abs(scaled(value))));
  const size = SIDE - MARGIN.left - MARGIN.right;
  const across = (value: number): number => (Math.max(-1, Math.min(1, scaled(value) / most)) + 1) / 2;
  const x = (value: number): string => (MARGIN.left + across(value) * size).toFixed(1);
  const y = (value: number): string => (MARGIN.top + (1 - across(value)) * size).toFixed(1);
  const colour = bias < ROUNDING ? FINE : OFF;
  const points = Array.from(exact, (value, i) => {
    const [low, high] = [-1, 1].map(side => mean[i] + side * widen * standardError[i]);
    return `<path d="M${x(value)} ${y(low)}V${y(high)}" stroke="${colour}" stroke-opacity=".5"/><circle cx="${x(value)}" cy="${y(mean[i])}" r="2" fill="${colour}"/>`;
  });
  const [bottom, right] = [MARGIN.top + size, MARGIN.left + size];
  return [
    `<text x="${MARGIN.left}" y="18" font-size="12" font-weight="600" fill="#111">${name.replaceAll('`', '')}</text>`,
    `<text x="${MARGIN.left}" y="34" fill="#555">${of}</text>`,
    `<path d="M${MARGIN.left} ${MARGIN.top}V${bottom}H${right}" fill="none" stroke="#999"/>`,
    `<path d="M${MARGIN.left} ${bottom}L${right} ${MARGIN.top}" stroke="#999" stroke-dasharray="4 3"/>`,
    `<text x="${right}" y="${bottom + 14}" text-anchor="end" fill="#555">exact gradient, by square root</text>`,
    `<text transform="translate(${MARGIN.left - 8} ${MARGIN.top}) rotate(-90)" text-anchor="end" fill="#555">mean sampled gradient</text>`,
    ...points,
  ].join('');
}
