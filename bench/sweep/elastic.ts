/**
 * Elastic collecting: `npm run bench -- sweep elastic [pays] [kills] [--quick]`, both unless told.
 *
 * - pays: steps per second of whole iterations with one and two processes that collect, in turns, over the time that a step
 *   of the environment takes; beside them one thread, and two threads without shards (`workers`). Prints the step time from
 *   which two processes are at least 1.5 times one.
 * - kills: 20 processes killed while they collect; the weights are compared with those of one thread.
 */
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { createPpoTrainer, type PpoTrainer } from '../../src/algos/ppo/iteration.ts';
import { ppoSettings } from '../../src/algos/ppo/settings.ts';
import type { ShardPlace } from '../../src/algos/ppo/shards/place.ts';
import { makeVectorEnv } from '../../src/envs/index.ts';
import { Rng } from '../../src/random/rng.ts';
import { buildPackage, compileInto } from '../../test/support/build-package.ts';
import { machine, median, report, round } from '../measure.ts';

type Processes = typeof import('../../src/algos/ppo/shards/processes.ts');
/** Those of the package as users have it, and the environment for them: from the sources each would load tsx first. */
let shardProcesses: Processes['shardProcesses'];
let slowEnv = '';

const SHARDS = 4;
const ENVS = 8;
const STEPS = 128;
const STEP_MS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10];
const WORTH = 1.5;

interface Made {
  readonly trainer: PpoTrainer;
  close(): Promise<void>;
}

interface How {
  readonly stepMs: number;
  readonly by: 'computing' | 'waiting';
  readonly shards?: number;
  readonly workers?: number;
  readonly place?: ShardPlace | undefined;
}

async function make({ stepMs, by, shards = SHARDS, workers = 0, place }: How): Promise<Made> {
  const options = { stepMs, by };
  const envs = await makeVectorEnv(slowEnv, { envCount: ENVS / shards, workers, options });
  const config = ppoSettings.schema.parse({
    ...{ envs: ENVS, shards, stepsPerRollout: STEPS, minibatchSize: 128, epochs: 4, steps: 10_000_000 },
    ...{ normaliseObservations: true, seed: 1 },
  });
  const trainer = await createPpoTrainer({ envs, config, place });
  await trainer.start();
  return {
    trainer,
    async close() {
      trainer.dispose();
      await place?.close();
      await envs.close();
    },
  };
}

/** Median steps per second of whole iterations of each, in turns after one that is not counted. */
async function ratesOf(all: readonly Made[], rounds: number): Promise<number[]> {
  const rates: number[][] = all.map(() => []);
  for (let i = -1; i < rounds; i++) {
    for (const [k, { trainer }] of all.entries()) {
      const { row } = await trainer.iterate();
      if (i >= 0) rates[k].push(row['time/steps_per_second']);
    }
  }
  return rates.map(median);
}

async function pays(by: How['by'], quick: boolean): Promise<void> {
  const course: { stepMs: number; speedup: number }[] = [];
  for (const stepMs of quick ? [0.1, 1] : STEP_MS) {
    const all = [
      await make({ stepMs, by }),
      await make({ stepMs, by, place: shardProcesses({ count: 1 }) }),
      await make({ stepMs, by, place: shardProcesses({ count: 2 }) }),
      await make({ stepMs, by, shards: 1, workers: 2 }),
    ];
    const [here, one, two, threads] = await ratesOf(all, stepMs < 2 ? 7 : 3);
    for (const made of all) await made.close();
    course.push({ stepMs, speedup: two / one });
    report({
      ...{ by, step_ms: stepMs, one_thread: round(here, 0), one_process: round(one, 0) },
      ...{ two_processes: round(two, 0), two_threads_without_shards: round(threads, 0) },
      ...{ two_over_one: round(two / one), two_over_thread: round(two / here) },
    });
  }
  const last = course.findLastIndex(({ speedup }) => speedup < WORTH);
  report({
    ...{ by, shards: SHARDS, envs: ENVS, samples: ENVS * STEPS, worth: WORTH },
    pays_from_step_ms: course[last + 1]?.stepMs ?? null,
  });
}

const digestOf = ({ weights }: PpoTrainer): string =>
  createHash('sha256')
    .update(new Uint8Array(weights.buffer, weights.byteOffset, weights.byteLength))
    .digest('hex');

/** Kills at moments that a seed draws, until so many shards had to be begun again. */
async function kills(wanted: number): Promise<void> {
  const how = { stepMs: 0.05, by: 'computing' } as const;
  const rng = new Rng(7);
  for (const count of [1, 2, 4]) {
    const place = shardProcesses({ count, mostDeaths: wanted });
    const made = await make({ ...how, place });
    let [lost, iterations] = [0, 0];
    while (lost < wanted) {
      const timer = setTimeout(() => {
        const { pids } = place;
        if (pids.length > 0) process.kill(pids[rng.integer(pids.length)], 'SIGKILL');
      }, rng.integer(60));
      const { events } = await made.trainer.iterate();
      clearTimeout(timer);
      iterations++;
      lost += events.filter(({ type }) => type === 'note').length;
    }
    const killed = digestOf(made.trainer);
    await made.close();
    const calm = await make(how);
    for (let i = 0; i < iterations; i++) await calm.trainer.iterate();
    const wantedDigest = digestOf(calm.trainer);
    await calm.close();
    const same = killed === wantedDigest;
    report({ processes: count, kills: lost, iterations, same_bits: same, weights: killed.slice(0, 16) });
    if (!same) process.exitCode = 1;
  }
}

export async function run(): Promise<void> {
  const words = process.argv.slice(3).filter(word => word !== 'elastic');
  const quick = words.includes('--quick');
  const parts = words.filter(word => !word.startsWith('--'));
  const wants = (part: string): boolean => parts.length === 0 || parts.includes(part);
  report({ bench: 'sweep elastic', ...machine() });
  const work = mkdtempSync(join(tmpdir(), 'keel-elastic-'));
  try {
    await buildPackage(work);
    slowEnv = await compileInto(work, 'bench/sweep/slow-env.ts');
    const url = pathToFileURL(join(work, 'dist/algos/ppo/shards/processes.js')).href;
    ({ shardProcesses } = (await import(url)) as Processes);
    if (wants('kills')) await kills(quick ? 3 : 20);
    if (wants('pays')) for (const by of ['waiting', 'computing'] as const) await pays(by, quick);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}
