import { mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { endOfLastLine, maxLineBytes, readLastLine, readLines } from '../../src/metrics/lines.ts';

const root = mkdtempSync(join(tmpdir(), 'keel-lines-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const path = join(root, 'file');

describe('lines', () => {
  it('are those that are whole, with their places in bytes', () => {
    writeFileSync(path, 'a\n\nüü\r\nhalf');
    const lines = [...readLines(path)];
    expect(lines).toEqual([
      { text: 'a', number: 1, start: 0, end: 2 },
      { text: '', number: 2, start: 2, end: 3 },
      { text: 'üü', number: 3, start: 3, end: 9 },
    ]);
    expect([...readLines(path, 3)].map(line => line.text)).toEqual(['üü']);
    expect(readLastLine(path)).toBe('üü');
  });

  it('agree with splitting the text, across chunks', () => {
    const text = fc.array(fc.constantFrom('x'.repeat(100_000), '', 'ab', 'é'.repeat(70_000)), {
      maxLength: 12,
    });
    fc.assert(
      fc.property(text, fc.boolean(), (parts, whole) => {
        writeFileSync(path, parts.join('\n') + (whole ? '\n' : ''));
        const expected = parts
          .join('\n')
          .concat(whole ? '\n' : '')
          .split('\n')
          .slice(0, -1);
        expect([...readLines(path)].map(line => line.text)).toEqual(expected);
        expect(readLastLine(path)).toBe(expected.at(-1));
        const bytes = Buffer.from(expected.map(line => `${line}\n`).join('')).length;
        const size = Buffer.byteLength(parts.join('\n') + (whole ? '\n' : ''));
        expect(endOfLastLine(openSync(path, 'r'), size)).toBe(bytes);
      }),
      { numRuns: 30 },
    );
  });

  it('that are absurdly long are passed over without being kept', () => {
    writeFileSync(path, `a\n${'x'.repeat(maxLineBytes + 1)}\nb\n`);
    expect([...readLines(path)].map(line => line.text)).toEqual(['a', null, 'b']);
    writeFileSync(path, `a\n${'x'.repeat(maxLineBytes + 1)}\n`);
    expect(readLastLine(path)).toBeUndefined();
  });
});
