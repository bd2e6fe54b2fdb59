/** A trainer's snapshot out of a checkpoint; text/checkpoint.ts has how it gets there. */
import { z } from 'zod';
import type { LanguageModel } from '../../../lm/model.ts';
import type { Checkpoint } from '../../../runs/checkpoint.ts';
import { countersSchema, readState, restoredCounters, rngSchema } from '../../checkpoint.ts';
import { type TextSnapshot, textTensors } from '../../text/checkpoint.ts';
import type { UpdateCounters } from '../../update/guarded.ts';

/** All that the future of a trainer depends on. */
export type CloneTextSnapshot = TextSnapshot<UpdateCounters, 'prompt'>;

const stateSchema = z.object({ counters: countersSchema, rng: z.object({ prompt: rngSchema }) });

/** A snapshot from a checkpoint. */
export function snapshotFrom(model: LanguageModel, checkpoint: Checkpoint): CloneTextSnapshot {
  const { counters, rng } = readState(checkpoint, stateSchema);
  return { ...textTensors(model, checkpoint), counters: restoredCounters(counters), rng };
}
