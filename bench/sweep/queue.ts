/**
 * What a queue takes, on a Redis of its own. Times count only where nothing else runs on the machine.
 *
 * - `npm run bench -- sweep throughput [--jobs 2000]`: jobs a second of the queue alone: a worker gives each outcome at once.
 * - `npm run bench -- sweep memory [--jobs 1000] [--runs 20]`: what Redis keeps of jobs that are done, and of runs that travel.
 * - `npm run bench -- sweep workers [--runs 12] [--steps 150000] [--rounds 3]`: the same study with one and with two `keel worker`,
 *   in turns; beside it bare loops of `train()`, one and two at once: what the machine itself gives.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { VERSION } from '../../src/base/version.ts';
import type { Place, RunJob } from '../../src/sweep/place.ts';
import { listWorkers } from '../../src/sweep/redis/presence.ts';
import { type OwnRedis, startOwnRedis } from '../../test/support/redis-server.ts';
import { until } from '../../test/support/until.ts';
import { median, report, round } from '../measure.ts';
import { refuse } from '../refuse.ts';
import { type BuiltPackage, withPackage } from './package.ts';

type QueueModule = typeof import('../../src/sweep/places/queue.ts');

/** What all of them need; gone afterwards, with the processes that were started. */
async function withQueue(
  act: (
    it: BuiltPackage & { redis: OwnRedis; node: (args: readonly string[]) => ChildProcess },
  ) => Promise<void>,
): Promise<void> {
  await withPackage(async it => {
    const redis = await startOwnRedis();
    const children: ChildProcess[] = [];
    const node = (args: readonly string[]): ChildProcess => {
      const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'inherit'], cwd: it.work });
      children.push(child);
      return child;
    };
    try {
      await act({ ...it, redis, node });
    } finally {
      for (const child of children) child.kill('SIGKILL');
      await redis.end();
    }
  });
}

const code = (text: string): string[] => ['--input-type=module', '--eval', text];

/** A worker whose jobs are done at once. */
const emptyWorker = (workerUrl: string, address: string, slots: number): string[] =>
  code(`const { startWorker } = await import(${JSON.stringify(workerUrl)});
const nothing = { step: 0, finished: true, value: 0, verdict: 'healthy', rootCause: null, klMedian: 0.01, klLargest: 0.02,
  seconds: 0, weights: '0'.repeat(64), worker: 'empty', problem: null };
await startWorker({ url: ${JSON.stringify(address)}, open: () => ({
  slots: ${slots}, run: async ({ run, seed }) => ({ run, seed, status: 'done', ...nothing }), close: async () => {} }) });`);

const jobOf = (run: string, steps: number, end: number | null = null): RunJob => ({
  run,
  version: VERSION,
  subject: { kind: 'env', reference: 'cartpole', sha256: null, options: {} },
  config: { steps, learningRate: 1e-3 },
  preset: { envs: 8, stepsPerRollout: 32, minibatchSize: 256, epochs: 20, gamma: 0.98, gaeLambda: 0.8 },
  seed: 3,
  until: end,
  objective: { metric: 'score', direction: 'maximize', of: 'last', over: 'iqm' },
  priority: 0,
});

/** Does jobs, so many under way at once; the seconds that it took. */
async function doAll(place: Place, jobs: readonly RunJob[], atOnce: number): Promise<number> {
  const startedAt = performance.now();
  const left = [...jobs];
  const lane = async (): Promise<void> => {
    for (let job = left.shift(); job !== undefined; job = left.shift()) {
      const { status, problem } = await place.run(job);
      if (status !== 'done') throw new Error(`${job.run} failed: ${problem}`);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, lane));
  return (performance.now() - startedAt) / 1000;
}

const counts = (args: string[], usual: Readonly<Record<string, number>>): Record<string, number> => {
  const options = Object.fromEntries(Object.keys(usual).map(name => [name, { type: 'string' as const }]));
  const { values } = parseArgs({ args, options });
  return Object.fromEntries(
    Object.entries(usual).map(([name, value]) => {
      const given = Number(values[name] ?? value);
      if (!(Number.isInteger(given) && given > 0)) refuse(`--${name} ${values[name]}: use 1 or more`);
      return [name, given];
    }),
  );
};

const workersThere = async (redis: OwnRedis, wanted: number): Promise<void> => {
  const client = redis.client();
  await until(async () => (await listWorkers(client)).length === wanted, `${wanted} workers to be there`);
};

export const throughput = {
  async run(args: string[]): Promise<void> {
    const { jobs } = counts(args, { jobs: 2000 });
    await withQueue(async ({ work, url, load, redis, node }) => {
      node(emptyWorker(url('sweep/worker'), redis.url, 16));
      await workersThere(redis, 1);
      const { openQueuePlace } = await load<QueueModule>('sweep/places/queue');
      const place = await openQueuePlace(redis.url, { study: 'empty', runs: join(work, 'runs') });
      const named = (mark: string, count: number): RunJob[] =>
        Array.from({ length: count }, (_, i) => jobOf(`${mark}${i}`, 1000));
      await doAll(place, named('warm', 200), 16);
      for (const atOnce of [1, 4, 16, 64]) {
        const count = atOnce === 1 ? Math.ceil(jobs / 10) : jobs;
        const seconds = await doAll(place, named(`at${atOnce}-`, count), atOnce);
        report({
          ...{ jobs: count, at_once: atOnce, seconds: round(seconds) },
          ...{ jobs_per_second: round(count / seconds, 0), ms_a_job: round((seconds * 1000) / count) },
        });
      }
      await place.close();
    });
  },
};

/** Bytes that Redis has in use for data, without what a client's buffers take for a moment. */
async function bytesIn(redis: OwnRedis): Promise<number> {
  const info = await redis.client().info('memory');
  return Number(/used_memory_dataset:(\d+)/.exec(info)![1]);
}

export const memory = {
  async run(args: string[]): Promise<void> {
    const { jobs, runs } = counts(args, { jobs: 1000, runs: 20 });
    await withQueue(async ({ work, built, url, load, redis, node }) => {
      const { openQueuePlace } = await load<QueueModule>('sweep/places/queue');
      const place = await openQueuePlace(redis.url, { study: 'memory', runs: join(work, 'runs') });
      const empty = node(emptyWorker(url('sweep/worker'), redis.url, 16));
      await workersThere(redis, 1);
      const before = await bytesIn(redis);
      const all = Array.from({ length: jobs }, (_, i) => jobOf(`memory-3fa9c1-t${i}-seed0`, 1000));
      await doAll(place, all, 16);
      const perJob = ((await bytesIn(redis)) - before) / jobs;
      report({
        ...{ what: 'jobs that are done, runs in a shared directory', jobs },
        ...{ bytes_a_job: round(perJob, 0), megabytes_per_thousand: round((perJob * 1000) / 1e6) },
      });
      empty.kill('SIGKILL');
      // Its job, if it had one, is nobody's now; the worker itself is believed to be there for a while.
      await redis.client().flushall();
      node([join(built, 'bin/keel.js'), 'worker', '--queue', redis.url]);
      await workersThere(redis, 1);
      const steps = 20_000;
      const start = await bytesIn(redis);
      const named = (end: number | null): RunJob[] =>
        Array.from({ length: runs }, (_, i) => jobOf(`travels-${i}`, steps, end));
      await doAll(place, named(steps / 2), 2);
      const paused = ((await bytesIn(redis)) - start) / runs;
      await doAll(place, named(null), 2);
      const finished = ((await bytesIn(redis)) - start) / runs;
      report({
        ...{ what: 'runs that travel: cartpole, 64-64, halfway and at their end', runs, steps },
        paused_megabytes_per_thousand: round((paused * 1000) / 1e6),
        // Two jobs each; the run itself is taken out once the conductor has it.
        finished_megabytes_per_thousand: round((finished * 1000) / 1e6),
      });
      await place.close();
    });
  },
};

export const workers = {
  async run(args: string[]): Promise<void> {
    const { runs, steps, rounds } = counts(args, { runs: 12, steps: 150_000, rounds: 3 });
    await withQueue(async ({ work, built, url, load, redis, node }) => {
      const { openQueuePlace } = await load<QueueModule>('sweep/places/queue');
      const { conductStudy } = await load<typeof import('../../src/sweep/sweep.ts')>('sweep/sweep');
      const { makeStudy } = await load<typeof import('../../src/sweep/make-study.ts')>('sweep/make-study');
      const { studyPaths } = await load<typeof import('../../src/studies/store.ts')>('studies/store');
      const seeds = Array.from({ length: runs }, (_, seed) => seed);
      let studies = 0;
      const withWorkers = async (count: number): Promise<number> => {
        const { dir, study } = await makeStudy(
          { env: 'pendulum', config: { steps }, space: {}, seeds, constraints: { healthy: false } },
          { root: join(work, 'studies'), name: `s${studies++}` },
        );
        const { runs: root } = studyPaths(dir);
        const flags = ['worker', '--queue', redis.url, '--jobs', '1', '--run-dir', root];
        const started = Array.from({ length: count }, () => node([join(built, 'bin/keel.js'), ...flags]));
        await workersThere(redis, count);
        const place = await openQueuePlace(redis.url, { study: study.name, runs: root });
        const startedAt = performance.now();
        await conductStudy(dir, study, { place });
        const seconds = (performance.now() - startedAt) / 1000;
        await place.close();
        const gone = started.map(child => new Promise(done => child.once('exit', done)));
        for (const child of started) child.kill('SIGINT');
        await Promise.all(gone);
        await workersThere(redis, 0);
        return seconds;
      };
      const bare = async (count: number): Promise<number> => {
        const startedAt = performance.now();
        const lanes = Array.from({ length: count }, (_, lane) => {
          const mine = seeds.filter(seed => seed % count === lane);
          const from = { env: 'pendulum', root: join(work, `bare${studies++}`) };
          const config = { steps, workers: 0, threads: 1, record: false };
          const child = node(
            code(`const { train } = await import(${JSON.stringify(url('algos/runs'))});
for (const seed of ${JSON.stringify(mine)}) await train({ ...${JSON.stringify(from)}, config: { ...${JSON.stringify(config)}, seed } });`),
          );
          return new Promise<void>((done, failed) => {
            child.once('exit', exit => (exit === 0 ? done() : failed(new Error(`ended with ${exit}`))));
          });
        });
        await Promise.all(lanes);
        return (performance.now() - startedAt) / 1000;
      };
      const tasks = [() => withWorkers(1), () => withWorkers(2), () => bare(1), () => bare(2)];
      const times: number[][] = tasks.map(() => []);
      for (let turn = 0; turn < rounds; turn++) {
        for (const [i, task] of tasks.entries()) times[i].push(await task());
        const [one, two, bareOne, bareTwo] = times.map(all => round(all[turn]));
        report({ turn, one, two, bare_one: bareOne, bare_two: bareTwo });
      }
      const over = (a: number, b: number): number[] => times[a].map((seconds, i) => seconds / times[b][i]);
      report({
        ...{ runs, steps, rounds, seconds_a_run: round(median(times[0]) / runs) },
        ...{ two_over_one: round(median(over(0, 1))), aim: 1.8 },
        two_bare_loops_over_one: round(median(over(2, 3))),
      });
    });
  },
};
