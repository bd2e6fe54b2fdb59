/** Writes docs/rules/ and docs/dialects.md from the doctor itself: `npx tsx tools/rule-pages.ts`. A test fails where they differ. */
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rules } from '../src/doctor/rules/all.ts';
import { dialectPage } from './doctor-docs/dialect-page.ts';
import { rulePages } from './doctor-docs/rule-page.ts';

const directory = fileURLToPath(new URL('../docs/rules/', import.meta.url));
mkdirSync(directory, { recursive: true });
const pages = rulePages(rules);
for (const name of readdirSync(directory)) {
  // The page of a rule that is no more.
  if (name.endsWith('.md') && !pages.has(name)) rmSync(join(directory, name));
}
for (const [name, text] of pages) writeFileSync(join(directory, name), text);
writeFileSync(fileURLToPath(new URL('../docs/dialects.md', import.meta.url)), dialectPage());
console.log(`${pages.size} pages in docs/rules, and docs/dialects.md`);
