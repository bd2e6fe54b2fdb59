/**
 * What healthy runs of an environment come to, and policies that learn nothing: means over fresh seeds, trained once and kept
 * in `healthy.jsonl`. One healthy run is a noisy mark: of CartPole, at the steps of the matrix, seeds lie between 190 and 410.
 */
import { report } from '../measure.ts';
import { addRecord, readLines } from './cure-records.ts';
import { lastReturn } from './harm.ts';
import type { EnvId, Job } from './plan.ts';
import { trainJob } from './train-job.ts';

/** Seeds that nothing was tuned on. */
const seeds = Array.from({ length: 12 }, (_, i) => 1000 + i);

interface HealthyRecord {
  readonly env: EnvId;
  readonly variant: string;
  readonly seed: number;
  /** Mean true return of the last fifth of the rows up to so many steps. */
  readonly returns: Readonly<Record<string, number>>;
}

/** The two ends of what a run can come to, at a number of steps. */
export interface Span {
  readonly healthy: number;
  readonly random: number;
}

/** Trains what is missing; `train` false looks at what is there. */
export async function healthySpans(jobs: readonly Job[], train: boolean): Promise<(of: Job) => Span> {
  const records = readLines<HealthyRecord>('healthy');
  for (const variant of ['healthy', 'lr-low']) {
    for (const job of jobs.filter(one => one.variant === variant && one.seed === 0)) {
      const lengths = new Set(jobs.filter(({ env }) => env === job.env).map(({ config }) => config.steps!));
      // Those of Keel's own preset are several times as long.
      lengths.delete(Math.max(...lengths));
      for (const seed of variant === 'lr-low' ? seeds.slice(0, 3) : seeds) {
        const there = records.some(
          one => one.env === job.env && one.variant === variant && one.seed === seed,
        );
        if (there || !train) continue;
        const config = { ...job.config, seed, steps: Math.max(...lengths) };
        const { log } = await trainJob({ ...job, seed, config });
        const returns = Object.fromEntries([...lengths].map(steps => [steps, lastReturn(log, steps)!]));
        const record: HealthyRecord = { env: job.env, variant, seed, returns };
        records.push(record);
        addRecord('healthy', record);
        report({ ...record });
      }
    }
  }
  return ({ env, config: { steps } }) => {
    const meanOf = (variant: string): number => {
      const returns = records
        .filter(one => one.env === env && one.variant === variant)
        .map(one => one.returns[String(steps)]);
      return returns.reduce((a, b) => a + b, 0) / returns.length;
    };
    // At a rate of 1e-7 a policy is what it was at the start.
    return { healthy: meanOf('healthy'), random: meanOf('lr-low') };
  };
}

/** Within a tenth of the healthy return, of the way from one that learns nothing. */
export function isWell(reached: number | null, { healthy, random }: Span): boolean {
  return reached !== null && reached >= healthy - 0.1 * (healthy - random);
}

/** How often a healthy run itself is within that: what no cure can be better than. */
export function wellOfHealthy(jobs: readonly Job[], spanOf: (of: Job) => Span): Record<string, unknown>[] {
  const records = readLines<HealthyRecord>('healthy');
  return jobs
    .filter(({ variant, seed }) => variant === 'healthy' && seed === 0)
    .map(job => {
      const span = spanOf(job);
      const own = records.filter(({ env, variant }) => env === job.env && variant === 'healthy');
      const well = own.filter(({ returns }) => isWell(returns[String(job.config.steps)], span)).length;
      return { healthy_runs_of: job.env, ...span, runs: own.length, within_a_tenth: well };
    });
}
