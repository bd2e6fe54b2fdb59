/** docs/grpo.md says what the code does. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { cloneTextSettings } from '../../../src/algos/clone/text/settings.ts';
import { grpoSettings } from '../../../src/algos/grpo/settings.ts';
import { requireMetric } from '../../../src/metrics/index.ts';
import { describeSettings } from '../../../src/settings/resolve.ts';

const docs = readFileSync(join(fileURLToPath(new URL('../../..', import.meta.url)), 'docs/grpo.md'), 'utf8');

test('every key stands there with its default and its words', () => {
  const line = ({ key, fallback, doc }: { key: string; fallback: unknown; doc: string }): string =>
    `| \`${key}\` | ${JSON.stringify(fallback)} | ${doc} |`;
  const grpo = describeSettings(grpoSettings);
  for (const entry of grpo) expect(docs).toContain(line(entry));
  for (const entry of describeSettings(cloneTextSettings)) {
    const other = grpo.find(({ key }) => key === entry.key);
    if (JSON.stringify(other?.fallback) !== JSON.stringify(entry.fallback))
      expect(docs).toContain(line(entry));
  }
});

test('every metric that it names is one', () => {
  const [, logged] = docs.split('## What is logged');
  const names = [...logged.split('## From code')[0].matchAll(/`([a-z]+\/[a-z0-9_/<>]+)`/g)].map(
    ([, name]) => name,
  );
  expect(names.length).toBeGreaterThan(40);
  for (const name of names) expect(requireMetric(name.replace('<name>', 'x'))).toBeDefined();
});
