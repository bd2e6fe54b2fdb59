import { describe, expect, test } from 'vitest';
import { parseYaml, YamlError } from '../../src/base/yaml.ts';
import { processorMs } from '../support/processor-time.ts';

describe('what settings are written in', () => {
  test.each([
    ['steps: 100\nhidden: [64, 64]\n', { steps: 100, hidden: [64, 64] }],
    ['a:\n  - b:\n      - c: 1\n  - d: 2\n', { a: [{ b: [{ c: 1 }] }, { d: 2 }] }],
    ['x: &one {y: 1}\nz: *one\n', { x: { y: 1 }, z: { y: 1 } }],
    ['1e-3', 0.001],
    ['', null],
  ])('%j', (text, value) => {
    expect(parseYaml(text)).toEqual(value);
  });

  test('braces in texts and comments are no collections, and lists may be long', () => {
    const braces = '{'.repeat(500);
    expect(parseYaml(`a: "${braces}"\nb: |\n  ${braces}\n# ${braces}\n`)).toEqual({
      a: braces,
      b: `${braces}\n`,
    });
    expect(parseYaml('- {a: [1]}\n'.repeat(2000))).toHaveLength(2000);
    const wide = Array.from({ length: 50 }, (_, i) => `k${i}: ${i}`);
    expect(Object.keys(parseYaml(`{${wide.join(', ')}}`) as object)).toHaveLength(50);
    expect(parseYaml('a: &a {x: 1}\nb: {<<: *a, <<: *a}\n')).toBeTypeOf('object');
  });
});

describe('refused, at once', () => {
  const deep = 'nested more than 32 deep, as no settings are: flatten it';
  test.each<[string, string, string, YamlError['at']]>([
    ['braces', '{'.repeat(1000), deep, { line: 1, column: 32 }],
    ['brackets', '['.repeat(100_000), deep, { line: 1, column: 32 }],
    ['keys', '? '.repeat(1000), deep, { line: 1, column: 63 }],
    ['items', '- '.repeat(1000), deep, { line: 1, column: 63 }],
    ['both', `a: 1\n${'{b: ['.repeat(1000)}`, deep, { line: 2, column: 80 }],
    ['columns', Array.from({ length: 500 }, (_, i) => `${' '.repeat(i)}a:`).join('\n'), deep, undefined],
    ['no end', '{a: 1', 'Flow map must end with a }', { line: 1, column: 6 }],
    ['an alias', 'a: *nothing', 'Unresolved alias', undefined],
    ['a key twice', 'b: 1\na: {c: 1, d: 2,\n  c: 3}', 'Map keys must be unique', { line: 3, column: 3 }],
    ['a book', 'a: 1\n'.repeat(60_000), 'has 300000 characters, at most 262144', undefined],
    // Compared with each other, as the parser would, these take half a minute.
    [
      'many keys',
      `${Array.from({ length: 20_000 }, (_, i) => `k${i}: 1\n`).join('')}k7: 1`,
      'unique',
      undefined,
    ],
  ])('%s', (_, text, why, at) => {
    let error: unknown;
    const before = processorMs();
    try {
      parseYaml(text);
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(YamlError);
    expect((error as YamlError).message).toContain(why);
    if (at !== undefined) expect((error as YamlError).at).toEqual(at);
    // The parser alone takes minutes.
    expect(processorMs() - before).toBeLessThan(5000);
  });

  test('aliases that would grow without bound', () => {
    const levels = Array.from({ length: 9 }, (_, i) =>
      i === 0 ? 'a0: &a0 [x, x, x, x]' : `a${i}: &a${i} [${`*a${i - 1}, `.repeat(9)}]`,
    );
    expect(() => parseYaml(levels.join('\n'))).toThrow(/Excessive alias count/);
  });
});
