/** What the doctor says of the one run in a file or directory. */
import { type Diagnosis, diagnose, findRuns, readRun, toCanonical } from '../../src/doctor/index.ts';

export async function diagnoseFile(path: string): Promise<Diagnosis> {
  const { candidates } = await findRuns(path);
  if (candidates.length !== 1) throw new Error(`${path} holds ${candidates.length} runs, one was written`);
  return diagnose(toCanonical(await readRun(candidates[0])));
}
