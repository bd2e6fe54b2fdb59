import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'keel-imports-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

interface Outcome {
  readonly exitCode: number;
  /** As `rule: from → to`, or `rule: file`. */
  readonly violations: readonly string[];
  readonly output: string;
}

/** The check as `npm run check:imports` runs it on the real folders, in some project. */
function check(project: string): Promise<Outcome> {
  const program = join(root, 'node_modules/dependency-cruiser/bin/dependency-cruise.mjs');
  const config = join(root, '.dependency-cruiser.mjs');
  const args = [program, '--config', config, '--output-type', 'err-long', '{src,web}'];
  return new Promise(resolve => {
    execFile(
      process.execPath,
      args,
      { cwd: project, env: { ...process.env, NO_COLOR: '1' } },
      (error, stdout, stderr) => {
        const output = stdout + stderr;
        const violations = [...output.matchAll(/^ *error (.+?) *$/gm)].map(match => match[1]);
        resolve({ exitCode: error === null ? 0 : Number(error.code), violations: violations.sort(), output });
      },
    );
  });
}

/** A project of these files, with one package of each kind installed. */
async function project(files: Readonly<Record<string, string>>): Promise<string> {
  const dir = await mkdtemp(join(folder, 'project-'));
  const everything: Record<string, string> = {
    'package.json': JSON.stringify({
      name: 'fixture',
      type: 'module',
      exports: Object.fromEntries(
        ['engine', 'nn'].map(name => [`./${name}`, { default: `./dist/${name}/index.js` }]),
      ),
      dependencies: { declared: '1.0.0' },
      devDependencies: { tool: '1.0.0' },
    }),
    'dist/nn/index.js': 'export {};',
    ...Object.fromEntries(
      ['declared', 'tool', 'transitive'].flatMap(name => [
        [`node_modules/${name}/package.json`, JSON.stringify({ name, version: '1.0.0', main: 'index.js' })],
        [`node_modules/${name}/index.js`, 'module.exports = 1;'],
      ]),
    ),
    ...files,
  };
  for (const [path, text] of Object.entries(everything)) {
    await mkdir(dirname(join(dir, path)), { recursive: true });
    await writeFile(join(dir, path), text);
  }
  return dir;
}

const leaf = 'export interface Leaf { size: number }\nexport const leaf = 1;\n';

/** Said again, and not taken from the configuration: a slip there must show here. */
const mayImport: Record<string, string> = {
  base: '',
  settings: 'base',
  random: 'base',
  engine: 'base',
  nn: 'base engine random',
  kl: 'base engine random',
  lm: 'base engine nn kl random',
  view: 'base metrics',
  envs: 'base random view',
  tasks: 'base random envs',
  rollout: 'base engine nn kl envs random',
  metrics: 'base',
  runs: 'base metrics view',
  studies: 'base settings metrics runs random',
  doctor: 'base settings metrics runs',
  server: 'base settings metrics view runs studies doctor',
  algos: 'base settings engine nn kl lm rollout envs tasks random metrics view runs',
  cli: 'base settings random engine nn kl lm envs tasks rollout metrics view runs studies doctor server algos',
};
const folders = Object.keys(mayImport);

/** A file for every pair of folders, and what of them is refused. */
function everyPair(): { files: Record<string, string>; expected: string[] } {
  const files: Record<string, string> = {};
  const expected: string[] = [];
  for (const from of folders) {
    files[`src/${from}/leaf.ts`] = leaf;
    for (const to of folders) {
      files[`src/${from}/to-${to}.ts`] = `import '../${to}/leaf.ts';`;
      if (from === to || mayImport[from].split(' ').includes(to)) continue;
      expected.push(`${from}-imports: src/${from}/to-${to}.ts → src/${to}/leaf.ts`);
    }
  }
  for (const to of folders) {
    files[`src/to-${to}.ts`] = `import './${to}/leaf.ts';`;
    if (to === 'cli' || to === 'server') expected.push(`entry-imports: src/to-${to}.ts → src/${to}/leaf.ts`);
  }
  for (const path of [
    'metrics/registry',
    'runs/schema',
    'doctor/findings',
    'metrics/aggregate',
    'runs/schema-of',
  ]) {
    files[`src/${path}.ts`] = leaf;
    files[`web/${path}.ts`] = `import '../../src/${path}.ts';`;
  }
  expected.push(
    'page-imports: web/metrics/aggregate.ts → src/metrics/aggregate.ts',
    'page-imports: web/runs/schema-of.ts → src/runs/schema-of.ts',
  );
  return { files, expected: expected.sort() };
}

describe('passes', () => {
  test('imports that go the right way, of every form', async () => {
    const dir = await project({
      'src/engine/index.ts':
        "import { readFileSync } from 'node:fs';\nimport one from 'declared';\nexport * from './leaf.ts';\nexport { readFileSync, one };",
      'src/engine/leaf.ts': leaf,
      'src/nn/mlp.ts':
        "import { type Leaf, leaf } from '../engine/leaf.ts';\nexport const mlp = (_: Leaf) => leaf;",
      'src/metrics/registry.ts': leaf,
      'src/cli/main.ts':
        "import '../metrics/registry.ts';\nexport const later = () => import('../nn/mlp.ts');",
      'src/index.ts': "export * from './nn/mlp.ts';\nexport * as engine from './engine/index.ts';",
      // Tables of settings are for the doctor and the server too.
      'src/algos/ppo/settings.ts':
        "import { leaf } from '../../settings/spec.ts';\nexport const table = leaf;",
      'src/settings/spec.ts': leaf,
      'src/doctor/dialect.ts': "export * from '../algos/ppo/settings.ts';",
      'src/server/form.ts': "export * from '../algos/settings.ts';",
      'src/algos/settings.ts': "export * from './ppo/settings.ts';",
      'web/main.ts':
        "import { leaf } from '../src/metrics/registry.ts';\nimport one from 'tool';\nexport const two = [leaf, one];",
    });
    const { exitCode, violations, output } = await check(dir);
    expect(violations).toEqual([]);
    // It has truly seen the imports: TypeScript is parsed, and paths with .ts resolve.
    expect(output).toContain('no dependency violations found (15 modules, 14 dependencies cruised)');
    expect(exitCode).toBe(0);
  });
});

test('refuses by name: doors from inside, an index.ts that is no subpath, what a table of settings needs not', async () => {
  const dir = await project({
    'src/engine/index.ts': leaf,
    'src/nn/a.ts': "import '../engine/index.ts';",
    'src/nn/deep/index.ts': leaf,
    'src/algos/grpo/settings.ts':
      "import '../../engine/b.ts';\nimport '../train.ts';\nimport 'declared';\nimport '../../settings/spec.ts';",
    'src/algos/train.ts': leaf,
    'src/engine/b.ts': leaf,
    'src/settings/spec.ts': leaf,
    'src/server/c.ts': "import '../algos/train.ts';",
  });
  expect((await check(dir)).violations).toEqual([
    'doors-are-for-others: src/nn/a.ts → src/engine/index.ts',
    'index-is-a-door: src/nn/deep/index.ts',
    'server-imports: src/server/c.ts → src/algos/train.ts',
    'setting-tables-import: src/algos/grpo/settings.ts → node_modules/declared/index.js',
    'setting-tables-import: src/algos/grpo/settings.ts → src/algos/train.ts',
    'setting-tables-import: src/algos/grpo/settings.ts → src/engine/b.ts',
  ]);
});

describe('refuses', () => {
  const cases: [string, Record<string, string>, string[]][] = [
    [
      'engine → nn',
      {
        'src/engine/a.ts': "import { leaf } from '../nn/b.ts';\nexport const a = leaf;",
        'src/nn/b.ts': leaf,
      },
      ['engine-imports: src/engine/a.ts → src/nn/b.ts'],
    ],
    [
      'envs → engine',
      { 'src/envs/a.ts': "export * from '../engine/b.ts';", 'src/engine/b.ts': leaf },
      ['envs-imports: src/envs/a.ts → src/engine/b.ts'],
    ],
    [
      'doctor → algos, from deep inside and on use',
      {
        'src/doctor/rules/a.ts': "export const a = () => import('../../algos/b.ts');",
        'src/algos/b.ts': leaf,
      },
      ['doctor-imports: src/doctor/rules/a.ts → src/algos/b.ts'],
    ],
    [
      'kl → nn',
      { 'src/kl/a.ts': "import '../nn/b.ts';", 'src/nn/b.ts': leaf },
      ['kl-imports: src/kl/a.ts → src/nn/b.ts'],
    ],
    [
      'a type only, in each of its forms',
      {
        'src/engine/a.ts': "import type { Leaf } from '../nn/leaf.ts';\nexport type A = Leaf;",
        'src/engine/b.ts': "import { type Leaf } from '../nn/leaf.ts';\nexport type B = Leaf;",
        'src/engine/c.ts': "export type { Leaf } from '../nn/leaf.ts';",
        'src/engine/d.ts': "export type D = import('../nn/leaf.ts').Leaf;",
        'src/nn/leaf.ts': leaf,
      },
      ['a', 'b', 'c', 'd'].map(name => `engine-imports: src/engine/${name}.ts → src/nn/leaf.ts`),
    ],
    [
      'a folder → the entry above it, an entry → cli',
      {
        'src/engine/a.ts': "import '../errors.ts';",
        'src/errors.ts': leaf,
        'src/index.ts': "export * from './cli/main.ts';",
        'src/cli/main.ts': leaf,
      },
      ['engine-imports: src/engine/a.ts → src/errors.ts', 'entry-imports: src/index.ts → src/cli/main.ts'],
    ],
    [
      'web → a file of src that is not for it',
      { 'web/lib/a.ts': "import '../../src/runs/store.ts';", 'src/runs/store.ts': leaf },
      ['page-imports: web/lib/a.ts → src/runs/store.ts'],
    ],
    [
      'src → what is outside, or itself by the name of the package',
      {
        ...Object.fromEntries(
          ['test', 'bench', 'examples', 'web'].flatMap(outside => [
            [`src/cli/${outside}.ts`, `import '../../${outside}/leaf.ts';`],
            [`${outside}/leaf.ts`, leaf],
          ]),
        ),
        'src/cli/dist.ts': "import 'fixture/nn';",
      },
      [
        ...['test', 'bench', 'examples', 'web'].map(
          outside => `src-imports-src: src/cli/${outside}.ts → ${outside}/leaf.ts`,
        ),
        'src-imports-src: src/cli/dist.ts → dist/nn/index.js',
      ],
    ],
    [
      'packages that are not dependencies, and their types',
      {
        'src/engine/a.ts': "import 'tool';",
        'src/engine/b.ts': "import type { T } from 'tool';\nexport type B = T;",
        'src/engine/c.ts': "import 'transitive';",
      },
      [
        'no-undeclared-package: src/engine/a.ts → node_modules/tool/index.js',
        'no-undeclared-package: src/engine/b.ts → node_modules/tool/index.js',
        'no-undeclared-package: src/engine/c.ts → node_modules/transitive/index.js',
      ],
    ],
    [
      'what is not there',
      { 'src/engine/a.ts': "import './gone.ts';", 'src/engine/b.ts': "import 'gone';" },
      ['no-unresolvable: src/engine/a.ts → ./gone.ts', 'no-unresolvable: src/engine/b.ts → gone'],
    ],
    [
      'a folder without a rule, even if it imports nothing',
      { 'src/plugins/a.ts': leaf, 'src/engine2/deep/a.ts': leaf },
      ['folder-needs-a-rule: src/plugins/a.ts', 'folder-needs-a-rule: src/engine2/deep/a.ts'],
    ],
    [
      'a cycle, and one of types only',
      {
        'src/kl/a.ts': "import { b } from './b.ts';\nexport const a = () => b;",
        'src/kl/b.ts': "import { a } from './a.ts';\nexport const b = () => a;",
        'src/nn/c.ts': "import type { D } from './d.ts';\nexport interface C { d: D }",
        'src/nn/d.ts': "import type { C } from './c.ts';\nexport interface D { c: C }",
      },
      ['no-cycle: src/kl/a.ts →', 'no-cycle: src/nn/c.ts →'],
    ],
  ];

  /** Files of a case have names of their own, so that one look is enough for all cases: each takes seconds. */
  const ofCase = (index: number, text: string): string =>
    text.replaceAll(/([\w-]+)\.ts\b/g, (_, name: string) => `case${index}-${name}.ts`);
  const pairs = everyPair();
  let all: Outcome;
  beforeAll(async () => {
    const files = cases.flatMap(([, own], i) =>
      Object.entries(own).map(([path, text]) => [ofCase(i, path), ofCase(i, text)] as const),
    );
    all = await check(await project({ ...pairs.files, ...Object.fromEntries(files) }));
  });

  test.each(cases.map(([name, , expected], i) => [name, i, expected] as const))('%s', (_, i, expected) => {
    const own = all.violations.filter(line => line.includes(`case${i}-`));
    expect(own).toEqual(expected.map(line => ofCase(i, line)).sort());
  });

  test('every pair of folders that the table does not allow, and no other', () => {
    expect(all.violations.filter(line => !/case\d+-/.test(line))).toEqual(pairs.expected);
  });

  test('nothing but these, and the exit code counts them', () => {
    const count = cases.reduce((sum, [, , expected]) => sum + expected.length, pairs.expected.length);
    expect(all.violations.length).toBe(count);
    expect(all.exitCode).toBe(count % 256);
  });

  test('and says what to do', () => {
    expect(all.output.replaceAll(/\s+/g, ' ')).toContain('take out what both need');
  });
});
