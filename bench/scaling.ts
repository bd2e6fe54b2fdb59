/**
 * How time and memory grow: with environments, samples a rollout, width, minibatch size, worker threads, rows of a log and runs on
 * the page, each point in a process of its own of the compiled command line, and the law that the points follow.
 *
 * `npm run bench -- scaling [--only envs,rows] [--quick] [--rounds 3] [--write] [--from points.jsonl]`. Several rounds give medians.
 * `--write` puts tables and plots into docs/results.md; it needs every axis: those that `--only` leaves out are taken from what
 * an earlier run has printed (`--from`).
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { buildPackage } from '../test/support/build-package.ts';
import { withMarked } from './marked.ts';
import { machine, median, report } from './measure.ts';
import { type Axis, axes, type Figures } from './scaling/axes.ts';
import { documentOf, lawsOf, type Measured, pictureOf } from './scaling/document.ts';
import { formula } from './scaling/law.ts';

const DOCUMENT = 'docs/results.md';
const PICTURE = 'pictures/scaling.svg';

export async function run(): Promise<void> {
  const { values: flags } = parseArgs({
    args: process.argv.slice(3),
    options: {
      only: { type: 'string' },
      quick: { type: 'boolean', default: false },
      rounds: { type: 'string', default: '1' },
      write: { type: 'boolean', default: false },
      from: { type: 'string' },
    },
  });
  const rounds = Number(flags.rounds);
  if (!(Number.isInteger(rounds) && rounds > 0))
    throw new Error(`--rounds ${flags.rounds} is no count: use 1 or more`);
  const names = axes.map(({ name }) => name);
  const wanted = flags.only?.split(',') ?? names;
  const unknown = wanted.find(name => !names.includes(name));
  if (unknown !== undefined) throw new Error(`there is no axis ${unknown}: use ${names.join(', ')}`);
  const earlier = flags.from === undefined ? [] : printedIn(flags.from);
  const missing = names.filter(name => !wanted.includes(name) && !earlier.some(({ axis }) => axis === name));
  if (flags.write && missing.length > 0)
    throw new Error(
      `--write needs all axes, ${missing.join(', ')} are missing: leave out --only, or add --from`,
    );

  report({ bench: 'scaling', ...machine(), rounds });
  const built = mkdtempSync(join(tmpdir(), 'keel-scaling-package-'));
  const measured: Measured[] = earlier.filter(({ axis }) => !wanted.includes(axis));
  try {
    await buildPackage(built);
    for (const axis of axes.filter(({ name }) => wanted.includes(name)))
      measured.push(...(await measureAxis(axis, built, rounds, flags.quick)));
  } finally {
    rmSync(built, { recursive: true, force: true });
  }
  if (!flags.write) return;
  writeFileSync(join('docs', PICTURE), pictureOf(axes, measured));
  const text = readFileSync(DOCUMENT, 'utf8');
  const { cpu, cores, node } = machine();
  const by = `\`npm run bench -- ${process.argv.slice(2).join(' ')}\` on ${cores} cores of ${cpu}, Node ${node}.`;
  writeFileSync(DOCUMENT, withMarked(text, 'scaling', documentOf(axes, measured, { by, picture: PICTURE })));
}

/** The points that a run of this bench has printed. */
const printedIn = (file: string): Measured[] =>
  readFileSync(file, 'utf8')
    .split('\n')
    // npm's own lines are between them.
    .filter(line => line.startsWith('{'))
    .map(line => JSON.parse(line) as Partial<Measured>)
    .filter((line): line is Measured => line.figures !== undefined);

async function measureAxis(axis: Axis, built: string, rounds: number, isQuick: boolean): Promise<Measured[]> {
  const points = axis.variants.flatMap(variant =>
    (isQuick ? axis.quickNs : axis.ns).map(n => ({ variant, n, all: [] as Figures[] })),
  );
  // Round by round: what slows the machine for a while does not hit one point alone.
  for (let round = 0; round < rounds; round++)
    for (const { variant, n, all } of points) all.push(await axis.measure(built, variant, n));
  const measured = points.map(({ variant, n, all }) => ({
    axis: axis.name,
    variant,
    n,
    figures: middle(all),
  }));
  for (const point of measured) report({ ...point });
  for (const { variant, quantity, law, closest } of lawsOf(axis, measured))
    report({
      axis: axis.name,
      variant,
      law_of: quantity.key,
      law: law === undefined ? null : formula(law),
      unit: quantity.unit,
      ...(law === undefined &&
        closest && { closest: formula(closest), largest_deviation: significant(closest.largestDeviation) }),
      ...(law && {
        coefficients: law.coefficients.map(significant),
        fitted_to: [law.from, law.to],
        largest_deviation: significant(law.largestDeviation),
        breaks: law.breaks.map(({ n, ratio }) => ({ n, ratio: significant(ratio) })),
      }),
    });
  return measured;
}

const significant = (value: number): number => Number(value.toPrecision(4));

const middle = (all: readonly Figures[]): Figures =>
  Object.fromEntries(
    Object.keys(all[0]).map(key => [key, significant(median(all.map(figures => figures[key])))]),
  );
