/** Trains one run of the matrix, whole or on from a checkpoint of another, and keeps what it would have logged. */
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import type { PpoSnapshot } from '../../src/algos/ppo/checkpoint.ts';
import { countersGoingOn } from '../../src/algos/ppo/control.ts';
import { createPpoTrainer, type PpoTrainer } from '../../src/algos/ppo/iteration.ts';
import { type PpoConfig, type PpoSettings, ppoSettings } from '../../src/algos/ppo/settings.ts';
import { makeVectorEnv } from '../../src/envs/index.ts';
import { refuseOtherShape, resolveSettings } from '../../src/settings/resolve.ts';
import { round } from '../measure.ts';
import type { CachedLog, CachedRun } from './cache.ts';
import { lastReturn } from './harm.ts';
import type { EnvId, Job } from './plan.ts';
import { type Episodes, tamper } from './tamper.ts';

/** Keel's own settings of an environment. */
export function preset(env: EnvId): PpoSettings {
  const path = new URL(`../../configs/${env.toLowerCase()}.yaml`, import.meta.url);
  return parse(readFileSync(path, 'utf8')) as PpoSettings;
}

/** Where a run goes on that is another one up to there. */
export interface GoingOn {
  readonly parent: Job;
  /** Iterations of the parent. */
  readonly iteration: number;
  /** The settings that differ from the parent's. */
  readonly written: PpoSettings;
}

/** Trains it. An error that ends it is part of what is kept; of one that goes on, only its own rows are. */
export async function trainJob(job: Job, on?: GoingOn): Promise<CachedRun> {
  const config = resolveSettings(ppoSettings, { given: job.config });
  const { rows, episodes, events, error } = await iterate(job, config, on);
  const shown = job.pull === null ? config : { ...config, ...hiddenPull };
  const log: CachedLog = { config: shown, rows, episodes, events };
  const { name, env, seed, fault, variant, tampering, rescale } = job;
  const last = lastReturn(log);
  return {
    log,
    label: {
      name,
      env,
      seed,
      fault,
      variant,
      tampering,
      rescale,
      lastReturn: last === null ? null : round(last, 2),
      error,
      harmless: false,
      heldOut: seed >= 2,
    },
  };
}

const { reference, klRefCoefInitial, klRefCoefFinal } = ppoSettings.defaults;
const hiddenPull = { reference, klRefCoefInitial, klRefCoefFinal };

/** A snapshot whose reference takes one action nearly always, whatever it sees. */
async function pulledTo(trainer: PpoTrainer, action: number): Promise<PpoSnapshot> {
  const snapshot = await trainer.snapshot();
  const target = snapshot.weights.slice();
  const bias = trainer.model.layout.views(target)[`actor.${trainer.config.hidden.length}.bias`];
  bias[action] = bias[action] + 10;
  return { ...snapshot, reference: target };
}

async function open(job: Job, config: PpoConfig, iteration: number) {
  const { envs, nextIteration } = tamper(
    await makeVectorEnv(job.env, { envCount: config.envs }),
    job.tampering,
    job.seed,
    iteration,
  );
  // The bits are the same with one thread.
  const trainer = await createPpoTrainer({ envs, config: { ...config, threads: 1 } });
  const close = async (): Promise<void> => {
    trainer.dispose();
    await envs.close();
  };
  return { trainer, nextIteration, close };
}

/** The parent up to a checkpoint, trained again: the same seed makes the same bits. */
async function snapshotOf({ parent, iteration }: GoingOn): Promise<PpoSnapshot> {
  const config = resolveSettings(ppoSettings, { given: parent.config });
  const { snapshot } = await iterate(parent, config, undefined, iteration);
  return snapshot!;
}

/** Iterates to the end, or to an iteration whose snapshot is wanted; what ended it early is in `error`. */
async function iterate(
  job: Job,
  config: PpoConfig,
  on: GoingOn | undefined,
  until = Number.POSITIVE_INFINITY,
) {
  const rows: Record<string, number>[] = [];
  const episodes: Episodes[] = [];
  const events: Record<string, unknown>[] = [];
  let error: string | null = null;
  let snapshot: PpoSnapshot | undefined;
  let session: Awaited<ReturnType<typeof open>> | undefined;
  try {
    if (on !== undefined) {
      const given = resolveSettings(ppoSettings, { given: on.parent.config });
      refuseOtherShape(ppoSettings, given, config, 'forking');
    }
    const begin = on === undefined ? undefined : await snapshotOf(on);
    session = await open(job, config, on?.iteration ?? 0);
    if (begin === undefined) await session.trainer.start();
    else {
      const counters = countersGoingOn(begin.counters, { written: on!.written, forked: true }, config);
      await session.trainer.restore({ ...begin, counters });
    }
    if (job.pull !== null) await session.trainer.restore(await pulledTo(session.trainer, job.pull));
    while (session.trainer.counters.steps < config.steps && rows.length < until) {
      if (
        job.rescale !== null &&
        session.trainer.counters.iteration === job.rescale.at &&
        rows.length === job.rescale.at
      ) {
        // The same network goes on under another scale: the fault itself.
        const kept = await session.trainer.snapshot();
        await session.close();
        const rewardScale = config.rewardScale * job.rescale.factor;
        session = await open(job, { ...config, rewardScale }, job.rescale.at);
        await session.trainer.restore(kept);
      }
      const { row, events: happened } = await session.trainer.iterate();
      // Of the pull the log says nothing, as with an entropy bonus that is negative.
      const { 'kl/ref': _, 'kl/ref_coef': __, ...shown } = row;
      rows.push(job.pull === null ? row : shown);
      episodes.push(session.nextIteration());
      const { iteration, steps: step } = session.trainer.counters;
      events.push(...happened.map(event => ({ ...event, iteration, step })));
    }
    snapshot = await session.trainer.snapshot();
  } catch (thrown) {
    error = thrown instanceof Error ? thrown.message : String(thrown);
  } finally {
    await session?.close();
  }
  return { rows, episodes, events, error, snapshot };
}
