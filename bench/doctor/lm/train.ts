/** Trains one run of the language-model matrix, whole or on from an iteration of another, and keeps what trainers would have logged. */
import { fileURLToPath } from 'node:url';
import type { GrpoSnapshot } from '../../../src/algos/grpo/checkpoint.ts';
import { countersGoingOn } from '../../../src/algos/grpo/control.ts';
import { createGrpoTrainer } from '../../../src/algos/grpo/iteration.ts';
import { type GrpoConfig, type GrpoSettings, grpoSettings } from '../../../src/algos/grpo/settings.ts';
import { Rng } from '../../../src/random/index.ts';
import type { GroupRecord } from '../../../src/runs/completions.ts';
import { resolveSettings } from '../../../src/settings/resolve.ts';
import { baseModel } from './base-model.ts';
import type { LmRun } from './cache.ts';
import { type Graded, referenceKls, type StepSums, tamperTask, type Watch, watchPrograms } from './faults.ts';
import { lastScore } from './harm.ts';
import type { LmJob } from './plan.ts';
import { lmTask } from './tasks.ts';

const root = fileURLToPath(new URL('../../../runs/bench-doctor-lm', import.meta.url));

const noSteps = (): StepSums => ({ tokens: 0, k1: 0, low: 0, high: 0, clipped: 0 });

/** Where a run goes on that is another one up to there. */
export interface GoingOnLm {
  readonly parent: LmJob;
  /** Iterations of the parent. */
  readonly iteration: number;
  /** The settings that differ from the parent's. */
  readonly written: GrpoSettings;
}

/** Trains it. An error that ends it is part of what is kept; of one that goes on, only its own rows are. */
export async function trainLmJob({ config: given, ...job }: LmJob, on?: GoingOnLm): Promise<LmRun> {
  const config = resolveSettings(grpoSettings, { given });
  const rows: Record<string, number>[] = [];
  const events: Record<string, unknown>[] = [];
  const begin = on === undefined ? undefined : await snapshotOf(on);
  const { error } = await iterate(job, config, { rows, events, begin });
  const heldOut = job.task !== 'arithmetic' || job.seed > 1;
  const label = { ...job, lastScore: lastScore(rows), error, harmless: false, heldOut };
  return { label, config, rows, events };
}

/** What the parent was after so many iterations, as a fork of it begins. */
async function snapshotOf({ parent, iteration, written }: GoingOnLm): Promise<GrpoSnapshot> {
  const { config: given, ...job } = parent;
  const config = resolveSettings(grpoSettings, { given });
  const { snapshot, error } = await iterate(job, config, { rows: [], events: [], until: iteration });
  if (snapshot === undefined) throw new Error(`${parent.name} failed before ${iteration}: ${error}`);
  const counters = countersGoingOn(
    snapshot.counters,
    { written, forked: true },
    {
      klRefCoef: written.klRefCoef ?? config.klRefCoef,
    },
  );
  return { ...snapshot, counters };
}

interface Session {
  readonly rows: Record<string, number>[];
  readonly events: Record<string, unknown>[];
  readonly begin?: GrpoSnapshot | undefined;
  /** Iterations at most. */
  readonly until?: number;
}

/** Trains and fills the log; gives the message of the error that ended it, if one did. */
async function iterate(
  { task: name, tampering: how, seed }: Omit<LmJob, 'config'>,
  config: GrpoConfig,
  { rows, events, begin, until = Number.POSITIVE_INFINITY }: Session,
): Promise<{ readonly error: string | null; readonly snapshot?: GrpoSnapshot }> {
  const graded: Graded[] = [];
  const task = tamperTask(await lmTask(name), how, new Rng(seed + 7919), graded);
  const cap = config.maxNewTokens ?? task.maxNewTokens;
  const model = await baseModel(name, root);
  const watch: Watch = {
    how,
    clip: { low: config.clipLow, high: config.clipHigh },
    iteration: 0,
    get rewards() {
      return graded.map(({ reward }) => reward);
    },
    history: [],
    old: undefined,
    reference: undefined,
    batch: undefined,
    steps: noSteps(),
  };
  const unwatch = watchPrograms(watch);
  const trainer = createGrpoTrainer({ model, task, config });
  try {
    if (begin !== undefined) {
      trainer.restore(begin);
      watch.iteration = trainer.counters.iteration;
    }
    while (trainer.counters.steps < config.steps && rows.length < until) {
      graded.length = 0;
      watch.steps = noSteps();
      const { row, events: happened } = await trainer.iterate();
      rows.push({ ...shownOf(row), ...alsoOf(graded, task.rewardParts, watch, trainer.records, cap) });
      const { iteration, steps: step } = trainer.counters;
      events.push(...happened.map(event => ({ ...event, iteration, step })));
      watch.iteration++;
    }
    return { error: null, snapshot: trainer.snapshot() };
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) };
  } finally {
    unwatch();
    await trainer.dispose();
  }
}

/** Of a guard that is off there is nothing to say. */
function shownOf(row: Readonly<Record<string, number>>): Record<string, number> {
  return Object.fromEntries(
    Object.entries(row).filter(([name]) => !name.startsWith('guard/') && name !== 'kl/step_raw'),
  );
}

/** What other trainers log of an iteration and Keel does not. */
function alsoOf(
  graded: readonly Graded[],
  parts: readonly string[],
  watch: Watch,
  records: readonly GroupRecord[],
  cap: number,
): Record<string, number> {
  const { steps } = watch;
  const rewards = graded.map(({ reward }) => reward);
  const kls = referenceKls(watch);
  // A completion that ended has its end as last token; the others are as long as allowed.
  const lengths = (watch.batch?.sequences ?? []).map(({ tokens }) => tokens.length);
  return {
    'also/score': meanOf(graded.map(({ score }) => score)),
    'also/reward_max': Math.max(...rewards),
    'also/reward_min': Math.min(...rewards),
    ...Object.fromEntries(
      parts.map((name, i) => [`also/part_std/${name}`, stdOf(graded.map(g => g.parts[i]))]),
    ),
    ...(kls && { 'also/kl_ref_k1': kls.k1, 'also/kl_ref_k3': kls.k3 }),
    ...(steps.tokens > 0 && {
      'also/kl_step_k1': steps.k1 / steps.tokens,
      'also/clip_low': steps.low / steps.tokens,
      'also/clip_high': steps.high / steps.tokens,
      'also/clip': steps.clipped / steps.tokens,
    }),
    'also/entropy_before': meanOf(tokenEntropies(watch)),
    ...samplerOf(watch, records),
    'also/at_cap': lengths.filter(length => length === cap).length / lengths.length,
    'also/tokens': lengths.reduce((a, b) => a + b, 0),
  };
}

/** How the sampler's probabilities differ from the scorer's: verl's differences, TRL's ratios. */
function samplerOf({ batch, old }: Watch, records: readonly GroupRecord[]): Record<string, number> {
  if (!batch || !old) return {};
  const drawn = records.flatMap(({ completions }) => completions.map(({ logProbs }) => logProbs));
  const differences: number[] = [];
  const ratios: number[] = [];
  drawn.forEach((logProbs, row) => {
    logProbs.forEach((sampled, t) => {
      const scored = old.logProbs[row * batch.shape.newTokens + t];
      differences.push(Math.abs(Math.exp(scored) - Math.exp(sampled)));
      ratios.push(Math.exp(scored - sampled));
    });
  });
  return {
    'also/prob_diff': meanOf(differences),
    'also/prob_diff_max': Math.max(...differences),
    'also/sampling_ratio_min': Math.min(...ratios),
    'also/sampling_ratio_max': Math.max(...ratios),
  };
}

function tokenEntropies({ batch, old }: Watch): number[] {
  if (!batch || !old) return [];
  return batch.sequences.flatMap(({ tokens }, row) =>
    tokens.map((_, t) => old.entropy[row * batch.shape.newTokens + t]),
  );
}

const meanOf = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0) / values.length;

/** Of a sample, as PyTorch has it. */
function stdOf(values: readonly number[]): number {
  const mean = meanOf(values);
  return Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (values.length - 1));
}
