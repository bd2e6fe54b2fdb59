/** Writes the JSON schemas of config files anew: npm run docs:schemas. */
import { writeFileSync } from 'node:fs';
import { settingTables } from '../src/algos/settings.ts';
import { settingsJsonSchema } from '../src/settings/resolve.ts';

for (const table of settingTables) {
  const path = new URL(`../configs/${table.schemaFile}`, import.meta.url);
  writeFileSync(path, `${JSON.stringify(settingsJsonSchema(table), null, 2)}\n`);
}
