/** Workers on a Redis keep the contract of places, whatever befalls them and Redis. */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { Queue } from 'bullmq';
import { afterAll, afterEach, expect, test } from 'vitest';
import { VERSION } from '../../src/base/version.ts';
import { lockHolder } from '../../src/runs/lock.ts';
import { openRun } from '../../src/runs/store.ts';
import { verifyRun } from '../../src/runs/verify.ts';
import type { RunOutcome } from '../../src/studies/schema.ts';
import type { ElsewhereError } from '../../src/sweep/elsewhere.ts';
import type { RunJob } from '../../src/sweep/place.ts';
import type { Pool, PoolOptions } from '../../src/sweep/places/here.ts';
import type { QueuePlaceOptions } from '../../src/sweep/places/queue.ts';
import { jobId, keys, queueName } from '../../src/sweep/redis/names.ts';
import type { RunningWorker, WorkerOptions } from '../../src/sweep/worker.ts';
import { fixtures } from '../runs/support/old-runs.ts';
import { compiled, compiledUrl } from '../support/compiled.ts';
import { startRedis } from '../support/redis.ts';
import { until } from '../support/until.ts';
import { iterationSteps, tinyJob } from './support/jobs.ts';
import { placeContract } from './support/place-contract.ts';

const { openQueuePlace, readQueue } =
  await compiled<typeof import('../../src/sweep/places/queue.ts')>('sweep/places/queue');
const { startWorker } = await compiled<typeof import('../../src/sweep/worker.ts')>('sweep/worker');
const { openPool } = await compiled<typeof import('../../src/sweep/places/here.ts')>('sweep/places/here');

/** What takes a minute by itself, in moments. */
const times = {
  lockMs: 2000,
  stalledMs: 300,
  backoffMs: 50,
  beatMs: 100,
  leaseMs: 10_000,
  pollMs: 100,
  pauseMs: 1000,
  handBackMs: 50,
};
/** Of a worker that will be killed, alone: nobody but the test waits for its lock. */
const soonGone = { ...times, lockMs: 500 };
const redis = await startRedis();
const root = mkdtempSync(join(tmpdir(), 'keel-queue-'));
const closing: (() => Promise<void>)[] = [];
// After each: who is open looks at Redis ten times a second.
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});
afterAll(async () => {
  await processes.close();
  rmSync(root, { recursive: true, force: true });
});

/** Processes that all workers of this file share: to start some for each of them is what would take longest here. */
const told = new Map<string, PoolOptions>();
const processes = openPool({
  jobs: 2,
  patienceMs: 0,
  onStarted: (job, by) => told.get(job.run)?.onStarted?.(job, by),
  onRetried: (job, why) => told.get(job.run)?.onRetried?.(job, why),
});
const open = (options: PoolOptions): Pool => ({
  slots: options.jobs ?? 2,
  run(job, runs, signal) {
    told.set(job.run, options);
    return processes.run(job, runs, signal);
  },
  async close() {},
});

const start = (options: Partial<WorkerOptions> = {}): Promise<RunningWorker> =>
  startWorker({ url: redis.url, concurrency: 2, times, open, ...options });
const worker = async (options: Partial<WorkerOptions> = {}): Promise<RunningWorker> => {
  const made = await start(options);
  closing.push(() => made.close());
  return made;
};
/** A conductor with a study of that name, and the directory of its runs. */
const conductor = async (study: string, options: Partial<QueuePlaceOptions> = {}) => {
  const runs = join(root, study);
  const place = await openQueuePlace(redis.url, { study, runs, times, ...options });
  closing.push(() => place.close());
  return { place, runs };
};
/** Ends a worker before the test is over, so that it takes none of the next one's jobs. */
const withWorker = async <T>(
  options: Partial<WorkerOptions>,
  act: (it: RunningWorker) => Promise<T>,
): Promise<T> => {
  const it = await worker({ concurrency: 1, ...options });
  try {
    return await act(it);
  } finally {
    await it.close();
  }
};

placeContract(
  'a queue, without a shared directory',
  async (runs, events) => {
    // Of all tests of the contract.
    const one = await start();
    workersOf.set(runs, one);
    const place = await openQueuePlace(redis.url, { study: 'contract', runs, times, ...events });
    return {
      place,
      runs,
      kill: run => process.kill(lockHolder(join(one.ownRoot, 'contract', run))!.pid, 'SIGKILL'),
      close: async () => {
        await place.close();
        await one.close();
      },
    };
  },
  ({ runs }, run) => join(workersOf.get(runs)!.ownRoot, 'contract', run),
);
const workersOf = new Map<string, RunningWorker>();

/** What the local machine says of the same job. */
const localWeights = new Map<string, string | null>();
async function weightsOf(job: RunJob): Promise<string | null> {
  const key = JSON.stringify([job.config, job.until]);
  if (!localWeights.has(key)) {
    const { doJob } = await compiled<typeof import('../../src/sweep/work.ts')>('sweep/work');
    const outcome = await doJob({ ...job, run: `local-${localWeights.size}` }, { root: join(root, 'local') });
    localWeights.set(key, outcome.weights);
  }
  return localWeights.get(key)!;
}

/** Long enough to be interrupted: a second or more on one core. */
const middling = (run: string): RunJob =>
  tinyJob(run, { config: { steps: 90 * iterationSteps, checkpointEvery: 5, learningRate: 1e-3 } });
const rowsOf = (dir: string): number =>
  existsSync(join(dir, 'metrics.jsonl'))
    ? readFileSync(join(dir, 'metrics.jsonl'), 'utf8').split('\n').length
    : 0;

test('a worker that is killed in the middle of a job: another goes on with it, to the same bits', async () => {
  const retried: string[] = [];
  const { place, runs } = await conductor('killed', { onRetried: (_, why) => retried.push(why) });
  const program = `
    const { startWorker } = await import(${JSON.stringify(compiledUrl('sweep/worker'))});
    await startWorker(${JSON.stringify({ url: redis.url, root: runs, concurrency: 1, times: soonGone })});`;
  const first = spawn(process.execPath, ['--input-type=module', '--eval', program], { stdio: 'ignore' });
  const job = middling('victim');
  const running = place.run(job);
  await until(() => rowsOf(join(runs, 'victim')) > 10, 'some rows of the run');
  first.kill('SIGKILL');
  const outcome = await withWorker({ root: runs }, () => running);
  expect(outcome).toMatchObject({ status: 'done', finished: true, weights: await weightsOf(job) });
  expect(retried).toContain('its worker is gone');
  expect(verifyRun(join(runs, 'victim')).problems).toEqual([]);
});

test('Redis restarts, and comes back empty: every job is done once, and nothing is lost', async () => {
  const { place, runs } = await conductor('restarts');
  await withWorker({ root: runs, concurrency: 2 }, async () => {
    const jobs = [middling('a'), middling('b'), ...['c', 'd', 'e', 'f'].map(run => tinyJob(run))];
    const settled: string[] = [];
    const running = jobs.map(job =>
      place.run(job).then(outcome => {
        settled.push(outcome.run);
        return outcome;
      }),
    );
    await until(() => rowsOf(join(runs, 'a')) > 10, 'some rows of the first run');
    await redis.restart();
    await until(() => rowsOf(join(runs, 'a')) > 30, 'more rows of the first run');
    await redis.restartEmpty();
    const outcomes: RunOutcome[] = await Promise.all(running);
    for (const [i, outcome] of outcomes.entries())
      expect(outcome).toMatchObject({
        run: jobs[i].run,
        problem: null,
        status: 'done',
        weights: await weightsOf(jobs[i]),
      });
    expect(settled.toSorted()).toEqual(['a', 'b', 'c', 'd', 'e', 'f']);
    for (const { run } of jobs) expect(verifyRun(join(runs, run)).problems).toEqual([]);
  });
});

test('a conductor that comes again finds what was done meanwhile', async () => {
  const { place } = await conductor('again');
  const running = place.run(tinyJob('kept'));
  running.catch(() => {});
  const client = redis.client();
  await until(
    async () => (await client.exists(`keel:${queueName()}:${jobId('again', tinyJob('kept'))}`)) === 1,
    'the job to be in the queue',
  );
  await place.close();
  await expect(running).rejects.toThrow('the queue was closed');
  await withWorker({}, async ({ id }) => {
    await until(
      async () => (JSON.parse((await client.get(keys.worker(id))) ?? '{}').done ?? 0) === 1,
      'the job to be done',
    );
  });
  // No worker is there any more.
  const second = await conductor('again');
  expect(await second.place.run(tinyJob('kept'))).toMatchObject({ status: 'done', finished: true });
  expect(openRun(join(second.runs, 'kept')).status).toBe('finished');
});

test('a part goes on at another worker that shares nothing with the first', async () => {
  const { place, runs } = await conductor('travels');
  const part = tinyJob('far', { until: iterationSteps });
  const first = await withWorker({}, () => place.run(part));
  expect(first).toMatchObject({ step: iterationSteps, finished: false });
  expect(openRun(join(runs, 'far')).manifest).toMatchObject({ step: iterationSteps, status: 'stopped' });
  // Also where Redis has lost it meanwhile: the study has it.
  await redis.client().flushall();
  const rest = await withWorker({}, () => place.run(tinyJob('far')));
  expect(rest).toMatchObject({ finished: true, weights: await weightsOf(tinyJob('far')) });
  expect(openRun(join(runs, 'far')).manifest).toMatchObject({ status: 'finished', resumes: 1 });
});

test('a lock of a machine that is gone does not keep a run for ever', async () => {
  const { place, runs } = await conductor('locks');
  const part = tinyJob('locked', { until: iterationSteps });
  await withWorker({ root: runs }, async () => {
    await place.run(part);
    const lock = { pid: 1, start: null, boot: null, host: `not-${hostname()}`, since: 'then', token: 't' };
    writeFileSync(join(runs, 'locked', 'lock.1'), JSON.stringify(lock));
    expect(await place.run(tinyJob('locked'))).toMatchObject({ finished: true, status: 'done' });
  });
});

const file = join(fixtures, 'switches.mjs');
const sha256 = createHash('sha256').update(readFileSync(file)).digest('hex');
const subject = { kind: 'env' as const, reference: '/elsewhere/switches.mjs', sha256, options: {} };

test('a file that no worker was given is refused; with one that has it, that one does it', async () => {
  const retried: string[] = [];
  const { place } = await conductor('files', { onRetried: (_, why) => retried.push(why) });
  await withWorker({}, async () => {
    const refused = await place.run(tinyJob('refused', { subject }));
    expect(refused).toMatchObject({ status: 'failed' });
    expect(refused.problem).toMatch(/refused it: the job runs a file, .* which was not named here.*--file/);
    expect(retried[0]).toMatch(/refused it/);
    const { failed } = await readQueue(redis.url);
    expect(failed.find(({ run }) => run === 'refused')).toMatchObject({
      study: 'files',
      why: refused.problem,
    });
    // What may run is known to its processes from their start.
    await withWorker({ files: [file], open: openPool }, async () => {
      expect(await place.run(tinyJob('taken', { subject }))).toMatchObject({ status: 'done' });
    });
  });
});

test('what is no job, and jobs of another version, are dead letters that say why', async () => {
  const queue = new Queue(queueName(), {
    prefix: 'keel',
    connection: { host: '127.0.0.1', port: redis.port },
  });
  closing.push(() => queue.close());
  const envelope = { study: 's', home: '0'.repeat(36) };
  const old = { ...envelope, job: { ...tinyJob('old'), version: '0.0.1' } };
  const bad: [string, unknown][] = [
    ['junk', { hello: 1 }],
    ['escapes', { ...envelope, job: tinyJob('../../etc') }],
    ['more', { ...envelope, job: { ...tinyJob('x'), code: 'process.exit()' } }],
    ['large', { ...envelope, job: { ...tinyJob('x'), config: { a: 'x'.repeat(300_000) } } }],
    ['old', old],
  ];
  for (const [name, data] of bad) await queue.add('run', data, { jobId: name, attempts: 3 });
  await withWorker({}, async () => {
    const letters = async () =>
      (await readQueue(redis.url)).failed.filter(({ id }) => bad.some(([name]) => name === id));
    // Each look opens a connection.
    await until(async () => (await letters()).length === bad.length, 'all to be refused', 200);
    const why = Object.fromEntries((await letters()).map(letter => [letter.id, letter]));
    expect(why.junk.why).toBe('job junk is no job of a study: another program put it there');
    expect(why.escapes.why).toMatch(/run: is no id of a run/);
    expect(why.more.why).toMatch(/is not what it should be/);
    expect(why.large.why).toMatch(/has \d+ bytes, at most 262144 are taken/);
    expect(why.old.why).toMatch(/^the job is of Keel 0\.0\.1, this is /);
  });
  const { place } = await conductor('versions');
  await expect(place.run(tinyJob('old', { version: '0.0.1' }))).rejects.toThrow('the study is of Keel 0.0.1');
});

test('a worker whose disk is full pauses, and another does the job', async () => {
  const { place } = await conductor('disks');
  const said: string[] = [];
  let tried = 0;
  const full = (): ReturnType<NonNullable<WorkerOptions['open']>> => ({
    slots: 1,
    async run() {
      tried++;
      throw new (await compiled<{ ElsewhereError: typeof ElsewhereError }>('sweep/elsewhere')).ElsewhereError(
        'cannot write: the disk is full',
        { code: 'ENOSPC' },
      );
    },
    async close() {},
  });
  await withWorker(
    { open: full, say: line => said.push(line), times: { ...times, pauseMs: 60_000 } },
    async ({ id }) => {
      const running = place.run(tinyJob('moved'));
      await until(() => tried === 1, 'the first worker to try');
      await withWorker({}, async () => {
        expect(await running).toMatchObject({ status: 'done', finished: true });
      });
      expect(tried).toBe(1);
      expect(said[0]).toBe('paused for 60 s, its jobs go to others: cannot write: the disk is full');
      const { workers } = await readQueue(redis.url);
      expect(workers.find(one => one.id === id)).toMatchObject({
        paused: 'cannot write: the disk is full',
        version: VERSION,
      });
    },
  );
});

test('a worker that ends hands its run back with what was done', async () => {
  const { place } = await conductor('ends');
  const job = middling('handed');
  const one = await worker();
  const running = place.run(job);
  await until(() => rowsOf(join(one.ownRoot, 'ends', 'handed')) > 10, 'some rows of the run');
  await one.close();
  expect(existsSync(one.ownRoot)).toBe(false);
  const outcome = await withWorker({}, () => running);
  expect(outcome).toMatchObject({ status: 'done', weights: await weightsOf(job) });
  expect(openRun(join(root, 'ends', 'handed')).manifest.resumes).toBe(1);
});

test('a place tells who takes jobs and how many wait, whether or not they do anything', async () => {
  const { place } = await conductor('seen');
  // Long enough to be seen under way.
  const jobs = ['seen-a', 'seen-b'].map(run => place.run(middling(run)));
  await until(() => place.view!().queue.waiting === 2, 'both wait');
  expect(place.view!().workers).toEqual([]);
  await withWorker({}, async () => {
    await until(
      () => place.view!().workers.some(({ doing }) => doing.some(run => run.startsWith('seen-'))),
      'a run is under way',
    );
    await Promise.all(jobs);
    // Workers and counts are asked for one after the other, and a job is over a moment after its worker says so.
    await until(() => {
      const { workers, queue } = place.view!();
      return queue.active === 0 && workers.every(({ doing }) => doing.length === 0);
    }, 'nothing is under way');
    expect(place.view!().workers).toMatchObject([{ host: hostname(), version: VERSION, doing: [] }]);
    expect(place.view!().queue).toMatchObject({ waiting: 0, active: 0, delayed: 0 });
  });
});

test('higher priorities go first', async () => {
  const started: string[] = [];
  const { place } = await conductor('priorities', { onStarted: ({ run }) => started.push(run) });
  const running = [1, 3, 2].map(priority => place.run(tinyJob(`p${priority}`, { priority })));
  await until(() => place.view!().queue.waiting === 3, 'all to be in the queue');
  await withWorker({ concurrency: 1 }, () => Promise.all(running));
  expect(started).toEqual(['p3', 'p2', 'p1']);
});

test('a password is nowhere: not in errors, in what is said, nor in Redis', async () => {
  const password = 'hunter2/with:signs';
  const guarded = await startRedis({ password });
  const url = guarded.url.replace('//', `//:${encodeURIComponent(password)}@`);
  const wrong = guarded.url.replace('//', '//:plugh-xyzzy@');
  const said: string[] = [];
  for (const attempt of [
    () => startWorker({ url: wrong, times }),
    () => openQueuePlace(wrong, { study: 's', runs: join(root, 's'), times }),
    () => readQueue(wrong),
    () => readQueue('redis://:plugh-xyzzy@127.0.0.1:1'),
    () => readQueue('http://:plugh-xyzzy@127.0.0.1'),
    () => readQueue('redis://:plugh%xyzzy@127.0.0.1:1'),
  ]) {
    const error = await (attempt() as Promise<unknown>).catch(e => e);
    expect(error).toBeInstanceOf(Error);
    expect(inspect(error, { depth: 9, showHidden: true })).not.toMatch(/plugh|xyzzy/);
  }
  const one = await startWorker({ url, times, open, concurrency: 1, say: line => said.push(line) });
  const place = await openQueuePlace(url, { study: 's', runs: join(root, 'guarded'), times });
  await place.run(tinyJob('done'));
  await guarded.restart();
  await place.run(tinyJob('wrong', { config: { steps: 64, learningRate: -1 } }));
  const client = guarded.client();
  const all: string[] = [...said];
  for (const key of await client.keys('*')) {
    const kind = await client.type(key);
    all.push(
      key,
      inspect(kind === 'hash' ? await client.hgetall(key) : kind === 'string' ? await client.get(key) : ''),
    );
  }
  expect(all.length).toBeGreaterThan(5);
  expect(all.join('\n')).not.toMatch(/hunter2/);
  await place.close();
  await one.close();
});

test('a database that Redis does not have is refused: the first one would be used in its place', async () => {
  for (const attempt of [
    () => startWorker({ url: `${redis.url}/99`, times }),
    () => openQueuePlace(`${redis.url}/99`, { study: 's', runs: join(root, 's'), times }),
  ])
    await expect(attempt() as Promise<unknown>).rejects.toThrow(
      /^cannot use Redis at redis:.*\/99: ERR DB index is out of range; use the number of a database that it has/,
    );
});

test('a worker that ends leaves nothing behind', async () => {
  const one = await worker({ open: openPool });
  await one.close();
  await one.done;
  const { workers } = await readQueue(redis.url);
  expect(workers.map(({ id }) => id)).not.toContain(one.id);
  expect(existsSync(one.ownRoot)).toBe(false);
});
