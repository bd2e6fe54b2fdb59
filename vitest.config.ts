import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

const root = import.meta.dirname;
const testFiles = readdirSync(join(root, 'test'), { recursive: true, encoding: 'utf8' })
  .map(name => `test/${name.replaceAll('\\', '/')}`)
  .filter(name => name.endsWith('.test.ts'));

const textOf = (file: string): string => readFileSync(join(root, file), 'utf8');
/** A file needs a process of its own if it starts others itself, a browser too, or replaces modules. */
const isApart = (file: string): boolean =>
  /\bvi\.mock\(|'node:child_process'|support\/(compiled|browser)\.ts'/.test(textOf(file));
/** What runs the command line or a server of the compiled package, which is loaded once for all of them. */
const isCompiled = (file: string): boolean =>
  !isApart(file) && /support\/(keel|client)\.ts'/.test(textOf(file));
/** Whole runs, physics, and what draws thousands of cases: not for `npm run check`. */
const isLong = (file: string): boolean =>
  /^test\/(algos|cli|envs|runs|server|tasks|view|doctor\/(readers|report))\//.test(file) ||
  file.endsWith('.long.test.ts');

const apart = testFiles.filter(isApart);
const compiled = testFiles.filter(isCompiled);
const [long, unit] = [true, false].map(wanted =>
  testFiles.filter(file => !isApart(file) && !isCompiled(file) && isLong(file) === wanted),
);

export default defineConfig({
  test: {
    globalSetup: ['test/shared-scratch.ts'],
    setupFiles: ['test/property-seed.ts'],
    // The compiled package is taken by Node itself, as users' is.
    server: { deps: { external: [/\/keel-tests-[^/]+\/package\//] } },
    pool: 'forks',
    // One more than the cores of the machine that this is tuned for: many a test waits for a process or a browser.
    maxWorkers: 3,
    // Only what hangs meets these: a busy machine must not make a test fail.
    testTimeout: 240_000,
    hookTimeout: 240_000,
    projects: [
      { extends: true, test: { name: 'apart', include: apart } },
      { extends: true, test: { name: 'compiled', include: compiled, isolate: false } },
      // The others share processes: to load the same modules again takes longer than most of them run.
      { extends: true, test: { name: 'long', include: long, isolate: false } },
      { extends: true, test: { name: 'unit', include: unit, isolate: false } },
    ],
  },
});
