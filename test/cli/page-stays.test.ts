/** In a terminal the page stays when training has ended, until a signal; elsewhere, and with --exit, it goes with it. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Hello, RunList } from '../../src/server/api.ts';
import { ask, keepToken } from '../server/support/client.ts';
import { fixture, packageDir, scratch, startKeel, tiny } from './support/keel.ts';
import { CTRL_C, hasScript, openTerminal } from './support/terminal.ts';

const STAYS = 'Ctrl-C ends it';
const onAnyPort = ['--port', '0'];

/** The server whose address is on the screen. */
function serverOf(screen: string) {
  const url = new URL(/The page stays open: (http:\S+)/.exec(screen)![1]);
  keepToken(url);
  const get = async <T>(path: string): Promise<T> => (await ask(Number(url.port), { path })).json<T>();
  return { port: Number(url.port), get };
}

const onlyRun = async (server: ReturnType<typeof serverOf>) =>
  (await server.get<RunList>('/api/runs')).runs[0];

test.skipIf(!hasScript)('it shows the run as finished, until Ctrl-C, which ends with 0', async () => {
  const cwd = scratch();
  const terminal = openTerminal(cwd, ['train', 'cartpole', ...tiny('runs'), ...onAnyPort]);
  await terminal.shows(STAYS);
  expect(terminal.screen.indexOf('Finished')).toBeGreaterThan(0);
  expect(terminal.screen.indexOf('Finished')).toBeLessThan(terminal.screen.indexOf('The page stays open'));
  const server = serverOf(terminal.screen);
  expect(await onlyRun(server)).toMatchObject({ state: 'finished', step: 128, reason: null });
  const { commands } = await server.get<Hello>('/api/hello');
  expect(commands.again).toBe(`keel dash --port ${server.port}`);
  terminal.type(CTRL_C);
  expect(await terminal.done, terminal.screen).toBe(0);
  await expect(onlyRun(server)).rejects.toThrow('ECONNREFUSED');
});

test.skipIf(!hasScript)(
  'a run that goes on, and a fork, stay as well; so does SIGTERM end them',
  async () => {
    const cwd = scratch();
    await startKeel(['train', 'cartpole', ...tiny('runs')], { cwd }).done;
    for (const args of [
      ['resume', 'last', '--steps', '256'],
      ['fork', 'last', '--steps', '320'],
    ]) {
      const terminal = openTerminal(cwd, [...args, ...onAnyPort]);
      await terminal.shows(STAYS);
      terminal.kill('SIGTERM');
      expect(await terminal.done, terminal.screen).toBe(0);
    }
  },
);

test.skipIf(!hasScript)('--exit, --no-dash and --json end with the training', async () => {
  const cwd = scratch();
  for (const flags of [['--exit'], ['--no-dash'], ['--json', '--dash'], ['--no-dash', '--exit']]) {
    const terminal = openTerminal(cwd, ['train', 'cartpole', ...tiny('runs', ...flags), ...onAnyPort]);
    expect(await terminal.done, terminal.screen).toBe(0);
    expect(terminal.screen).not.toContain('stays open');
  }
});

test.skipIf(!hasScript)('Ctrl-C while it trains stops the run, and the page with it', async () => {
  const cwd = scratch();
  const terminal = openTerminal(cwd, [
    ...['train', 'cartpole', ...tiny('runs', '--set', 'steps=1e7'), ...onAnyPort],
  ]);
  await terminal.shows('saved checkpoint');
  terminal.type(CTRL_C);
  expect(await terminal.done, terminal.screen).toBe(130);
  expect(terminal.screen).toContain('Stopped');
  expect(terminal.screen).not.toContain('stays open');
});

test.skipIf(!hasScript)(
  'a training that failed is said, shown as failed, and ends with its code',
  async () => {
    const cwd = scratch();
    const args = ['train', `${fixture('broken-env.ts')}#NanEnv-v0`, ...tiny('runs'), ...onAnyPort];
    const terminal = openTerminal(cwd, args);
    await terminal.shows(STAYS);
    expect(terminal.screen).toMatch(/keel: .*NaN/);
    const run = await onlyRun(serverOf(terminal.screen));
    expect(run).toMatchObject({ state: 'failed', reason: expect.stringContaining('NaN') });
    terminal.type(CTRL_C);
    expect(await terminal.done, terminal.screen).toBe(1);
    const piped = await startKeel([...args, '--dash'], { cwd }).done;
    expect(piped).toMatchObject({ code: 1, stderr: expect.stringMatching(/keel: .*NaN/) });
  },
);

test('--open where there is no browser trains all the same', async () => {
  const cwd = scratch();
  const { code, stderr } = await startKeel(
    ['train', 'cartpole', ...tiny('runs', '--open'), ...onAnyPort],
    // Neither a program that opens addresses nor a display.
    { cwd, env: { PATH: join(packageDir, 'on-path'), DISPLAY: '', WAYLAND_DISPLAY: '' } },
  ).done;
  expect(code, stderr).toBe(0);
  expect(stderr).toMatch(/^page: http/m);
});
