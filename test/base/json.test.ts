import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { KeelError, RunError } from '../../src/base/errors.ts';
import { jsonOf, parseJson } from '../../src/base/json.ts';

describe('JSON from outside', () => {
  const nested = (depth: number): string => `${'{"a":['.repeat(depth / 2)}1${']}'.repeat(depth / 2)}`;

  test('is parsed up to the depth that is written', () => {
    expect(JSON.stringify(jsonOf(nested(64)))).toBe(nested(64));
    // Brackets side by side, in texts, and behind an escaped quote are not nested.
    const wide = JSON.stringify(Array.from({ length: 500 }, () => [{ a: '[[{{' }, '\\"[']));
    expect(JSON.stringify(jsonOf(wide))).toBe(wide);
    const text = JSON.stringify({ '["\\': '['.repeat(500), b: '"{[\\"{'.repeat(100) });
    expect(JSON.stringify(jsonOf(text))).toBe(text);
  });

  test.each([nested(66), '['.repeat(1_000_000), '{"a":'.repeat(1_000_000), `["\\"",${nested(66)}]`])(
    'deeper is refused: case %#',
    text => {
      expect(() => jsonOf(text)).toThrow(new KeelError('nested more than 64 deep: flatten it'));
      expect(() => parseJson(Buffer.from(text), 'x.json')).toThrow(RunError);
    },
  );

  test('what is no JSON stays a SyntaxError, and a RunError with its source', () => {
    expect(() => jsonOf('{')).toThrow(SyntaxError);
    expect(() => parseJson(Buffer.from('{'), 'x.json')).toThrow(/^x\.json is damaged: /);
  });
});

/** Our own package.json, what a check wrote a line before, and what was looked at before it is parsed. */
const trusted = [
  'base/json.ts',
  'base/version.ts',
  'envs/check.ts',
  'envs/running-copy.ts',
  'nn/safetensors/header.ts',
  // In the browser, of what the same report holds.
  'report/viewer.ts',
];

test('no source parses JSON or YAML but through src/base', () => {
  const root = join(import.meta.dirname, '../../src');
  const parsing = readdirSync(root, { recursive: true, encoding: 'utf8' })
    .map(name => name.replaceAll('\\', '/'))
    .filter(name => name.endsWith('.ts'))
    .filter(name =>
      /^(?! *(?:\*|\/\*)).*(?:\bJSON\.parse\(|\bparseDocument\b)/m.test(
        readFileSync(join(root, name), 'utf8'),
      ),
    );
  expect(parsing.sort()).toEqual([...trusted, 'base/yaml.ts'].sort());
});
