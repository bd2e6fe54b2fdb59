/** Whose code runs: what a run directory names is not run unless its user named it or has trusted that run. */
import {
  appendFileSync,
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { basename, join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { compiled } from '../support/compiled.ts';
import { changeManifest, type HostileRun, hostileRuns } from '../support/hostile-run.ts';
import { keel as asUser, type Outcome, scratch, tiny } from './support/keel.ts';

const root = scratch();
const { envFile, make, ran, mark } = hostileRuns(root);
const cwd = join(root, 'here');
mkdirSync(cwd);

/** Of a user who has trusted nothing yet. */
const settings = join(root, 'settings');
process.env.KEEL_CONFIG_DIR = settings;
const trusted = join(settings, 'trusted-runs');
const keel = (...args: string[]): Promise<Outcome> => asUser(args, { cwd });
const library = compiled<typeof import('../../src/algos/runs.ts')>('algos/runs');

function expectRefused({ code, stdout, stderr }: Outcome, run: HostileRun, why = 'would run'): void {
  expect({ ran: ran(), code, stdout }, stderr).toEqual({ ran: false, code: 2, stdout: '' });
  expect(stderr).toContain(`keel: ${run.code} ${why}`);
  expect(stderr).toContain(run.dir);
  expect(stderr).toContain('--trust');
}

test('no command runs a file that a manifest names; with --trust it does, and that is remembered', async () => {
  const run = make('named', envFile('named.mjs'));
  const runs = ['--run-dir', join(root, 'runs')];
  for (const args of [
    ['eval', run.dir],
    ['eval', run.dir, '--json'],
    ['eval', 'named', ...runs],
    ['export', run.dir],
    ['play', run.dir, '--no-open'],
    ['record', run.dir],
    ['render', run.dir],
    ['resume', run.dir],
    ['fork', run.dir],
  ]) {
    const outcome = await keel(...args);
    expectRefused(outcome, run);
    expect(outcome.stderr, args.join(' ')).toContain('--defined-in');
  }
  expect(readdirSync(join(root, 'runs'))).toEqual(['named']);
  expect(existsSync(trusted)).toBe(false);

  expect(await keel('eval', run.dir, '-n', '1', '--trust')).toMatchObject({ code: 0, stderr: '' });
  expect(ran()).toBe(true);
  // It is asked for no more: neither here nor by a link to it.
  expect(await keel('export', run.dir)).toMatchObject({ code: 0, stderr: '' });
  const link = join(root, 'link');
  symlinkSync(run.dir, link);
  expect(await keel('eval', link, '-n', '1')).toMatchObject({ code: 0, stderr: '' });
  // Nobody else may read or write what is remembered.
  const [entry] = readdirSync(trusted);
  const modes = [settings, trusted, join(trusted, entry)].map(path => statSync(path).mode & 0o777);
  expect(modes).toEqual([0o700, 0o700, 0o600]);

  // A copy is another run.
  const copy = { ...run, dir: join(root, 'runs', 'copy') };
  cpSync(run.dir, copy.dir, { recursive: true });
  expectRefused(await keel('eval', copy.dir), copy);
  // Another field is another question, and so is another content.
  changeManifest(run.dir, ({ config }) => {
    config.env = `${run.code}#namedmjs-v0`;
  });
  expectRefused(await keel('eval', run.dir), run);
  changeManifest(run.dir, ({ config }) => {
    config.env = run.code;
  });
  appendFileSync(run.code, '// changed\n');
  const changed = await keel('resume', run.dir);
  expectRefused(changed, run, 'has changed since it was last trusted');
  expect(changed.stderr).toContain('if the change is yours');
  expect(await keel('export', run.dir, '--trust')).toMatchObject({ code: 0, stderr: '' });
  expect(await keel('export', run.dir)).toMatchObject({ code: 0, stderr: '' });
});

test('however a manifest writes a file, the same one is asked about', async () => {
  const code = envFile('odd name.mjs');
  const link = join(root, 'linked.mjs');
  symlinkSync(code, link);
  const ways = {
    url: pathToFileURL(code).href,
    id: `${code}#oddnamemjs-v0`,
    relative: relative(cwd, code),
    link,
    urlAndId: `${pathToFileURL(code).href}#oddnamemjs-v0`,
  };
  for (const [name, value] of Object.entries(ways)) {
    const run = make(name, code, ({ config }) => {
      config.env = value;
    });
    expectRefused(await keel('eval', run.dir), run);
  }
  // What was trusted here is not what the same words and the same text mean elsewhere.
  const near = make('near', code, ({ config }) => {
    config.env = relative(cwd, code);
  });
  expect(await keel('export', near.dir, '--trust')).toMatchObject({ code: 0 });
  expect(ran()).toBe(true);
  expect(await keel('export', near.dir)).toMatchObject({ code: 0 });
  const elsewhere = join(root, 'else', 'where');
  mkdirSync(elsewhere, { recursive: true });
  const twin = { ...near, code: join(root, 'else', basename(code)) };
  cpSync(code, twin.code);
  expectRefused(await asUser(['export', near.dir], { cwd: elsewhere }), twin);
  for (const [name, field] of [
    ['task', 'config.task'],
    ['id', 'environment.id'],
  ]) {
    const run = make(`in-${name}`, code, ({ config, environment }) => {
      delete config.env;
      if (name === 'task') config.task = code;
      else environment.id = code;
    });
    const outcome = await keel('eval', run.dir);
    expectRefused(outcome, run);
    expect(outcome.stderr).toContain(`(${field})`);
  }
  // What never ends, or would take hours to read, is not waited for.
  for (const [name, path] of [
    ['endless', '/dev/zero'],
    ['huge', '/proc/kcore'],
  ])
    expect(await keel('eval', make(name, path).dir, '--trust')).toMatchObject({ code: 2 });
  const remote = make('remote', 'file://other-machine/env.mjs');
  expect(await keel('eval', remote.dir)).toMatchObject({ code: 2 });
  const gone = make('gone', join(root, 'gone.mjs'));
  const { code: exit, stderr } = await keel('eval', gone.dir, '--trust');
  expect(exit).toBe(2);
  expect(stderr).toMatch(/gone\.mjs is no file here that can be run, .* --defined-in/);
});

test('who names the file on the command line need not trust the run', async () => {
  const run = make('mine', envFile('mine.mjs'));
  const own = ['--run-dir', join(root, 'runs'), '--checkpoint', 'last'];
  const before = readdirSync(trusted);
  expect(await keel('eval', run.dir, '-n', '1', '--defined-in', run.code)).toMatchObject({ code: 0 });
  expect(ran()).toBe(true);
  for (const command of ['eval', 'export'])
    expect(await keel(command, relative(cwd, run.code), ...own)).toMatchObject({ code: 0, stderr: '' });
  // That was for once.
  expect(readdirSync(trusted)).toEqual(before);
  expectRefused(await keel('eval', run.dir), run);
  // The newest run of an environment may name another file than the one that is named here.
  const other = envFile('other.mjs');
  changeManifest(run.dir, ({ config }) => {
    config.env = other;
  });
  expect(await keel('eval', run.code, ...own, '-n', '1')).toMatchObject({ code: 0, stderr: '' });
  expect(ran()).toBe(false);
});

test('a run that names one of ours as its environment and a file besides runs nothing', async () => {
  const code = envFile('router.mjs');
  const named = ({ config }: { config: Record<string, unknown> }): void => {
    config.env = code;
  };
  const router = make('router', code, named, 'ppo-set-network');
  expectRefused(await keel('simulate', 'cluster', '--router', router.dir, '--requests', '10'), router);
  const pole = make('pole', code, named, 'ppo-discrete');
  const alone = join(root, 'alone');
  cpSync(pole.dir, join(alone, 'pole'), { recursive: true });
  const newest = { ...pole, dir: join(alone, 'pole') };
  for (const command of ['eval', 'export', 'record'])
    expectRefused(await keel(command, 'cartpole', '--run-dir', alone), newest);
  // Weights are data.
  const flags = tiny(join(root, 'from'), '--no-dash', '--set', 'hidden=[8]', '--json');
  expect(await keel('train', 'cartpole', '--from', pole.dir, ...flags)).toMatchObject({ code: 0 });
  expect(ran()).toBe(false);
});

test('what was made here is trusted, until it changes or is deleted', async () => {
  const own = join(root, 'own');
  const file = envFile('own.mjs');
  const count = (): number => readdirSync(trusted).length;
  const before = count();
  expect(await keel('train', file, ...tiny(own, '--no-dash', '--json'))).toMatchObject({ code: 0 });
  expect(ran()).toBe(true);
  expect(count()).toBe(before + 1);
  const [id] = readdirSync(own);
  const run = { dir: join(own, id), code: file, ran };
  const json = ['--no-dash', '--json'];
  const fork = ['fork', run.dir, '--id', 'forked', '--run-dir', own, '--steps', '192', ...json];
  expect(await keel(...fork)).toMatchObject({ code: 0 });
  expect(count()).toBe(before + 2);
  expect(await keel('eval', join(own, 'forked'), '-n', '1')).toMatchObject({ code: 0, stderr: '' });

  // A developer edits the environment: asked once a run, and then it goes on.
  appendFileSync(file, '// better\n');
  const longer = ['resume', run.dir, '--steps', '192', ...json];
  expectRefused(await keel(...longer), run, 'has changed since it was last trusted');
  expect(await keel(...longer, '--defined-in', file)).toMatchObject({ code: 0 });
  expect(await keel('eval', run.dir, '-n', '1')).toMatchObject({ code: 0, stderr: '' });

  expect(await keel('runs', 'delete', run.dir, '--yes')).toMatchObject({ code: 0 });
  expect(count()).toBe(before + 1);
  expect(await keel('preflight', file, '--json')).toMatchObject({ code: 0, stderr: '' });
  expect(count()).toBe(before + 1);
});

test('from code: refused, unless told to trust or given the file', async () => {
  const { resume, fork, openPolicy } = await library;
  // By the id that its checkpoint knows.
  const run = make('from-code', envFile('from-code.mjs', 'Switches-v0'), ({ config }, code) => {
    config.env = code;
  });
  for (const open of [resume, fork, openPolicy])
    await expect(open(run.dir)).rejects.toMatchObject({
      code: 'untrusted',
      message: expect.stringContaining(`${run.code} would run`),
    });
  const asked: string[] = [];
  const never = (untrusted: { code: readonly { path: string }[] }): boolean => {
    asked.push(...untrusted.code.map(({ path }) => path));
    return false;
  };
  await expect(openPolicy(run.dir, { trust: never })).rejects.toMatchObject({ code: 'untrusted' });
  expect(asked).toEqual([run.code]);
  // From JavaScript, anything may come.
  await expect(openPolicy(run.dir, { trust: 'no' as unknown as boolean })).rejects.toMatchObject({
    code: 'untrusted',
  });
  expect(ran()).toBe(false);
  await (await openPolicy(run.dir, { envFile: run.code })).close();
  expect(ran()).toBe(true);
  await expect(resume(run.dir)).rejects.toMatchObject({ code: 'untrusted' });
  expect((await resume(run.dir, { trust: true })).status).toBe('finished');
  await (await openPolicy(run.dir)).close();
});

test('an engine that a manifest names is not started; one that is named here is', async () => {
  const engine = join(root, 'engine.sh');
  const script = (name: string): string =>
    `#!/bin/sh\ntouch '${mark}'\nwhile read -r line; do case "$line" in uci) echo "id name ${name}"; echo uciok ;; isready) echo readyok ;; go*) exit 1 ;; quit) exit 0 ;; esac; done\n`;
  writeFileSync(engine, script('Frail'), { mode: 0o755 });
  const { train, resume, openPolicy } = await library;
  const { dir } = await train({
    task: 'chess',
    taskOptions: { engine, environmentShare: 0, searchDepth: 1 },
    preset: {},
    config: {
      ...{ layers: 1, width: 8, heads: 1, promptsPerIteration: 2, groupSize: 2, steps: 4 },
      tensorboard: false,
    },
    root: join(root, 'chess'),
  });
  expect(ran()).toBe(true);
  const run: HostileRun = { dir: join(root, 'given'), code: engine, ran };
  cpSync(dir, run.dir, { recursive: true });
  for (const args of [
    ['eval', run.dir, '-n', '1'],
    ['resume', run.dir, '--steps', '8'],
    ['fork', run.dir, '--steps', '8'],
    ['eval', 'chess', '--run-dir', root, '-n', '1'],
  ]) {
    const outcome = await keel(...args);
    expectRefused(outcome, run);
    expect(outcome.stderr).toContain('environment.options.engine');
  }
  // By its name alone it is that on the path.
  const path = process.env.PATH;
  process.env.PATH = `${root}:${path}`;
  changeManifest(run.dir, ({ environment }) => {
    environment.options = { ...(environment.options as object), engine: basename(engine) };
  });
  await expect(resume(run.dir)).rejects.toThrow(`${engine} would run`);
  process.env.PATH = path;
  await expect(resume(run.dir, { trust: true })).rejects.toThrow('engine.sh is no file here');
  expect(ran()).toBe(false);
  await (await openPolicy(run.dir, { options: { engine } })).close();
  const named = await keel('eval', run.dir, '-n', '1', '--engine', engine);
  expect(named).toMatchObject({ code: 0 });
  expect(ran()).toBe(true);

  // That of the user's own run, which an update has changed.
  writeFileSync(engine, script('Frailer'));
  chmodSync(engine, 0o755);
  await expect(resume(dir, { config: { steps: 8 } })).rejects.toThrow(`${engine} has changed since`);
  expect(ran()).toBe(false);
  await resume(dir, { config: { steps: 8 }, trust: true });
  expect(ran()).toBe(true);
});

test('settings that are damaged, or that others can write, trust nothing and say so', async () => {
  const run = make('damaged', envFile('damaged.mjs'));
  const before = readdirSync(trusted);
  expect(await keel('export', run.dir, '--trust')).toMatchObject({ code: 0 });
  expect(ran()).toBe(true);
  const entry = join(trusted, readdirSync(trusted).find(name => !before.includes(name))!);
  const whole = readFileSync(entry);
  for (const text of ['{', '[]', `{"run":"/elsewhere","code":[]}`, ' '.repeat(2 ** 19)]) {
    writeFileSync(entry, text);
    const outcome = await keel('export', run.dir);
    expectRefused(outcome, run);
    expect(outcome.stderr).toContain(entry);
  }
  writeFileSync(entry, whole);
  expect(await keel('export', run.dir)).toMatchObject({ code: 0 });
  chmodSync(entry, 0o666);
  expectRefused(await keel('export', run.dir), run);
  expect(await keel('export', run.dir, '--trust')).toMatchObject({ code: 0 });
  expect(await keel('export', run.dir)).toMatchObject({ code: 0 });
  // Where nothing can be remembered, it is asked for each time.
  const nowhere = { cwd, env: { KEEL_CONFIG_DIR: '/proc/nowhere' } };
  expect(await asUser(['export', run.dir, '--trust'], nowhere)).toMatchObject({ code: 0, stderr: '' });
  expectRefused(await asUser(['export', run.dir], nowhere), run);
});
