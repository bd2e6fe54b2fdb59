/** A cloner's snapshot as the files of a checkpoint, and back; the tensors are those of any policy. */
import { z } from 'zod';
import type { Parameters } from '../../../nn/parameters.ts';
import type { RngState } from '../../../random/rng.ts';
import type { MomentsState } from '../../../rollout/normalise.ts';
import type { Checkpoint } from '../../../runs/checkpoint.ts';
import {
  countersSchema,
  momentsSchema,
  readState,
  restoredCounters,
  rngSchema,
  savedCounters,
} from '../../checkpoint.ts';
import { tensorsFrom } from '../../ppo/checkpoint.ts';
import type { UpdateCounters } from '../../update/guarded.ts';

/** All that the future of a cloner depends on, besides its demonstrations, which the seed gives again. */
export interface ClonePolicySnapshot {
  readonly weights: Float32Array;
  readonly m: Float32Array;
  readonly v: Float32Array;
  readonly counters: UpdateCounters;
  readonly rng: { readonly order: RngState };
  readonly observationNormaliser: MomentsState | null;
}

/** What `state.json` holds: all of a snapshot that is not a tensor. */
export function stateOf({
  counters,
  rng,
  observationNormaliser,
}: ClonePolicySnapshot): Record<string, unknown> {
  return { counters: savedCounters(counters), rng, observationNormaliser };
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
  const { weights, m, v } = tensorsFrom(layout, checkpoint);
  const { iteration, step: steps } = checkpoint.index;
  return {
    ...{ weights, m, v, rng, observationNormaliser },
    counters: { ...restoredCounters(counters), iteration, steps },
  };
}
