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
  'src/doctor/findings.ts',
  'src/server/api.ts',
  'src/text',
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

/** Bytes of JavaScript, gzipped, that a page loads before it shows a run: the entry and all it imports at once. */
export async function initialJavaScript(site: string): Promise<number> {
  const html = await readFile(join(site, 'index.html'), 'utf8');
  const waiting = [...html.matchAll(/(?:src|href)="\.\/(assets\/[^"]+\.js)"/g)].map(match => match[1]!);
  const seen = new Set<string>();
  let bytes = 0;
  while (waiting.length > 0) {
    const file = waiting.pop()!;
    if (seen.has(file)) continue;
    seen.add(file);
    const code = await readFile(join(site, file), 'utf8');
    bytes += gzipSync(code).length;
    for (const match of code.matchAll(/(?:from|import)\s*"\.\/([^"]+\.js)"/g))
      waiting.push(`assets/${match[1]}`);
  }
  return bytes;
}
