/** A copy of the project in which a file may be made wrong, and its tests run. */
import { execFileSync, spawn } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../', import.meta.url));

/** A copy of the project's files. */
export interface Tree {
  readonly dir: string;
  read(file: string): string;
  write(file: string, text: string): void;
  remove(): void;
}

/** Copies what git knows, and what is new, as it is now; packages are linked. */
export function copyProject(): Tree {
  // As the test runner names files: without links.
  const dir = realpathSync(mkdtempSync(join(tmpdir(), 'keel-mutants-')));
  const listed = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 2 ** 26,
  });
  for (const file of listed.split('\0')) {
    if (file === '' || file === 'node_modules' || !existsSync(join(root, file))) continue;
    mkdirSync(dirname(join(dir, file)), { recursive: true });
    cpSync(join(root, file), join(dir, file));
  }
  symlinkSync(realpathSync(join(root, 'node_modules')), join(dir, 'node_modules'));
  return {
    dir,
    read: file => readFileSync(join(dir, file), 'utf8'),
    write: (file, text) => writeFileSync(join(dir, file), text),
    remove: () => rmSync(dir, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 }),
  };
}

/** What became of some test files. */
export interface TestRun {
  readonly passed: boolean;
  readonly timedOut: boolean;
  readonly elapsedMs: number;
  /** By file; those that were not reached are missing. */
  readonly files: ReadonlyMap<string, { readonly passed: boolean; readonly elapsedMs: number }>;
}

interface JsonReport {
  readonly testResults: readonly {
    readonly name: string;
    readonly status: string;
    readonly startTime: number;
    readonly endTime: number;
  }[];
}

/** Runs test files of a tree in a process group of its own, which ends with its limit. */
export async function runTests(
  tree: Tree,
  tests: readonly string[],
  { bail, limitMs, env = {} }: { bail: number; limitMs: number; env?: Record<string, string> },
): Promise<TestRun> {
  const start = performance.now();
  const json = join(tree.dir, 'test-results.json');
  rmSync(json, { force: true });
  const args = ['node_modules/vitest/vitest.mjs', 'run', ...tests, `--bail=${bail}`, '--maxWorkers=1'];
  const reporters = ['--reporter=json', `--outputFile.json=${json}`];
  const child = spawn(process.execPath, [...args, ...reporters], {
    cwd: tree.dir,
    env: { ...process.env, NO_COLOR: '1', ...env },
    stdio: 'ignore',
    detached: true,
  });
  let timedOut = false;
  const endGroup = (): void => {
    try {
      process.kill(-child.pid!, 'SIGKILL');
    } catch {
      // It has ended by itself.
    }
  };
  const timer = setTimeout(() => {
    timedOut = true;
    endGroup();
  }, limitMs);
  process.prependOnceListener('exit', endGroup);
  const code = await new Promise<number | null>(resolve => child.once('exit', resolve));
  clearTimeout(timer);
  process.off('exit', endGroup);
  // What tests started and a kill left behind.
  endGroup();
  const files = new Map(
    reportOf(json).map(({ name, status, startTime, endTime }) => [
      relative(tree.dir, name).replaceAll('\\', '/'),
      { passed: status === 'passed', elapsedMs: endTime - startTime },
    ]),
  );
  return { passed: code === 0, timedOut, elapsedMs: performance.now() - start, files };
}

/** Empty where the runner was killed before it wrote one. */
function reportOf(json: string): JsonReport['testResults'] {
  return existsSync(json) ? (JSON.parse(readFileSync(json, 'utf8')) as JsonReport).testResults : [];
}
