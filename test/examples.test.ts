import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { compiled, compiledProgram } from './support/compiled.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

/** What Node is given to run an example: from the sources, as users do it, if it also names a TypeScript file itself. */
async function programOf(name: string): Promise<string[]> {
  return name === 'train-own-environment.mts'
    ? ['--import', 'tsx', `examples/${name}`]
    : [await compiledProgram(`examples/${name}`)];
}

async function runExample(name: string, ...args: string[]): Promise<string> {
  const { status, stdout, stderr } = spawnSync(process.execPath, [...(await programOf(name)), ...args], {
    cwd: root,
    encoding: 'utf8',
  });
  expect(stderr).toBe('');
  expect(status).toBe(0);
  return stdout;
}

test('no example is longer than 60 lines', () => {
  for (const name of readdirSync(join(root, 'examples'))) {
    const lines = readFileSync(join(root, 'examples', name), 'utf8').split('\n').length - 1;
    expect(lines, name).toBeLessThanOrEqual(60);
  }
});

test('fit-a-line finds the line', async () => {
  expect(await runExample('fit-a-line.mts')).toContain('y = 2.000 x + 1.000');
});

test.each(['train-cartpole.mts', 'train-own-environment.mts'])(
  '%s trains and says where the run is',
  async name => {
    const runs = mkdtempSync(join(tmpdir(), 'keel-example-'));
    try {
      const out = await runExample(name, '4096', runs);
      expect(out).toMatch(/return [\d.]+/);
      const [run] = readdirSync(runs);
      expect(out).toContain(run);
      expect(readdirSync(join(runs, run))).toContain('metrics.jsonl');
    } finally {
      rmSync(runs, { recursive: true });
    }
  },
);

test('route-requests answers with a replica, and hears what replicas report', async () => {
  const runs = mkdtempSync(join(tmpdir(), 'keel-example-'));
  const config = { steps: 256, epochs: 1, batchSize: 64, hidden: [8] };
  const { clone } = await compiled<typeof import('../src/index.ts')>('index');
  const { dir } = await clone({ env: 'cluster', config, root: runs });
  const service = spawn(process.execPath, [...(await programOf('route-requests.mts')), dir, '0'], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    const line = await new Promise<string>(told => service.stdout.once('data', data => told(String(data))));
    const { port } = JSON.parse(line) as { port: number };
    const ask = (path: string): Promise<Response> => fetch(`http://127.0.0.1:${port}${path}`);
    expect((await ask('/report?replica=0&running=12&contextTokens=9000&usedBlocks=570')).status).toBe(200);
    const { replica } = (await (await ask('/route?prompt=800&answer=150')).json()) as { replica: number };
    expect([0, 1, 2, 3]).toContain(replica);
    expect((await ask('/elsewhere')).status).toBe(404);
  } finally {
    service.kill();
    rmSync(runs, { recursive: true });
  }
});
