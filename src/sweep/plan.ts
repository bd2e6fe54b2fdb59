/** All runs of a study whose trials do not depend on each other, in order: what a batch scheduler is given by number. */
import { ConfigError } from '../base/errors.ts';
import type { Params, Study } from '../studies/schema.ts';
import { makeSampler } from './samplers/make.ts';

/** One run to be done: of which trial, with which settings and seed. */
export interface PlannedRun {
  readonly trial: number;
  readonly params: Params;
  readonly seed: number;
}

/** Why a study cannot be planned ahead; undefined if it can. */
function unplannable({ method, halving }: Pick<Study, 'method' | 'halving'>): string | undefined {
  if (halving !== null) return 'halving decides by results who goes on';
  if (method === 'tpe') return 'method tpe decides by results what is tried next';
  return undefined;
}

export function planOf(study: Study): PlannedRun[] {
  const why = unplannable(study);
  if (why !== undefined)
    throw new ConfigError(
      `${study.name} cannot be planned ahead: ${why}; use method random, quasi-random or grid without halving, or workers on a queue (--queue)`,
    );
  const sampler = makeSampler(study);
  const runs: PlannedRun[] = [];
  for (let trial = 0; trial < study.trials; trial++) {
    const params = sampler.ask(trial, []);
    if (params === undefined) break;
    for (const seed of study.seeds) runs.push({ trial, params, seed });
  }
  return runs;
}
