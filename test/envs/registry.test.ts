import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { builtIn } from '../../src/envs/built-in.ts';
import {
  cartPoleDefinition,
  type EnvDefinition,
  findEnv,
  isEnvFile,
  listEnvs,
  loadEnvFile,
  makeEnv,
  makeVectorEnv,
  prepareEnv,
  registerEnv,
  resolveEnv,
} from '../../src/envs/index.ts';
import { obsFor } from './support/contract.ts';

const fixture = (name: string): string => fileURLToPath(new URL(`fixtures/files/${name}`, import.meta.url));

describe('registry', () => {
  it.each([
    ['CartPole-v1', 'CartPole-v1'],
    ['cartpole', 'CartPole-v1'],
    ['cart-pole', 'CartPole-v1'],
    ['CART_POLE-V1', 'CartPole-v1'],
    ['pendulum', 'Pendulum-v1'],
    ['acrobot', 'Acrobot-v1'],
    ['mountain-car-continuous', 'MountainCarContinuous-v0'],
    ['courier', 'Courier-v0'],
    ['probe-endless', 'ProbeEndless-v0'],
    ['half-cheetah', 'HalfCheetah-v5'],
    ['walker2d', 'Walker2d-v5'],
    ['humanoid', 'Humanoid-v5'],
    ['inverted_double_pendulum', 'InvertedDoublePendulum-v5'],
    ['InvertedPendulum', 'InvertedPendulum-v5'],
  ])('%s is %s', async (name, id) => {
    expect(findEnv(name).id).toBe(id);
    await prepareEnv(name);
    expect(makeEnv(name).spec.id).toBe(id);
  });

  it('lists all, with what each option does', () => {
    const ids = listEnvs().map(env => env.id);
    expect(ids).toEqual(
      expect.arrayContaining([
        'CartPole-v1',
        'Pendulum-v1',
        'Acrobot-v1',
        'MountainCarContinuous-v0',
        'Courier-v0',
        'HalfCheetah-v5',
        'Hopper-v5',
        'Walker2d-v5',
        'Ant-v5',
        'Humanoid-v5',
        'Swimmer-v5',
        'InvertedPendulum-v5',
        'InvertedDoublePendulum-v5',
        'Reacher-v5',
      ]),
    );
    // Other files of this process register theirs.
    for (const env of listEnvs().filter(({ id }) => builtIn.some(own => own.id === id))) {
      expect(env.description.length).toBeGreaterThan(10);
      for (const option of Object.values(env.options)) expect(option.doc.length).toBeGreaterThan(5);
    }
  });

  it.each([
    ['cartpoel', /environment "cartpoel" is unknown: did you mean CartPole\?/],
    ['CartPole-v7', /unknown: there is CartPole-v1/],
    ['mountaincar', /did you mean MountainCarContinuous\?/],
    ['probe', /did you mean Probe\w+, Probe\w+ or Probe\w+\?/],
    ['zzzzzzzzz', /unknown: there are CartPole-v1, /],
    ['', /unknown/],
  ])('%s is unknown, with the nearest names', (name, message) => {
    expect(() => makeEnv(name)).toThrow(message);
  });

  it.each([
    [{ gravty: 9 }, /Pendulum-v1 has no option "gravty": did you mean gravity\?/],
    [{ zzz: 1 }, /has no option "zzz": it has gravity/],
    [{ gravity: '9' }, /option gravity is "9", not a number: the default is 10 \(acceleration/],
    [{ gravity: null }, /option gravity is null, not a number/],
    [{ gravity: Number.NaN }, /option gravity is NaN, not a finite number/],
    [{ gravity: 1e9 }, /above its largest value 100/],
    [{ gravity: -1e9 }, /below its least value -100/],
    [{ maxEpisodeSteps: 0 }, /maxEpisodeSteps is 0, not a whole number of at least 1: try 200, or null/],
    [{ maxEpisodeSteps: 1.5 }, /maxEpisodeSteps is 1.5/],
    [{ toString: 1 }, /has no option "toString"/],
  ])('options %s are refused', (options, message) => {
    expect(() => makeEnv('pendulum', options as never)).toThrow(message);
  });

  it('refuses values that are not on the list', () => {
    expect(() => makeEnv('acrobot', { dynamics: 'moon' })).toThrow(
      /dynamics is "moon", not one of "book", "nips"/,
    );
    expect(() => makeEnv('cartpole', { gravity: 1 })).toThrow(
      /has no option "gravity": it has suttonBartoReward/,
    );
  });

  it('a spec makes the same environment again', () => {
    const { spec } = makeEnv('pendulum', { gravity: 3, maxEpisodeSteps: 7 });
    expect(spec).toEqual({
      id: 'Pendulum-v1',
      version: 1,
      options: { gravity: 3 },
      maxEpisodeSteps: 7,
      rewardThreshold: null,
      file: null,
    });
    expect(makeEnv(spec.id, { ...spec.options, maxEpisodeSteps: spec.maxEpisodeSteps }).spec).toEqual(spec);
    expect(makeEnv('pendulum', { maxEpisodeSteps: null }).spec.maxEpisodeSteps).toBeNull();
    expect(makeEnv('pendulum', { maxEpisodeSteps: undefined }).spec.maxEpisodeSteps).toBe(200);
  });

  it('takes one definition for an id, and the newest version for a name', () => {
    const define = (id: string, extra: Partial<EnvDefinition> = {}): EnvDefinition =>
      ({ ...cartPoleDefinition, id, ...extra }) as unknown as EnvDefinition;
    expect(() => registerEnv(define('CartPole-v1'))).toThrow(
      /already registered: choose another name or version, such as CartPole-v2/,
    );
    expect(() => registerEnv(define('Taken-v0', { aliases: ['pendulum'] }))).toThrow(
      /environment pendulum is already registered/,
    );
    expect(() => registerEnv(define('bad id'))).toThrow(/not a name/);
    const old = define('Versioned-v1');
    registerEnv(old);
    registerEnv(old); // the same again changes nothing
    // What an import of a CommonJS module gives: a .ts of a project without "type": "module" becomes one.
    const inModule = { __esModule: true, default: define('Imported-v0') };
    expect(registerEnv(inModule as never).id).toBe('Imported-v0');
    expect(findEnv('imported').definition).toBe(inModule.default);
    registerEnv(define('Versioned-v10'));
    registerEnv(define('Versioned-v9'));
    expect(findEnv('versioned').id).toBe('Versioned-v10');
    expect(findEnv('versioned-v1').id).toBe('Versioned-v1');
    expect(() => findEnv('versioned-v2')).toThrow(/there is Versioned-v1, Versioned-v10, Versioned-v9/);
  });
});

describe("a user's file", () => {
  const folder = mkdtempSync(join(tmpdir(), 'keel-envs-'));
  afterAll(() => rmSync(folder, { recursive: true }));
  const write = (name: string, text: string): string => {
    const file = join(folder, name);
    writeFileSync(file, text);
    return file;
  };

  it('in TypeScript is loaded, registered and made', async () => {
    const file = fixture('walk.ts');
    const env = await loadEnvFile(file);
    expect(env).toMatchObject({ id: 'Walk-v3', version: 3, file });
    expect(await loadEnvFile(file)).toBe(env);
    const made = makeEnv('stroll', { goal: 0.6 });
    expect(made.spec).toMatchObject({ id: 'Walk-v3', options: { goal: 0.6 }, file });
    const obs = obsFor(made);
    made.reset({ seed: 1 }, obs);
    made.step(new Float32Array([1]), obs);
    expect(obs[1]).toBe(1);
    expect(() => makeEnv('walk', { gaol: 2 })).toThrow(/did you mean goal/);
    const envs = await makeVectorEnv(file, { envCount: 2, options: { goal: 2 } });
    await envs.reset({ seed: 1 });
    expect(envs.spec?.options).toEqual({ goal: 2 });
  });

  it('in JavaScript needs nothing of Keel', async () => {
    const { id } = await resolveEnv(fixture('plain.mjs'));
    expect(id).toBe('Plain-v2');
    const env = makeEnv(id);
    const obs = obsFor(env);
    env.reset({}, obs);
    expect(env.step(new Float32Array([0.5]), obs).reward).toBe(0.5);
  });

  it('may register several, one of which is then named', async () => {
    const file = fixture('several.ts');
    await expect(loadEnvFile(file)).rejects.toThrow(
      /several.ts defines First-v0, Second-v0: say which, as .*several.ts#First-v0/,
    );
    expect((await loadEnvFile(`${file}#Second-v0`)).id).toBe('Second-v0');
    await expect(loadEnvFile(`${file}#Third-v0`)).rejects.toThrow(
      /defines no "Third-v0": it has First-v0, Second-v0/,
    );
    expect(findEnv('first').file).toBe(file);
  });

  it('in a project of CommonJS works too', async () => {
    const url = JSON.stringify(new URL('../../src/envs/index.ts', import.meta.url).pathname);
    write('package.json', '{"name":"a-users-project"}');
    const file = write(
      'common.ts',
      `import { box, discrete, defineEnv, simulation } from ${url};
       export default defineEnv({ id: 'Common-v0', description: 'x', maxEpisodeSteps: 5 as number, make: () => simulation({
         observationSpace: box({ shape: [1] }), actionSpace: discrete(2), start: () => ({ t: 0 }),
         observe: (s: { t: number }) => [s.t], step(s: { t: number }) { s.t++; } }) });`,
    );
    expect((await loadEnvFile(file)).id).toBe('Common-v0');
    expect(makeEnv('common').spec.maxEpisodeSteps).toBe(5);
  });

  it.each([
    ['nothing.ts', /nothing.ts defines no environment: add export default defineEnv/, 'file-invalid'],
    [
      'wrong.ts',
      /wrong.ts: the default export is no environment: environment Wrong-v0: make is undefined/,
      'file-invalid',
    ],
    ['throws.ts', /throws.ts failed to load: no licence for the simulator/, 'file-threw'],
    ['absent.ts', /absent.ts: there is no such file: check the path, which begins at/, 'file-not-found'],
    ['../files', /files is a directory: name the file in it$/, 'file-invalid'],
    ['env.py:Walk', /env.py: there is no such file/, 'file-not-found'],
    [
      'own.xml',
      /own.xml: a model of MuJoCo is no environment yet: write one .* \(docs\/robots.md\)/,
      'file-invalid',
    ],
    ['env.rb', /files that end in ".rb" cannot be loaded/, 'file-invalid'],
  ])('%s says what is wrong', async (name, message, code) => {
    await expect(loadEnvFile(fixture(name))).rejects.toMatchObject({
      message: expect.stringMatching(message),
      code,
    });
  });

  it('with a syntax error, or an import that is missing, says so', async () => {
    const syntax = write('syntax.ts', 'export default {');
    await expect(loadEnvFile(syntax)).rejects.toThrow(/syntax.ts failed to load: /);
    const missing = write('missing.mjs', 'import "not-installed-anywhere";');
    await expect(loadEnvFile(missing)).rejects.toThrow(
      /missing.mjs failed to load: .*not-installed-anywhere/,
    );
  });

  it('is told from an id by its path or extension', async () => {
    for (const file of ['./my-env.ts', 'my-env.ts', 'a/b', 'C:\\x\\env.mjs', './x.ts#A-v0', 'x.js#A'])
      expect(isEnvFile(file)).toBe(true);
    for (const id of ['CartPole-v1', 'cart-pole', 'Half.Cheetah-v5']) expect(isEnvFile(id)).toBe(false);
    await expect(resolveEnv('cartpoel')).rejects.toThrow(/did you mean CartPole/);
  });

  it('may be imported by a program as well, before or after: both are one environment', async () => {
    const source = (description: string): string =>
      `export default { id: 'Twice-v0', description: '${description}', maxEpisodeSteps: 1, make() {} };`;
    const file = write('twice.mjs', source('x'));
    await loadEnvFile(file);
    const { default: imported } = (await import(`${file}?again`)) as { default: EnvDefinition };
    expect(imported).not.toBe(findEnv('twice').definition);
    expect(registerEnv(imported)).toMatchObject({ file });
    expect(findEnv('twice').definition).toBe(imported);
    // What says something else of itself is another.
    expect(() => registerEnv({ ...imported, description: 'y' })).toThrow(
      /Twice-v0 is already registered by .*twice\.mjs/,
    );
    const late = write('late.mjs', source('late').replaceAll('Twice', 'Late'));
    const { default: first } = (await import(`${late}?first`)) as { default: EnvDefinition };
    registerEnv(first);
    expect(await loadEnvFile(late)).toMatchObject({ id: 'Late-v0', file: late });
  });

  it('does not take the id of another', async () => {
    const file = write(
      'thief.mjs',
      "export default { id: 'CartPole-v1', description: 'x', maxEpisodeSteps: 1, make() {} };",
    );
    await expect(loadEnvFile(file)).rejects.toThrow(/CartPole-v1 is already registered/);
    expect(findEnv('cartpole').file).toBeNull();
  });
});
