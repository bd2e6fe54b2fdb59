/** Every command that is printed can be typed as printed, where it was printed, however Keel was installed. */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { shellWord } from '../../src/base/typed.ts';
import { RunWriter } from '../../src/runs/index.ts';
import type { Hello, RunDetail, RunList } from '../../src/server/api.ts';
import { rowOf, spec } from '../runs/support/spec.ts';
import { ask, keepToken } from '../server/support/client.ts';
import { until } from '../support/until.ts';
import { cleanEnv, keel as keelHere, packageDir, scratch, tiny } from './support/keel.ts';

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

/** Has Node say, in place of starting Keel, which words Keel is started with. */
const tellWords = join(scratch(), 'tell-words.cjs');
writeFileSync(
  tellWords,
  `const { realpathSync } = require('node:fs');
const [, program, ...words] = process.argv;
if (program !== undefined && realpathSync(program) === realpathSync(${JSON.stringify(join(packageDir, 'bin/keel.js'))})) {
  process.stdout.write(JSON.stringify(words));
  process.exit();
}\n`,
);

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
  const keel = (...args: string[]) => keelHere(args, { cwd, env: { PATH: path } });

  /** Types a line into a shell, in a terminal of this user: without what the test has put on the path. */
  function typeInShell(command: string, more: Record<string, string> = {}) {
    expect(command.startsWith(`${program} `), command).toBe(true);
    const user = name === 'on the path' ? path : barePath;
    const { status, stdout, stderr } = spawnSync('/bin/sh', ['-c', command], {
      cwd,
      env: { ...env, PATH: user, ...more },
      encoding: 'utf8',
    });
    return { code: status, stdout, stderr };
  }

  /**
   * The same, but what the shell starts only tells which words came through, which are run here: most of its time a
   * process would load the code.
   */
  async function type(command: string) {
    const { stdout, stderr } = typeInShell(command, { NODE_OPTIONS: `--require=${tellWords}` });
    expect(stdout, stderr).toMatch(/^\[/);
    return keel(...(JSON.parse(stdout) as string[]));
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
      const trained = await keel('train', 'cartpole', ...tiny(place));
      expect(trained.code, trained.stderr).toBe(0);
      const advised = advice(trained.stdout);
      expect(Object.keys(advised)).toEqual(['evaluate', 'go on', 'look']);
      // From the shell to its end, as a user has it.
      const evaluated = typeInShell(advised.evaluate);
      expect(evaluated.code, evaluated.stderr).toBe(0);
      expect(evaluated.stdout).toMatch(/return .* over \d+ episodes/);
      const longer = await type(advised['go on']);
      expect(longer.code, longer.stderr).toBe(0);
      expect(longer.stdout).toContain('Finished: 256 steps');
      // It has done all of it now: what is said then can be typed, too.
      const again = await type(advised['go on']);
      expect(again.code).toBe(2);
      const [, on] = /steps: (.*) goes on$/m.exec(again.stderr)!;
      expect((await type(on)).code).toBe(0);
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
      expect((await type(ofRun.record)).stderr).toContain('cannot be drawn');
      expect((await type(ofRun.render)).stderr).toContain('cannot be drawn');
    },
  );

  test.runIf(isAll)('what was stopped, cloned, tried and never begun', async () => {
    const stopped = RunWriter.create(spec, { root: join(cwd, 'runs'), id: 'stopped' });
    stopped.row(rowOf(1));
    stopped.end('stopped', 'x');
    const cloned = await keel(
      'clone',
      'cluster',
      '--steps',
      '2000',
      '--epochs',
      '1',
      '--run-dir',
      'my clones',
    );
    expect(cloned.code, cloned.stderr).toBe(0);
    const { train } = advice(cloned.stdout);
    expect(train).toContain(`train `);
    const trained = await type(`${train} --steps 4096`);
    expect(trained.code, trained.stderr).toBe(0);
    const preflight = await keel('preflight', 'cartpole', '--set', 'hidden=[8, 8]');
    const fromPreflight = await type(`${advice(preflight.stdout).train} --steps 256`);
    expect(fromPreflight.code, fromPreflight.stderr).toBe(0);
    const empty = (await keel('runs', '--run-dir', 'none')).stdout.split('\n').at(-2)!.trim();
    expect((await type(`${empty} --steps 256`)).code).toBe(0);
    const taken = await keel('fork', 'last', '--id', 'stopped', '--steps', '512');
    expect(taken.code, taken.stderr).toBe(2);
    const [, resume] = /`(.*)`/.exec(taken.stderr)!;
    expect(resume).toBe(`${program} resume stopped`);
  });

  test.runIf(isAll)('the doctor: the change that it advises, and more on a rule', async () => {
    const sick = tiny(
      'sick',
      ...['steps=12800', 'learningRate=0.05', 'guard=null', 'epochs=10'].flatMap(set => ['--set', set]),
    );
    expect((await keel('train', 'cartpole', ...sick, '--set', 'checkpointEvery=1000')).code).toBe(0);
    const { stdout } = await keel('doctor', 'sick');
    const [, changes] = /^Change this\n((?: {4}.*\n)+)/m.exec(stdout)!;
    // A line that goes on after a backslash is one, as in a shell.
    const lines = changes.replaceAll('\\\n', '').trim().split(/\n */);
    // Below a command there may be a word on why.
    const commands = lines.filter(line => line.startsWith(`${program} `));
    expect(commands.length).toBeGreaterThan(1);
    for (const change of commands) {
      const changed = await type(`${change} --steps 512`);
      expect(changed.code, changed.stderr).toBe(0);
    }
    // Beside it where there is room, else below it.
    const [, more] = /More on this:\s+(.*)$/s.exec(stdout)!;
    const explained = await type(more.replaceAll('\\\n', '').trim());
    expect(explained.code, explained.stderr).toBe(0);
    const [, all] = /[:;] (\S[^:;]*) shows all/.exec(
      (await keel('doctor', '--explain', 'no-such-rule')).stderr,
    )!;
    expect((await type(all)).code).toBe(0);
  });

  test('examples of the help', async () => {
    // Some of it is made when the code is loaded, so by a process of its own.
    const help = (...args: string[]): string =>
      spawnSync(process.execPath, [join(packageDir, 'bin/keel.js'), ...args, '--help'], {
        cwd,
        env,
        encoding: 'utf8',
      }).stdout;
    const ofConfig = help('config');
    for (const stdout of [help(), help('runs', 'list'), ofConfig]) {
      const examples = [...stdout.matchAll(/^ {2}\$ (.*)$/gm)];
      expect(examples.length).toBeGreaterThan(0);
      for (const [, line] of examples) expect(`${line} `.startsWith(`${program} `), line).toBe(true);
    }
    const [, config] = /config file:\n {2}(.*);/.exec(ofConfig)!;
    expect(typeInShell(config).code).toBe(0); // it writes a file by the shell
    expect(readdirSync(cwd)).toContain('my.yaml');
    expect((await type(`${program} envs`)).code).toBe(0);
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
