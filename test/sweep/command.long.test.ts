/** `keel worker` as a process: takes jobs until Ctrl-C, and lists what nobody could do. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { keel, scratch, startKeel } from '../cli/support/keel.ts';
import { compiled } from '../support/compiled.ts';
import { startRedis } from '../support/redis.ts';
import { until } from '../support/until.ts';
import { tinyJob } from './support/jobs.ts';

const { openQueuePlace } =
  await compiled<typeof import('../../src/sweep/places/queue.ts')>('sweep/places/queue');
const password = 'plugh-xyzzy';
const redis = await startRedis({ password });
const root = scratch();

test('takes jobs until Ctrl-C, with the password from the environment', async () => {
  const env = { KEEL_REDIS_PASSWORD: password };
  const { child, done, output } = startKeel(['worker', '--queue', redis.url, '--jobs', '1'], {
    env,
    cwd: root,
  });
  await until(() => output.stdout.includes('takes jobs from'), 'the worker to start');
  expect(output.stdout).toContain(`takes jobs from ${redis.url}, 1 run at once`);
  const place = await openQueuePlace(redis.url.replace('//', `//:${password}@`), {
    study: 's',
    runs: join(root, 'runs'),
    times: { pollMs: 100 },
  });
  expect(await place.run(tinyJob('done'))).toMatchObject({ status: 'done', finished: true });
  await place.close();
  let stdout = '';
  // A worker says how many it has done with its next sign of life.
  await until(
    async () => {
      const looked = await keel(['worker', '--queue', redis.url, '--failed', '--json'], { env });
      expect(looked.code).toBe(0);
      ({ stdout } = looked);
      return JSON.parse(stdout).workers[0].done === 1;
    },
    'the worker to say what it has done',
    500,
  );
  expect(JSON.parse(stdout)).toMatchObject({ address: redis.url, workers: [{ jobs: 1 }], failed: [] });
  const shown = await keel(['worker', '--queue', redis.url, '--failed'], { env });
  expect(shown.stdout).toContain('0 waiting, 0 under way, 0 failed; workers: 1');
  child.kill('SIGINT');
  const ended = await done;
  expect(ended).toMatchObject({ code: 0, stderr: '' });
  expect(ended.stdout).toContain('done at step 256');
  expect(ended.stdout + stdout).not.toContain(password);
});

test.each([
  [[], 'a worker needs a queue: --queue redis://host:6379'],
  [['--queue', 'redis://h', '--jobs', '0'], '--jobs 0 does nothing'],
  [['--queue', 'localhost:6379'], 'the address of the queue cannot be used'],
  [['--queue', 'redis://h', '--file', 'none.ts'], 'none.ts is no file that can be read'],
  [['--queue', 'redis://h', '--json'], '--json goes with --failed'],
])('keel worker %j says what is wrong, as wrong use', async (args, says) => {
  const { code, stderr } = await keel(['worker', ...args], { cwd: root });
  expect(stderr).toContain(says);
  expect(code).toBe(2);
});

test('a Redis that is not there, or wants another password, is said in a line', async () => {
  const none = await keel(['worker', '--queue', 'redis://127.0.0.1:1'], { cwd: root });
  expect(none.stderr).toMatch(/^keel: cannot use Redis at redis:\/\/127\.0\.0\.1:1: .*ECONNREFUSED.*\n$/);
  const closed = await keel(['worker', '--queue', redis.url.replace('//', '//:wrong-one@')], { cwd: root });
  expect(closed.stderr).toMatch(
    /it wants another user or password: KEEL_REDIS_USERNAME, KEEL_REDIS_PASSWORD\n$/,
  );
  expect(closed.stderr).not.toContain('wrong-one');
  expect([none.code, closed.code]).toEqual([1, 1]);
});
