/** Shards on a queue: the bits of one thread, whoever collects, dies or forgets. A Redis of its own, real processes. */
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import type { ShardPlace } from '../../src/algos/ppo/shards/place.ts';
import { VERSION } from '../../src/base/version.ts';
import { endPresence, tellPresence } from '../../src/sweep/redis/presence.ts';
import { shardQueue } from '../../src/sweep/shard-queue.ts';
import { courseOf, disposeSharded, everything, sharded } from '../algos/ppo/support/sharded.ts';
import { compiled, compiledUrl } from '../support/compiled.ts';
import { startRedis } from '../support/redis.ts';
import { until } from '../support/until.ts';

// Their processes are those of the compiled package, which start sooner.
const { startShardWorker } =
  await compiled<typeof import('../../src/sweep/shard-queue.ts')>('sweep/shard-queue');
const redis = await startRedis();
const dir = mkdtempSync(join(tmpdir(), 'keel-shard-queue-'));
const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of open.splice(0)) await one.close();
});
afterAll(async () => {
  await disposeSharded();
  rmSync(dir, { recursive: true, force: true });
});

const pendulum = { env: 'Pendulum-v1', settings: everything };
async function place(): Promise<ShardPlace> {
  const made = await shardQueue({ url: redis.url });
  open.push(made);
  return made;
}
async function worker(options: object = {}): Promise<{ close(): Promise<void> }> {
  const made = await startShardWorker({ url: redis.url, lockMs: 2000, ...options });
  open.push(made);
  return made;
}
async function calm(iterations: number) {
  const trainer = await sharded(4, pendulum);
  await trainer.start();
  return courseOf(trainer, iterations);
}

it('two workers: the bits of one thread', async () => {
  await worker();
  await worker();
  const trainer = await sharded(4, { ...pendulum, place: await place() });
  await trainer.start();
  expect(await courseOf(trainer, 3)).toEqual(await calm(3));
});

it('a worker that goes away, one that comes late, a Redis that restarts and one that comes back empty', async () => {
  const first = await worker({ lockMs: 500 });
  const trainer = await sharded(4, { ...pendulum, place: await place() });
  await trainer.start();
  const one = await courseOf(trainer, 1);
  // With what it has taken: its lock runs out, and the shard goes to another.
  const next = trainer.iterate();
  await first.close();
  await worker();
  const two = (await next).row;
  await redis.restart();
  const three = (await trainer.iterate()).row;
  const fourth = trainer.iterate();
  await redis.restartEmpty();
  const four = (await fourth).row;
  const wanted = await calm(4);
  expect(one.rows[0]).toEqual(wanted.rows[0]);
  [two, three, four].forEach((row, i) => {
    for (const [key, value] of Object.entries(wanted.rows[i + 1])) expect(row[key], key).toBe(value);
  });
});

describe('environments of a file', () => {
  const file = join(dir, 'line.mjs');
  const source = (
    reward: number,
  ): string => `import { box, defineEnv, discrete, simulation } from '${compiledUrl('envs/index')}';
export default defineEnv({
  id: 'Line-v0', description: 'A line.', maxEpisodeSteps: 20,
  make: () => simulation({
    observationSpace: box({ shape: [1] }), actionSpace: discrete(2),
    start: () => ({ t: 0 }), observe: state => [Math.sin(state.t)],
    step(state, action, result) { state.t++; result.reward = ${reward} * action[0]; },
  }),
});
`;

  it('run where a file of the same content was named, and nowhere else', async () => {
    writeFileSync(file, source(1));
    const [copy, other] = [join(dir, 'copy.mjs'), join(dir, 'other.mjs')];
    writeFileSync(copy, source(1));
    writeFileSync(other, source(2));
    const refusing = await worker({ files: [other] });
    const trainer = await sharded(2, { env: file, place: await place() });
    await trainer.start();
    await expect(trainer.iterate()).rejects.toThrow(
      /^a worker refused a shard: the job runs a file, .* was not named here .*--file .*line\.mjs allows it/,
    );
    // Where another worker says that it has the file, the shard is left to it.
    const client = redis.client();
    const sha256 = createHash('sha256').update(source(1)).digest('hex');
    const presence = {
      id: 'late',
      host: 'h',
      pid: 1,
      version: VERSION,
      jobs: 1,
      doing: [],
      paused: null,
      done: 0,
    };
    await tellPresence(client, { ...presence, files: [sha256] }, 60_000);
    const patient = await sharded(2, { env: file, place: await place() });
    await patient.start();
    const iterating = patient.iterate();
    await until(
      async () => (await client.keys('keel:shards-*:delayed')).length > 0,
      'a shard to be handed back',
    );
    await worker({ files: [other, copy] });
    await iterating;
    await endPresence(client, 'late');
    await refusing.close();
    const again = await sharded(2, { env: file, place: await place() });
    await again.start();
    const here = await sharded(2, { env: file });
    await here.start();
    expect(await courseOf(again, 2)).toEqual(await courseOf(here, 2));
  });
});
