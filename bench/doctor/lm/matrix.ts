/** What the doctor says of the language models of known cause, as Keel, TRL and verl would have logged them. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { diagnoseFile } from '../diagnose-file.ts';
import type { Case } from '../matrix.ts';
import { readLmRuns } from './cache.ts';
import { lmJobs } from './plan.ts';
import { lmSpellingsOf, spellLm } from './spellings.ts';

/** A log, with the task and seed that say whether rules were tuned on it. */
export interface LmCase extends Case {
  readonly task: string;
  readonly seed: number;
}

/** Every cached run in every spelling. */
export async function lmCases(filter: string): Promise<LmCase[]> {
  const root = mkdtempSync(join(tmpdir(), 'keel-doctor-lm-'));
  const cases: LmCase[] = [];
  const traceless = new Set(
    lmJobs()
      .filter(job => job.traceless)
      .map(({ name }) => name),
  );
  try {
    for (const run of readLmRuns().filter(({ label }) => label.name.includes(filter))) {
      for (const source of lmSpellingsOf(run)) {
        const said = await diagnoseFile(spellLm(run, source, root));
        const { name, fault, harmless, heldOut, task, seed } = run.label;
        cases.push({
          name,
          source,
          fault,
          harmless,
          traceless: traceless.has(name),
          heldOut,
          said,
          task,
          seed,
        });
      }
    }
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
  return cases;
}
