/**
 * Gradients of KL penalties: on a task whose every expectation is a sum, each estimator's mean gradient against the exact one,
 * with its variance. `npm run bench -- kl-gradients --write` puts the table and the picture into docs/kl.md.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { compare } from './kl-gradients/compare.ts';
import { pictureOf, tableOf } from './kl-gradients/picture.ts';
import { sequenceKl } from './kl-gradients/task.ts';
import { report, round } from './measure.ts';

/** Of docs/kl.md; the test asks for the same. */
export const SEED = 1000;
export const SAMPLES = 100_000;
const DOCUMENT = 'docs/kl.md';
const PICTURE = 'docs/pictures/kl-gradients.svg';

/** A text with what stands between its two marks replaced. */
export const withTable = (text: string, table: string): string =>
  text.replace(
    /(<!-- kl-gradients -->\n)[\s\S]*?(<!-- end -->)/,
    (_, before, after) => `${before}${table}\n${after}`,
  );

export async function run(): Promise<void> {
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
