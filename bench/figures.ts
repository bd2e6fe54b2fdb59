/** `npm run bench -- figures`: writes the tables of docs/results.md and the curves of the robots from the records. */
import { readFileSync, writeFileSync } from 'node:fs';
import { curvesOf, tablesOf } from './figures/document.ts';
import { readRecords } from './figures/record.ts';
import { withMarked } from './marked.ts';
import { report } from './measure.ts';

const DOCUMENT = 'docs/results.md';
const PICTURE = 'docs/pictures/robots.svg';

export async function run(): Promise<void> {
  const records = readRecords();
  let text = readFileSync(DOCUMENT, 'utf8');
  for (const [name, table] of Object.entries(tablesOf(records))) text = withMarked(text, name, table);
  writeFileSync(DOCUMENT, text);
  writeFileSync(PICTURE, curvesOf(records));
  report({ bench: 'figures', records: records.length, wrote: [DOCUMENT, PICTURE] });
}
