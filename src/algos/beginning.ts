/** Where a run goes on that ended before its first checkpoint: where it began, if that was not its seed. */
import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { RunError } from '../base/errors.ts';
import { typed } from '../base/typed.ts';
import { type Checkpoint, checkpointProblem, loadCheckpoint } from '../runs/checkpoint.ts';
import { referenceTo } from '../runs/reference.ts';
import type { Run } from '../runs/store.ts';
import type { Algorithm, Settings, Start } from './algorithm.ts';

/** What a run began from, read again. */
export interface Beginning {
  /** Of one that began from weights. */
  readonly start: Start | undefined;
  /** Of one that was forked: the checkpoint of its parent. */
  readonly checkpoint: Checkpoint | undefined;
  /** The settings that were written for the fork. */
  readonly written: Settings;
}

/** Undefined for a run that began from its seed. What is gone or damaged is an error that names it and the remedy. */
export function beginningOf({ id, dir, manifest }: Run, algorithm: Algorithm): Beginning | undefined {
  const { beginning } = manifest;
  if (beginning === undefined) return undefined;
  const { path, step, forked, written } = beginning;
  const problem = problemOf(path, step);
  if (problem !== undefined)
    throw new RunError(
      `${id} ended before its first checkpoint and would begin again from ${step === null ? '' : `checkpoint ${step} of `}${path}, but ${problem}: put that back, or delete this run (${typed('runs', 'delete', referenceTo(dir))}) and start it anew`,
      { code: 'no-beginning' },
    );
  if (forked) return { written, start: undefined, checkpoint: loadCheckpoint(path, step ?? 'last') };
  const start = algorithm.start?.(path, { checkpoint: step ?? undefined, root: dirname(path) });
  return { written, start, checkpoint: undefined };
}

function problemOf(path: string, step: number | null): string | undefined {
  if (!existsSync(path)) return 'that is not there';
  // All of it is read: what is damaged would give other bits.
  return step === null ? undefined : checkpointProblem(path, step);
}
