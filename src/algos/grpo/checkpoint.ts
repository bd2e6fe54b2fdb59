/** A trainer's snapshot out of a checkpoint; text/checkpoint.ts has how it gets there. */
import { z } from 'zod';
import type { LanguageModel } from '../../lm/model.ts';
import type { Checkpoint } from '../../runs/checkpoint.ts';
import { countersSchema, readState, restoredCounters, rngSchema } from '../checkpoint.ts';
import { type TextSnapshot, textTensors } from '../text/checkpoint.ts';
import type { GrpoCounters } from './control.ts';

/** All that the future of a trainer depends on. */
export type GrpoSnapshot = TextSnapshot<GrpoCounters, 'prompt' | 'sample' | 'order'>;

const stateSchema = z.object({
  counters: countersSchema.extend({
    klRefCoef: z.number(),
    ungradedInARow: z.number(),
    bestReward: z.number().nullable(),
  }),
  rng: z.object({ prompt: rngSchema, sample: rngSchema, order: rngSchema }),
});

/** A snapshot from a checkpoint. */
export function snapshotFrom(model: LanguageModel, checkpoint: Checkpoint): GrpoSnapshot {
  const { counters, rng } = readState(checkpoint, stateSchema);
  return { ...textTensors(model, checkpoint), counters: restoredCounters(counters), rng };
}
