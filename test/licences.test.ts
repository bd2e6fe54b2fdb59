/** What Keel is made of may be given on with it, and is listed. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { allowed, licencePage, lockedPackages } from '../tools/licences.ts';

test('every package that is installed with Keel has a licence that asks for its notice alone', () => {
  const others = lockedPackages().filter(
    ({ dev, license }) => !dev && !allowed.shipped.some(name => name === license),
  );
  expect(others).toEqual([]);
});

test('so have those for development, but for tools whose terms end at their own files', () => {
  const fine: readonly string[] = [...allowed.shipped, ...allowed.development];
  // A registry may leave out the licence of a binary for another platform, which its main package names.
  const others = lockedPackages().filter(
    ({ dev, license, optional }) => dev && !fine.includes(license ?? (optional ? 'MIT' : 'none')),
  );
  expect(others).toEqual([]);
});

test('docs/licences.md is what the lock file says', () => {
  expect(readFileSync(new URL('../docs/licences.md', import.meta.url), 'utf8')).toBe(licencePage());
});
