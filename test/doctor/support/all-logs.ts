/**
 * Every log that there is to try judgements on: both matrices of runs with known faults, the fixtures, and logs of other
 * people that lie beside the repository where there are any.
 */
import { existsSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { readCached } from '../../../bench/doctor/cache.ts';
import { readLmRuns } from '../../../bench/doctor/lm/cache.ts';
import { lmSpellingsOf, spellLm } from '../../../bench/doctor/lm/spellings.ts';
import { spell, spellingsOf } from '../../../bench/doctor/spellings.ts';
import type { CanonicalRun } from '../../../src/doctor/canonical.ts';
import { findRuns, readRun, toCanonical } from '../../../src/doctor/index.ts';

export interface Log {
  readonly name: string;
  readonly run: CanonicalRun;
}

const repository = resolve(import.meta.dirname, '../../..');
/** Logs of others are not in the repository. */
const others = join(repository, '..', 'shared', 'runs');
const fixtures = join(repository, 'test', 'doctor', 'fixtures');

/** Which of the runs of the matrices: all unless told, each as one trainer or another would have logged it. */
export async function allLogs({ every = 1 } = {}): Promise<{ logs: Log[]; scratch: string }> {
  const scratch = mkdtempSync(join(tmpdir(), 'keel-all-logs-'));
  const paths: string[] = [];
  for (const [i, cached] of readCached().entries()) {
    if (i % every !== 0) continue;
    const spellings = spellingsOf(cached);
    paths.push(spell(cached, spellings[i % spellings.length], scratch).path);
  }
  for (const [i, cached] of readLmRuns().entries()) {
    if (i % every !== 0) continue;
    const spellings = lmSpellingsOf(cached);
    paths.push(spellLm(cached, spellings[i % spellings.length], scratch));
  }
  paths.push(fixtures, ...(existsSync(others) ? [others] : []));
  const logs: Log[] = [];
  for (const path of paths) {
    const { candidates } = await findRuns(path);
    for (const candidate of candidates) {
      const run = toCanonical(await readRun(candidate));
      if (run.series.size > 0) logs.push({ name: candidate.path.replace(`${scratch}/`, ''), run });
    }
  }
  return { logs, scratch };
}
