/** The check of docs/api names each page that is not what the sources say. */
import { expect, test } from 'vitest';
import { stalePages } from '../tools/check-api.ts';

test('pages that are missing, left over or changed are named; equal ones are not', () => {
  const made = new Map([
    ['kl.md', 'one'],
    ['envs.md', 'two'],
    ['keel/README.md', 'three'],
  ]);
  expect(stalePages(made, made)).toEqual([]);
  const written = new Map([
    ['kl.md', 'one'],
    ['envs.md', 'before'],
    ['old.md', 'gone'],
  ]);
  expect(stalePages(written, made)).toEqual(['envs.md', 'keel/README.md', 'old.md']);
});
