/** What users install: the packed package in an empty project. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));
const work = mkdtempSync(join(tmpdir(), 'keel-package-'));
const app = join(work, 'app');

function run(cwd: string, command: string, ...args: string[]): string {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd, encoding: 'utf8' });
  expect(status, `${command} ${args.join(' ')}\n${stdout}\n${stderr}`).toBe(0);
  return stdout;
}

beforeAll(() => {
  // A copy of its own, so that a build here meets no other.
  run(
    root,
    'cp',
    '-r',
    'bin',
    'src',
    'web',
    'configs',
    'python',
    'package.json',
    '.npmrc',
    'tsconfig.json',
    'tsconfig.build.json',
    'README.md',
    'CHANGELOG.md',
    'LICENSE',
    work,
  );
  run(work, 'ln', '-s', join(root, 'node_modules'), 'node_modules');
  // Builds by itself, as on any machine: `prepack`.
  run(work, 'npm', 'pack');
  run(work, 'mkdir', 'app');
  writeFileSync(join(app, 'package.json'), '{ "name": "app", "private": true, "type": "module" }');
  const packed = readdirSync(work).find(name => name.endsWith('.tgz'))!;
  // onnxruntime-node's script would fetch CUDA's binaries; the others are in the package.
  run(app, 'npm', 'install', '--ignore-scripts', '--no-audit', '--no-fund', join(work, packed));
}, 300_000);

afterAll(() => {
  rmSync(work, { recursive: true, force: true });
});

const flags = ['--ignoreConfig', '--strict', '--module', 'nodenext', '--target', 'es2022', '--skipLibCheck'];

test('npx keel train trains, with the preset that is in the package', () => {
  const out = run(app, 'npx', 'keel', 'train', 'cartpole', '--steps', '2048');
  expect(out).toMatch(/Finished: 2,048 steps/);
  const [id] = readdirSync(join(app, 'runs'));
  // What it prints can be typed there.
  const [, evaluate] = /^ +evaluate +(npx keel eval .*)$/m.exec(out)!;
  expect(run(app, '/bin/sh', '-c', evaluate)).toMatch(/return .* over \d+ episodes/);
  expect(readdirSync(join(app, 'runs', id))).toContain('policy.onnx');
  expect(run(app, 'npx', 'keel', 'config', 'cartpole')).toMatch(/gaeLambda: 0\.8/);
});

test('the environment of the documentation trains from its file, without "type": "module", in worker threads', () => {
  const docs = readFileSync(join(root, 'docs/ppo.md'), 'utf8');
  const [, source] = /## Your own environment\n```ts\n([\s\S]*?)```/.exec(docs)!;
  const project = join(app, 'common');
  mkdirSync(project);
  writeFileSync(join(project, 'package.json'), '{ "type": "commonjs" }');
  writeFileSync(join(project, 'my-env.ts'), `${source}await Promise.resolve(import.meta.url);\n`);
  const keel = join(app, 'node_modules/.bin/keel');
  const tiny = ['--steps', '512', '--set', 'stepsPerRollout=64', '--envs', '4', '--set', 'workers=2'];
  expect(run(project, keel, 'train', './my-env.ts', ...tiny)).toMatch(/Finished: 512 steps/);
  expect(run(project, keel, 'check-env', './my-env.ts')).toMatch(/^Thermostat-v0: passed/);
  const tsc = join(root, 'node_modules/@typescript/native/bin/tsc');
  run(
    project,
    process.execPath,
    tsc,
    ...flags,
    '--noEmit',
    '--module',
    'esnext',
    '--moduleResolution',
    'bundler',
    'my-env.ts',
  );
});

test('the text task of the documentation is cloned, trained and evaluated from its file', () => {
  const docs = readFileSync(join(root, 'docs/text-tasks.md'), 'utf8');
  const [, source] = /## Your own task\n[^`]*```ts\n([\s\S]*?)```/.exec(docs)!;
  writeFileSync(join(app, 'my-task.ts'), source);
  const keel = join(app, 'node_modules/.bin/keel');
  const size = ['layers=1', 'width=16', 'heads=2'].flatMap(value => ['--set', value]);
  expect(run(app, keel, 'clone', './my-task.ts', '--steps', '640', ...size)).toMatch(
    /Finished: 640 demonstrations/,
  );
  expect(run(app, keel, 'train', './my-task.ts', '--from', 'last', '--steps', '64')).toMatch(
    /Finished: 64 completions/,
  );
  expect(run(app, keel, 'eval', 'last', '--episodes', '10')).toMatch(/reward .* over 10 completions/);
});

test('import { train } works, with types', () => {
  const source = `import { type TrainResult, train } from 'keel';
import { simulate } from 'keel/cluster';
import { Graph } from 'keel/engine';
import { gaussian } from 'keel/kl';
import { type LanguageModel, languageModel, ownTokenizer } from 'keel/lm';
import { Rng } from 'keel/random';
import { defineTask, makeTask, type TextTask } from 'keel/tasks';
declare const console: { log(...values: unknown[]): void };
const result: TrainResult = await train({ env: 'cartpole', config: { steps: 1024, envs: 4, stepsPerRollout: 128 } });
console.log(result.status, new Graph().nodes.length, gaussian(2).paramSize);
const task: TextTask = await makeTask('arithmetic', { digits: 1 });
const tokenizer = ownTokenizer(task.characters, task.pieces);
const model: LanguageModel = languageModel({ vocabulary: tokenizer.size, context: 16, layers: 1, width: 8, heads: 2 }, tokenizer, { rng: new Rng(0) });
console.log(task.name, model.layout.size > 500, typeof defineTask, typeof simulate);
`;
  writeFileSync(join(app, 'use.ts'), source);
  writeFileSync(join(app, 'wrong.ts'), "import { train } from 'keel';\nawait train({ env: 3 });\n");
  const tsc = join(root, 'node_modules/@typescript/native/bin/tsc');
  const { status, stdout } = spawnSync(process.execPath, [tsc, ...flags, 'use.ts', 'wrong.ts'], {
    cwd: app,
    encoding: 'utf8',
  });
  expect(status).not.toBe(0);
  // One fault, in one of them; its other lines are indented.
  expect(stdout.match(/^\S+/gm)).toEqual(['wrong.ts(2,15):']);
  expect(stdout).toContain("Type 'number' is not assignable to type 'string");
  expect(run(app, process.execPath, 'use.js').trim()).toBe('finished 0 4\narithmetic true function function');
});
