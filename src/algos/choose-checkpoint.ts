/** Which checkpoint of a run is meant, by one rule for everything that reads one: eval, export, record, `--from`. */

import { TrainError } from '../base/errors.ts';
import { knownEnv } from '../envs/registry.ts';
import { type Checkpoint, type CheckpointInfo, listCheckpoints, loadCheckpoint } from '../runs/checkpoint.ts';
import { kindOf } from '../runs/score.ts';
import type { Run } from '../runs/store.ts';
import type { WhichCheckpoint } from './algorithm.ts';

/** The checkpoint that is meant: as asked, else the best, else the last; undefined if it is not there. */
export function chooseCheckpoint(
  run: Pick<Run, 'dir' | 'manifest'>,
  wanted?: WhichCheckpoint,
): { readonly which: WhichCheckpoint; readonly found: CheckpointInfo | undefined } {
  const checkpoints = listCheckpoints(run.dir);
  const best = checkpoints.find(({ isBest }) => isBest);
  // A task, or an environment that is not known here, says nothing of its returns.
  const rule = knownEnv(run.manifest.environment.id)?.definition.checkpoint ?? 'best';
  // Evaluations play the same episodes each time: their returns compare in any case.
  const compares = rule === 'best' || kindOf(best?.index) === 'evaluation';
  const which = wanted ?? (compares && best !== undefined ? 'best' : 'last');
  if (which === 'best') return { which, found: best };
  return {
    which,
    found: checkpoints.find(({ step, isLast }) => (which === 'last' ? isLast : step === which)),
  };
}

/** The same, read and found whole. */
export function readCheckpoint(run: Omit<Run, 'status'>, wanted?: WhichCheckpoint): Checkpoint {
  const checkpoint = loadCheckpoint(run.dir, chooseCheckpoint(run, wanted).which);
  if (checkpoint === undefined) throw new TrainError(`${run.id} has no checkpoint yet: train it first`);
  return checkpoint;
}
