/** Every command that is printed can be typed as printed, where it was printed, however Keel was installed. */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, symlinkSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { shellWord } from '../../src/base/typed.ts';
import { RunWriter } from '../../src/runs/index.ts';
import type { Hello, RunDetail, RunList } from '../../src/server/api.ts';
import { rowOf, spec } from '../runs/support/spec.ts';
import { ask, keepToken } from '../server/support/client.ts';
import { until } from '../support/until.ts';
import { cleanEnv, packageDir, scratch, tiny } from './support/keel.ts';

test('a word comes through a shell as it is', () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.string({ unit: 'binary', minLength: 0 }).map(text => text.replaceAll('\0', '')),
        {
          minLength: 1,
          maxLength: 20,
        },
      ),
      words => {
        const { stdout } = spawnSync('/bin/sh', ['-c', `printf '%s\\0' ${words.map(shellWord).join(' ')}`]);
        const whole = words.map(word => Buffer.from(word, 'utf8').toString('utf8'));
        expect(stdout.toString('utf8').split('\0').slice(0, -1)).toEqual(whole);
      },
    ),
    { numRuns: 30, examples: [[["it's", '$(x)', '`y`', 'a b', '', '~', '*', '-n', "'", 'a\nb', '#']]] },
  );
  expect(shellWord('runs/cartpole-2026_x.1')).toBe('runs/cartpole-2026_x.1');
});

/** A path without any `keel` on it. */
const barePath = (cleanEnv().PATH ?? '')
  .split(delimiter)
  .filter(dir => !existsSync(join(dir, 'keel')))
  .join(delimiter);

interface Installation {
  /** What is typed for `keel` there. */
  readonly program: string;
  readonly path: string;
}

/** The same package, where three ways to have it put it. */
const installations: Readonly<Record<string, (cwd: string) => Installation>> = {
  'on the path'() {
    const bin = scratch();
    symlinkSync(join(packageDir, 'bin/keel.js'), join(bin, 'keel'));
    return { program: 'keel', path: `${bin}${delimiter}${barePath}` };
  },
  'installed in the directory above'(cwd) {
    const modules = join(cwd, '..', 'node_modules');
    mkdirSync(join(modules, '.bin'), { recursive: true });
    symlinkSync(packageDir, join(modules, 'keel'));
    symlinkSync('../keel/bin/keel.js', join(modules, '.bin/keel'));
    // As npm has it for what it starts: that is no sign of what a user has.
    return { program: 'npx keel', path: `${join(modules, '.bin')}${delimiter}${barePath}` };
  },
  'elsewhere, as a checkout': () => ({ program: `node ${packageDir}/bin/keel.js`, path: barePath }),
};

describe.skipIf(process.platform === 'win32').each(Object.entries(installations))('%s', (name, install) => {
  // A directory that no shell takes as it is.
  const cwd = join(scratch(), "it's here, $HOME");
  mkdirSync(cwd, { recursive: true });
  /** One of them tries everything; what differs in the others is the program's name. */
  const isAll = name === 'elsewhere, as a checkout';
  const { program, path } = install(cwd);
  const env = { ...cleanEnv(), PATH: path };

  /** What a command that was given as words says. */
  function keel(...args: string[]) {
    return spawnSync(process.execPath, [join(packageDir, 'bin/keel.js'), ...args], {
      cwd,
      env,
      encoding: 'utf8',
    });
  }

  /** Types a line into a shell, in a terminal of this user: without what the test has put on the path. */
  function type(command: string) {
    expect(command.startsWith(`${program} `), command).toBe(true);
    const user = name === 'on the path' ? path : barePath;
    return spawnSync('/bin/sh', ['-c', command], { cwd, env: { ...env, PATH: user }, encoding: 'utf8' });
  }

  /** What is advised below a training, by its label. */
  const advice = (stdout: string): Record<string, string> =>
    Object.fromEntries(
      [...stdout.matchAll(/^ {2}(evaluate|see it|go on|resume|train|look) +(.*)$/gm)].map(
        ([, label, command]) => [label, command],
      ),
    );

  const serving = (command: string) =>
    served(command, { cwd, path: name === 'on the path' ? path : barePath });

  test.each(isAll ? ['runs', "other runs' place"] : ["other runs' place"])(
    'after a training in %s',
    async place => {
      const trained = keel('train', 'cartpole', ...tiny(place));
      expect(trained.status, trained.stderr).toBe(0);
      const advised = advice(trained.stdout);
      expect(Object.keys(advised)).toEqual(['evaluate', 'go on', 'look']);
      const evaluated = type(advised.evaluate);
      expect(evaluated.status, evaluated.stderr).toBe(0);
      expect(evaluated.stdout).toMatch(/return .* over \d+ episodes/);
      const longer = type(advised['go on']);
      expect(longer.status, longer.stderr).toBe(0);
      expect(longer.stdout).toContain('Finished: 256 steps');
      // It has done all of it now: what is said then can be typed, too.
      const again = type(advised['go on']);
      expect(again.status).toBe(2);
      const [, on] = /steps: (.*) goes on$/m.exec(again.stderr)!;
      expect(type(on).status).toBe(0);
      const server = await serving(`${advised.look} --port 0`);
      expect((await server.get<RunList>('/api/runs')).runs).toHaveLength(1);
      // And what the page says: how this server comes back at its port, and what can be done with a run.
      const { commands } = await server.get<Hello>('/api/hello');
      const [{ id, name: runName }] = (await server.get<RunList>('/api/runs')).runs;
      const { commands: ofRun } = await server.get<RunDetail>(`/api/runs/${id}`);
      await server.end();
      const back = await serving(commands.again);
      expect(back.port).toBe(server.port);
      expect((await back.get<RunList>('/api/runs')).runs.map(run => run.name)).toEqual([runName]);
      await back.end();
      expect(commands.train).toBe(`${program} train cartpole`);
      // This run has no body, which is found out once the run is.
      expect(type(ofRun.record).stderr).toContain('cannot be drawn');
      expect(type(ofRun.render).stderr).toContain('cannot be drawn');
    },
  );

  test.runIf(isAll)('what was stopped, cloned, tried and never begun', () => {
    const stopped = RunWriter.create(spec, { root: join(cwd, 'runs'), id: 'stopped' });
    stopped.row(rowOf(1));
    stopped.end('stopped', 'x');
    const cloned = keel('clone', 'cluster', '--steps', '2000', '--epochs', '1', '--run-dir', 'my clones');
    expect(cloned.status, cloned.stderr).toBe(0);
    const { train } = advice(cloned.stdout);
    expect(train).toContain(`train `);
    const trained = type(`${train} --steps 4096`);
    expect(trained.status, trained.stderr).toBe(0);
    const preflight = keel('preflight', 'cartpole', '--set', 'hidden=[8, 8]');
    const fromPreflight = type(`${advice(preflight.stdout).train} --steps 256`);
    expect(fromPreflight.status, fromPreflight.stderr).toBe(0);
    const empty = keel('runs', '--run-dir', 'none').stdout.split('\n').at(-2)!.trim();
    expect(type(`${empty} --steps 256`).status).toBe(0);
    const taken = keel('fork', 'last', '--id', 'stopped', '--steps', '512');
    expect(taken.status).toBe(1);
    const [, resume] = /`(.*)`/.exec(taken.stderr)!;
    expect(resume).toBe(`${program} resume stopped`);
  });

  test.runIf(isAll)('the doctor: the change that it advises, and more on a rule', () => {
    const sick = tiny(
      'sick',
      ...['steps=12800', 'learningRate=0.05', 'guard=null', 'epochs=10'].flatMap(set => ['--set', set]),
    );
    expect(keel('train', 'cartpole', ...sick, '--set', 'checkpointEvery=1000').status).toBe(0);
    const { stdout } = keel('doctor', 'sick');
    const [, changes] = /^Change this\n((?: {4}.*\n)+)/m.exec(stdout)!;
    // A line that goes on after a backslash is one, as in a shell.
    const lines = changes.replaceAll('\\\n', '').trim().split(/\n */);
    // Below a command there may be a word on why.
    const commands = lines.filter(line => line.startsWith(`${program} `));
    expect(commands.length).toBeGreaterThan(1);
    for (const change of commands) {
      const changed = type(`${change} --steps 512`);
      expect(changed.status, changed.stderr).toBe(0);
    }
    // Beside it where there is room, else below it.
    const [, more] = /More on this:\s+(.*)$/s.exec(stdout)!;
    const explained = type(more.replaceAll('\\\n', '').trim());
    expect(explained.status, explained.stderr).toBe(0);
    const [, all] = /[:;] (\S[^:;]*) shows all/.exec(keel('doctor', '--explain', 'no-such-rule').stderr)!;
    expect(type(all).status).toBe(0);
  });

  test('examples of the help', () => {
    for (const args of [[], ['runs', 'list'], ['config']]) {
      const { stdout } = keel(...args, '--help');
      const examples = [...stdout.matchAll(/^ {2}\$ (.*)$/gm)];
      expect(examples.length).toBeGreaterThan(0);
      for (const [, line] of examples) expect(`${line} `.startsWith(`${program} `), line).toBe(true);
    }
    const [, config] = /config file:\n {2}(.*);/.exec(keel('config', '--help').stdout)!;
    expect(type(config).status).toBe(0);
    expect(readdirSync(cwd)).toContain('my.yaml');
    expect(type(`${program} envs`).status).toBe(0);
  });
});

/** A command that serves the page until it is ended. */
async function served(command: string, { cwd, path }: { cwd: string; path: string }) {
  const child = spawn('/bin/sh', ['-c', `exec ${command}`], {
    cwd,
    env: { ...cleanEnv(), PATH: path },
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
  });
  let said = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  const ended = new Promise<void>(done => child.on('close', () => done()));
  await until(() => said.includes('Ctrl-C ends'), `${command} serves`);
  const url = new URL(/http:\S+/.exec(said)![0]);
  keepToken(url);
  const port = Number(url.port);
  return {
    port,
    get: async <T>(path: string): Promise<T> => (await ask(port, { path })).json<T>(),
    /** As Ctrl-C does: npx and what it has started are one group. */
    async end() {
      process.kill(-child.pid!, 'SIGINT');
      await ended;
    },
  };
}
