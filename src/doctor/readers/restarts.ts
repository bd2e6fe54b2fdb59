/** Finds where a counter of steps goes back, and what is thereby replaced. */
import type { RunBuilder } from './run-builder.ts';

export interface Restart {
  /** Row (or other position) of the first value after it. */
  readonly row: number;
  readonly before: number;
  readonly after: number;
}

export interface Replaced {
  readonly from: number;
  /** Exclusive. */
  readonly to: number;
}

/** A counter that goes back more often than this, or at every fourth row, is none: a step within an episode, say. */
const mostRestarts = 32;
const rowsPerRestart = 4;
/** A counter that goes back further than to this share of where it was began anew, else it went back to a checkpoint. */
const shareOfAnew = 0.1;

export interface Falls {
  readonly restarts: Restart[];
  /** Ranges of rows that restarts replace; they ascend and do not touch each other. */
  readonly replaced: Replaced[];
  /** Rows that came late. */
  readonly late: number[];
  /** Rows from which on the counter is counted on, and what it had come to by then. */
  readonly anew: { readonly row: number; readonly by: number }[];
}

/**
 * The one rule for counters that go back, for readers and dialects alike. `rows` ascend; `steps` are the counter at each
 * of them. A value below the one before it is a restart. One that goes back to a checkpoint replaces every earlier row
 * whose step it has yet to reach; one that begins anew repeats nothing, and is counted on if `countsOn`. If the next value
 * is beyond all that again, it was no restart: one row came late, as that of an evaluation does that ran beside the
 * training.
 */
export function findRestarts(
  rows: Float64Array,
  steps: Float64Array,
  length: number,
  countsOn = false,
): Falls {
  const restarts: Restart[] = [];
  const replaced: Replaced[] = [];
  const late: number[] = [];
  const anew: Falls['anew'] = [];
  const none: Falls = { restarts: [], replaced: [], late: [], anew: [] };
  // Indices of the rows that still count; their steps never fall.
  const kept = new Uint32Array(length);
  let size = 0;
  let begun = 0;
  let before = Number.NaN;
  for (let i = 0; i < length; i++) {
    const step = steps[i];
    if (!Number.isFinite(step)) continue;
    if (step < before) {
      if (comesLate(steps, length, i, before)) {
        late.push(rows[i]);
        continue;
      }
      restarts.push({ row: rows[i], before, after: step });
      if (restarts.length > mostRestarts) return none;
      if (countsOn && step >= 0 && step <= shareOfAnew * before) {
        anew.push({ row: rows[i], by: before });
        begun = size;
      } else {
        const old = size;
        while (size > begun && steps[kept[size - 1]] >= step) size--;
        if (size < old) {
          const from = rows[kept[size]];
          while (replaced.length > 0 && replaced.at(-1)!.from >= from) replaced.pop();
          replaced.push({ from, to: rows[i] });
        }
      }
    }
    kept[size++] = i;
    before = step;
  }
  if (restarts.length > 1 && restarts.length * rowsPerRestart > length) return none;
  return { restarts, replaced, late, anew };
}

/** Whether the row after a fall is further than all before it, or there is none yet. */
function comesLate(steps: Float64Array, length: number, at: number, before: number): boolean {
  let next = at + 1;
  while (next < length && !Number.isFinite(steps[next])) next++;
  return next >= length || steps[next] > before;
}

/**
 * Puts each series of a run in the order of its steps; what a restart repeats replaces what was there. Every series has
 * its own steps: that with the most points tells where the run was taken up again.
 */
export function replaceRepeated(run: RunBuilder): void {
  let [replacedValues, restarted, shuffled] = [0, 0, 0];
  let main: { points: number; restarts: readonly Restart[] } = { points: 0, restarts: [] };
  for (const builder of run.series.values()) {
    const { x, length } = builder.build();
    if (isAscending(x, length)) continue;
    const positions = Float64Array.from({ length }, (_, i) => i);
    const { restarts, replaced } = findRestarts(positions, x, length);
    if (restarts.length > 0) {
      restarted++;
      if (length > main.points) main = { points: length, restarts };
      replacedValues += builder.removeAt(replaced);
    } else shuffled++;
    // What came late, or goes back so often that it is no restart: several writers, or threads.
    builder.sort();
  }
  // A second file or session was already marked where it began.
  if (run.restarts.size < main.restarts.length)
    for (const { after } of main.restarts) run.restarts.add(after);
  if (restarted > 0) {
    run.note(
      `steps of ${restarted} series go back: the run was taken up again, and the ${replacedValues} values that it repeats count only as they were last`,
    );
  }
  if (shuffled > 0)
    run.note(`steps of ${shuffled} series came late or go back and forth: they are put in order`);
}

function isAscending(x: Float64Array, length: number): boolean {
  for (let i = 1; i < length; i++) if (x[i] < x[i - 1]) return false;
  return true;
}
