/** The page as it is shipped, built once for each state of its sources. */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const run = promisify(execFile);
const cache = join(root, 'node_modules', '.cache', 'keel-page');

/** What the page is made of. */
const sources = [
  'package-lock.json',
  'test/page/support/built-page.ts',
  'web',
  'src/metrics',
  'src/runs/schema.ts',
  'src/runs/replay-format.ts',
  'src/view',
  'src/doctor',
  'src/server/api.ts',
  'src/random',
  'src/studies/schema.ts',
  'src/studies/interquartile-mean.ts',
  'src/studies/statistics.ts',
  'src/studies/workers-view.ts',
  'src/base',
];

async function filesOf(path: string): Promise<string[]> {
  if (!(await stat(path)).isDirectory()) return [path];
  const names = (await readdir(path)).sort();
  return (await Promise.all(names.map(name => filesOf(join(path, name))))).flat();
}

/** The directory of the built page. */
export async function builtPage(): Promise<string> {
  const hash = createHash('sha256');
  for (const source of sources) {
    for (const file of await filesOf(join(root, source))) hash.update(file).update(await readFile(file));
  }
  const target = join(cache, hash.digest('hex').slice(0, 16));
  if (existsSync(target)) return target;
  // Two test files may build at once: each its own, and the first to be done stays.
  const own = `${target}-${process.pid}`;
  await rm(cache, { recursive: true, force: true });
  await mkdir(cache, { recursive: true });
  // In a process of its own, as it is built for shipping: the test runner's environment would make it a page for tests.
  const vite = join(root, 'node_modules', 'vite', 'bin', 'vite.js');
  const args = [
    vite,
    'build',
    '-c',
    join(root, 'web', 'vite.config.ts'),
    '--outDir',
    own,
    '--manifest',
    '--logLevel',
    'error',
  ];
  await run(process.execPath, args, { cwd: root, env: { ...process.env, NODE_ENV: 'production' } });
  try {
    await rename(own, target);
  } catch {
    await rm(own, { recursive: true, force: true });
  }
  return target;
}

interface Chunk {
  readonly file: string;
  readonly imports?: readonly string[];
}

/** Bytes of JavaScript, gzipped, that a page loads before it shows a view: the entry, the view, and all they import at once. */
export async function initialJavaScript(site: string, view: string): Promise<number> {
  const chunks = JSON.parse(await readFile(join(site, '.vite', 'manifest.json'), 'utf8')) as Record<
    string,
    Chunk
  >;
  const waiting = ['index.html', view];
  const seen = new Set<string>();
  let bytes = 0;
  while (waiting.length > 0) {
    const name = waiting.pop()!;
    if (seen.has(name)) continue;
    seen.add(name);
    const chunk = chunks[name];
    if (chunk === undefined) throw new Error(`the built page has no ${name}`);
    bytes += gzipSync(await readFile(join(site, chunk.file))).length;
    waiting.push(...(chunk.imports ?? []));
  }
  return bytes;
}
