/** A directory that all test files of a run share, for what is made once: the command line, compiled. Gone afterwards. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  export interface ProvidedContext {
    sharedScratch: string;
  }
}

export default function setup({ provide }: TestProject): () => void {
  const dir = mkdtempSync(join(tmpdir(), 'keel-tests-'));
  provide('sharedScratch', dir);
  return () => rmSync(dir, { recursive: true, force: true });
}
