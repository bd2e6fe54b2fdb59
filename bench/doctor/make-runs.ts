/**
 * Trains the runs of the matrix and keeps their logs: `npx tsx bench/doctor/make-runs.ts [--again] [part of a name]`. What
 * is there is trained again only with --again.
 */
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import type { PpoSnapshot } from '../../src/algos/ppo/checkpoint.ts';
import { createPpoTrainer, type PpoTrainer } from '../../src/algos/ppo/iteration.ts';
import { type PpoConfig, type PpoSettings, ppoSettings } from '../../src/algos/ppo/settings.ts';
import { makeVectorEnv } from '../../src/envs/index.ts';
import { resolveSettings } from '../../src/settings/resolve.ts';
import { report, round } from '../measure.ts';
import { type CachedLog, type CachedRun, readCached, writeCached } from './cache.ts';
import { harmless, lastReturn } from './harm.ts';
import { type EnvId, type Job, jobs } from './plan.ts';
import { type Episodes, tamper } from './tamper.ts';

function preset(env: EnvId): PpoSettings {
  const path = new URL(`../../configs/${env.toLowerCase()}.yaml`, import.meta.url);
  return parse(readFileSync(path, 'utf8')) as PpoSettings;
}

async function trainJob(job: Job): Promise<CachedRun> {
  const config = resolveSettings(ppoSettings, { given: job.config });
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

/** Trains and fills the log; gives the message of the error that ended it, if one did. */
async function iterate(
  job: Job,
  config: PpoConfig,
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
    const trainer = await createPpoTrainer({ envs, config: { ...config, rewardScale } });
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
    while (session.trainer.counters.steps < config.steps) {
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
      const { iteration, steps: step } = session.trainer.counters;
      events.push(...happened.map(event => ({ ...event, iteration, step })));
    }
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  } finally {
    await session.close();
  }
}

const args = process.argv.slice(2);
const again = args.includes('--again');
const wanted = args.find(arg => arg !== '--again') ?? '';
const runs = new Map(readCached().map(run => [run.label.name, run]));
const todo = jobs(preset).filter(({ name }) => name.includes(wanted) && (again || !runs.has(name)));
for (const [i, job] of todo.entries()) {
  const start = performance.now();
  const run = await trainJob(job);
  runs.set(job.name, run);
  writeCached([...runs.values()]);
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
writeCached(all.map(run => ({ ...run, label: { ...run.label, harmless: harmless(run, all) } })));
