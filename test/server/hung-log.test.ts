/** A log at which a reader hangs: a package whose reader of YAML marks that it was begun, and never ends. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { serve as serveFunction } from '../../src/server/serve.ts';
import { packageDir, root } from '../support/compiled.ts';
import { until } from '../support/until.ts';

const work = mkdtempSync(join(tmpdir(), 'keel-hung-'));
afterAll(() => rmSync(work, { recursive: true, force: true }));
const hanging = join(work, 'package');
const log = join(root, 'test/doctor/fixtures/sb3/cartpole-lr-high/progress.csv');

beforeAll(() => {
  cpSync(join(packageDir, 'dist'), join(hanging, 'dist'), { recursive: true });
  for (const name of ['package.json', 'configs'])
    cpSync(join(packageDir, name), join(hanging, name), { recursive: true });
  symlinkSync(join(root, 'node_modules'), join(hanging, 'node_modules'));
  writeFileSync(
    join(hanging, 'dist/base/yaml.js'),
    `import { writeFileSync } from 'node:fs';
     export class YamlError extends Error {}
     export function parseYaml(text) { writeFileSync(text, ''); for (;;); }`,
  );
});

/** Two runs, of which `bad` hangs: once it does, its mark is there. */
function logs(name: string): { dir: string; mark: string } {
  const dir = join(work, name);
  for (const run of ['good', 'bad']) {
    mkdirSync(join(dir, run), { recursive: true });
    cpSync(log, join(dir, run, 'progress.csv'));
  }
  const mark = join(dir, 'mark');
  writeFileSync(join(dir, 'bad/config.yaml'), mark);
  // What was written to last is read first.
  utimesSync(join(dir, 'good/progress.csv'), 1e9, 1e9);
  return { dir, mark };
}

it('keel doctor leaves it out by name, and judges the others', async () => {
  const { dir } = logs('doctor');
  const child = spawn(process.execPath, [
    join(hanging, 'dist/cli/main.js'),
    'doctor',
    dir,
    '--json',
    '--time-limit',
    '3',
  ]);
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const)
    child[name].setEncoding('utf8').on('data', (text: string) => {
      output[name] += text;
    });
  const [code] = await once(child, 'close');
  expect(output.stderr).toContain(`${join(dir, 'bad')}: took longer than 3 s: left out`);
  const { runs } = JSON.parse(output.stdout) as {
    runs: { path: string; verdict?: string; error?: string }[];
  };
  expect(runs.map(({ path, verdict }) => [path, verdict])).toContainEqual([join(dir, 'good'), 'sick']);
  expect(code).toBe(2);
});

describe('the page', () => {
  async function served(dir: string, readingLimitMs: number) {
    const { serve } = (await import(
      /* @vite-ignore */ pathToFileURL(join(hanging, 'dist/server/serve.js')).href
    )) as { serve: typeof serveFunction };
    return serve({
      roots: [dir],
      port: 0,
      page: dir,
      stateDirectory: join(work, 'state'),
      pollMs: 50,
      readingLimitMs,
    });
  }

  it('says so of the run, and shows the others, also those that come later', async () => {
    const { dir, mark } = logs('page');
    const server = await served(dir, 3000);
    const named = (name: string) => server.index.list().runs.find(run => run.name === name);
    try {
      await until(() => existsSync(mark), 'the reader hangs');
      mkdirSync(join(dir, 'later'));
      cpSync(log, join(dir, 'later/progress.csv'));
      await until(
        () => ['good', 'later'].every(name => named(name)?.verdict === 'sick'),
        'the others are judged',
      );
      expect(named('bad')).toMatchObject({
        state: 'unreadable',
        problem: 'took longer than 3 s: left out',
      });
    } finally {
      await server.close();
    }
  });

  it('is closed while a reader hangs', async () => {
    const { dir, mark } = logs('closed');
    // So long that only closing ends it.
    const server = await served(dir, 3_600_000);
    await until(() => existsSync(mark), 'the reader hangs');
    await server.close();
  });
});
