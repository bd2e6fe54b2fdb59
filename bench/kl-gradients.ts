/**
 * Gradients of KL penalties: on a task whose every expectation is a sum, each estimator's mean gradient against the exact one,
 * with its variance. `npm run bench -- kl-gradients --write` puts the table and the picture into docs/kl.md; `--seeds 20` says how
 * much of it other tables of logits change.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { compare } from './kl-gradients/compare.ts';
import { pictureOf, tableOf } from './kl-gradients/picture.ts';
import { sequenceKl } from './kl-gradients/task.ts';
import { withMarked } from './marked.ts';
import { median, report, round } from './measure.ts';

/** Of docs/kl.md; the test asks for the same. */
export const SEED = 1000;
export const SAMPLES = 100_000;
const DOCUMENT = 'docs/kl.md';
const PICTURE = 'docs/pictures/kl-gradients.svg';

/** A text with what stands between its two marks replaced. */
export const withTable = (text: string, table: string): string => withMarked(text, 'kl-gradients', table);

export async function run(): Promise<void> {
  const seeds = process.argv.indexOf('--seeds');
  if (seeds > 0) return overSeeds(Number(process.argv[seeds + 1]));
  const found = await compare(SEED, SAMPLES);
  const { policy, reference, older } = found.tables;
  report({
    ...{ bench: 'kl-gradients', seed: SEED, samples: SAMPLES },
    klToReference: round(sequenceKl(policy, reference), 4),
    klToOlder: round(sequenceKl(older, policy), 4),
    exactToSequence: round(found.exactToSequence, 3),
  });
  for (const { name, of, bias, standardErrors, variance, biasOlder } of found.rows)
    report({ name, of, bias, standardErrors, variance, biasOlder });
  if (!process.argv.includes('--write')) return;
  writeFileSync(PICTURE, pictureOf(found));
  writeFileSync(DOCUMENT, withTable(readFileSync(DOCUMENT, 'utf8'), tableOf(found)));
}

/** Least, median and most over seeds of what docs/kl.md says of them. */
async function overSeeds(count: number): Promise<void> {
  const found: Record<string, number[]> = {};
  for (let seed = SEED; seed < SEED + count; seed++) {
    const { rows, exactToSequence } = await compare(seed, 1);
    const row = (name: string) => rows.find(each => each.name.includes(`\`${name}\``))!;
    // By the same length for both, the exact gradients being of different KLs.
    const variance = (name: string): number => row(name).variance * Math.hypot(...row(name).exact) ** 2;
    const values = {
      'bias of k3': row('k3').bias,
      'largest other bias': Math.max(...rows.filter(each => each !== row('k3')).map(({ bias }) => bias)),
      'exact, to the sequence': exactToSequence,
      'older sampler, k2': row('k2').biasOlder,
      'older sampler, exact-sequence': row('exact-sequence').biasOlder,
      'older sampler, k1-advantage': row('k1-advantage').biasOlder,
      'variance, ratio-k3 by exact': variance('ratio-k3') / variance('exact'),
      'variance, exact-sequence by exact': variance('exact-sequence') / variance('exact'),
      'variance, k1-advantage by exact-sequence': variance('k1-advantage') / variance('exact-sequence'),
    };
    for (const [name, value] of Object.entries(values)) {
      found[name] ??= [];
      found[name].push(value);
    }
  }
  for (const [what, values] of Object.entries(found))
    report({ what, least: Math.min(...values), median: median(values), most: Math.max(...values) });
}
