import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';

/** A directory for each test file that vanishes with it. */
export function temporaryRoot(name: string): string {
  const root = mkdtempSync(join(tmpdir(), `keel-${name}-`));
  afterAll(() => rmSync(root, { recursive: true, force: true }));
  return root;
}
