/** The runs of one file that has several. */
import type { Reading } from './bytes.ts';
import type { Candidate } from './candidate.ts';
import { formatOf, type Source } from './candidate.ts';
import { trainingsIn } from './console.ts';
import { longRuns } from './long-table.ts';
import { placeIn } from './places.ts';
import { RunBuilder } from './run-builder.ts';
import { storedRuns } from './stored-runs.ts';

/** A candidate for each run of a file, named by what tells them apart; the file itself where it has one run. */
export async function partsOf(candidate: Candidate, reading: Reading): Promise<Candidate[]> {
  const { source } = candidate;
  switch (source.kind) {
    case 'sqlite-file':
      return apart(
        candidate,
        storedRuns(source.file).map(run => [run.name, { kind: 'sqlite', file: source.file, run }]),
      );
    case 'long': {
      const scratch = new RunBuilder(source.file, 'csv', 'step');
      const runs = await longRuns(source.file, reading, scratch);
      return apart(
        candidate,
        runs.map(run => [run, { ...source, run }]),
      );
    }
    case 'console':
    case 'verl-console': {
      const { names } = await trainingsIn(source.file, reading);
      return apart(
        candidate,
        names.length < 2 ? [] : names.map((name, training) => [name, { ...source, training }]),
      );
    }
    default:
      return [candidate];
  }
}

/** What was said of the file is said of each of its runs. */
function apart(
  candidate: Candidate,
  runs: readonly (readonly [name: string, source: Source])[],
): Candidate[] {
  if (runs.length === 0) return [candidate];
  return runs.map(([name, source]) => ({
    ...candidate,
    path: runs.length === 1 ? candidate.path : placeIn(fileIn(candidate), name),
    format: formatOf(source),
    source,
  }));
}

const fileIn = ({ path, source }: Candidate): string => ('file' in source ? source.file : path);
