/** What a run on disk came to, up to a step: its objective, what the doctor says, its KL, its weights. */
import { KeelError } from '../base/errors.ts';
import { diagnose } from '../doctor/diagnose.ts';
import { toCanonical } from '../doctor/dialects/translate.ts';
import { findRuns } from '../doctor/readers/find.ts';
import { readRun } from '../doctor/readers/read.ts';
import type { Row } from '../metrics/row.ts';
import { listCheckpoints } from '../runs/checkpoint.ts';
import { readRows } from '../runs/log.ts';
import { recentReturn, scoreEpisodes } from '../runs/score.ts';
import { openRun } from '../runs/store.ts';
import type { Objective, RunOutcome } from '../studies/schema.ts';

/** What is known of a run from its directory alone. */
export type Judged = Omit<RunOutcome, 'run' | 'seed' | 'status' | 'seconds' | 'worker' | 'problem'>;

/** The names that weights have in a checkpoint: of policies, of language models. */
const weightFiles = ['policy.safetensors', 'model.safetensors'];

/**
 * Judges a run up to the first row that has `until` steps; a job may come again when the run is further already. The
 * doctor reads the whole of it then.
 */
export async function judge(dir: string, until: number | null, objective: Objective): Promise<Judged> {
  const { manifest } = openRun(dir);
  const all = readRows(dir).items;
  const last = until === null ? -1 : all.findIndex(row => row['train/step'] >= until);
  const rows = last < 0 ? all : all.slice(0, last + 1);
  const step = rows.at(-1)?.['train/step'] ?? 0;
  const kls = rows.map(row => row['kl/step']).filter(Number.isFinite);
  const files = listCheckpoints(dir).find(info => info.step === step)?.index?.files ?? {};
  const weights = weightFiles.find(name => Object.hasOwn(files, name));
  return {
    step,
    finished: manifest.status === 'finished' && rows.length === all.length,
    value: objectiveOf(rows, objective),
    ...(await verdictOn(dir)),
    klMedian: kls.length === 0 ? null : median(kls),
    klLargest: kls.length === 0 ? null : kls.reduce((a, b) => Math.max(a, b)),
    weights: weights === undefined ? null : files[weights].sha256,
  };
}

/** The objective of one run; null where its rows do not have it, or it is no number. */
export function objectiveOf(rows: readonly Row[], { metric, of, direction }: Objective): number | null {
  const isScore = metric === 'score';
  const series = (isScore ? scoresOf(rows) : rows.map(row => row[metric])).filter(Number.isFinite);
  if (series.length === 0) return null;
  switch (of) {
    case 'last':
      // A score is a mean of many episodes already.
      return isScore ? series.at(-1)! : mean(series.slice(-Math.ceil(series.length / 10)));
    case 'best':
      return series.reduce((a, b) => (direction === 'maximize' ? Math.max(a, b) : Math.min(a, b)));
    case 'mean':
      return mean(series);
  }
}

/** What checkpoints are scored by: evaluations where the run has some, else the newest episodes at each row. */
function scoresOf(rows: readonly Row[]): number[] {
  const evaluated = rows.map(row => row['eval/return']).filter(value => value !== undefined);
  if (evaluated.length > 0) return evaluated;
  return rows.map(
    (_, i) => recentReturn(rows.slice(Math.max(0, i + 1 - scoreEpisodes), i + 1)) ?? Number.NaN,
  );
}

async function verdictOn(dir: string): Promise<Pick<RunOutcome, 'verdict' | 'rootCause'>> {
  try {
    const { candidates } = await findRuns(dir);
    if (candidates.length === 0) return { verdict: null, rootCause: null };
    const { verdict, rootCause } = diagnose(toCanonical(await readRun(candidates[0])));
    return { verdict, rootCause };
  } catch (error) {
    // A log that says too little to judge, such as one without a row.
    if (error instanceof KeelError) return { verdict: null, rootCause: null };
    throw error;
  }
}

const mean = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0) / values.length;

function median(values: readonly number[]): number {
  const ordered = values.toSorted((a, b) => a - b);
  const middle = Math.floor(ordered.length / 2);
  return ordered.length % 2 === 1 ? ordered[middle] : (ordered[middle - 1] + ordered[middle]) / 2;
}
