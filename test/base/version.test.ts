import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { VERSION } from '../../src/base/version.ts';

test('the version is the package’s', () => {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  expect(VERSION).toBe(JSON.parse(text).version);
  expect(VERSION).toMatch(/^\d+\.\d+\.\d+/);
});
