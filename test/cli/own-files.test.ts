/** Users' files of every kind, in projects of every kind, loaded by the compiled package. */
import { execFile } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { keel, packageDir, root, scratch, tiny } from './support/keel.ts';

const types = { 'no package.json': undefined, commonjs: 'commonjs', module: 'module' } as const;

/** A folder of such a project, in which `keel` can be imported. */
function project(type: string | undefined): string {
  const dir = scratch();
  mkdirSync(join(dir, 'node_modules'));
  symlinkSync(packageDir, join(dir, 'node_modules/keel'));
  if (type !== undefined) writeFileSync(join(dir, 'package.json'), JSON.stringify({ type }));
  return dir;
}

const environment = (id: string): string => `defineEnv({
  id: '${id}', description: 'x', maxEpisodeSteps: 5,
  make: () => simulation({
    observationSpace: box({ shape: [1] }), actionSpace: discrete(2), start: () => ({ t: 0 }),
    observe: state => [state.t], step(state, _, result) { state.t++; result.reward = scale; },
  }),
})`;
/** A name that no other file of this process has. */
let named = 0;
const newId = (): string => `Own${++named}-v0`;
const imports = "import { box, defineEnv, discrete, simulation } from 'keel/envs';\n";

/** Loads each in one process; its id, or the error. */
async function load(dir: string, files: readonly string[]): Promise<Record<string, string>> {
  const script = join(dir, 'load-all.mjs');
  writeFileSync(
    script,
    `import { loadEnvFile } from 'keel/envs';
const out = {};
for (const file of ${JSON.stringify(files)})
  out[file] = await loadEnvFile('./' + file).then(env => env.id, error => error.message);
console.log(JSON.stringify(out));`,
  );
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [script], { cwd: dir });
  expect(stderr).toBe('');
  return JSON.parse(stdout);
}

describe.each(Object.entries(types))('in a project of %s', (_, type) => {
  test.concurrent('ES modules load, with await at the top level, import.meta and imports', async () => {
    const dir = project(type);
    writeFileSync(
      join(dir, 'scale.ts'),
      'export const scale: number = await Promise.resolve(import.meta.url.length);\n',
    );
    writeFileSync(join(dir, 'scale.mjs'), 'export const scale = await Promise.resolve(1);\n');
    const extensions = ['ts', 'tsx', 'mts', 'js', 'mjs'];
    const expected: Record<string, string> = {};
    for (const extension of extensions) {
      const id = `Own${extension}-v0`;
      const scale = extension.includes('t')
        ? // Found without its extension; types are removed.
          "import { scale as n } from './scale';\nconst scale: number = n;"
        : "import { scale } from './scale.mjs';";
      const body = `${scale}\nif (!(await Promise.resolve(import.meta.url)).startsWith('file:')) throw new Error('no');\n`;
      writeFileSync(join(dir, `own.${extension}`), `${imports}${body}export default ${environment(id)};\n`);
      expected[`own.${extension}`] = id;
    }
    expect(await load(dir, Object.keys(expected))).toEqual(expected);
  });

  test.concurrent('CommonJS loads where its ending or the project says so', async () => {
    const dir = project(type);
    const text = (id: string): string =>
      `const { box, defineEnv, discrete, simulation } = require('keel/envs');\nconst scale = __dirname.length;\nmodule.exports = ${environment(id)};\n`;
    const all = ['ts', 'cts', 'js', 'cjs'];
    for (const extension of all)
      writeFileSync(join(dir, `common.${extension}`), text(`Common${extension}-v0`));
    const loaded = await load(
      dir,
      all.map(extension => `common.${extension}`),
    );
    for (const extension of all) {
      const own = ['cts', 'cjs'].includes(extension) || type !== 'module';
      expect(loaded[`common.${extension}`]).toMatch(
        own
          ? new RegExp(`^Common${extension}-v0$`)
          : /failed to load: require is not defined in ES module scope: use import and import\.meta\.url, or rename the file so that it ends in \.cts \(\.cjs\)$/,
      );
    }
  });
});

test('what a .cts cannot do is one line with the remedy', async () => {
  const dir = project(undefined);
  writeFileSync(
    join(dir, 'e.cts'),
    `${imports}const scale = await 1;\nexport default ${environment('E-v0')};\n`,
  );
  const { code, stdout, stderr } = await keel(['check-env', './e.cts'], { cwd: dir });
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr).toMatch(
    /^keel: .*e\.cts failed to load: .*:2:14: Top-level await .*: rename the file so that it ends in \.mts.*\n$/,
  );
});

test.each([0, 2])('it trains, with %i worker threads, and resumes', async workers => {
  const dir = project(undefined);
  writeFileSync(
    join(dir, 'e.ts'),
    `${imports}const scale: number = await Promise.resolve(1);\nexport default ${environment(newId())};\n`,
  );
  const flags = tiny('runs', '--set', `workers=${workers}`);
  const trained = await keel(['train', './e.ts', ...flags], { cwd: dir });
  expect(trained).toMatchObject({ code: 0, stderr: '' });
  expect(trained.stdout).toMatch(/return 5\.00/);
  expect(await keel(['resume', '--steps', '192'], { cwd: dir })).toMatchObject({ code: 0, stderr: '' });
});

/** Imports of both kinds, and what shows that there is but one Keel: that of the program, its registry and its classes. */
const sameCopy = (common: boolean, id: string): string => {
  const second = newId();
  const get = (names: string, from: string): string =>
    common ? `const { ${names} } = require('${from}');\n` : `import { ${names} } from '${from}';\n`;
  return `${get('box, defineEnv, discrete, findEnv, listEnvs, registerEnv, simulation', 'keel/envs')}${get(common ? 'registerEnv: again' : 'registerEnv as again', 'keel')}
const scale = 1;
if (registerEnv !== again) throw new Error('keel and keel/envs are two copies');
registerEnv(${environment(second)});
if (findEnv('${second}').file === null) throw new Error('the program does not know what it registered');
${common ? 'module.exports =' : 'export default'} ${environment(id)};
`;
};

describe('where Keel is not installed, or another one is,', () => {
  test.each(['ts', 'mts', 'cts', 'js', 'mjs', 'cjs'])(
    'a .%s file gets the Keel that runs',
    async extension => {
      const [empty, other] = [scratch(), scratch()];
      const [inEmpty, inOther] = [newId(), newId()];
      mkdirSync(join(other, 'node_modules/keel/envs'), { recursive: true });
      for (const place of ['', 'envs/'])
        writeFileSync(join(other, `node_modules/keel/${place}index.js`), 'throw new Error("another Keel");');
      for (const [cwd, id] of [
        [empty, inEmpty],
        [other, inOther],
      ] as const)
        writeFileSync(join(cwd, `e.${extension}`), sameCopy(extension.startsWith('c'), id));
      const checked = await keel(['check-env', `./e.${extension}#${inOther}`], { cwd: other });
      expect(checked.stdout, checked.stderr).toMatch(new RegExp(`^${inOther}: passed`));
      const flags = tiny('runs', '--set', 'workers=1');
      const trained = await keel(['train', `./e.${extension}#${inEmpty}`, ...flags], { cwd: empty });
      expect(trained).toMatchObject({ code: 0, stderr: expect.not.stringMatching(/^keel: /m) });
      expect(trained.stdout).toMatch(/return 5\.00/);
    },
  );

  // One process for both: most of its time it loads the sources.
  test.concurrent('a .ts and a .mjs file get the sources, if those run', async () => {
    const cwd = scratch();
    const extensions = ['ts', 'mjs'];
    for (const extension of extensions)
      writeFileSync(join(cwd, `e.${extension}`), sameCopy(false, `E${extension}-v0`));
    const lines = extensions.map(extension => [
      ...['node', 'keel', 'train', `./e.${extension}#E${extension}-v0`],
      ...tiny('runs', '--set', 'workers=1'),
    ]);
    writeFileSync(
      join(cwd, 'both.mjs'),
      `import { main } from ${JSON.stringify(pathToFileURL(join(root, 'src/cli/main.ts')).href)};
for (const line of ${JSON.stringify(lines)}) await main(line);\n`,
    );
    const tsx = join(root, 'node_modules/tsx/dist/cli.mjs');
    const { stdout } = await promisify(execFile)(process.execPath, [tsx, 'both.mjs'], { cwd });
    const told = stdout.split(/^Finished: /m);
    expect(told).toHaveLength(3);
    for (const one of told.slice(0, 2)) expect(one).toMatch(/return 5\.00/);
  });

  test.each([
    [
      'e.ts',
      "import 'left-pad';",
      /cannot find the package left-pad, which \S+e\.ts imports: npm install left-pad$/,
    ],
    [
      'e.mjs',
      "import '@a/b/c';",
      /cannot find the package @a\/b, which \S+e\.mjs imports: npm install @a\/b$/,
    ],
    ['e.cjs', "require('left-pad/x');", /cannot find the package left-pad: npm install left-pad$/],
    ['e.cts', "require('left-pad');", /cannot find the package left-pad: npm install left-pad$/],
    ['e.ts', "import './no.ts';", /cannot find \S+no\.ts, which \S+e\.ts imports: check the path$/],
    [
      'e.ts',
      "import 'keel/env';",
      /Cannot find package 'keel' imported from \S+e\.ts: Keel has keel, .*keel\/envs,/,
    ],
  ])('%s with %s is told in one line', async (name, text, message) => {
    const cwd = scratch();
    writeFileSync(join(cwd, name), `${text}\n`);
    const { code, stdout, stderr } = await keel(['check-env', `./${name}`], { cwd });
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(/^keel: [^\n]+\n$/);
    expect(stderr.trimEnd()).toMatch(message);
    expect(stderr).not.toMatch(/namespace/);
  });
});
