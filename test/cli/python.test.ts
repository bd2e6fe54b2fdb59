/** Environments in Python from the command line: which Python, the commands that take one, and whose code runs. */
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readRows } from '../../src/runs/index.ts';
import { python } from '../envs/python/support/files.ts';
import { keel as asUser, scratch, startKeel, tiny } from './support/keel.ts';

const root = scratch();
const here = join(root, 'here');
mkdirSync(here);
process.env.KEEL_CONFIG_DIR = join(root, 'settings');
const keel = (args: readonly string[], env: Record<string, string> = {}) => asUser(args, { cwd: here, env });

/** Says which Python has made it: its prefix is that of its virtual environment. */
writeFileSync(
  join(here, 'count.py'),
  `
import os, sys
from keel import spaces

class Count:
    observation_space = spaces.Box(0, 20, (1,))
    action_space = spaces.Discrete(2)

    def __init__(self, size=8):
        self.size = size
        with open(${JSON.stringify(join(root, 'made'))}, "w") as file:
            file.write("\\n".join([sys.prefix, os.environ.get("SDL_AUDIODRIVER", ""), ":".join(sys.path)]))

    def reset(self, *, seed=None, options=None):
        self.t = 0
        return [0.0], {}

    def step(self, action):
        self.t += 1
        return [float(self.t)], float(action), self.t >= self.size, False, {"t": self.t}

class Drifts(Count):
    started = 0

    def reset(self, *, seed=None, options=None):
        Drifts.started += 1
        self.t = 0
        return [float(Drifts.started % 7)], {}
`,
);
const made = (): string[] => readFileSync(join(root, 'made'), 'utf8').split('\n');
const madeBy = (): string => made()[0];

/** As \`python3 -m venv\` lays one out. */
function venv(dir: string): string {
  mkdirSync(join(dir, 'bin'), { recursive: true });
  symlinkSync(python, join(dir, 'bin', 'python'));
  writeFileSync(join(dir, 'pyvenv.cfg'), 'home = /usr/bin\ninclude-system-site-packages = true\n');
  return dir;
}

test('the Python that is named, else that of the active virtual environment, else that of .venv, else of venv', async () => {
  const check = ['check-env', 'count.py:Count', '--steps', '20'];
  const [named, active] = [venv(join(root, 'named')), venv(join(root, 'active'))];
  const plain = { VIRTUAL_ENV: '' };
  expect((await keel([...check, '--python', python], plain)).code).toBe(0);
  expect(madeBy()).toBe('/usr');
  for (const name of ['venv', '.venv']) {
    venv(join(here, name));
    expect((await keel(check, plain)).code).toBe(0);
    expect(madeBy()).toBe(join(here, name));
  }
  expect((await keel(check, { VIRTUAL_ENV: active })).code).toBe(0);
  expect(madeBy()).toBe(active);
  const both = await keel([...check, '--python', join(named, 'bin/python')], { VIRTUAL_ENV: active });
  expect([both.code, madeBy()]).toEqual([0, named]);
});

test('what a script sets that stands before Python is set for its environments; what is no Python is refused', async () => {
  const script = (name: string, text: string): string => {
    const path = join(root, name);
    writeFileSync(path, `#!/bin/sh\n${text}\n`, { mode: 0o755 });
    return path;
  };
  const check = (program: string) =>
    keel(['check-env', 'count.py:Count', '--steps', '20', '--python', program]);
  const wrapper = script('wrapper', `PYTHONPATH=${join(root, 'beside')} exec ${python} "$@"`);
  expect((await check(wrapper)).code).toBe(0);
  expect(made()[2].split(':')).toContain(join(root, 'beside'));
  const fails = await check(script('fails', 'exit 3'));
  expect([fails.code, fails.stdout.replaceAll(/\s+/g, ' ')]).toEqual([
    1,
    expect.stringContaining('fails is no Python: it ended with exit code 3'),
  ]);
});

test('an environment makes no sound, unless its user wants it to', async () => {
  const check = ['check-env', 'count.py:Count', '--steps', '20', '--python', python];
  for (const [env, driver] of [
    [{}, 'dummy'],
    [{ SDL_AUDIODRIVER: 'disk' }, 'disk'],
  ] as const) {
    // A process of its own: a child of Python takes the environment that its process began with.
    expect((await startKeel(check, { cwd: here, env }).done).code).toBe(0);
    expect(made()[1]).toBe(driver);
  }
});

test('check-env, preflight, train, eval and resume take one; a copy of its run runs nothing', async () => {
  const flags = ['--python', python];
  const drifts = await keel(['check-env', 'count.py:Drifts', ...flags]);
  expect([drifts.code, drifts.stdout + drifts.stderr]).toEqual([1, expect.stringContaining('seed')]);

  const preflight = await keel(['preflight', './count.py:Count', ...tiny(join(root, 'none')), ...flags]);
  expect(preflight.code, preflight.stdout + preflight.stderr).toBe(0);

  const runs = join(here, 'runs');
  const train = ['train', './count.py:Count', '--env-args', '{"size": 12}', ...tiny(runs), ...flags];
  const { code, stderr } = await keel([...train, '--set', 'envOptions.info=t']);
  expect([code, stderr]).toEqual([0, expect.any(String)]);
  const [id] = readdirSync(runs);
  const dir = join(runs, id);
  const rows = readRows(dir).items;
  expect(rows.at(-1)).toMatchObject({ 'train/step': 128, 'episode/length': 12 });
  expect(rows.at(-1)!['env/t']).toBeCloseTo(6.5, 5); // the mean of 1 to 12

  const evaluated = await keel(['eval', dir, '--episodes', '2', '--json']);
  expect(evaluated.code, evaluated.stderr).toBe(0);
  const resumed = await keel(['resume', dir, '--steps', '192', '--exit']);
  expect(resumed.code, resumed.stderr).toBe(0);
  expect(readRows(dir).items.at(-1)).toMatchObject({ 'train/step': 192 });

  // Whoever has not trained it has not trusted it either.
  const stranger = { KEEL_CONFIG_DIR: join(root, 'stranger') };
  const refused = await keel(['eval', dir], stranger);
  expect([refused.code, refused.stdout]).toEqual([2, '']);
  expect(refused.stderr).toContain('count.py');
  expect(refused.stderr).toContain('--trust');
}, 120_000);
