import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

const root = import.meta.dirname;
const testFiles = readdirSync(join(root, 'test'), { recursive: true, encoding: 'utf8' })
  .map(name => `test/${name.replaceAll('\\', '/')}`)
  .filter(name => name.endsWith('.test.ts'));

/** A file needs a process of its own if it starts others, replaces modules, or loads the compiled package beside the sources. */
const isApart = (file: string): boolean =>
  /\bvi\.mock\(|'node:child_process'|support\/(compiled|keel|client|browser)\.ts'/.test(
    readFileSync(join(root, file), 'utf8'),
  );
/** Whole runs, physics, and what draws thousands of cases: not for `npm run check`. */
const isLong = (file: string): boolean =>
  /^test\/(algos|cli|envs|runs|server)\//.test(file) || file.endsWith('.long.test.ts');

const apart = testFiles.filter(isApart);
const [long, unit] = [true, false].map(wanted =>
  testFiles.filter(file => !isApart(file) && isLong(file) === wanted),
);

export default defineConfig({
  test: {
    globalSetup: ['test/shared-scratch.ts'],
    setupFiles: ['test/property-seed.ts'],
    // The compiled package is taken by Node itself, as users' is.
    server: { deps: { external: [/\/keel-tests-[^/]+\/package\//] } },
    pool: 'forks',
    maxWorkers: 2,
    // Only what hangs meets these: a busy machine must not make a test fail.
    testTimeout: 240_000,
    hookTimeout: 240_000,
    projects: [
      { extends: true, test: { name: 'apart', include: apart } },
      // The others share processes: to load the same modules again takes longer than most of them run.
      { extends: true, test: { name: 'long', include: long, isolate: false } },
      { extends: true, test: { name: 'unit', include: unit, isolate: false } },
    ],
  },
});
