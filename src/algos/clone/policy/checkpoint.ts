/** A cloner's snapshot out of a checkpoint; ppo/checkpoint.ts has how any policy gets there. */
import { z } from 'zod';
import type { Parameters } from '../../../nn/parameters.ts';
import type { MomentsState } from '../../../rollout/normalise.ts';
import type { Checkpoint } from '../../../runs/checkpoint.ts';
import { countersSchema, momentsSchema, readState, restoredCounters, rngSchema } from '../../checkpoint.ts';
import { tensorsFrom } from '../../ppo/checkpoint.ts';
import type { UpdateCounters } from '../../update/guarded.ts';
import type { SavedTensors } from '../../update/state.ts';
import type { SavedState } from '../../update/trainer-state.ts';

/** All that the future of a cloner depends on, besides its demonstrations, which the seed gives again. */
export interface ClonePolicySnapshot extends SavedTensors, SavedState<UpdateCounters, 'order'> {
  readonly observationNormaliser: MomentsState | null;
}

const stateSchema = z.object({
  counters: countersSchema,
  rng: z.object({ order: rngSchema }),
  observationNormaliser: momentsSchema.nullish(),
});

/**
 * A snapshot from a checkpoint. Those of version 0.1.0 hold the state of PPO before its first step: its order is one that
 * will do, Adam's moments are 0 as after no step, and how far the run was stands in the index.
 */
export function snapshotFrom(layout: Parameters, checkpoint: Checkpoint): ClonePolicySnapshot {
  const { counters, rng, observationNormaliser = null } = readState(checkpoint, stateSchema);
  const { iteration, step: steps } = checkpoint.index;
  return {
    ...tensorsFrom(layout, checkpoint),
    ...{ rng, observationNormaliser },
    counters: { ...restoredCounters(counters), iteration, steps },
  };
}
