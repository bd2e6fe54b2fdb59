/** Checks all of a run on disk against itself: `keel runs verify`. Nothing is changed, and none of its code is run. */
import { statSync } from 'node:fs';
import { relative } from 'node:path';
import { codeOf, RunError } from '../base/errors.ts';
import { readLines } from '../metrics/lines.ts';
import { decodeRow, type Row } from '../metrics/row.ts';
import { runPaths } from './layout.ts';
import { parseEventLine, type RunStatus, type StoredEvent } from './schema.ts';
import { openRun } from './store.ts';
import { verifyCheckpoints } from './verify/checkpoints.ts';
import { verifyEvents } from './verify/events.ts';
import type { Evidence, Numbered, RunProblem, Tell } from './verify/evidence.ts';
import { verifyPolicy } from './verify/policy.ts';
import { verifyProjections } from './verify/projections.ts';
import { verifyRows } from './verify/rows.ts';

export type { RunProblem } from './verify/evidence.ts';

/** What a check of a run found. */
export interface RunVerdict {
  readonly id: string;
  readonly dir: string;
  readonly status: RunStatus;
  /** How much was looked at. */
  readonly rows: number;
  readonly events: number;
  readonly checkpoints: number;
  /** Empty if all is as it should be. */
  readonly problems: readonly RunProblem[];
}

/**
 * Checks a run: the sums of its checkpoints, that its rows are in order and complete, that CSV and TensorBoard files say
 * what `metrics.jsonl` says, that `kl/step` is within the guard's bound in every row, that events, checkpoints and state
 * agree with the rows, and that `policy.onnx` holds the weights of the last checkpoint.
 *
 * A run that is being trained, was killed or failed may end in the middle of an iteration, which is no problem: a resume
 * repairs that. Throws a `RunError` for what is not a run.
 */
export function verifyRun(dir: string): RunVerdict {
  const run = openRun(dir);
  const { metrics, events } = runPaths(run.dir);
  const problems: RunProblem[] = [];
  const tell: Tell = (path, place, text) => {
    const file = relative(run.dir, path);
    problems.push({ file, place, text: `${file}${place === undefined ? '' : `, ${place}`}: ${text}` });
  };
  const isWhole = run.status === 'finished' || run.status === 'stopped';
  const evidence: Evidence = {
    run,
    isWhole,
    rows: linesOf<Row>(metrics, decodeRow, isWhole, tell),
    events: linesOf<StoredEvent>(events, parseEventLine, isWhole, tell),
  };
  verifyRows(evidence, tell);
  verifyEvents(evidence, tell);
  const checkpoints = verifyCheckpoints(evidence, tell);
  verifyProjections(evidence, tell);
  verifyPolicy(evidence, tell);
  const { id, status } = run;
  const counts = { rows: evidence.rows.length, events: evidence.events.length, checkpoints };
  return { id, dir: run.dir, status, ...counts, problems };
}

/** The lines of a log that can be understood; the others are told. */
function linesOf<T>(path: string, decode: (line: string) => T, isWhole: boolean, tell: Tell): Numbered<T>[] {
  const found: Numbered<T>[] = [];
  let end = 0;
  try {
    for (const { text, number, end: after } of readLines(path)) {
      end = after;
      try {
        if (text === null) tell(path, `line ${number}`, 'it is far too long to be ours');
        else found.push({ line: number, item: decode(text) });
      } catch (error) {
        if (!(error instanceof RunError)) throw error;
        tell(path, `line ${number}`, `it is damaged: ${error.message}`);
      }
    }
    const { size } = statSync(path);
    if (isWhole && size > end)
      tell(path, `byte ${end}`, `${size - end} bytes without an end of line, expected none`);
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error;
    tell(path, undefined, 'it is missing');
  }
  return found;
}
