/** What users install: the packed package in an empty project. */
import { spawn, spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import packageJson from '../package.json' with { type: 'json' };
import { platformPackage, platforms } from '../src/engine/onnx/native.ts';
import { platformManifest } from '../tools/platform-packages.ts';
import { serveRegistry } from './support/registry.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const work = mkdtempSync(join(tmpdir(), 'keel-package-'));
/** Where it is installed: nothing that the checkout has is above. */
const place = mkdtempSync(join(tmpdir(), 'keel-installed-'));
const app = join(place, 'app');
const tsc = join(root, 'node_modules/@typescript/native/bin/tsc');
const packageFiles: readonly string[] = packageJson.files;
/** What of the package the build makes, and what it makes it from. */
const built = ['dist', 'native'];
const sources = [
  'src',
  'web',
  'tools',
  'python',
  'package.json',
  '.npmrc',
  'tsconfig.json',
  'tsconfig.build.json',
];

function run(cwd: string, command: string, ...args: string[]): string {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd, encoding: 'utf8', env });
  expect(status, `${command} ${args.join(' ')}\n${stdout}\n${stderr}`).toBe(0);
  return stdout;
}

/** As for who has set nothing; the registry is added when it is there. */
const { ONNXRUNTIME_NODE_INSTALL: _, npm_config_ignore_scripts: __, ...env } = process.env;
const here = platforms.find(platform => platform === `${process.platform}-${process.arch}`)!;
let registry: Awaited<ReturnType<typeof serveRegistry>> | undefined;

/** npm, while the registry answers from this process. */
function install(cwd: string, ...args: string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn('npm', ['install', '--no-audit', '--no-fund', ...args], {
      cwd,
      env,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let said = '';
    child.stderr.on('data', (text: Buffer) => {
      said += text;
    });
    child.on('close', code => (code === 0 ? resolve() : reject(new Error(`npm install: ${said}`))));
  });
}

function project(name: string, manifest: object): string {
  const folder = join(place, name);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name, private: true, ...manifest }));
  return folder;
}

beforeAll(async () => {
  // A copy of its own, so that a build here meets no other.
  const copied = [
    ...packageFiles.filter(name => existsSync(join(root, name)) && !built.includes(name)),
    ...sources,
  ];
  run(root, 'cp', '-r', ...copied, work);
  run(work, 'ln', '-s', join(root, 'node_modules'), 'node_modules');
  run(work, 'npm', 'run', 'packages', '--', here);
  const upstream = run(work, 'npm', 'config', 'get', 'registry').trim();
  const others = platforms.filter(platform => platform !== here).map(platform => platformManifest(platform));
  registry = await serveRegistry(
    join(work, 'packages'),
    upstream,
    others as { name: string; version: string }[],
  );
  env.npm_config_registry = registry.url;
  await install(project('app', { type: 'module' }), 'keel');
}, 300_000);

afterAll(() => {
  registry?.server.close();
  for (const made of [work, place]) rmSync(made, { recursive: true, force: true });
});

/** Not skipLibCheck: Keel's own types must stand without any package that it does not bring. */
const flags = ['--ignoreConfig', '--strict', '--module', 'nodenext', '--target', 'es2022'];

/** The package.json of every installed package, and how large all of them are. */
function installed(folder: string): {
  manifests: { name: string; scripts?: Record<string, string> }[];
  megabytes: number;
} {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).filter(entry =>
    entry.isFile(),
  );
  const bytes = entries.reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0);
  const manifests = entries
    .filter(
      ({ name, parentPath }) => name === 'package.json' && /node_modules\/(@[^/]+\/)?[^/]+$/.test(parentPath),
    )
    .map(({ parentPath }) => JSON.parse(readFileSync(join(parentPath, 'package.json'), 'utf8')));
  return { manifests, megabytes: bytes / 1e6 };
}

test('a plain install brings one platform, no script that looks outside of npm, and about 100 MB', () => {
  const { manifests, megabytes } = installed(join(app, 'node_modules'));
  const names = manifests.map(({ name }) => name);
  expect(names.filter(name => name?.startsWith('@keel/'))).toEqual([platformPackage(here)]);
  expect(names).not.toContain('onnxruntime-node');
  const scripted = manifests.filter(({ scripts = {} }) => 'install' in scripts || 'postinstall' in scripts);
  // What theirs do needs nothing but the packages that npm has installed beside them.
  const known = ['esbuild', 'msgpackr-extract'];
  expect(scripted.map(({ name }) => name).filter(name => !known.includes(name))).toEqual([]);
  expect(megabytes).toBeLessThan(125);
  expect(readdirSync(join(app, 'node_modules', platformPackage(here)))).toContain('LICENSE');
});

test('the program of the README runs after npm init', () => {
  const readme = readFileSync(join(app, 'node_modules/keel/README.md'), 'utf8');
  const [, source] = /```ts\n\/\/ first\.mts\n([\s\S]*?)```/.exec(readme)!;
  expect(source).toContain('100_000');
  const folder = project('app/first', { type: 'commonjs' });
  writeFileSync(join(folder, 'first.mts'), source.replace('100_000', '1024'));
  run(folder, join(app, 'node_modules/.bin/tsx'), 'first.mts');
  expect(readdirSync(join(folder, 'runs'))).toHaveLength(1);
});

test('who only reads a log needs neither the engine nor the trainer', () => {
  const folder = project('doctor', {});
  run(work, 'cp', '-al', join(app, 'node_modules'), join(folder, 'node_modules'));
  const modules = join(folder, 'node_modules');
  for (const name of ['@keel', '@mujoco', '@esbuild', 'esbuild', 'tsx', 'bullmq', 'ioredis', '@huggingface'])
    rmSync(join(modules, name), { recursive: true, force: true });
  for (const name of ['engine', 'nn', 'kl', 'lm', 'rollout', 'sweep'])
    rmSync(join(modules, 'keel/dist', name), { recursive: true });
  const log = join(root, 'test/doctor/fixtures/sb3/cartpole-lr-high/progress.csv');
  const { status, stdout, stderr } = spawnSync(join(modules, '.bin/keel'), ['doctor', log, '--json'], {
    cwd: folder,
    encoding: 'utf8',
    env,
  });
  expect(stderr).toBe('');
  expect(status).toBe(2);
  expect(JSON.parse(stdout).runs[0]).toMatchObject({ verdict: 'sick', rootCause: 'learning-rate-too-high' });
});

test('without the engine small networks train, and what needs it says in one line how to get it', () => {
  const folder = project('small', {});
  run(work, 'cp', '-al', join(app, 'node_modules'), join(folder, 'node_modules'));
  rmSync(join(folder, 'node_modules/@keel'), { recursive: true });
  const keel = join(folder, 'node_modules/.bin/keel');
  expect(run(folder, keel, 'train', 'cartpole', '--steps', '1024')).toMatch(/Finished: [\d,]+ steps/);
  const before = readdirSync(join(folder, 'runs'));
  const { status, stderr } = spawnSync(keel, ['clone', 'arithmetic', '--steps', '64'], {
    cwd: folder,
    encoding: 'utf8',
    env,
  });
  expect(status).toBe(1);
  expect(stderr.trim().split('\n')).toEqual([
    expect.stringMatching(
      /^keel: ONNX Runtime is not installed, .*npm install onnxruntime-node@[\d.]+ --ignore-scripts/,
    ),
  ]);
  // It has not even begun: nothing is left of it.
  expect(readdirSync(join(folder, 'runs'))).toEqual(before);
});

test('the examples of the package run as they are', () => {
  const folder = project('app/examples', {});
  run(
    work,
    'cp',
    '-r',
    ...['fit-a-line.mts', 'snake.ts'].map(name => join(app, 'node_modules/keel/examples', name)),
    folder,
  );
  expect(
    run(folder, join(app, 'node_modules/.bin/tsx'), join(app, 'node_modules/keel/examples/fit-a-line.mts')),
  ).toContain('y = 2.000 x + 1.000');
  // The project is CommonJS: there an import from an ES module gives the module, which is as good.
  writeFileSync(
    join(folder, 'program.mts'),
    "import { registerEnv, train } from 'keel';\nimport snake from './snake.js';\nregisterEnv(snake);\nexport const run = () => train({ env: snake });\n",
  );
  run(folder, process.execPath, tsc, ...flags, '--noEmit', 'program.mts');
  expect(run(folder, join(app, 'node_modules/.bin/keel'), 'check-env', './snake.ts')).toMatch(
    /^Snake-v0: passed/,
  );
});

test('every door has types that stand by themselves', () => {
  const doors = Object.keys(packageJson.exports).filter(door => door !== './package.json');
  const source = doors.map((door, i) => `export * as d${i} from 'keel${door.slice(1)}';`).join('\n');
  writeFileSync(join(app, 'doors.ts'), source);
  run(app, process.execPath, tsc, ...flags, '--noEmit', 'doors.ts');
});

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
  const folder = project('app/common', { type: 'commonjs' });
  writeFileSync(join(folder, 'my-env.ts'), `${source}await Promise.resolve(import.meta.url);\n`);
  const keel = join(app, 'node_modules/.bin/keel');
  const tiny = ['--steps', '512', '--set', 'stepsPerRollout=64', '--envs', '4', '--set', 'workers=2'];
  expect(run(folder, keel, 'train', './my-env.ts', ...tiny)).toMatch(/Finished: 512 steps/);
  expect(run(folder, keel, 'check-env', './my-env.ts')).toMatch(/^Thermostat-v0: passed/);
  run(
    folder,
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
  const sweeps = readFileSync(join(root, 'docs/sweeps.md'), 'utf8');
  const [, fromCode] = /## From code\n```ts\n([\s\S]*?)```/.exec(sweeps)!;
  expect(fromCode).toContain("import { sweep } from 'keel';");
  writeFileSync(join(app, 'sweeps.ts'), fromCode);
  const { status, stdout } = spawnSync(process.execPath, [tsc, ...flags, 'use.ts', 'sweeps.ts', 'wrong.ts'], {
    cwd: app,
    encoding: 'utf8',
  });
  expect(status).not.toBe(0);
  // One fault, in one of them; its other lines are indented.
  expect(stdout.match(/^\S+/gm)).toEqual(['wrong.ts(2,15):']);
  expect(stdout).toContain("Type 'number' is not assignable to type 'string");
  expect(run(app, process.execPath, 'use.js').trim()).toBe('finished 0 4\narithmetic true function function');
});
