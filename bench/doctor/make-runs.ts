/**
 * Trains the runs of the matrix and keeps their logs: `npx tsx bench/doctor/make-runs.ts [part of a name]`. What is there
 * is not trained again; delete a run's directory to make it anew.
 */
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import {
  createPpoTrainer,
  type PpoSnapshot,
  type PpoTrainer,
  resolveConfig,
  type TrainConfig,
  type TrainSettings,
} from '../../src/algos/index.ts';
import { makeVectorEnv } from '../../src/envs/index.ts';
import { report, round } from '../measure.ts';
import { type CachedLog, type CachedRun, isCached, readCached, writeCached, writeLabel } from './cache.ts';
import { harmless, lastReturn } from './harm.ts';
import { type EnvId, type Job, jobs } from './plan.ts';
import { type Episodes, tamper } from './tamper.ts';

function preset(env: EnvId): TrainSettings {
  const path = new URL(`../../configs/${env.toLowerCase()}.yaml`, import.meta.url);
  return parse(readFileSync(path, 'utf8')) as TrainSettings;
}

async function trainJob(job: Job): Promise<CachedRun> {
  const config = resolveConfig({}, job.config);
  const rows: Record<string, number>[] = [];
  const episodes: Episodes[] = [];
  const events: Record<string, unknown>[] = [];
  const error = await iterate(job, config, { rows, episodes, events });
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

const { reference, klRefCoefInitial, klRefCoefFinal } = resolveConfig({}, {});
const hiddenPull = { reference, klRefCoefInitial, klRefCoefFinal };

/** A snapshot whose reference takes one action nearly always, whatever it sees. */
async function pulledTo(trainer: PpoTrainer, action: number): Promise<PpoSnapshot> {
  const snapshot = await trainer.snapshot();
  const target = snapshot.tensors.params.slice();
  const bias = trainer.model.layout.views(target)[`actor.${trainer.config.hidden.length}.bias`]!;
  bias[action] = bias[action]! + 10;
  return { ...snapshot, tensors: { ...snapshot.tensors, reference: target } };
}

/** Trains and fills the log; gives the message of the error that ended it, if one did. */
async function iterate(
  job: Job,
  config: TrainConfig,
  {
    rows,
    episodes,
    events,
  }: { rows: Record<string, number>[]; episodes: Episodes[]; events: Record<string, unknown>[] },
): Promise<string | null> {
  const open = async (rewardScale: number, iteration: number) => {
    const { envs, nextIteration } = tamper(
      await makeVectorEnv(job.env, { envCount: config.envs }),
      job.tampering,
      job.seed,
      iteration,
    );
    const trainer = await createPpoTrainer({
      envs,
      config,
      seed: config.seed,
      totalSteps: config.steps,
      rewardScale,
    });
    const close = async (): Promise<void> => {
      trainer.dispose();
      await envs.close();
    };
    return { trainer, nextIteration, close };
  };
  let session = await open(config.rewardScale, 0);
  try {
    await session.trainer.start();
    if (job.pull !== null) await session.trainer.restore(await pulledTo(session.trainer, job.pull));
    while (session.trainer.counters.envSteps < config.steps) {
      if (
        job.rescale !== null &&
        session.trainer.counters.iteration === job.rescale.at &&
        rows.length === job.rescale.at
      ) {
        // The same network goes on under another scale: the fault itself.
        const snapshot = await session.trainer.snapshot();
        await session.close();
        session = await open(config.rewardScale * job.rescale.factor, job.rescale.at);
        await session.trainer.restore(snapshot);
      }
      const { row, events: happened } = await session.trainer.iterate();
      // Of the pull the log says nothing, as with an entropy bonus that is negative.
      const { 'kl/ref': _, 'kl/ref_coef': __, ...shown } = row;
      rows.push(job.pull === null ? row : shown);
      episodes.push(session.nextIteration());
      const { iteration, envSteps: step } = session.trainer.counters;
      events.push(...happened.map(event => ({ ...event, iteration, step })));
    }
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  } finally {
    await session.close();
  }
}

const wanted = process.argv[2] ?? '';
const todo = jobs(preset).filter(({ name }) => name.includes(wanted) && !isCached(name));
for (const [i, job] of todo.entries()) {
  const start = performance.now();
  const run = await trainJob(job);
  writeCached(run);
  report({
    run: job.name,
    left: todo.length - i - 1,
    rows: run.log.rows.length,
    lastReturn: run.label.lastReturn,
    error: run.label.error,
    seconds: round((performance.now() - start) / 1000, 1),
  });
}
// What is harmless is known once the healthy runs are there.
const all = readCached();
for (const run of all) writeLabel({ ...run.label, harmless: harmless(run, all) });
