/** `keel train --queue`: one run whose shards are collected by the workers of a queue, to the bits of one thread. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { listCheckpoints } from '../../src/runs/checkpoint.ts';
import { readRows, readTrajectory } from '../../src/runs/log.ts';
import { keel, scratch, startKeel, tiny } from '../cli/support/keel.ts';
import { startRedis } from '../support/redis.ts';
import { until } from '../support/until.ts';

const cwd = scratch();
const redis = await startRedis();
const train = (name: string, ...more: string[]): string[] => [
  ...['train', 'cartpole', ...tiny(name, '--set', 'steps=640', '--set', 'shards=2', '--seed', '4')],
  ...more,
];
const runIn = (name: string): string => join(cwd, name, readdirSync(join(cwd, name))[0]);
// The directory of runs is there a moment before the first of them.
const hasRun = (name: string): boolean =>
  existsSync(join(cwd, name)) && readdirSync(join(cwd, name)).length > 0;
const weightsOf = (name: string): string =>
  readFileSync(join(listCheckpoints(runIn(name)).at(-1)!.dir, 'policy.safetensors')).toString('base64');

async function worker() {
  const started = startKeel(['worker', '--queue', redis.url, '--jobs', '1'], { cwd });
  await until(() => started.output.stdout.includes('takes jobs from'), 'a worker to start');
  return started;
}

test('two workers, one of them killed: the weights and rows of one thread', async () => {
  const calm = await keel(train('calm', '--set', 'collectors=0'), { cwd });
  expect(calm.code, calm.stderr).toBe(0);

  const [first, second] = await Promise.all([worker(), worker()]);
  const { done, output } = startKeel(train('queued', '--queue', redis.url), { cwd });
  await until(() => hasRun('queued') && readRows(runIn('queued')).items.length > 0, 'the first row');
  first.child.kill('SIGKILL');
  const ended = await done;
  expect(ended.code, ended.stderr).toBe(0);
  expect(output.stdout).toContain('note: shards are collected by');
  expect(weightsOf('queued')).toBe(weightsOf('calm'));
  expect(readTrajectory(runIn('queued')).rows).toEqual(readTrajectory(runIn('calm')).rows);

  // It goes on at the queue, too, and the worker that is left ends in peace.
  const more = await keel(['resume', runIn('queued'), '--steps', '768', '--queue', redis.url], { cwd });
  expect(more.code, more.stderr).toBe(0);
  const longer = await keel(['resume', runIn('calm'), '--steps', '768'], { cwd });
  expect(longer.code, longer.stderr).toBe(0);
  expect(weightsOf('queued')).toBe(weightsOf('calm'));
  second.child.kill('SIGINT');
  expect(await second.done).toMatchObject({ code: 0, stderr: '' });
});

test.each<[string[], RegExp]>([
  [['train', 'cartpole', '--queue', 'redis://h'], /shards 1 leaves nothing for others to collect/],
  [['train', 'arithmetic', '--queue', 'redis://h'], /grpo has no shards that others could collect/],
  [train('none', '--queue', 'localhost:1'), /the address of the queue cannot be used/],
  [
    train('none', '--queue', 'redis://h', '--set', 'collectors=2'),
    /collectors has no effect where a queue collects/,
  ],
  [
    ['train', 'cartpole', '--seeds', '0..1', '--queue', 'redis://h'],
    /--queue of train is for the shards of one run/,
  ],
])('keel %j is wrong use', async (args, says) => {
  const { code, stderr } = await keel(args, { cwd });
  expect(stderr).toMatch(says);
  expect(stderr.trimEnd().split('\n')).toHaveLength(1);
  expect(code).toBe(2);
  expect(existsSync(join(cwd, 'none'))).toBe(false);
});

test('a Redis that is not there is said before anything is made', async () => {
  const { code, stderr } = await keel(train('none', '--queue', 'redis://127.0.0.1:1'), { cwd });
  expect(stderr).toMatch(/^keel: cannot use Redis at redis:\/\/127\.0\.0\.1:1: .*ECONNREFUSED.*\n$/);
  expect(code).toBe(1);
  expect(existsSync(join(cwd, 'none'))).toBe(false);
});
