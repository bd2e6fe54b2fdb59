/** The sick language models of the matrix, trained again with the first fix of what the doctor says of each log. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type GrpoSettings, grpoSettings } from '../../../src/algos/grpo/settings.ts';
import { TrainError } from '../../../src/base/errors.ts';
import { firstHarm } from '../../../src/doctor/index.ts';
import { resolveSettings } from '../../../src/settings/resolve.ts';
import { report, round } from '../../measure.ts';
import { addRecord, type CureRecord, keyOf, readLines } from '../cure-records.ts';
import type { CureCase } from '../cure-table.ts';
import { diagnoseFile } from '../diagnose-file.ts';
import { isWell, type Span } from '../healthy.ts';
import type { From } from '../remedy.ts';
import { type LmRun, readLmRuns } from './cache.ts';
import { lastScore } from './harm.ts';
import { lmJobs } from './plan.ts';
import { type LmRemedy, lmRemedyOf } from './remedy.ts';
import { lmSpellingsOf, spellLm } from './spellings.ts';
import { trainLmJob } from './train.ts';

/** As `keel train` has it unless told. */
const checkpointEvery = 10;

type Lengths = Pick<GrpoSettings, 'steps' | 'promptsPerIteration' | 'groupSize'>;

/** What healthy runs of a task come to, and one that learns nothing (at a rate of 1e-8 to 1e-7), at a number of rows. */
function spansOf(runs: readonly LmRun[]): (task: string, config: Lengths) => Span {
  const meanOf = (task: string, variant: string, rows: number): number => {
    const scores = runs
      .filter(({ label }) => label.task === task && label.variant === variant)
      .map(one => lastScore(one.rows, rows))
      .filter(score => score !== null);
    return scores.reduce((a, b) => a + b, 0) / scores.length;
  };
  return (task, { steps, promptsPerIteration, groupSize }) => {
    const rows = Math.ceil(steps! / (promptsPerIteration! * groupSize!));
    return { healthy: meanOf(task, 'healthy', rows), random: meanOf(task, 'lr-low', rows) };
  };
}

const planned = new Map(lmJobs().map(job => [job.name, job]));

/** The run of the matrix that is the very same: nothing tampered with, the same settings and seed, so the same bits. */
function sameAs({ job }: LmRemedy, runs: readonly LmRun[]): LmRun | undefined {
  if (job.tampering !== null) return undefined;
  const wanted: object = resolveSettings(grpoSettings, { given: job.config });
  // A setting that is younger than the run has its default, and those of the autopilot are of a run that has one.
  const known = (own: object): string =>
    JSON.stringify(
      Object.entries({ ...grpoSettings.defaults, ...own })
        .filter(([key]) => !key.startsWith('autopilot'))
        .sort(),
    );
  return runs.find(
    ({ label, config }) =>
      label.task === job.task && label.tampering === null && known(config) === known(wanted),
  );
}

async function trained(
  run: string,
  from: From,
  iteration: number,
  { job, written, undone }: LmRemedy,
): Promise<CureRecord> {
  const parent = planned.get(run)!;
  const advice = { run, from, iteration, written: { ...written }, undone };
  try {
    const { label } = await trainLmJob(job, iteration === 0 ? undefined : { parent, iteration, written });
    return { ...advice, lastReturn: label.lastScore, error: label.error };
  } catch (error) {
    // Advice that the trainer refuses has cured nothing: more tokens than the model has room for.
    if (!(error instanceof TrainError)) throw error;
    return { ...advice, lastReturn: null, error: error.message };
  }
}

/** Every sick log of a language model, and what following its first advice came to. `train` false looks at what is there. */
export async function lmCureCases(filter: string, train: boolean): Promise<CureCase[]> {
  const runs = readLmRuns();
  const spanOf = spansOf(runs);
  const records = new Map(readLines<CureRecord>('lm-cures').map(record => [keyOf(record), record]));
  const root = mkdtempSync(join(tmpdir(), 'keel-lm-cures-'));
  const lines: CureCase[] = [];
  try {
    for (const one of runs.filter(({ label }) => label.fault !== null && label.name.includes(filter))) {
      const { name } = one.label;
      const { task } = one.label;
      for (const spelling of lmSpellingsOf(one)) {
        const diagnosis = await diagnoseFile(spellLm(one, spelling, root));
        if (diagnosis.verdict !== 'sick') continue;
        const remedy = lmRemedyOf(planned.get(name)!, diagnosis, spelling);
        const cures: Partial<Record<From, boolean | null>> = {};
        for (const from of ['start', 'checkpoint'] as const) {
          const harm = firstHarm(diagnosis);
          const at = spelling === 'keel' ? one.rows.filter(row => row['train/step'] < harm).length : 0;
          const iteration = from === 'start' ? 0 : at - (at % checkpointEvery);
          // Before the first checkpoint there is only the start. Checkpoints are counted in Keel's steps.
          if (from === 'checkpoint' && iteration === 0) continue;
          if (remedy === undefined) {
            cures[from] = null;
            continue;
          }
          // By its own length: the first runs of the matrix are longer than the plan has it now.
          const span = spanOf(task, remedy.job.config);
          const key = keyOf({ run: name, from, iteration, ...remedy, written: { ...remedy.written } });
          let record = records.get(key);
          const same = from === 'start' && record === undefined ? sameAs(remedy, runs) : undefined;
          if (same !== undefined) {
            const { lastScore: lastReturn, error } = same.label;
            const { undone } = remedy;
            record = {
              run: name,
              from,
              iteration,
              written: { ...remedy.written },
              undone,
              lastReturn,
              error,
            };
          }
          if (record === undefined && train) {
            const began = performance.now();
            record = await trained(name, from, iteration, remedy);
            records.set(key, record);
            addRecord('lm-cures', record);
            const seconds = round((performance.now() - began) / 1000, 1);
            report({ ...record, cured: isWell(record.lastReturn, span), seconds });
          }
          if (record !== undefined) cures[from] = record.error === null && isWell(record.lastReturn, span);
        }
        lines.push({
          label: one.label,
          wellBefore: isWell(one.label.lastScore, spanOf(task, one.config)),
          spelling,
          diagnosis,
          cures,
        });
      }
    }
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
  return lines;
}
