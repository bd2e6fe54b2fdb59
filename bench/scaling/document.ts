/** What was measured, as tables and plots for docs/results.md. */
import { grouped } from '../../src/base/numbers.ts';
import { type Line, lineColours, type Panel, panelsSvg } from '../line-panels.ts';
import type { Axis, Figures, Quantity } from './axes.ts';
import { formula, type Law, lawOf, valueAt } from './law.ts';

/** One point of an axis, as it is printed. */
export interface Measured {
  readonly axis: string;
  readonly variant: string;
  readonly n: number;
  readonly figures: Figures;
}

/** The law of one quantity. */
export interface FoundLaw {
  readonly axis: Axis;
  readonly variant: string;
  readonly quantity: Quantity;
  /** Undefined where the points follow none. */
  readonly law: Law | undefined;
  /** What comes closest to all points, however far that is; undefined where they are too few. */
  readonly closest: Law | undefined;
}

const pointsOf = (
  measured: readonly Measured[],
  axis: Axis,
  variant: string,
  { key }: Quantity,
): { n: number; value: number }[] =>
  measured
    .filter(point => point.axis === axis.name && point.variant === variant)
    .map(({ n, figures }) => ({ n, value: figures[key] }));

/** Of each quantity of an axis that has one. */
export const lawsOf = (axis: Axis, measured: readonly Measured[]): FoundLaw[] =>
  axis.variants.flatMap(variant =>
    axis.quantities.flatMap(quantity => {
      if (quantity.terms === undefined) return [];
      const points = pointsOf(measured, axis, variant, quantity);
      const law = lawOf(points, quantity.terms);
      const closest = lawOf(points, quantity.terms, Number.POSITIVE_INFINITY);
      return [{ axis, variant, quantity, law, closest }];
    }),
  );

const shown = (value: number): string =>
  value >= 100 ? grouped(Math.round(value)) : String(Number(value.toPrecision(3)));
const percent = (share: number): string => `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`;
const row = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
/** Where there is one, it needs no name. */
const named = ({ variants }: Axis, variant: string, name: string): string =>
  variants.length > 1 ? `${variant}: ${name}` : name;

function pointTable(axis: Axis, measured: readonly Measured[]): string[] {
  const columns = axis.variants.flatMap(variant => axis.quantities.map(quantity => ({ variant, quantity })));
  const ns = [...new Set(measured.filter(point => point.axis === axis.name).map(({ n }) => n))];
  const titles = columns.map(({ variant, quantity: { name, unit } }) =>
    named(axis, variant, unit === '/s' ? name : `${name}, ${unit}`),
  );
  const cell = (n: number, { variant, quantity }: (typeof columns)[number]): string => {
    const point = pointsOf(measured, axis, variant, quantity).find(each => each.n === n);
    return point === undefined ? '' : shown(point.value);
  };
  return [
    row([axis.counts, ...titles]),
    row(['---', ...titles.map(() => '---')]),
    ...ns.sort((a, b) => a - b).map(n => row([grouped(n), ...columns.map(column => cell(n, column))])),
  ];
}

function lawRow({ axis, variant, quantity, law, closest }: FoundLaw): string {
  const what = named(axis, variant, quantity.name);
  if (closest === undefined) return row([what, 'too few points', '', '', '']);
  if (law === undefined)
    return row([
      what,
      `none; closest is ${formula(closest)} ${quantity.unit}`,
      `${grouped(closest.from)} to ${grouped(closest.to)}`,
      percent(closest.largestDeviation),
      'everywhere',
    ]);
  return row([
    what,
    `${formula(law)} ${quantity.unit}`,
    `${grouped(law.from)} to ${grouped(law.to)}`,
    percent(law.largestDeviation),
    law.breaks.map(({ n, ratio }) => `at ${grouped(n)}: ${shown(ratio)} x the law`).join(', ') || 'nowhere',
  ]);
}

/** All axes, each with its table and its laws; `by` is the command and the machine. */
export function documentOf(
  axes: readonly Axis[],
  measured: readonly Measured[],
  { by, picture }: { readonly by: string; readonly picture: string },
): string {
  const parts = axes.map(axis =>
    [
      `### ${axis.title}: \`npm run bench -- scaling --only ${axis.name}\``,
      '',
      `${axis.how}.`,
      '',
      ...pointTable(axis, measured),
      '',
      row([`n: ${axis.counts}`, 'law', 'fitted to n', 'largest deviation there', 'breaks']),
      '|---|---|---|---|---|',
      ...lawsOf(axis, measured).map(lawRow),
    ].join('\n'),
  );
  return [by, `![Scaling: measured, and the laws dashed](${picture})`, ...parts].join('\n\n');
}

const lawPoints = 60;

/** A panel for each quantity that has laws: what was measured, and the law dashed over all of n. */
export function pictureOf(axes: readonly Axis[], measured: readonly Measured[]): string {
  const panels = axes.flatMap(axis =>
    axis.quantities
      .filter(({ terms }) => terms !== undefined)
      .map(quantity => panelOf(axis, quantity, measured)),
  );
  return panelsSvg('Time and memory against size, measured and by the laws (dashed)', panels);
}

function panelOf(axis: Axis, quantity: Quantity, measured: readonly Measured[]): Panel {
  const laws = lawsOf(axis, measured).filter(found => found.quantity === quantity);
  const lines = axis.variants.flatMap((variant, i): Line[] => {
    const points = pointsOf(measured, axis, variant, quantity).sort((a, b) => a.n - b.n);
    const colour = lineColours[i];
    const xs = points.map(({ n }) => n);
    const law = laws.find(found => found.variant === variant)?.law;
    const between = axis.fromZero ? xs : spread(xs[0], xs.at(-1)!);
    return [
      {
        ...{ xs, ys: points.map(({ value }) => value), colour },
        ...(axis.variants.length > 1 && { name: variant }),
      },
      ...(law === undefined
        ? []
        : [{ xs: between, ys: between.map(n => valueAt(law, n)), colour, dashed: true }]),
    ];
  });
  const highest = Math.max(...lines.flatMap(({ ys }) => ys));
  return {
    title: `${axis.title}: ${quantity.name}, ${quantity.unit}`,
    lines,
    levels: [],
    xEnd: last => `${grouped(last)} ${axis.counts}`,
    digits: highest < 10 ? 2 : 0,
    logarithmic: !axis.fromZero,
  };
}

/** Values from one to another, equally far from each other by their logarithms. */
const spread = (from: number, to: number): number[] =>
  Array.from({ length: lawPoints }, (_, i) => from * (to / from) ** (i / (lawPoints - 1)));
