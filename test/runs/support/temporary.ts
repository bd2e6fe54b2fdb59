import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';

/** In memory where there is such a place: these tests sync thousands of files. */
const base = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();

/** A directory for each test file that vanishes with it. */
export function temporaryRoot(name: string): string {
  const root = mkdtempSync(join(base, `keel-${name}-`));
  afterAll(() => rmSync(root, { recursive: true, force: true }));
  return root;
}
