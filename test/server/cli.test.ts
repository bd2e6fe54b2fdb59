/** `keel dash`, `keel watch`, `keel fork` and the page beside training, as processes. */
import { createServer } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openRun } from '../../src/runs/index.ts';
import type { Hello, RunList } from '../../src/server/api.ts';
import { keel, startKeel, tiny } from '../cli/support/keel.ts';
import { ask, keepToken, until } from './support/client.ts';
import { makeForeign, makeRun, scratch } from './support/make-run.ts';

const addressIn = (text: string): URL | undefined => {
  const found = /http:\/\/\S+/.exec(text)?.[0];
  return found === undefined ? undefined : new URL(found);
};

async function serving(args: readonly string[]) {
  const started = startKeel(args);
  await until(
    () => addressIn(started.output.stdout + started.output.stderr) !== undefined,
    `${args[0]} says where it is`,
  );
  const url = addressIn(started.output.stdout + started.output.stderr)!;
  keepToken(url);
  return { ...started, url, port: Number(url.port) };
}

test('keel dash serves until a signal, and ends with 0', async () => {
  const root = scratch();
  makeRun(root, 'one', 8).writer.end('finished');
  const { child, done, port, output } = await serving(['dash', root, '--port', '0']);
  const hello = (await ask(port, { path: '/api/hello' })).json<Hello>();
  expect(hello.roots).toEqual([root]);
  expect((await ask(port, { path: '/api/runs' })).json<RunList>().runs).toHaveLength(1);
  await until(() => output.stdout.includes('Ctrl-C ends'), 'it says what there is');
  expect(output.stdout).toMatch(/: 1 run(, searching)?;/);
  child.kill('SIGINT');
  expect(await done).toMatchObject({ code: 0, stderr: '' });
});

test('keel dash counts what is deeper in the tree', async () => {
  const root = scratch();
  makeRun(join(root, 'deep'), 'one', 4).writer.end('finished');
  makeForeign(join(root, 'others'), 'ppo_1', 4);
  const { child, done, output } = await serving(['dash', root, '--port', '0']);
  await until(() => output.stdout.includes('Ctrl-C ends'), 'it says what there is');
  // On a slow machine it may say that it still looks, but never that there is nothing.
  expect(output.stdout).toMatch(/: (2 runs|searching|1 run, searching); Ctrl-C/);
  child.kill('SIGINT');
  await done;
  const empty = await serving(['dash', scratch(), '--port', '0']);
  await until(() => empty.output.stdout.includes('Ctrl-C ends'), 'it says that there is nothing');
  expect(empty.output.stdout).toMatch(/: (no run yet|searching); Ctrl-C/);
  empty.child.kill('SIGINT');
  await empty.done;
});

test('keel watch shows the log of another trainer', async () => {
  const root = scratch();
  const { dir } = makeForeign(root, 'ppo_1', 12);
  const { child, done, port, url } = await serving(['watch', dir, '--port', '0', '--read-only']);
  await until(async () => {
    const [run] = (await ask(port, { path: '/api/runs' })).json<RunList>().runs;
    return run?.trainer === 'stable-baselines3' && run.verdict !== null;
  }, 'it is judged');
  const [run] = (await ask(port, { path: '/api/runs' })).json<RunList>().runs;
  expect(run.name).toBe('ppo_1');
  expect(['', `#/runs/${run.id}`]).toContain(url.hash); // none only where the search takes longer than 3 s
  expect((await ask(port, { path: '/api/hello' })).json<Hello>().canAct).toBe(false);
  child.kill('SIGTERM');
  expect((await done).code).toBe(0);
});

test('a port that is taken, and another host with its token', async () => {
  const taken = createServer();
  await new Promise<void>(done => taken.listen(0, '127.0.0.1', done));
  const { port: wanted } = taken.address() as { port: number };
  const first = await serving(['dash', scratch(), '--port', String(wanted)]);
  expect(first.port).not.toBe(wanted);
  expect(first.output.stderr).toContain(`port ${wanted} is taken`);
  first.child.kill('SIGINT');
  await first.done;
  taken.close();
  const second = await serving(['dash', scratch(), '--port', '0', '--host', '0.0.0.0']);
  expect(second.url.searchParams.get('token')).toMatch(/^.{20,}$/);
  expect(second.output.stdout.split('token=')).toHaveLength(2);
  const none = { authorization: '' };
  expect((await ask(second.port, { path: '/api/hello', headers: none })).status).toBe(401);
  // One a user: the one before it, of this machine alone, had the same.
  expect(first.url.searchParams.get('token')).toBe(second.url.searchParams.get('token'));
  expect(second.output.stderr).toBe('');
  second.child.kill('SIGINT');
  await second.done;
});

test.each([
  [['dash', 'no-such-run'], /neither a directory nor a run/],
  [['dash', '--port', '70000'], /not a port/],
  [['dash', '--token', 'short'], /at least 8/],
  [['train', 'cartpole', '--token', 'a b c d e f'], /at least 8/],
  [['dash', '--no-token', '--host', '0.0.0.0'], /--no-token with --host 0\.0\.0\.0 .*leave one of them out/],
  [['dash', '--webhook', 'file:///x'], /http or https/],
  [['watch', 'no-such-directory'], /does not exist/],
  [['watch'], /missing required argument/],
  [['fork', 'nothing-here'], /no run/],
])('%s is refused with one line and 2', async (args, message) => {
  const { code, stderr } = await keel(args as string[], { cwd: scratch() });
  expect(code).toBe(2);
  expect(stderr).toMatch(message as RegExp);
  expect(stderr.trim().split('\n')).toHaveLength(1);
});

test('keel train --dash shows the run while it is trained, and ends with it', async () => {
  const root = scratch();
  const { done, port, output, url } = await serving([
    'train',
    'cartpole',
    ...tiny(root, '--set', 'steps=60000', '--dash', '--port', '0', '--set', 'checkpointEvery=50'),
  ]);
  expect(output.stderr).toMatch(/^page: http:\/\/127\.0\.0\.1:\d+\/\?token=[\w-]{32}#\/runs\/[\w-]{16}$/m);
  await until(async () => {
    const [run] = (await ask(port, { path: '/api/runs' })).json<RunList>().runs;
    return run !== undefined && run.step > 0 && run.state === 'running';
  }, 'it is on the page');
  const [shown] = (await ask(port, { path: '/api/runs' })).json<RunList>().runs;
  expect(url.hash).toBe(`#/runs/${shown.id}`);
  const { code } = await done;
  expect(code).toBe(0);
  await expect(ask(port, { path: '/api/hello' })).rejects.toThrow();
});

test('keel train without a terminal has no page unless asked', async () => {
  const { code, stderr, stdout } = await keel(['train', 'cartpole', ...tiny(scratch())]);
  expect(code).toBe(0);
  expect(stdout + stderr).not.toContain('http://');
});

test('keel fork from a checkpoint', async () => {
  const root = scratch();
  await keel(['train', 'cartpole', ...tiny(root)]);
  const { code, stdout } = await keel([
    ...['fork', 'last', '--run-dir', root, '--checkpoint', '64', '--id', 'child'],
    ...['--set', 'learningRate=1e-4', '--steps', '256'],
  ]);
  expect(code).toBe(0);
  expect(stdout).toContain('step 64 of 256');
  const { manifest } = openRun(join(root, 'child'));
  expect(manifest).toMatchObject({
    status: 'finished',
    step: 256,
    parent: { step: 64 },
    config: { learningRate: 1e-4 },
  });
});
